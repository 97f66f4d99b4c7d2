"""Arguments of the tools that write facts and entities, and the checks of their values."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

from recollect.errors import InvalidInput
from recollect.memory.revising import NodePatch
from recollect.settings import Settings
from recollect.text.visible import is_visible
from recollect_gateway.mcp_endpoint.tools.facts.shapes import moment_of
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE

END_OF_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""
NEVER = 0
"""The value of `expires_at` for a node that never expires; null leaves the expiry as it is."""

Text = str
"""A text whose length a setting bounds: it is not checked here, since the contract has its own error message for it."""
FactKind = Annotated[str, Meta(min_length=1, max_length=256)]
Source = Annotated[str, Meta(max_length=256)]
Milliseconds = Annotated[
    int,
    Meta(ge=0, le=END_OF_TIME, description="When it expires, in milliseconds since 1970; 0: never; overrides ttl_days"),
]

TtlDays = Annotated[float, Meta(description="Days until it expires")]
KEPT_EMPTY = Meta(extra={EMPTY_IS_A_VALUE: True})
"""Marks a field whose empty text is not dropped: it clears the field, or is refused."""


def text_fault(text: str | None, path: str, settings: Settings) -> InvalidInput | None:
    """The error for a text that is blank or too long."""
    if text is None or not is_visible(text):
        return InvalidInput("Text cannot be empty", path=path)
    if len(text) > settings.max_text_length:
        return InvalidInput(f"Text too long (max {settings.max_text_length} chars)", path=path)
    return None


def ttl_fault(ttl_days: float | None, settings: Settings) -> InvalidInput | None:
    """The error for a lifetime outside the configured bounds."""
    if ttl_days is None or settings.min_ttl_days < ttl_days <= settings.max_ttl_days:
        return None
    return InvalidInput(
        f"Must be more than {settings.min_ttl_days:g} and at most {settings.max_ttl_days:g}", path="ttl_days"
    )


def _expiry(expires_at: int | None) -> datetime | None:
    """The time when a node expires; None where it is not given, or the node never expires."""
    return None if expires_at == NEVER else moment_of(expires_at)


def patch_of(arguments: Any) -> NodePatch:
    """The changes to a node, except to its text, in the arguments of `create_node` or `update_node`."""
    never_expires = arguments.expires_at == NEVER
    return NodePatch(
        kind=arguments.entity_type,
        fact_kind=arguments.kind,
        metadata=arguments.metadata,
        status=arguments.status,
        source=arguments.source,
        ttl_days=None if never_expires else arguments.ttl_days,
        expires_at=_expiry(arguments.expires_at),
        never_expires=never_expires,
    )
