"""`docs/settings.md`: every setting, for operators to read."""

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from recollect.settings import Settings


def settings_page() -> str:
    """`docs/settings.md`: every variable with its default and what it does."""
    rows = [_row(name, field) for name, field in Settings.model_fields.items()]
    return "\n".join(
        [
            "# Settings",
            "",
            "Every setting is an environment variable. Made from `recollect.settings` by "
            "`recollect reference settings`; do not edit.",
            "",
            "| variable | default | what it does |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _row(name: str, field: FieldInfo) -> str:
    default = field.default
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    default_text = "unset" if default is None else f"`{default}`"
    return f"| `RECOLLECT_{name.upper()}` | {default_text} | {field.description} |".replace("\\|", "|")
