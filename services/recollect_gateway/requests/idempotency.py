"""Requests under /v1 that may be sent again: the header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).

The key is claimed in the transaction of the act (`Claim`, which takes part in the transactions of the route's
database), and the answer is stored right after, before it is sent. A request that fails writes nothing and claims
nothing, or undoes what it did and releases the key (`Transaction.undo_act`): sent again, it is tried again. A request
with a key is finished even where its client has left: that client will ask for the answer.
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
    HEADER,
    MAX_ANSWER_BYTES,
    AnswerVault,
    IdempotentRequest,
    SavedAnswer,
    idempotency_key,
)
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.crypto.peppers import accepted_secrets_of
from recollect.errors import Conflict, ErrorCode, InvalidInput, RecollectError, TooLarge
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction

REPLAYED = "idempotency-replayed"
OPT = "idempotency"
TAKES_NO_KEY = {OPT: "none"}
"""The `opt` of a route whose body may be of any length: it is not buffered for a comparison."""

NEEDS_NO_KEY = {OPT: "not looked at"}
"""The `opt` of a route that changes nothing of the tenant, where keys are stored, and nothing at all when repeated."""

KEEPS_NO_ANSWER = {OPT: "no answer"}
"""The `opt` of a route whose answer may not be stored."""

_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SAVED_HEADERS = frozenset({"content-type", "content-disposition", "etag", "location"})
"""Headers that are stored with an answer; the others are made anew each time."""

_DATABASES = "recollect.claiming_databases"

log = structlog.get_logger(__name__)


@dataclass
class Claim:
    """Claims the key of one request in the first of its transactions that writes and commits."""

    request: IdempotentRequest
    vault: AnswerVault
    is_committed: bool = False
    found: SavedAnswer | None = None

    async def begin(self, tx: Transaction) -> None:
        """Claim the key. Raises as `idempotency.claim`, and Conflict where the act is done: `found` is its answer."""
        if self.is_committed:
            return
        self.found = await idempotency.claim(tx, self.request, self.vault)
        if self.found is not None:
            raise Conflict("This act is done.", code=ErrorCode.IDEMPOTENCY_DONE)

    async def withdraw(self, tx: Transaction) -> None:
        """Release the key: sent again, the request is tried again."""
        await idempotency.release(tx, self.request)

    def commit(self, *, undone: bool) -> None:
        """The act is done, or undone."""
        self.is_committed = not undone


@dataclass
class BufferedAnswer:
    """An answer that is buffered until it is whole, or too large to be stored."""

    send: Send
    messages: list[Any] = field(default_factory=list)
    size: int = 0
    is_whole: bool = False

    async def take(self, message: Any) -> None:
        """Buffer the next message of the answer."""
        self.messages.append(message)
        if message["type"] == "http.response.body":
            self.size += len(message["body"])
            self.is_whole = not message.get("more_body")
        if self.size > MAX_ANSWER_BYTES:
            await self.release()

    async def release(self) -> None:
        """Send the buffered messages."""
        while self.messages:
            await self.send(self.messages.pop(0))

    @property
    def saved(self) -> SavedAnswer | None:
        """The answer as it is stored; None where it is too large, or broke off."""
        if not self.is_whole or self.size > MAX_ANSWER_BYTES:
            return None
        start, *bodies = self.messages
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
        body = b"".join(message["body"] for message in bodies)
        return SavedAnswer(start["status"], [header for header in headers if header[0] in _SAVED_HEADERS], body)


class IdempotencyMiddleware(ASGIMiddleware):
    """Does the act of a request with a key once, and answers repeats as the first time."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises InvalidInput, TooLarge, Conflict or Unprocessable."""
        header, opt = _key_header(scope), scope["route_handler"].opt.get(OPT)
        if header is None or opt == NEEDS_NO_KEY[OPT] or (method := _method(scope)) not in _METHODS:
            await next_app(scope, receive, send)
            return
        key, state = idempotency_key(header), scope["litestar_app"].state
        if opt == TAKES_NO_KEY[OPT]:
            raise InvalidInput("This route accepts no key, because its body may have any length", path=HEADER)
        body = await _read_body(receive, state.settings.max_request_bytes)
        if body is None:
            return  # The request is not whole, and nobody is left to be answered.
        caller: Caller = scope["user"]
        request = IdempotentRequest.of(caller, key, method, _target(scope), body, pepper=state.pepper)
        db = state.databases.of(caller.tenant_id)
        found = await idempotency.find_answer(db, caller, request, state.answer_vault)
        for pepper in () if found else accepted_secrets_of(state.pepper):
            peppered = IdempotentRequest.of(caller, key, method, _target(scope), body, pepper=pepper)
            found = found or await idempotency.find_answer(db, caller, peppered, AnswerVault.of(pepper))
        if found is not None:
            await _replay(send, found)
            return
        claim, answer = Claim(request, state.answer_vault), BufferedAnswer(send)
        scope["state"][_DATABASES] = state.databases.with_participant(claim)
        with anyio.CancelScope(shield=True):
            await next_app(scope, _receive_again(body, receive), answer.take)
            if claim.is_committed:
                saved = None if opt == KEEPS_NO_ANSWER[OPT] else answer.saved
                await _save(db, caller, request, saved, state.answer_vault)
        if claim.found is not None:
            await _replay(send, claim.found)
        else:
            await answer.release()


def databases_of(scope: Scope) -> Databases:
    """The databases of a route: their transactions claim the request's key, where it has one."""
    databases: Databases = scope["state"].get(_DATABASES) or scope["litestar_app"].state.databases
    return databases


async def _save(
    db: TenantDatabase, caller: Caller, request: IdempotentRequest, saved: SavedAnswer | None, vault: AnswerVault
) -> None:
    """Store the answer, if possible: the act is done either way."""
    try:
        await idempotency.save_answer(db, caller, request, saved, vault)
    except RecollectError as error:
        log.warning("response not saved for its idempotency key", reason=str(error))


async def _replay(send: Send, answer: SavedAnswer) -> None:
    headers = [*answer.headers, ("content-length", str(len(answer.body))), (REPLAYED, "true")]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


def _key_header(scope: Scope) -> str | None:
    """The key as it was sent. Raises InvalidInput for several."""
    values = [value for name, value in scope["headers"] if name == HEADER.lower().encode()]
    if len(values) > 1:
        raise InvalidInput("Send one key only", path=HEADER)
    return values[0].decode("latin-1") if values else None


def _method(scope: Scope) -> str:
    return str(cast(HTTPScope, scope)["method"])


def _target(scope: Scope) -> str:
    return f"{scope['path']}?{scope['query_string'].decode('latin-1')}"


async def _read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """The whole body; None where the client left before its end. Raises TooLarge."""
    body, more = bytearray(), True
    while more:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > max_bytes:
            raise TooLarge(f"A request with a key may have at most {max_bytes} bytes", code=ErrorCode.REQUEST_TOO_LARGE)
    return bytes(body)


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that answers with this body first, then with whatever comes after it."""
    is_read = False

    async def receive_body_first() -> Any:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body_first
