"""The generated files of the chart: its README from the comments of values.yaml, and the settings in its schema.

.venv/bin/python -m tests.verify.chart.generated
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from recollect.settings import Settings

CHART = Path(__file__).parents[3] / "helm" / "recollect"
VALUES, README, SCHEMA = CHART / "values.yaml", CHART / "README.md", CHART / "values.schema.json"
INTRODUCTION = CHART / "README.head.md"

ADDRESSES = {
    "CELLS",
    "DATABASE_URL",
    "MAINTENANCE_DATABASE_URL",
    "OPERATOR_DATABASE_URL",
    "OWNER_DATABASE_URL",
    "REDIS_URL",
    "REPLICA_DATABASE_URL",
}
"""Settings that hold a password, though their type does not say so."""

SECRETS = ADDRESSES | {
    name.upper() for name, field in Settings.model_fields.items() if "SecretStr" in repr(field.annotation)
}
"""Settings that are secret or hold a password."""

OTHER_VALUES = {
    "ALLOWED_HOSTS",
    "CELL",
    "DATABASE_POOLED",
    "DATA_DIR",
    "DRAIN_SECONDS",
    "FINISH_SECONDS",
    "HOST",
    "METRICS_HOST",
    "METRICS_PORT",
    "OPERATOR_HOST",
    "OPERATOR_PORT",
    "PORT",
    "PUBLIC_URL",
    "TRUSTED_PROXIES",
}
"""Settings that follow from other values of the chart, or that no pod has."""


def settings_schema() -> dict[str, Any]:
    """The schema of the settings that values may contain, with their types; a list may be JSON, as in a variable."""
    types = {"integer": "integer", "number": "number", "boolean": "boolean", "array": "array"}
    properties = {}
    for name, described in sorted(Settings.model_json_schema()["properties"].items()):
        if name.upper() in SECRETS | OTHER_VALUES:
            continue
        of = described.get("type")
        properties[f"RECOLLECT_{name.upper()}"] = {"type": ["string", types[of]] if of in types else "string"}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def schema() -> str:
    """values.schema.json with the current settings."""
    written = json.loads(SCHEMA.read_text())
    written["definitions"]["settings"] = settings_schema()
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def described_values() -> list[tuple[str, str, str]]:
    """The values with a comment `# --`: the path, the default as JSON, and the comment."""
    lines = VALUES.read_text().splitlines()
    found: list[tuple[str, str, str]] = []

    def walk(node: yaml.MappingNode, path: str) -> None:
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else key.value
            if comment := _comment_above(lines, key.start_mark.line):
                found.append((name, _default(value), comment))
            elif isinstance(value, yaml.MappingNode):
                walk(value, name)
            else:
                raise ValueError(f"{name} has no comment")

    values = yaml.compose(VALUES.read_text())
    assert isinstance(values, yaml.MappingNode), "values.yaml is a mapping"
    walk(values, "")
    return found


def _comment_above(lines: list[str], line: int) -> str:
    """The comment that begins with `# --` and ends above this line, in one line; empty if there is none."""
    begin = line
    while lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
        if lines[begin].lstrip().startswith("# --"):
            return " ".join(each.strip().lstrip("# ").removeprefix("-- ").strip() for each in lines[begin:line])
    return ""


def _default(node: yaml.Node) -> str:
    value = yaml.SafeLoader("").construct_document(node)
    return json.dumps(value, ensure_ascii=False)


def readme() -> str:
    """README.md: the part that is written by hand, and a table of all values."""
    rows = "".join(
        f"| `{path}` | `{default}` | {re.sub(r'[|]', chr(92) + '|', comment)} |\n"
        for path, default, comment in described_values()
    )
    return f"{INTRODUCTION.read_text()}\n## Values\n\n| value | default | what it does |\n|---|---|---|\n{rows}"


if __name__ == "__main__":
    SCHEMA.write_text(schema())
    README.write_text(readme())
