"""Keys and tokens of this service in the texts of callers: they are refused before anything is stored.

Whoever reads a memory could use them. They are recognised by their form and their checksum, without a query. A text
that is refused, or an error about it, never repeats them.
"""

import re
from collections.abc import Iterator
from typing import Any

from recollect.accounts.identity.model import CRC_LENGTH, RANDOM_LENGTH, kind_of
from recollect.errors import InvalidInput, InvalidInputs

PREFIX = "rcl_"
PUBLIC_KINDS = frozenset({"client"})
"""Kinds of what has the form of a key and is no secret: ids of OAuth clients."""

MAX_FAULTS = 20
"""Paths in one call that its error lists, at most."""

REASON = "holds a key or a token of this service"
"""Why a text is refused, for people who know where it is."""

_SECRET = re.compile(rf"{PREFIX}[a-z]{{1,10}}_[0-9A-Za-z]{{{RANDOM_LENGTH + CRC_LENGTH}}}")


def contains_secret(text: str) -> bool:
    """Whether a key or a token of this service stands anywhere in a text."""
    return PREFIX in text and any(kind_of(found[0]) not in (None, *PUBLIC_KINDS) for found in _SECRET.finditer(text))


def secrets_in(value: Any, path: str = "") -> Iterator[str]:
    """The dotted paths of the texts that hold a secret, of a value as JSON has it. Keys of objects are texts, too."""
    match value:
        case str() if contains_secret(value):
            yield path
        case dict():
            for key, item in value.items():
                if isinstance(key, str) and contains_secret(key):
                    yield path
                else:
                    yield from secrets_in(item, f"{path}.{key}" if path else str(key))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from secrets_in(item, f"{path}.{index}" if path else str(index))


def refuse_secrets(value: Any, path: str = "") -> None:
    """Raise InvalidInput, or InvalidInputs, with the path of each text of a value that holds a secret."""
    faults = [_fault(location) for location, _ in zip(secrets_in(value, path), range(MAX_FAULTS), strict=False)]
    if faults:
        raise faults[0] if len(faults) == 1 else InvalidInputs(faults)


def _fault(location: str) -> InvalidInput:
    return InvalidInput(
        f"Not stored: it {REASON}. Leave it out; revoke it if others may have read it", path=location or None
    )
