"""Commands that administer one tenant, in two ways, by what they are given.

Operators name the tenant first: such a command uses the database. Whoever leaves the tenant out uses a gateway, whose
API key says which tenant it is.
"""

import os
from collections.abc import Iterator
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from recollect.errors import InvalidInput
from recollect_cli.gateway import Gateway

T = TypeVar("T")

PAGE = 200
MAX_LISTED = 1000
"""Entries that a list shows at most, in either way."""

TENANT = (
    "The tenant's slug, for operators: uses the database. Without it: uses a gateway, whose API key has the tenant."
)


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list of the management API."""

    items: list[T]
    next_cursor: str | None = None


def tenant_of(
    words: tuple[str, ...], *names: str, command: str, url: str | None, api_key: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """The tenant, None if there is none, and the words after it: one for each name.

    Raises InvalidInput, which says how to use the command, for fewer or more words; and as `require_one_option` does.
    """
    match len(words) - len(names):
        case 0:
            return None, words
        case 1:
            require_one_option(words[0], url, api_key)
            return words[0], words[1:]
    raise InvalidInput(f"Usage: recollect {command} {' '.join(['[TENANT]', *names])}")


def require_one_option(tenant: str | None, url: str | None, api_key: str | None, *, json: bool = False) -> None:
    """Raise InvalidInput for options of a gateway with a tenant; variables of the environment may be for others."""
    options = {"RECOLLECT_URL": url, "RECOLLECT_API_KEY": api_key}
    is_given = any(value not in (None, os.environ.get(name)) for name, value in options.items())
    if tenant is not None and is_given:
        raise InvalidInput("A gateway's API key tells the tenant: with --url or --api-key, leave the tenant out")
    if json and tenant is not None:
        raise InvalidInput("--json prints the answer of a gateway: leave the tenant out")


def id_of(word: str, kind: str) -> UUID:
    """The id that a word is; raises InvalidInput, which says where to find one."""
    try:
        return UUID(word)
    except ValueError:
        raise InvalidInput(f"{word!r} is not the id of a {kind}, as `recollect {kind}s list` shows it") from None


def listed(gateway: Gateway, path: str, of: type[T]) -> Iterator[T]:
    """The entries of a list, MAX_LISTED at most."""
    cursor, count = "", 0
    while count < MAX_LISTED:
        answer = gateway.send("GET", f"{path}?limit={PAGE}{cursor}")
        page = msgspec.json.decode(answer, type=ListPage[of])  # type: ignore[valid-type]
        yield from page.items
        count += len(page.items)
        if page.next_cursor is None:
            return
        cursor = f"&cursor={page.next_cursor}"
