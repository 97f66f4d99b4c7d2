"""Entity tags: to read only what has changed, and to change only what one has seen (RFC 9110, section 13).

A tag is strong and has two halves: a hash of what can be changed, and a hash of the whole answer, which includes such
things as when a key was used last or what a graph holds by now. `If-None-Match` compares both. `If-Match` compares the
first: it prevents lost updates, and using a key does not change the key.

A route that reads one thing answers with `tagged`. A route that changes it hands `unchanged` to the use case, which
calls it with the thing once its row is locked, in the transaction that changes it:

    async with db.transaction(request.user, read_only=True) as tx:
        return tagged(request, _body(await identity.get_key(tx, key_id)), lasting=_lasting)

    async with db.transaction(request.user) as tx:
        return _body(await identity.revoke_key(tx, key_id, check=unchanged(request, lambda key: _lasting(_body(key)))))

`needed=True` is for routes that replace a configuration as a whole: without `If-Match` they answer 428.
"""

import hashlib
import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from litestar import Response
from msgspec import Struct

from recollect.errors import InvalidInput, PreconditionFailed, PreconditionRequired
from recollect_http.requests import AnyRequest

T = TypeVar("T")
B = TypeVar("B", bound=Struct)
"""A request of a caller or of an operator: `request.user` has a `tenant_id`."""

MAX_TAGS = 50
"""Tags of one header."""

_TAG = re.compile(r'[ \t]*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?:,|$)')


def tagged(request: AnyRequest, body: B, *, lasting: Callable[[B], Struct] | None = None) -> Response[B]:
    """The answer with one thing and its tag, or 304 where the client has it as it is.

    `lasting` gives the part of the body that can be changed; None: all of it.
    """
    tag = _tag(request, body, lasting)
    known = _tags_in(request, "if-none-match", weak=True) if "if-none-match" in request.headers else set[str]()
    if known is None or tag in known:
        return Response(None, status_code=304, headers={"ETag": f'"{tag}"'})  # type: ignore[arg-type]  # no body
    return Response(body, headers={"ETag": f'"{tag}"'})


def unchanged(request: AnyRequest, lasting: Callable[[T], Struct], *, needed: bool = False) -> Callable[[T], None]:
    """A check that a use case calls with what it is about to change, once that is locked; it raises PreconditionFailed.

    `lasting` gives the part that can be changed, as for `tagged`. Raises PreconditionRequired where `If-Match` is
    `needed` and missing.
    """
    if "if-match" not in request.headers:
        if needed:
            raise PreconditionRequired("Send If-Match with the ETag that you got when you read this")
        return lambda _: None
    known = _tags_in(request, "if-match", weak=False)

    def check(thing: T) -> None:
        if known is not None and _half(request, lasting(thing)) not in {tag.partition("-")[0] for tag in known}:
            raise PreconditionFailed("This was changed since you read it. Read it again, and decide anew.")

    return check


def _tag(request: AnyRequest, body: B, lasting: Callable[[B], Struct] | None) -> str:
    return f"{_half(request, lasting(body) if lasting else body)}-{_half(request, body)}"


def _half(request: AnyRequest, body: Struct) -> str:
    """A hash of a body. It differs between tenants even where their bodies are equal."""
    hashed = hashlib.blake2b(msgspec.json.encode(body), key=request.user.tenant_id.bytes, digest_size=12)
    return hashed.hexdigest()


def _tags_in(request: AnyRequest, header: str, *, weak: bool) -> set[str] | None:
    """The tags of a header; None is any (`*`). Weak ones match nothing, unless `weak`. Raises InvalidInput."""
    value, position, tags = ",".join(request.headers.getall(header)), 0, set[str]()
    if value.strip() == "*":
        return None
    while position < len(value):
        tag = _TAG.match(value, position)
        if tag is None or len(tags) >= MAX_TAGS:
            raise InvalidInput(f"Must be up to {MAX_TAGS} entity tags, each in quotes, or *", path=header)
        if weak or not tag[1]:
            tags.add(tag[2])
        position = tag.end()
    return tags
