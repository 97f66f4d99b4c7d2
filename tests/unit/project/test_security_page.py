"""Tests prove each line of `docs/security.md`, and the page names them."""

import pytest

from tests.contract.security import PAGE, guards, security_page
from tests.support.promises import proofs_of


def test_a_test_proves_each_line(subtests: pytest.Subtests) -> None:
    assert len(guards()) > 100
    for guard in guards():
        with subtests.test(guard.id):
            assert proofs_of(guard.id)


def test_each_table_of_guards_is_read() -> None:
    """Else a line of it would need no test."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert len(lines) == len(guards())


def test_the_page_is_up_to_date() -> None:
    """Regenerate it with: make pages"""
    assert PAGE.read_text() == security_page()
