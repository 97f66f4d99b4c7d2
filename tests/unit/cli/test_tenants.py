"""How `recollect tenants` prints tenants."""

import pytest

from recollect_cli.tenants import _show

TENANT = {
    "slug": "acme",
    "name": "Acme",
    "status": "active",
    "plan": "team",
    "created_at": "2026-11-28T12:00:00Z",
    "erase_at": None,
    "cell": "home",
}


def test_a_request_for_deletion_has_a_column_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = TENANT | {"slug": "asked", "deletion_due_at": "2026-12-05T12:00:00Z"}
    _show([TENANT, asked])
    assert [line.split("\t")[-1] for line in capsys.readouterr().out.splitlines()] == ["", "2026-12-05T12:00"]
    _show([TENANT])
    assert "2026-12-05" not in capsys.readouterr().out
