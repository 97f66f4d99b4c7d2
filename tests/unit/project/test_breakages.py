"""The breakages can still be put into the code, and the runner tells noticed from unnoticed ones."""

import ast
from pathlib import Path

import pytest

from tests.breakages.table import ROOT, Breakage, read_table, select_breakages
from tests.breakages.tree import imported_from, make_environment, run_tests
from tests.support.timeouts import MAX_WAIT_SECONDS

BREAKAGE = Breakage(
    "Sums: one too many", "shared/recollect/sums.py", "a + b", "a + b + 1", ("tests/test_sums.py",), noticed=True
)
SUMS = "def add(a, b):\n    return a + b\n\n\ndef negated(a):\n    return -a\n"
TESTS_OF_SUMS = """
from recollect.sums import add, negated

def test_add():
    assert add(1, 1) == 2

def test_negated():
    assert negated(1) == -1
"""
ENDLESS_TEST = "import threading\n\n\ndef test_endless():\n    threading.Event().wait()\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree with a core of its own, and tests of it."""
    for file, text in {
        "shared/recollect/__init__.py": "",
        BREAKAGE.file: SUMS,
        "tests/test_sums.py": TESTS_OF_SUMS,
        "tests/test_endless.py": ENDLESS_TEST,
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    make_environment(tmp_path)
    return tmp_path


def test_each_breakage_of_the_table_can_be_put_into_the_code(subtests: pytest.Subtests) -> None:
    table = read_table()
    assert len({breakage.name for breakage in table}) == len(table) >= 40
    for breakage in table:
        with subtests.test(breakage.name):
            text = (ROOT / breakage.file).read_text(encoding="utf-8")
            broken = breakage.broken(text)
            assert broken != text
            assert breakage.tests
            assert [path for path in breakage.tests if not (ROOT / path).exists()] == []
            if breakage.file.endswith(".py"):
                ast.parse(broken)  # Whoever broke it could have meant it.


@pytest.mark.parametrize("text", ["", "a - b", "a + b, a + b"])
def test_a_breakage_whose_text_is_not_there_once_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="Sums: one too many"):
        BREAKAGE.broken(text)


def test_breakages_are_chosen_by_words_of_their_names() -> None:
    assert select_breakages([BREAKAGE], []) == select_breakages([BREAKAGE], ["sums", "Many"]) == [BREAKAGE]
    with pytest.raises(ValueError, match="'parts'"):
        select_breakages([BREAKAGE], ["sums", "parts"])


def test_tests_of_a_tree_run_its_own_code(tree: Path) -> None:
    assert imported_from(tree) == tree / "shared" / "recollect" / "__init__.py"
    with BREAKAGE.applied_to(tree):
        failed = run_tests(tree, BREAKAGE.tests, seconds=MAX_WAIT_SECONDS, stop_at_first=False)
    assert failed == ["tests/test_sums.py::test_add"]
    assert (tree / BREAKAGE.file).read_text() == SUMS


def test_tests_that_do_not_end_have_noticed_nothing(tree: Path) -> None:
    with pytest.raises(TimeoutError):
        run_tests(tree, ["tests/test_endless.py"], seconds=0.1, stop_at_first=True)
