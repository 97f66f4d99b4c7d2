"""Which marks on tests prove something: those on tests that run wherever `make test` or `make test-slow` runs."""

from pathlib import Path

import pytest

from tests.contract import security
from tests.support.promises import marks_in

FILE = "tests/unit/test_tea.py"
MARK = '@pytest.mark.proves("agent: recall")'
PROVING = {
    "a function": f"{MARK}\ndef test_a(): ...",
    "a coroutine": f"{MARK}\nasync def test_a(): ...",
    "below another decorator": f'@pytest.mark.parametrize("x", [1])\n{MARK}\ndef test_a(x): ...',
    "a class's test": f"class TestA:\n    {MARK}\n    def test_a(self): ...",
    "two marks": f'{MARK}\n@pytest.mark.proves("agent: recall")\ndef test_a(): ...',
    "other marks of the file": f"pytestmark = pytest.mark.usefixtures('tea')\n{MARK}\ndef test_a(): ...",
}
VOID = {
    "a helper": f"{MARK}\ndef brew(): ...",
    "a class": f"{MARK}\nclass TestA:\n    def test_a(self): ...",
    "a test of a class that is none of tests": f"class Kettle:\n    {MARK}\n    def test_a(self): ...",
    "a test inside a function": f"def brew():\n    {MARK}\n    def test_a(): ...",
    "a skipped test": f"@pytest.mark.skip\n{MARK}\ndef test_a(): ...",
    "a test that is skipped somewhere": f"{MARK}\n@pytest.mark.skipif(True, reason='x')\ndef test_a(): ...",
    "a test that is skipped by a name": f"x = pytest.mark.skipif(True, reason='x')\n{MARK}\n@x\ndef test_a(): ...",
    "a test that may fail": f"{MARK}\n@pytest.mark.xfail(reason='x')\ndef test_a(): ...",
    "a test of a skipped class": f"@pytest.mark.skip\nclass TestA:\n    {MARK}\n    def test_a(self): ...",
    "a test of a skipped file": f"pytestmark = [pytest.mark.skip]\n{MARK}\ndef test_a(): ...",
    "a case of a test": f"@pytest.mark.parametrize('x', [pytest.param(1, marks={MARK[1:]})])\ndef test_a(x): ...",
    "the file": f"pytestmark = {MARK[1:]}\ndef test_a(): ...",
    "a computed name": "@pytest.mark.proves(f'agent: {x}')\ndef test_a(): ...",
    "no name": "@pytest.mark.proves()\ndef test_a(): ...",
    "a mark that is not called": "@pytest.mark.proves\ndef test_a(): ...",
}


def test_marks_of_running_tests_prove_their_promises(subtests: pytest.Subtests) -> None:
    for where, text in PROVING.items():
        with subtests.test(where):
            marks = marks_in(FILE, text)
            assert [proof.promises for proof in marks.proofs] == [("agent: recall",)]
            assert marks.void == ()


def test_other_marks_prove_nothing(subtests: pytest.Subtests) -> None:
    for where, text in VOID.items():
        with subtests.test(where):
            marks = marks_in(FILE, text)
            assert marks.proofs == ()
            assert len(marks.void) == 1


@pytest.mark.parametrize("path", ["tests/verify/test_tea.py", "tests/support/tea.py"])
def test_tests_that_make_test_does_not_run_prove_nothing(path: str) -> None:
    marks = marks_in(path, PROVING["a function"])
    assert marks.proofs == ()
    assert len(marks.void) == 1


def test_a_proof_has_its_class_and_what_it_says_without_its_marks() -> None:
    text = f'import x\n\nclass TestA:\n    {MARK}\n    @x.y("brew")\n    def test_a(self):\n        assert self.tea()'
    (proof,) = marks_in(FILE, text).proofs
    assert (proof.path, proof.name) == (FILE, "TestA::test_a")
    assert "recall" not in proof.source
    assert all(said in proof.source for said in ("brew", "self.tea()"))


def test_a_guard_is_read_with_and_without_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new line needs no column of tests; `make pages` adds it."""
    head = "# Tea\n\n| id | guarantee | where | test |\n|---|---|---|---|\n"
    page = tmp_path / "security.md"
    monkeypatch.setattr(security, "PAGE", page)
    for line in ("| `no-tea` | It is hot. | `pot` |", "| `no-tea` | It is hot. | `pot` | |"):
        page.write_text(f"{head}{line}\n\nMore.\n")
        assert [(guard.id, guard.where) for guard in security.guards()] == [("security: no-tea", "`pot`")]
        assert security.security_page() == f"{head}| `no-tea` | It is hot. | `pot` |  |\n\nMore.\n"
    page.write_text(f"{head}| It is hot. | `pot` | |\n")
    with pytest.raises(ValueError, match="Not a line"):
        security.guards()
