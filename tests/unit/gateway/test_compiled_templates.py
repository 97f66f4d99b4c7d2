"""Compiled templates are read again while nothing changed on which they depend, and never otherwise."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader

from recollect_http.web.compiled_templates import CompiledTemplates


class Counting(Environment):
    """Counts what it compiles."""

    compiled = 0

    def _generate(self, *arguments: Any, **options: Any) -> str:
        self.compiled += 1
        return super()._generate(*arguments, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.html").write_text("Hello {{ name }}")
    return tmp_path


def shown(folder: Path, made_by: bytes = b"these options") -> tuple[str, int]:
    """The page by an environment that has just started, and how many templates it compiled."""
    environment = Counting(loader=FileSystemLoader(folder), bytecode_cache=CompiledTemplates(made_by))
    return environment.get_template("page.html").render(name="Ada"), environment.compiled


def stored(folder: Path) -> list[Path]:
    return list((folder / "__pycache__").glob("*"))


def test_a_template_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert [shown(folder), shown(folder)] == [("Hello Ada", 1), ("Hello Ada", 0)]
    assert [path.suffix for path in stored(folder)] == [".pyc"]


def test_what_changed_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    shown(folder)
    assert shown(folder, b"other options") == ("Hello Ada", 1)
    os.utime(folder / "page.html", (0, 0))
    (folder / "page.html").write_text("Howdy {{ name }}")  # as long as before
    assert shown(folder, b"other options") == ("Howdy Ada", 1)


def test_a_damaged_file_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    shown(folder)
    (file,) = stored(folder)
    whole = file.read_bytes()
    for name, damaged in {
        "empty": b"",
        "cut off in its header": whole[:12],
        "cut off in its checksum": whole[:40],
        "cut off in its code": whole[:-20],
        "something else": b"hello",
    }.items():
        with subtests.test(name):
            file.write_bytes(damaged)
            assert [shown(folder), shown(folder)] == [("Hello Ada", 1), ("Hello Ada", 0)]


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [shown(folder), shown(folder)] == [("Hello Ada", 1), ("Hello Ada", 1)]
    assert stored(folder) == []


def test_a_folder_into_which_nothing_can_be_written_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (folder / "__pycache__").write_text("a file where the folder would be")
    assert [shown(folder), shown(folder)] == [("Hello Ada", 1), ("Hello Ada", 1)]
