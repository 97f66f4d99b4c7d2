"""The lines of `docs/security.md`: each has an id, by which marks on tests name it (`security: cookies`).

The page is written by hand, but for its column of tests: `make pages` fills it from the marks.
"""

import re
from dataclasses import dataclass

from tests.support.promises import ROOT, links_to, proofs_of

PAGE = ROOT / "docs" / "security.md"
_TABLE = re.compile(r"^\| id \| guarantee \| where \| test \|\n\|[-|]+\|\n((?:\|.*\n)*)", re.MULTILINE)
_LINE = re.compile(r"\| `([a-z0-9-]+)` \| ([^|]+) \| ([^|]+) \|[^|]*\|?")


@dataclass(frozen=True, slots=True)
class Guard:
    """A guarantee against attackers, and where it is enforced."""

    key: str
    holds: str
    where: str

    @property
    def id(self) -> str:
        """What marks on tests call it."""
        return f"security: {self.key}"


def guards() -> list[Guard]:
    """Every line of the page's tables. Raises ValueError for one that is not `| id | guarantee | where | test |`."""
    tables: list[str] = _TABLE.findall(PAGE.read_text())
    return [_guard(line) for table in tables for line in table.splitlines()]


def security_page() -> str:
    """`docs/security.md`, with the tests of each line as they are now."""
    return _TABLE.sub(_with_tests, PAGE.read_text())


def _with_tests(table: re.Match[str]) -> str:
    head = table[0].removesuffix(table[1])
    return head + "".join(f"{_line(_guard(line))}\n" for line in table[1].splitlines())


def _guard(line: str) -> Guard:
    if (found := _LINE.fullmatch(line)) is None:
        raise ValueError(f"Not a line `| id | guarantee | where | test |` of docs/security.md: {line}")
    return Guard(*found.groups())


def _line(guard: Guard) -> str:
    return f"| `{guard.key}` | {guard.holds} | {guard.where} | {links_to(proofs_of(guard.id))} |"
