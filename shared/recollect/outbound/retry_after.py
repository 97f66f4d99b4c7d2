"""The header `Retry-After`, by which a server says when it may be asked again (RFC 9110, 10.2.3)."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_until(retry_after: str | None) -> float | None:
    """Seconds from now of a Retry-After header, which holds seconds or a date; None for a missing or malformed one."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after or "").astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
