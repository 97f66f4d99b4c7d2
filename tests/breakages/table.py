"""The table of breakages (breakages.toml)."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("breakages.toml")


@dataclass(frozen=True, slots=True)
class Breakage:
    """One fault to put into the code: in `file`, the only occurrence of `find` becomes `replace`.

    `tests`: the files or folders in which a test should notice it. `noticed`: whether one did when the entry was made.
    """

    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    noticed: bool

    def broken(self, text: str) -> str:
        """The text of the file with the fault. Raises ValueError where `find` does not occur once."""
        if text.count(self.find) != 1:
            raise ValueError(f"{self.name}: its text occurs {text.count(self.find)} times in {self.file}")
        return text.replace(self.find, self.replace)

    @contextmanager
    def applied_to(self, tree: Path) -> Iterator[None]:
        """Break the code of a tree while the block lasts."""
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        path.write_text(self.broken(text), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")


def read_table() -> list[Breakage]:
    """All breakages, in the order of the table."""
    entries: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["breakages"]
    return [Breakage(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


def select_breakages(table: Sequence[Breakage], words: Sequence[str]) -> list[Breakage]:
    """Those whose names contain one of the words, in any case; all without words. Raises ValueError for other words."""
    chosen = {word: [breakage for breakage in table if word.lower() in breakage.name.lower()] for word in words}
    for word, found in chosen.items():
        if not found:
            raise ValueError(f"No breakage's name contains {word!r}")
    return [breakage for breakage in table if not words or any(breakage in found for found in chosen.values())]
