"""The time zone of the machine, by its name in the IANA database."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from recollect.errors import InvalidInput
from recollect.times import require_zone

_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_DATABASE = "zoneinfo/"

_UTC = frozenset({"UTC", "UCT", "Universal", "Zulu"})
"""Names of UTC, also with `Etc/` before them. It is the zone of those who have none, and no name is needed."""


def machine_time_zone(
    environment: Mapping[str, str] = os.environ, *, localtime: Path = _LOCALTIME, timezone: Path = _TIMEZONE
) -> str | None:
    """The zone that `TZ` names; else the one to which /etc/localtime leads, or that Debian's /etc/timezone names.

    None for UTC, and where none of them names a zone of the database.
    """
    if set_zone := environment.get("TZ"):
        return _zone_named(set_zone.removeprefix(":"))
    zone = _zone_named(os.path.realpath(localtime))
    if zone is None:
        with suppress(OSError, UnicodeDecodeError):
            zone = _zone_named(timezone.read_text().strip())
    return zone


def _zone_named(text: str) -> str | None:
    """The zone of a name, or of a file of the database."""
    name = text.rpartition(_DATABASE)[2]
    if name.removeprefix("Etc/") in _UTC:
        return None
    with suppress(InvalidInput):
        return require_zone(name, "TZ")
    return None
