"""What `docs/security.md` says is enforced has tests that run wherever `make test` does."""

import re

import pytest

from tests.contract.coverage import ROOT, source_of

PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))
SECTIONS = re.findall(r"^\| what holds \| where \| test \|\n\|[-|]+\|\n((?:\| .*\n)+)", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("test", NAMED)
def test_each_that_is_named_is_there(test: str) -> None:
    assert source_of(test) is not None


def test_every_line_names_one() -> None:
    lines = [line for section in SECTIONS for line in section.splitlines()]
    assert len(lines) > 30
    for line in lines:
        assert re.search(r"`tests/[^`]+::[^`]+` ?", line.rsplit("|", 2)[1]), line
