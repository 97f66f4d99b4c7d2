"""The commands of a page of the documentation: what its blocks marked `shell` or `python` say."""

from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_PIECES = {"shell": "{}", "python": "python - <<'END_OF_PYTHON'\n{}END_OF_PYTHON\n"}


def fences_of(text: str) -> list[Token]:
    """Every fenced block of a page's text."""
    return [token for token in MarkdownIt().parse(text) if token.type == "fence"]


def scripts_of(page: str) -> list[str]:
    """Each block of the page, a file of the tree, as a script of a shell."""
    blocks = fences_of((ROOT / page).read_text())
    return [_PIECES[block.info].format(block.content) for block in blocks if block.info in _PIECES]


def script_of(page: str) -> str:
    """The page's blocks as one script of a shell, from top to bottom."""
    return "".join(scripts_of(page))
