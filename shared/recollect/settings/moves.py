"""Settings of the command that moves a tenant from one cell to another."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class MoveSettings(BaseSettings):
    """What `recollect tenants move` needs in addition to the addresses of the cells."""

    move_source_url: SecretStr | None = Field(
        default=None,
        description="Address at which, during `recollect tenants move`, the PostgreSQL server of the target cell "
        "reaches the server of the source cell. Set it if that is not the `owner_database_url` of the source cell.",
    )
