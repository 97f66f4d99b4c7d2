"""Each line of `docs/security.md` names an existing test that `make test` runs."""

import re

import pytest

from tests.contract.coverage import ROOT, source_of

PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))
SECTIONS = re.findall(r"^\| what holds \| where \| test \|\n\|[-|]+\|\n((?:\| .*\n)+)", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("test", NAMED)
def test_each_named_test_exists(test: str) -> None:
    assert source_of(test) is not None


def test_every_line_names_a_test() -> None:
    lines = [line for section in SECTIONS for line in section.splitlines()]
    assert len(lines) > 30
    for line in lines:
        assert re.search(r"`tests/[^`]+::[^`]+` ?", line.rsplit("|", 2)[1]), line
