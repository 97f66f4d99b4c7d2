"""Every setting, read from the environment: one class, one prefix (`RECOLLECT_`), one description each.

Each group of settings has a module of its own. `Settings` combines the groups.
"""

import os
import re
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from recollect.errors import InvalidInput
from recollect.settings.addresses.public_url import local_url
from recollect.settings.calls import CallsSettings
from recollect.settings.cells import HOME, SEVERAL_CELLS_CONNECTIONS, CellSettings
from recollect.settings.database import DEVELOPMENT_SECRET, MIN_SECRET_BYTES, NO_DATABASE_ADDRESS, DatabaseSettings
from recollect.settings.distilling import DistillingSettings
from recollect.settings.edge import EdgeSettings
from recollect.settings.embedding import EmbeddingSettings
from recollect.settings.moves import MoveSettings
from recollect.settings.operators import OperatorSettings
from recollect.settings.people import PeopleSettings
from recollect.settings.telemetry import TelemetrySettings
from recollect.settings.upkeep import UpkeepSettings

DATABASE_SETTINGS = (
    "database_url",
    "owner_database_url",
    "maintenance_database_url",
    "operator_database_url",
    "replica_database_url",
)
"""The settings that hold an address of PostgreSQL."""

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

_SHORT_SECRET = (
    f"Set it to at least {MIN_SECRET_BYTES} random bytes, as `openssl rand -hex 32` prints them, before other machines "
    "can reach this server: it listens for them, or RECOLLECT_PUBLIC_URL is not an address of this machine. Where keys "
    "were made with a shorter one, list that in RECOLLECT_ACCEPTED_KEY_SECRETS until they are hashed anew"
)


def _secret_files(settings_cls: type[BaseSettings]) -> list[PydanticBaseSettingsSource]:
    folder = os.environ.get("RECOLLECT_SECRETS_DIR")
    if not folder:
        return []
    if not Path(folder).is_dir():
        raise InvalidInput("There is no such folder", path="RECOLLECT_SECRETS_DIR")
    return [SecretsSettingsSource(settings_cls, secrets_dir=folder)]


class Settings(
    TelemetrySettings,
    MoveSettings,
    UpkeepSettings,
    DistillingSettings,
    EmbeddingSettings,
    OperatorSettings,
    CallsSettings,
    PeopleSettings,
    EdgeSettings,
    CellSettings,
    DatabaseSettings,
):
    """Settings of gateway, worker and command line. `docs/settings.md` is generated from the descriptions.

    The page lists the groups in the reverse order of these base classes.
    """

    model_config = SettingsConfigDict(
        env_prefix="RECOLLECT_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,  # Addresses hold passwords.
    )

    data_dir: Path | None = Field(
        default=None,
        description="Folder in which `recollect local` keeps its data. Unset: the data folder of the user.",
    )

    secrets_dir: Path | None = Field(
        default=None,
        description="Folder of files that each hold one setting, as containers mount secrets. A file has the name of "
        "the variable in lower case (`recollect_key_secret`). Environment variables take precedence.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Where values come from, by precedence: arguments, the environment, the files of `secrets_dir`."""
        return (init_settings, env_settings, *_secret_files(settings_cls))

    @model_validator(mode="after")
    def _require_connections(self) -> Self:
        """Require two connections: a call can hold one at home while it asks a tenant's cell, which may be home too."""
        if self.cells and self.database_pool_size < SEVERAL_CELLS_CONNECTIONS:
            raise InvalidInput(
                f"With several cells (RECOLLECT_CELLS), it must be at least {SEVERAL_CELLS_CONNECTIONS}",
                path="RECOLLECT_DATABASE_POOL_SIZE",
            )
        return self

    @model_validator(mode="after")
    def _require_addresses(self) -> Self:
        """Refuse other schemes here: the driver would refuse them at each connection, without the setting's name."""
        for name in (HOME, *self.cells):
            cell_settings = self.of_cell(name)
            for field in DATABASE_SETTINGS:
                url = getattr(cell_settings, field)
                if url is not None and not url.startswith(("postgresql://", "postgres://")):
                    raise InvalidInput(NO_DATABASE_ADDRESS, path=cell_settings.setting_of(url))
        return self

    def setting_of(self, url: str) -> str:
        """The name of the setting with this database address, for operators, such as `RECOLLECT_DATABASE_URL`."""
        name = next((name for name in DATABASE_SETTINGS if getattr(self, name) == url), None)
        return "its address" if name is None else self.display_name(name)

    def display_name(self, name: str) -> str:
        """The name of this database setting, for operators, in the cell of these settings."""
        return f"RECOLLECT_{name.upper()}" if self.cell == HOME else f"{name} of {self.cell} in RECOLLECT_CELLS"

    @property
    def is_local(self) -> bool:
        """Whether the gateway can be reached from this machine alone."""
        return {self.host, urlsplit(self.base_url).hostname} <= LOOPBACK

    def require_own_secret(self) -> None:
        """Raise InvalidInput if the gateway can be reached by others and its key secret is public or may be guessed.

        Others reach a gateway that listens beyond this machine, or one on loopback behind a proxy with a public
        address. Secrets that are accepted beside it may be short, so that a short one can be replaced, but not public.
        """
        if self.is_local:
            return
        if len(self.key_secret.get_secret_value().encode()) < MIN_SECRET_BYTES:
            raise InvalidInput(_SHORT_SECRET, path="RECOLLECT_KEY_SECRET")
        if {accepted.get_secret_value() for accepted in self.accepted_key_secrets} & {"", DEVELOPMENT_SECRET}:
            raise InvalidInput(
                "It lists an empty secret or that of development, which everybody knows. Remove it, and make new keys",
                path="RECOLLECT_ACCEPTED_KEY_SECRETS",
            )

    @property
    def base_url(self) -> str:
        """The address by which clients reach the gateway, without a slash at the end: `https://memory.example.com`."""
        return self.public_url or local_url(self.host, self.port)

    @property
    def migration_url(self) -> str:
        """The address that migrations and operator commands use."""
        return self.owner_database_url or self.database_url


def read_settings(**given: Any) -> Settings:
    """The settings of this process; raises InvalidInput that names the variable whose value cannot be used."""
    try:
        return Settings(**given)
    except ValueError as error:
        raise wrong_setting(error) or error from None


def wrong_setting(error: ValueError) -> InvalidInput | None:
    """The first variable that `Settings()` refused, and the reason; None if the error is of another kind."""
    match error:
        case ValidationError() if error.title == Settings.__name__:
            first = error.errors(include_url=False, include_input=False)[0]
            location = [str(part) for part in first["loc"]]
            reason = first["msg"].removeprefix("Value error, ")
            message = f"{'.'.join(location[1:])}: {reason}" if location[1:] else reason
            return InvalidInput(message, path=f"RECOLLECT_{location[0].upper()}" if location else None)
        case SettingsError() if field := re.search(r'field "(\w+)"', str(error)):
            return InvalidInput("It is not the JSON that docs/settings.md shows", path=f"RECOLLECT_{field[1].upper()}")
    return None
