"""Checks of bodies whose days, and times without an offset, are of the zone of the call."""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar.utils.scope.state import ScopeState
from msgspec import Struct

from recollect_gateway.calls import Call
from recollect_gateway.requests.lenient_parsing import has_local_times, with_offsets
from recollect_gateway.requests.local_times import FIELD, zone_of_call
from recollect_http.requests import AnyRequest, validation


def valid_body(
    type_: type[Struct], *, needed: bool = True, stored: bool = False, removes: bool = False
) -> Callable[[AnyRequest], Awaitable[None]]:
    """The check of `recollect_http`, before which times get the offset of the call's zone, if bodies may name one."""
    prepare = _localized if FIELD in type_.__struct_fields__ else None
    return validation.valid_body(type_, needed=needed, stored=stored, removes=removes, prepare=prepare)


async def _localized(request: AnyRequest, type_: type[Struct], body: dict[str, Any]) -> dict[str, Any]:
    """The body with an offset at each day, and each time without one; the handler gets it so, too."""
    if not has_local_times(type_, body):
        return body
    call = Call(request.user, request.app.state.services, "time_zone", read_only=True)
    zone = await zone_of_call(call, request.path_params.get("name"), type_, body)
    localized: dict[str, Any] = with_offsets(type_, body, zone)
    ScopeState.from_scope(request.scope).json = localized
    return localized
