"""The commands on a page of the documentation: its blocks marked `shell` or `python`."""

from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_PIECES = {"shell": "{}", "python": "python - <<'END_OF_PYTHON'\n{}END_OF_PYTHON\n"}


def fences_of(text: str) -> list[Token]:
    """Every fenced block of a page's text."""
    return [token for token in MarkdownIt().parse(text) if token.type == "fence"]


def scripts_of(page: str) -> list[str]:
    """Each block of the page, which is a path in the repository, as a shell script."""
    blocks = fences_of((ROOT / page).read_text())
    return [_PIECES[block.info].format(block.content) for block in blocks if block.info in _PIECES]


def script_of(page: str) -> str:
    """All blocks of the page as one shell script, from top to bottom."""
    return "".join(scripts_of(page))
