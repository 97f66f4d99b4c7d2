"""One setting lists further cells, each with its own addresses."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.settings.cells import MAX_CELLS, CellUrls

B = {"database_url": "postgresql://app@b/recollect", "owner_database_url": "postgresql://owner@b/recollect"}


def test_each_cell_has_its_own_addresses_and_shares_the_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_several_cells_need_a_pool_of_two_connections() -> None:
    assert Settings(database_pool_size=1).database_pool_size == 1
    assert Settings(database_pool_size=2, cells={"b": CellUrls.model_validate(B)}).cells
    with pytest.raises(
        InvalidInput,
        match=r"^RECOLLECT_DATABASE_POOL_SIZE: With several cells .*, it must be at least 2",
    ):
        Settings(database_pool_size=1, cells={"b": CellUrls.model_validate(B)})


def test_cells_may_be_set_by_a_secret_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_malformed_cells_are_refused_without_showing_an_address(
    cells: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_CELLS", json.dumps(cells))
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert "postgresql://" not in str(refused.value)
