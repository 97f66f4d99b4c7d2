"""Pages of the documentation that are made from the code."""

from pathlib import Path

from recollect_cli.reference import settings_page

DOCS = Path(__file__).parents[2] / "docs"


def test_every_setting_is_documented() -> None:
    """Make it anew with: .venv/bin/recollect reference settings > docs/settings.md"""
    assert (DOCS / "settings.md").read_text() == settings_page()
