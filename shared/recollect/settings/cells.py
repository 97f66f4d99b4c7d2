"""Settings of cells: further PostgreSQL clusters, each of which holds some tenants whole (docs/cells.md)."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings

from recollect.errors import InvalidInput

HOME = "home"
"""The cell of `RECOLLECT_DATABASE_URL`: it also has the people, the clients and the directory."""

MAX_CELLS = 16
"""Cells of a deployment, home among them: a credential that is not known yet is asked of all."""

SEVERAL_CELLS_CONNECTIONS = 2
"""Connections of a process's pool, at least, where there are several: some of what people do holds one at home while it
takes another, in the cell of one of their tenants, which may be home."""


def _cell_name(name: str) -> str:
    if name == HOME or not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise ValueError(f"A cell's name has up to 32 of a-z 0-9 - and is not {HOME!r}")
    return name


class CellUrls(BaseModel):
    """Where one cell is, as the settings of the same names say of home."""

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
        description="Further clusters of PostgreSQL that hold tenants, as JSON: a name for each, and its "
        "`database_url`, `owner_database_url`, `maintenance_database_url`, `operator_database_url` and "
        "`replica_database_url`, which mean what the settings of these names do. Alike for gateways, workers and "
        "commands. Empty: all tenants are in one.",
    )
    cell: str = Field(
        default=HOME, description="The cell that a worker works on: `home`, or a name of `RECOLLECT_CELLS`."
    )

    @property
    def cell_names(self) -> list[str]:
        """Every cell, home first, the others by name."""
        return [HOME, *sorted(self.cells)]

    @property
    def measured_cell(self) -> str | None:
        """The cell by which metrics tell what is measured; None where there is one."""
        return self.cell if self.cells else None

    def of_cell(self, name: str) -> Self:
        """The same settings, with the addresses of that cell in place of home's, and its name. Raises InvalidInput."""
        if name == HOME:
            return self if self.cell == HOME else self.model_copy(update={"cell": HOME})
        if name not in self.cells:
            raise InvalidInput(f"There is no cell {name!r}: there are {', '.join(self.cell_names)}", path="cell")
        urls = self.cells[name]
        operator_url = urls.operator_database_url or urls.database_url
        return self.model_copy(update={**urls.model_dump(), "operator_database_url": operator_url, "cell": name})
