"""The documented table of roles agrees with the code."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from recollect.accounts.members.model import require_may_give
from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect.errors import Forbidden
from recollect.ids import new_id

OWNERS = "make and unmake owners, ask for the [deletion of the organisation](console.md)"
PAGE = Path(__file__).parents[3] / "docs" / "people.md"


def table() -> dict[str, dict[Role, bool]]:
    """The rows of the table of roles: each permission, and which roles have it."""
    section = PAGE.read_text().partition("## Roles")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    roles = [Role(name) for name in rows[0][1:]]
    return {row[0]: {role: cell == "yes" for role, cell in zip(roles, row[1:], strict=True)} for row in rows[2:]}


@pytest.mark.parametrize("role", Role)
def test_the_table_of_roles_lists_the_scopes_of_each_role(role: Role) -> None:
    documented = {
        Scope(scope) for row, may in table().items() for scope in re.findall(r"\(`([^`]+)`\)", row) if may[role]
    }
    assert documented == ROLE_SCOPES[role]


@pytest.mark.parametrize("role", Role)
def test_the_table_of_roles_says_which_role_makes_owners(role: Role) -> None:
    caller = Caller(new_id(), "acme", "person:x", ROLE_SCOPES[role], role=role)
    try:
        require_may_give(caller, Role.OWNER)
        may = True
    except Forbidden:
        may = False
    assert may is table()[OWNERS][role]


def test_each_role_has_the_scopes_of_the_roles_below_it() -> None:
    scopes = [ROLE_SCOPES[role] for role in (Role.READER, Role.MEMBER, Role.ADMIN, Role.OWNER)]
    assert all(lower <= higher for lower, higher in pairwise(scopes))
