"""A PostgreSQL of another version than that of the wheel, for `pytest --postgres=FOLDER`."""

from collections.abc import Mapping
from pathlib import Path

from recollect_local.postgres import LocalPostgres

OF_THE_SERVER = frozenset({"postgres", "initdb"})
"""Programs that must have the server's version. Others, such as psql, come from the wheel and support old servers."""


class OtherPostgres(LocalPostgres):
    """The server of an installation: a folder with `bin`, and the other files where its programs expect them.

    PostgreSQL has builtin locales from 17 on; before, the locale of the same name of the C library is used.
    """

    locale = ("--locale=C.UTF-8",)
    database_locale = "LOCALE ''C.UTF-8''"

    def __init__(self, installation: Path, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._installation = installation
        super().__init__(data_dir, settings=settings)

    def program(self, name: str) -> Path:
        """One of PostgreSQL's programs."""
        return self._installation / "bin" / name if name in OF_THE_SERVER else super().program(name)

    def installed(self) -> list[Path]:
        """The folders of both."""
        return [self._installation, *super().installed()]
