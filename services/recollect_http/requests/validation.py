"""Checks of a request's query parameters and body, before a handler reads them."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from recollect.errors import InvalidInput
from recollect.text.lone_surrogates import replace_lone_surrogates
from recollect_http.requests import AnyRequest
from recollect_http.requests.bodies import LARGE, read_body, require_quick_to_parse
from recollect_http.requests.parsing import MAX_NAME, parse, parse_in_thread, parse_removal, parse_stored

Body = dict[str, Any]
Prepare = Callable[[AnyRequest, type[msgspec.Struct], Body], Awaitable[Body]]
"""Prepares a body of this type before it is checked, such as its times; the handler gets what it returns, too."""


def known_parameters(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse a query parameter that the route does not have: a misspelt `dry_run` must not become a real run."""
    _require_known(connection, _query_parameters(handler, frozenset(connection.path_params)))


def known_parameters_or(*names: str) -> Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], None]:
    """The same check for routes that all take these parameters, too."""

    def check(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        own = _query_parameters(handler, frozenset(connection.path_params))
        _require_known(connection, own.union(names))

    return check


def _require_known(connection: ASGIConnection[Any, Any, Any, Any], known: frozenset[str]) -> None:
    for name in connection.query_params:
        if name not in known:
            accepted = f"it accepts {', '.join(sorted(known))}" if known else "it accepts none"
            raise InvalidInput(f"The route has no such query parameter: {accepted}", path=name[:MAX_NAME])


@cache
def _query_parameters(handler: BaseRouteHandler, path_parameters: frozenset[str]) -> frozenset[str]:
    model = handler.create_kwargs_model(dict.fromkeys(path_parameters))  # type: ignore[arg-type]  # only names are read
    return frozenset(parameter.field_alias for parameter in model.expected_query_params)


def valid_body(
    type_: type[msgspec.Struct],
    *,
    needed: bool = True,
    stored: bool = False,
    removes: bool = False,
    prepare: Prepare | None = None,
) -> Callable[[AnyRequest], Awaitable[None]]:
    """A check that refuses a body not of this type, with the paths of its faults; `needed` False allows no body.

    `stored`: its texts become memories, so that it may hold no key and no token of this service. `removes`: its lists
    name what is removed, and its other texts are stored.
    """
    parser = parse_removal if removes else parse_stored if stored else parse

    async def check(request: AnyRequest) -> None:
        if not needed and (await request.body()).strip() in (b"", b"null"):
            return
        body = await read_json(request)
        if not isinstance(body, dict):
            raise InvalidInput("The body is not a JSON object")
        if prepare is not None:
            body = await prepare(request, type_, body)
        if len(await request.body()) < LARGE:
            parser(type_, body)
        else:
            await parse_in_thread(request.user.tenant_id, type_, body, parser)

    return check


async def read_json(request: AnyRequest) -> Any:
    """The JSON of a request's body; raises InvalidInput where it is no JSON, and as `require_quick_to_parse`."""
    await require_quick_to_parse(body := await request.body())
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return await read_body(body, _decode_repaired)


def _decode_repaired(body: bytes) -> Any:
    """Decode a body that the parser refused, with NUL for lone surrogates; raises InvalidInput where that fails."""
    try:
        return msgspec.json.decode(replace_lone_surrogates(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("The body is not JSON, or is nested too deeply") from None
