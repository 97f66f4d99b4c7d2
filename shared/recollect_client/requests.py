"""What a method asks of the gateway, before anything is sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET

T = TypeVar("T")
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Names = str | Sequence[str]
"""One name, or several."""

MAX_PAGE = 200
"""Items of a page of a list, at most."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request, and the type of its answer (None: there is none).

    `is_write`: it has an idempotency key, of the caller's or a new one. `is_repeatable`: it may also be repeated
    without one, since what is known is not stored twice.
    """

    method: str
    path: str
    answer: Any
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_write: bool = False
    is_repeatable: bool = False
    idempotency_key: str | None = None

    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else msgspec.json.encode(self.body, enc_hook=_plain)


class PageOf(Protocol[Item_co]):
    """A page of a list. `next_cursor` is None on the last one."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The items of this page."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""


@dataclass(frozen=True)
class PagedRequest(Generic[Item]):
    """A list that comes in pages; `request` asks for the first one."""

    request: Request[PageOf[Item]]

    def after(self, page: PageOf[Item]) -> Self | None:
        """The list from the next page on."""
        if page.next_cursor is None:
            return None
        cursor = {"cursor": page.next_cursor}
        if self.request.body is not None:
            return replace(self, request=replace(self.request, body={**self.request.body, **cursor}))
        return replace(self, request=replace(self.request, query={**self.request.query, **cursor}))


def get(path: str, answer: Any, **query: Any) -> Request[Any]:
    """A request that reads."""
    return Request("GET", path, answer, query=given(**query))


def write(
    method: str,
    path: str,
    answer: Any,
    body: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, Any] | None = None,
    if_match: str | None = None,
) -> Request[Any]:
    """A request that changes something, once, however often it is sent."""
    headers = {} if if_match is None else {"If-Match": if_match}
    return Request(method, path, answer, query=query or {}, body=body, headers=headers, is_write=True)


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that were given: neither None nor UNSET."""
    return {name: value for name, value in arguments.items() if value is not None and value is not UNSET}


def changed(**arguments: Any) -> dict[str, Any]:
    """The arguments that were given, of which None is one: it clears a field."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


def listed(names: Any) -> list[Any] | None:
    """Several, where one is several, too: a text is one, and not its characters."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        return [names]
    return list(names)


def path_of(*parts: object) -> str:
    """The path of a route, with each part encoded."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def _plain(value: Any) -> Any:
    """A text, number or mapping of a class of its own, such as frameworks make, as what it is."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")
