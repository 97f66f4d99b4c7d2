"""Settings of the command that moves an organisation from one cell to another."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class MoveSettings(BaseSettings):
    """What `recollect tenants move` needs beside the addresses of the cells."""

    move_source_url: SecretStr | None = Field(
        default=None,
        description="Of `recollect tenants move`: where the PostgreSQL server of the cell that an organisation moves "
        "to reaches that of the cell it leaves, where that is not the latter's `owner_database_url`.",
    )
