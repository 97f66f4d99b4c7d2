"""Further cells are read from one setting, and each gives the addresses of its own."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.settings.cells import MAX_CELLS, CellUrls

B = {"database_url": "postgresql://app@b/recollect", "owner_database_url": "postgresql://owner@b/recollect"}


def test_each_has_its_own_addresses_and_all_else_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_CELLS", json.dumps({"c": {"database_url": "postgresql://app@c/r"}, "b": B}))
    settings = Settings(maintenance_database_url="postgresql://maintenance@home/recollect", database_pool_size=7)
    assert settings.cell_names == ["home", "b", "c"]
    assert settings.of_cell("home") is settings
    b, c = settings.of_cell("b"), settings.of_cell("c")
    assert (b.database_url, b.migration_url) == (B["database_url"], B["owner_database_url"])
    assert (c.migration_url, c.operator_database_url) == ("postgresql://app@c/r", "postgresql://app@c/r")
    assert (b.maintenance_database_url, b.database_pool_size) == (None, 7), "home's login is no other cell's"
    with pytest.raises(InvalidInput, match=r"There is no cell 'd'\. The cells are: home, b, c"):
        settings.of_cell("d")


def test_a_pool_of_one_connection_which_what_people_do_would_wait_for_twice_is_refused() -> None:
    assert Settings(database_pool_size=1).database_pool_size == 1
    assert Settings(database_pool_size=2, cells={"b": CellUrls.model_validate(B)}).cells
    with pytest.raises(
        InvalidInput,
        match=r"^RECOLLECT_DATABASE_POOL_SIZE: With several cells .*, it must be at least 2",
    ):
        Settings(database_pool_size=1, cells={"b": CellUrls.model_validate(B)})


def test_they_may_stand_in_a_file_of_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recollect_cells").write_text(json.dumps({"b": B}))
    monkeypatch.setenv("RECOLLECT_SECRETS_DIR", str(tmp_path))
    assert Settings().cell_names == ["home", "b"]


@pytest.mark.parametrize(
    "cells",
    [
        {"home": B},
        {"B": B},
        {"": B},
        {"b": {}},
        {"b": {**B, "owner_url": "x"}},
        {f"cell-{number}": B for number in range(MAX_CELLS)},
    ],
    ids=["home", "a capital", "no name", "no address", "an unknown one", "too many"],
)
def test_what_names_none_is_refused_without_showing_an_address(
    cells: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_CELLS", json.dumps(cells))
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert "postgresql://" not in str(refused.value)
