"""Every error that a caller may see.

An error has a *kind*, which each transport maps to its own status, and a stable *code*, which
clients may match on; messages may change. The codes are frozen by a snapshot.

    RecollectError
      InvalidInput       invalid          what was sent cannot be accepted; `path` names where
        InvalidInputs                     several faults, reported together
      Unauthenticated    unauthenticated  no credential, or one that does not hold (never says which)
        TenantSuspended                   it would hold, once its tenant is resumed
      Forbidden          forbidden        the credential does not reach that far
        QuotaExceeded                     the tenant's plan does not
        TenantReadOnly                    the tenant is suspended read-only
      NotFound           not_found        not there, or another tenant's: the two look alike
      MethodNotAllowed   method_not_allowed  the address is right, the HTTP method is not
      Conflict           conflict         the present state does not allow it
      Unprocessable      unprocessable    understood, and not to be done as it is
      PreconditionFailed precondition_failed    what was to be changed is not what the caller knows
      PreconditionRequired precondition_required  the caller must say what they know of what they change
      TooLarge           too_large        the request or the reply is past a bound
      TooManyRequests    rate_limited     too much was asked; try again in `seconds`
      Unavailable        unavailable      something that Recollect needs is unreachable; try again
        TenantMoving                      the tenant is moving to another cell, for seconds
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import ClassVar


class ErrorKind(StrEnum):
    """What went wrong, in the terms that a transport maps to a status."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    UNPROCESSABLE = "unprocessable"
    PRECONDITION_FAILED = "precondition_failed"
    PRECONDITION_REQUIRED = "precondition_required"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


class ErrorCode(StrEnum):
    """Stable codes. Adding one is fine; renaming one breaks clients."""

    INVALID_INPUT = "invalid_input"
    UNAUTHENTICATED = "unauthenticated"
    SCOPE_REQUIRED = "scope_required"
    GRAPH_NOT_ALLOWED = "graph_not_allowed"
    TOOLSET_NOT_ALLOWED = "toolset_not_allowed"
    NOT_CONFIRMED = "not_confirmed"
    EXPIRY_EXCEEDED = "expiry_exceeded"
    QUOTA_EXCEEDED = "quota_exceeded"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    GRAPH_NOT_FOUND = "graph_not_found"
    GRAPH_EXISTS = "graph_exists"
    GRAPH_IN_USE = "graph_in_use"
    ENTITY_NOT_FOUND = "entity_not_found"
    NODE_NOT_FOUND = "node_not_found"
    NAME_TAKEN = "name_taken"
    CYCLE = "cycle"
    COMPACTED = "compacted"
    VERSION_CONFLICT = "version_conflict"
    KEY_NOT_FOUND = "key_not_found"
    KEY_VOID = "key_void"
    GRANT_NOT_FOUND = "grant_not_found"
    JOB_NOT_FOUND = "job_not_found"
    JOB_NOT_FINISHED = "job_not_finished"
    JOB_HAS_NO_OUTPUT = "job_has_no_output"
    JOB_STORAGE_FULL = "job_storage_full"
    JOB_TAKES_NO_INPUT = "job_takes_no_input"
    TOO_MANY_JOBS = "too_many_jobs"
    TENANT_NOT_FOUND = "tenant_not_found"
    TENANT_EXISTS = "tenant_exists"
    TENANT_READ_ONLY = "tenant_read_only"
    TENANT_MOVING = "tenant_moving"
    TENANT_DELETED = "tenant_deleted"
    TENANT_NOT_DELETED = "tenant_not_deleted"
    ERASURE_BEGUN = "erasure_begun"
    RECEIPT_NOT_FOUND = "receipt_not_found"
    ROLE_REQUIRED = "role_required"
    MEMBER_NOT_FOUND = "member_not_found"
    MEMBER_EXISTS = "member_exists"
    LAST_OWNER = "last_owner"
    LAST_SIGN_IN = "last_sign_in"
    INVITATION_NOT_FOUND = "invitation_not_found"
    SESSION_NOT_FOUND = "session_not_found"
    PROVIDER_NOT_FOUND = "provider_not_found"
    PROVIDER_EXISTS = "provider_exists"
    TOO_MANY_PROVIDERS = "too_many_providers"
    ISSUER_NOT_FOUND = "issuer_not_found"
    ISSUER_EXISTS = "issuer_exists"
    TOO_MANY_ISSUERS = "too_many_issuers"
    DOMAIN_NOT_FOUND = "domain_not_found"
    DOMAIN_EXISTS = "domain_exists"
    DOMAIN_NOT_VERIFIED = "domain_not_verified"
    TOO_MANY_DOMAINS = "too_many_domains"
    SIGN_IN_REFUSED = "sign_in_refused"
    WEBHOOK_NOT_FOUND = "webhook_not_found"
    WEBHOOK_DISABLED = "webhook_disabled"
    DELIVERY_NOT_FOUND = "delivery_not_found"
    TOO_MANY_WEBHOOKS = "too_many_webhooks"
    TOO_MANY_KEYS = "too_many_keys"
    TOO_MANY_OPEN_INVITATIONS = "too_many_open_invitations"
    TOO_MANY_MEMBERS = "too_many_members"
    TOO_MANY_ACTS = "too_many_acts"
    TOO_MANY_DELIVERIES = "too_many_deliveries"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IDEMPOTENCY_DONE = "idempotency_done"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    TOO_MANY_IDEMPOTENCY_KEYS = "too_many_idempotency_keys"
    PRECONDITION_FAILED = "precondition_failed"
    PRECONDITION_REQUIRED = "precondition_required"
    KIND_NOT_ALLOWED = "kind_not_allowed"
    REPLY_TOO_LARGE = "reply_too_large"
    REQUEST_TOO_LARGE = "request_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    REQUEST_TIMEOUT = "request_timeout"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_CONCURRENT_CALLS = "too_many_concurrent_calls"
    TOO_MANY_STREAMS = "too_many_streams"
    TOO_MANY_INVITATIONS = "too_many_invitations"
    TOO_MANY_FAILURES = "too_many_failures"
    TOO_MANY_CONNECTIONS = "too_many_connections"
    TOO_COSTLY = "too_costly"
    DATABASE_UNAVAILABLE = "database_unavailable"
    MAIL_NOT_SENT = "mail_not_sent"
    SERVICE_READ_ONLY = "service_read_only"
    SCHEMA_OUTDATED = "schema_outdated"
    EMBEDDER_UNAVAILABLE = "embedder_unavailable"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_ANSWER_UNUSABLE = "model_answer_unusable"
    MODEL_REFUSED = "model_refused"
    DISTILLING_OFF = "distilling_off"
    THREAD_NOT_FOUND = "thread_not_found"
    BUSY = "busy"
    DRAINING = "draining"
    INTERNAL = "internal_error"


class RecollectError(Exception):
    """Base of all errors that callers get.

    `message` is for people and says what to do next; `path` is the dotted path in the input
    (`entities.0.name`), where there is one. Neither holds SQL, a stack or another tenant's data.
    """

    kind: ClassVar[ErrorKind] = ErrorKind.INTERNAL
    default_code: ClassVar[ErrorCode] = ErrorCode.INTERNAL

    def __init__(self, message: str, *, code: ErrorCode | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidInput(RecollectError):
    """What was sent cannot be accepted; nothing was written."""

    kind = ErrorKind.INVALID
    default_code = ErrorCode.INVALID_INPUT


class InvalidInputs(InvalidInput):
    """Several faults of one input: the message lists each with its path, and `path` is that of the first."""

    def __init__(self, faults: Sequence[InvalidInput], *, more: bool = False) -> None:
        message = "\n".join(str(fault) for fault in faults)
        super().__init__(f"{message}\nand more" if more else message, code=faults[0].code, path=faults[0].path)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return self.message


def require_none(faults: Iterable[InvalidInput | None]) -> None:
    """Raise the only fault, or all of several together; None is no fault."""
    found = [fault for fault in faults if fault is not None]
    if found:
        raise found[0] if len(found) == 1 else InvalidInputs(found)


class Unauthenticated(RecollectError):
    """No credential, or one that does not hold. The message never says which."""

    kind = ErrorKind.UNAUTHENTICATED
    default_code = ErrorCode.UNAUTHENTICATED


class TenantSuspended(Unauthenticated):
    """The credential would be valid if its tenant were not suspended. Callers do not see the difference."""


class CredentialEnded(Unauthenticated):
    """The credential was issued here, and has expired or was revoked: nobody guessed it.

    Callers see no difference, except that an OAuth client learns that its access token has expired.
    """


class TokenExpired(CredentialEnded):
    """An access token that its client may renew by its refresh token."""


class WrongEndpoint(Unauthenticated):
    """A token of a kind that is not valid at this address, whether or not it is valid elsewhere.

    Nothing was looked up, so that the answer reveals nothing about the token.
    """

    def __init__(self, description: str) -> None:
        super().__init__(f"{description}. Use an API key: Authorization: Bearer rcl_…")
        self.description = description


class Forbidden(RecollectError):
    """The credential holds but does not reach that far."""

    kind = ErrorKind.FORBIDDEN
    default_code = ErrorCode.SCOPE_REQUIRED


class TenantReadOnly(Forbidden):
    """The tenant is suspended read-only; nothing was written. `contact`: the contact that the operator names."""

    default_code = ErrorCode.TENANT_READ_ONLY

    def __init__(self, contact: str | None = None) -> None:
        ask = contact or "whoever operates this service"
        super().__init__(
            f"This tenant is read-only: its operator has suspended all writing. Reading still works. Ask {ask}."
        )


class QuotaExceeded(Forbidden):
    """The tenant's plan does not allow as much; nothing was written.

    The message consists of `rule` (what is allowed), `usage` (what the tenant has and wanted to add) and `advice`.
    `message_without_usage` is the message without `usage`, for readers who may not know what the tenant has.
    """

    default_code = ErrorCode.QUOTA_EXCEEDED

    def __init__(self, rule: str, usage: str, advice: str) -> None:
        super().__init__(f"{rule} {usage} {advice}")
        self.message_without_usage = f"{rule} {advice}"


class NotFound(RecollectError):
    """Not there, or another tenant's: the two look alike."""

    kind = ErrorKind.NOT_FOUND
    default_code = ErrorCode.NOT_FOUND


class MethodNotAllowed(RecollectError):
    """The address is right, the HTTP method is not."""

    kind = ErrorKind.METHOD_NOT_ALLOWED
    default_code = ErrorCode.METHOD_NOT_ALLOWED


class Conflict(RecollectError):
    """The present state does not allow it."""

    kind = ErrorKind.CONFLICT
    default_code = ErrorCode.GRAPH_EXISTS


class Unprocessable(RecollectError):
    """Understood, and not to be done as it is: an idempotency key that came with another request."""

    kind = ErrorKind.UNPROCESSABLE
    default_code = ErrorCode.IDEMPOTENCY_MISMATCH


class PreconditionFailed(RecollectError):
    """The object to change is not in the state that the caller knows; nothing was written."""

    kind = ErrorKind.PRECONDITION_FAILED
    default_code = ErrorCode.PRECONDITION_FAILED


class PreconditionRequired(RecollectError):
    """A request that replaces a whole object must name the state that it replaces."""

    kind = ErrorKind.PRECONDITION_REQUIRED
    default_code = ErrorCode.PRECONDITION_REQUIRED


class TooLarge(RecollectError):
    """The request or the reply is past a bound; the message says how to ask for less."""

    kind = ErrorKind.TOO_LARGE
    default_code = ErrorCode.REPLY_TOO_LARGE


class TooManyRequests(RecollectError):
    """More requests than allowed, in a time or at once; after `seconds` there may be room again."""

    kind = ErrorKind.RATE_LIMITED
    default_code = ErrorCode.RATE_LIMITED

    def __init__(
        self, message: str, *, code: ErrorCode | None = None, path: str | None = None, seconds: int = 1
    ) -> None:
        super().__init__(message, code=code, path=path)
        self.seconds = seconds


class Unavailable(RecollectError):
    """Something that Recollect needs is unreachable or busy; the same call may be tried again."""

    kind = ErrorKind.UNAVAILABLE
    default_code = ErrorCode.DATABASE_UNAVAILABLE


class TenantMoving(Unavailable):
    """The tenant is moving from one cell to another, or just has; nothing was written. It takes seconds."""

    default_code = ErrorCode.TENANT_MOVING

    def __init__(self) -> None:
        super().__init__("This organisation's data is moving to another server. Try again in a few seconds.")
