"""Settings of cells: further PostgreSQL clusters, each of which holds some tenants whole (docs/cells.md)."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings

from recollect.errors import InvalidInput

HOME = "home"
"""The cell of `RECOLLECT_DATABASE_URL`: it also has the people, the clients and the directory."""

MAX_CELLS = 16
"""Maximum number of cells of a deployment, home included: an unknown credential is looked up in all of them."""

SEVERAL_CELLS_CONNECTIONS = 2
"""Minimum size of a process's connection pool with several cells: some actions of people hold a connection at home
while they take another in the cell of one of their tenants, which may be home."""


def _cell_name(name: str) -> str:
    if name == HOME or not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise ValueError(f"A cell's name has up to 32 of the characters a-z, 0-9 and -, and is not {HOME!r}")
    return name


class CellUrls(BaseModel):
    """The addresses of one cell. The settings of the same names are those of home."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    database_url: str
    owner_database_url: str | None = None
    maintenance_database_url: str | None = None
    operator_database_url: str | None = None
    replica_database_url: str | None = None


class CellSettings(BaseSettings):
    """Further clusters of PostgreSQL, each of which holds some tenants whole."""

    cells: dict[Annotated[str, AfterValidator(_cell_name)], CellUrls] = Field(
        default={},
        max_length=MAX_CELLS - 1,
        description="Further PostgreSQL clusters that hold tenants, as JSON: the name of each, with its "
        "`database_url`, `owner_database_url`, `maintenance_database_url`, `operator_database_url` and "
        "`replica_database_url`, which mean what the settings of these names mean. Set the same for gateways, workers "
        "and commands. Empty: all tenants are in one cluster.",
    )
    cell: str = Field(
        default=HOME, description="The cell that a worker works on: `home`, or a name in `RECOLLECT_CELLS`."
    )

    @property
    def cell_names(self) -> list[str]:
        """Every cell, home first, the others by name."""
        return [HOME, *sorted(self.cells)]

    @property
    def measured_cell(self) -> str | None:
        """The cell that metrics name; None if there is only one cell."""
        return self.cell if self.cells else None

    def of_cell(self, name: str) -> Self:
        """These settings with the name and the addresses of another cell. Raises InvalidInput if it does not exist."""
        if name == HOME:
            return self if self.cell == HOME else self.model_copy(update={"cell": HOME})
        if name not in self.cells:
            raise InvalidInput(f"There is no cell {name!r}. The cells are: {', '.join(self.cell_names)}", path="cell")
        urls = self.cells[name]
        operator_url = urls.operator_database_url or urls.database_url
        return self.model_copy(update={**urls.model_dump(), "operator_database_url": operator_url, "cell": name})
