"""Requests under /v1 that may be sent again: the header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).

The key is claimed in the transaction of the act (`Claim`, which takes part in what the route's database begins), and
the answer is stored right after, before it is sent. What fails writes nothing and claims nothing, or undoes what it did
and lets go of the key (`Transaction.undo_act`): sent again, it is tried again. A request with a key is finished also
where its client has left: it is one that will ask for the answer.
"""

from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import structlog
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from recollect.accounts.idempotency import service as idempotency
from recollect.accounts.idempotency.model import (
    MAX_ANSWER_BYTES,
    AnswerVault,
    IdempotentRequest,
    KeptAnswer,
    idempotency_key,
)
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode, InvalidInput, RecollectError, TooLarge
from recollect.peppers import others_of
from recollect.platform.db import Database
from recollect.platform.transactions import Transaction

HEADER = "Idempotency-Key"
REPLAYED = "idempotency-replayed"
OPT = "idempotency"
TAKES_NO_KEY = {OPT: "none"}
"""Of a route whose body may be of any length: it is not held to compare it."""

NEEDS_NO_KEY = {OPT: "not looked at"}
"""Of a route that changes nothing of the tenant, where a key is kept, and nothing at all when it is asked again."""

KEEPS_NO_ANSWER = {OPT: "no answer"}
"""Of a route whose answer holds what nobody may keep."""

_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS = frozenset({"content-type", "content-disposition", "etag", "location"})
"""Headers that belong to an answer; the others belong to its moment."""

_DATABASE = "recollect.claiming_database"

log = structlog.get_logger(__name__)


@dataclass
class Claim:
    """Claims the key of one request in the first of its transactions that writes and commits."""

    request: IdempotentRequest
    vault: AnswerVault
    is_committed: bool = False
    found: KeptAnswer | None = None

    async def begin(self, tx: Transaction) -> None:
        """Claim the key; raises as `idempotency.claim` does, and where the act is done: `found` is its answer."""
        if self.is_committed:
            return
        self.found = await idempotency.claim(tx, self.request, self.vault)
        if self.found is not None:
            raise Conflict("This act is done.", code=ErrorCode.IDEMPOTENCY_DONE)

    async def withdraw(self, tx: Transaction) -> None:
        """Let go of the key: sent again, the request is tried again."""
        await idempotency.release(tx, self.request)

    def commit(self, *, undone: bool) -> None:
        """The act is done, or undone."""
        self.is_committed = not undone


@dataclass
class HeldAnswer:
    """An answer on its way: held until it is whole, or too large to be kept."""

    send: Send
    messages: list[Any] = field(default_factory=list)
    size: int = 0
    is_whole: bool = False

    async def take(self, message: Any) -> None:
        """The next message of the answer."""
        self.messages.append(message)
        if message["type"] == "http.response.body":
            self.size += len(message["body"])
            self.is_whole = not message.get("more_body")
        if self.size > MAX_ANSWER_BYTES:
            await self.release()

    async def release(self) -> None:
        """Send what is held."""
        while self.messages:
            await self.send(self.messages.pop(0))

    @property
    def kept(self) -> KeptAnswer | None:
        """What is to be kept; None of one that is too large, or broke off."""
        if not self.is_whole or self.size > MAX_ANSWER_BYTES:
            return None
        start, *bodies = self.messages
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
        body = b"".join(message["body"] for message in bodies)
        return KeptAnswer(start["status"], [one for one in headers if one[0] in _KEPT_HEADERS], body)


class IdempotencyMiddleware(ASGIMiddleware):
    """Does the act of a request with a key once, and answers a repeat as the first."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises InvalidInput, TooLarge, Conflict or Unprocessable."""
        given, opt = _header(scope), scope["route_handler"].opt.get(OPT)
        if given is None or opt == NEEDS_NO_KEY[OPT] or (method := _method(scope)) not in _METHODS:
            await next_app(scope, receive, send)
            return
        key, state = idempotency_key(given), scope["litestar_app"].state
        if opt == TAKES_NO_KEY[OPT]:
            raise InvalidInput("This route takes no key: its body may be of any length", path=HEADER)
        body = await _body(receive, state.settings.max_request_bytes)
        if body is None:
            return  # Part of a request is no request, and nobody is left to be answered.
        caller: Caller = scope["user"]
        request = IdempotentRequest.of(caller, key, method, _target(scope), body, pepper=state.pepper)
        found = await idempotency.find_answer(state.db, caller, request, state.answer_vault)
        for other in () if found else others_of(state.pepper):
            stored = IdempotentRequest.of(caller, key, method, _target(scope), body, pepper=other)
            found = found or await idempotency.find_answer(state.db, caller, stored, AnswerVault.of(other))
        if found is not None:
            await _replay(send, found)
            return
        claim, answer = Claim(request, state.answer_vault), HeldAnswer(send)
        scope["state"][_DATABASE] = state.db.taking_part(claim)
        with anyio.CancelScope(shield=True):
            await next_app(scope, _given(body, receive), answer.take)
            if claim.is_committed:
                kept = None if opt == KEEPS_NO_ANSWER[OPT] else answer.kept
                await _keep(state.db, caller, request, kept, state.answer_vault)
        if claim.found is not None:
            await _replay(send, claim.found)
        else:
            await answer.release()


def database_of(scope: Scope) -> Database:
    """The database of a route: one that claims the request's key, where it has one."""
    database: Database = scope["state"].get(_DATABASE) or scope["litestar_app"].state.db
    return database


async def _keep(
    db: Database, caller: Caller, request: IdempotentRequest, kept: KeptAnswer | None, vault: AnswerVault
) -> None:
    """The act is done, whether or not its answer can be stored."""
    try:
        await idempotency.keep_answer(db, caller, request, kept, vault)
    except RecollectError as error:
        log.warning("an answer was not kept", reason=str(error))


async def _replay(send: Send, answer: KeptAnswer) -> None:
    headers = [*answer.headers, ("content-length", str(len(answer.body))), (REPLAYED, "true")]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


def _header(scope: Scope) -> str | None:
    """The key as it was sent. Raises InvalidInput for several."""
    given = [value for name, value in scope["headers"] if name == HEADER.lower().encode()]
    if len(given) > 1:
        raise InvalidInput("One key is taken", path=HEADER)
    return given[0].decode("latin-1") if given else None


def _method(scope: Scope) -> str:
    return str(cast(HTTPScope, scope)["method"])


def _target(scope: Scope) -> str:
    return f"{scope['path']}?{scope['query_string'].decode('latin-1')}"


async def _body(receive: Receive, most: int) -> bytes | None:
    """The whole body; None where the client left before its end. Raises TooLarge."""
    body, more = bytearray(), True
    while more:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise TooLarge(f"A request with a key holds {most} bytes at most", code=ErrorCode.REQUEST_TOO_LARGE)
    return bytes(body)


def _given(body: bytes, receive: Receive) -> Receive:
    """What gives this body, then whatever comes after it."""
    is_given = False

    async def give() -> Any:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
