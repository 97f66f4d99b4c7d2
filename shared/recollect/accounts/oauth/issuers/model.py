"""Issuers of access tokens that a tenant trusts, and the rules that turn a claim into scopes and graphs.

A token has the scopes of all rules that match it, and the graphs that all these rules name, so that no scope of one
rule applies to a graph of another.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from recollect.accounts.token_issuers import ALGORITHMS
from recollect.caller import Caller, Scope
from recollect.errors import InvalidInput
from recollect.text.control_characters import controls

DEFAULT_ALGORITHM = "RS256"
DEFAULT_CLAIM = "scope"
MAX_ISSUERS = 5
"""Issuers of one tenant, at most."""

MAX_NAME = 200
MAX_ISSUER = 2_000
MAX_CLAIM = 100
MAX_RULES = 20
MAX_VALUE = 200
MAX_RULE_GRAPHS = 200
MAX_SUBJECT = 255
"""Characters of a subject, at most."""

MAX_VALUES = 1_000
"""Values of a claim that are read, at most."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,2000}\.[A-Za-z0-9_-]{1,8000}\.[A-Za-z0-9_-]{1,2000}")


@dataclass(frozen=True, slots=True)
class Rule:
    """The rights of a token whose claim has this value. `graph_ids` None: all graphs, future ones included."""

    value: str
    scopes: tuple[Scope, ...]
    graph_ids: tuple[UUID, ...] | None = None


DEFAULT_RULES = tuple(Rule(str(scope), (scope,)) for scope in (Scope.MEMORY_READ, Scope.MEMORY_WRITE))
"""Values that are names of scopes give these scopes; none manages the tenant."""


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer as it is listed."""

    id: UUID
    name: str
    issuer: str
    algorithm: str
    claim: str
    rules: tuple[Rule, ...]
    created_at: datetime
    created_by: str
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewIssuer:
    """The fields of a new issuer."""

    name: str
    issuer: str
    algorithm: str = DEFAULT_ALGORITHM
    claim: str = DEFAULT_CLAIM
    rules: tuple[Rule, ...] = DEFAULT_RULES


@dataclass(frozen=True, slots=True)
class IssuerChange:
    """New values of fields; None leaves a field as it is."""

    name: str | None = None
    algorithm: str | None = None
    claim: str | None = None
    rules: tuple[Rule, ...] | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """The scopes and graphs of a token; `graphs` None: all."""

    scopes: frozenset[Scope]
    graphs: frozenset[UUID] | None


def looks_like_token(secret: str) -> bool:
    """Whether a string has the form of a signed JWT."""
    return _TOKEN.fullmatch(secret) is not None


def check_fields(name: str | None, algorithm: str | None, claim: str | None, rules: Sequence[Rule] | None) -> None:
    """Raise InvalidInput for a field that is not valid."""
    if name is not None and (not 1 <= len(name.strip()) <= MAX_NAME or controls(name)):
        raise InvalidInput(f"A name has 1 to {MAX_NAME} characters and no control characters", path="name")
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise InvalidInput(f"Must be one of {', '.join(ALGORITHMS)}", path="algorithm")
    if claim is not None and not 1 <= len(claim) <= MAX_CLAIM:
        raise InvalidInput(f"A claim has 1 to {MAX_CLAIM} characters", path="claim")
    if rules is None:
        return
    if not 1 <= len(rules) <= MAX_RULES:
        raise InvalidInput(f"An issuer needs 1 to {MAX_RULES} rules", path="rules")
    for index, rule in enumerate(rules):
        if not 1 <= len(rule.value) <= MAX_VALUE or not rule.scopes:
            raise InvalidInput(f"A rule has a value of 1 to {MAX_VALUE} characters, and a scope", path=f"rules.{index}")


def check_issuer(address: str) -> None:
    """Raise InvalidInput for an address that cannot be an issuer's, by its form."""
    if not 1 <= len(address) <= MAX_ISSUER or "?" in address or "#" in address:
        raise InvalidInput(
            f"An issuer is an address of at most {MAX_ISSUER} characters, without ? and #", path="issuer"
        )


def require_may_trust(caller: Caller, rules: Sequence[Rule]) -> None:
    """Raise Forbidden if rules give more rights than the caller has, as with keys."""
    caller.require_toolset(frozenset())
    caller.require_non_expiring()
    for rule in rules:
        for scope in rule.scopes:
            caller.require(scope)
        for graph_id in (None,) if rule.graph_ids is None else rule.graph_ids:
            caller.require_graph(graph_id)


def reach_of(rules: Sequence[Rule], claim: Any) -> Reach:
    """The scopes and graphs of a token with this claim: words in a text, or a list of texts."""
    words = claim.split(" ") if isinstance(claim, str) else claim if isinstance(claim, list) else []
    values = {word for word in words[:MAX_VALUES] if isinstance(word, str)}
    matching = [rule for rule in rules if rule.value in values]
    confined = [frozenset(rule.graph_ids) for rule in matching if rule.graph_ids is not None]
    scopes = frozenset(scope for rule in matching for scope in rule.scopes)
    return Reach(scopes, frozenset.intersection(*confined) if confined else None)


def rules_to_store(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Rules in the form in which they are stored, as JSON."""
    stored: list[dict[str, Any]] = msgspec.to_builtins(rules)
    return stored


def rules_as_stored(stored: Any) -> tuple[Rule, ...]:
    """Rules from their stored form."""
    return msgspec.convert(stored, tuple[Rule, ...], strict=False)
