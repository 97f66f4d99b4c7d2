"""What is no address of PostgreSQL is refused where settings are read, by the setting's name, without the value."""

import traceback

import pytest

from recollect.errors import InvalidInput
from recollect.settings import DATABASE_SETTINGS, Settings
from recollect.settings.cells import CellUrls

WRONG = ["s3cret", "mysql://app:s3cret@db/recollect", "app:s3cret@db/recollect", "postgresql:/app:s3cret@db/recollect"]


@pytest.mark.parametrize("url", WRONG)
@pytest.mark.parametrize("field", DATABASE_SETTINGS)
def test_each_setting_is_refused_by_its_name(field: str, url: str) -> None:
    with pytest.raises(InvalidInput, match=f"^RECOLLECT_{field.upper()}: It is not the address") as refused:
        Settings.model_validate({field: url})
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


def test_so_is_one_of_a_cell() -> None:
    with pytest.raises(InvalidInput, match=r"^owner_database_url of east in RECOLLECT_CELLS: It is not the address"):
        Settings(cells={"east": CellUrls(database_url="postgresql://app@east/recollect", owner_database_url="s3cret")})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://recollect_app@db.internal/recollect",
        "postgres://recollect_app:secret@db.internal:5433/recollect?sslmode=verify-full",
        "postgresql://recollect_app@one,two:5433/recollect?target_session_attrs=read-write",
        "postgresql:///recollect?host=/run/postgresql",
        "postgresql://",
    ],
)
def test_every_form_that_the_driver_takes_is_taken(url: str) -> None:
    assert Settings(database_url=url).setting_of(url) == "RECOLLECT_DATABASE_URL"


def test_an_address_of_no_setting_has_no_name() -> None:
    assert Settings().setting_of("postgresql://other/recollect") == "its address"
