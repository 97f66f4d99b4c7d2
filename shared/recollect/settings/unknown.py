"""Variables that look like settings and are none: without a word about them, a misspelt one would just be ignored."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

PREFIX = "RECOLLECT_"

_OF_COMMANDS = ("URL", "API_KEY", "MCP_URL", "OPERATOR_URL", "OPERATOR_KEY")
_OF_PLUGINS = ("GRAPH", "PERSONAL_GRAPH", "HOOKS", "HOOKS_SECONDS", "HOOKS_TOKENS", "HOOKS_DAYS")
OF_CLIENTS = frozenset(f"{PREFIX}{name}" for name in (*_OF_COMMANDS, *_OF_PLUGINS))
"""Variables that commands and the plugins of clients read, and no process that serves."""

_OF_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
"""Ends of the variables that Kubernetes sets for each of its services: one may be called recollect."""


@dataclass(frozen=True, slots=True)
class UnknownSetting:
    """A variable that is no setting, and the setting whose name is most like it, if any is."""

    name: str
    nearest: str | None

    def __str__(self) -> str:
        advice = f" Did you mean {self.nearest}?" if self.nearest else " docs/settings.md lists all settings."
        return f"{self.name} is no setting and is ignored.{advice}"


def unknown_settings(fields: Collection[str], environment: Mapping[str, str]) -> list[UnknownSetting]:
    """The variables, and the files of the folder of secrets, that none of these fields reads, by name."""
    known = {f"{PREFIX}{field.upper()}" for field in fields}
    named = {name for name in _named(environment) if name.startswith(PREFIX)}
    return [UnknownSetting(name, _nearest(name, known)) for name in sorted(named - known - OF_CLIENTS)]


def _named(environment: Mapping[str, str]) -> Iterator[str]:
    """The names in capitals, since settings are read in any case."""
    for name, value in environment.items():
        if not _OF_SERVICE.search(name) and not value.startswith("tcp://"):
            yield name.upper()
    folder = Path(environment.get(f"{PREFIX}SECRETS_DIR") or os.devnull)
    if folder.is_dir():
        yield from (file.name.upper() for file in folder.iterdir())


def _nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), None)
