"""Entries of the audit log, and the closed list of acts that have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

UNKNOWN = "unknown"
"""The actor of a sign-in that was refused: it used a person's name, but nobody knows who tried it."""

OF_PERSONS = frozenset({"session.started", "session.ended", "session.refused", "person.password_changed"})
"""Acts of people that are recorded in the log of each of their tenants. The policy `of_a_member` has the same list."""

Detail = str | int | bool | Sequence[str] | Mapping[str, int] | None
"""The type of a detail: a word of the code or a number, and small. No text that people stored, no name, no secret."""


class Action(StrEnum):
    """The actions that the audit log records. New ones may be added; existing ones are not renamed."""

    KEY_CREATED = "key.created"
    KEY_ROTATED = "key.rotated"
    KEY_REVOKED = "key.revoked"
    KEY_REPORTED = "key.reported"
    MEMBER_INVITED = "member.invited"
    INVITATION_REVOKED = "invitation.revoked"
    MEMBER_JOINED = "member.joined"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    GRANT_GIVEN = "grant.given"
    GRANT_ENDED = "grant.ended"
    GRANT_REUSE_DETECTED = "grant.reuse_detected"
    SESSION_STARTED = "session.started"
    SESSION_ENDED = "session.ended"
    SESSION_REFUSED = "session.refused"
    PASSWORD_CHANGED = "person.password_changed"  # noqa: S105 - an act, no password
    PROVIDER_CREATED = "identity_provider.created"
    PROVIDER_CHANGED = "identity_provider.changed"
    PROVIDER_DELETED = "identity_provider.deleted"
    IDENTITY_DISCONNECTED = "identity_provider.disconnected"
    DOMAIN_CLAIMED = "email_domain.claimed"
    DOMAIN_VERIFIED = "email_domain.verified"
    DOMAIN_UNPROVEN = "email_domain.unproven"
    DOMAIN_CHANGED = "email_domain.changed"
    DOMAIN_DROPPED = "email_domain.dropped"
    ISSUER_TRUSTED = "trusted_issuer.created"
    ISSUER_CHANGED = "trusted_issuer.changed"
    ISSUER_DELETED = "trusted_issuer.deleted"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"  # noqa: S105 - an act, no secret
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_DISABLED = "webhook.disabled"
    MODEL_SET = "language_model.set"
    MODEL_REMOVED = "language_model.removed"
    TENANT_CREATED = "tenant.created"
    TENANT_CHANGED = "tenant.changed"
    TENANT_PLAN_CHANGED = "tenant.plan_changed"
    TENANT_SUSPENDED = "tenant.suspended"
    TENANT_RESUMED = "tenant.resumed"
    TENANT_DELETION_REQUESTED = "tenant.deletion_requested"
    TENANT_DELETION_TAKEN_BACK = "tenant.deletion_taken_back"
    TENANT_DELETED = "tenant.deleted"
    TENANT_RESTORED = "tenant.restored"
    GRAPH_CREATED = "graph.created"
    GRAPH_CONFIGURED = "graph.configured"
    GRAPH_EXPORTED = "graph.exported"
    GRAPH_IMPORTED = "graph.imported"
    GRAPH_ERASED = "graph.erased"
    PERSON_ERASED = "graph.person_erased"
    JOB_OUTPUT_DELETED = "job.output_deleted"
    AUDIT_EXPORTED = "audit.exported"


REPEATABLE = frozenset(
    {
        Action.KEY_CREATED,
        Action.KEY_ROTATED,
        Action.MEMBER_INVITED,
        Action.MEMBER_ROLE_CHANGED,
        Action.GRANT_GIVEN,
        Action.PROVIDER_CREATED,
        Action.PROVIDER_CHANGED,
        Action.DOMAIN_CLAIMED,
        Action.DOMAIN_CHANGED,
        Action.ISSUER_TRUSTED,
        Action.ISSUER_CHANGED,
        Action.WEBHOOK_CREATED,
        Action.WEBHOOK_CHANGED,
        Action.WEBHOOK_SECRET_ROTATED,
        Action.MODEL_SET,
        Action.TENANT_CHANGED,
        Action.GRAPH_CREATED,
        Action.GRAPH_CONFIGURED,
        Action.GRAPH_EXPORTED,
        Action.GRAPH_IMPORTED,
        Action.PERSON_ERASED,
        Action.AUDIT_EXPORTED,
    }
)
"""Acts that can be repeated without end. The others end or delete what one of these made, so there are not more of
them. They, and sign-ins, are never refused for their number."""

MAX_ACTS_PER_DAY = 100_000
"""The most acts of a tenant in 24 hours with which a REPEATABLE one is accepted: this bounds the size of its log."""

RESERVED_ACTS = 1_000
"""Acts of a caller in 24 hours that are accepted up to twice MAX_ACTS_PER_DAY of its tenant: so an agent that exports
without end does not keep an admin from making a key."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One act. `objects`: its objects, each as `kind:id`. `address`: of the client, None if it is not known.

    `trace_id`: of the OpenTelemetry trace that the act is part of, 32 hexadecimal digits, None if none was recorded.
    """

    id: UUID
    at: datetime
    actor: str
    action: str
    objects: tuple[str, ...]
    address: str | None
    trace_id: str | None
    details: dict[str, Detail]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of entries; None selects all. From `since` on, and before `until`."""

    actor: str | None = None
    action: Action | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def changed_fields(before: T, after: T) -> list[str]:
    """The sorted names of the fields in which two values of a dataclass differ, as a detail of an entry."""
    names = sorted(field.name for field in fields(before))
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def named(kind: str, id_: object) -> str:
    """An object in the form that entries have: `key:0190…`."""
    return f"{kind}:{id_}"
