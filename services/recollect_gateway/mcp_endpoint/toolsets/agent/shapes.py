"""What the tools of toolset `agent` share: bounds, types, and the check of metadata."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from recollect.errors import InvalidInput

MAX_ITEMS = 100

Time = Annotated[datetime, Meta(tz=True)]
Reason = Annotated[str, Meta(max_length=1_000)]


def check_metadata(metadata: dict[str, Any], path: str, max_size: int) -> None:
    """Raise InvalidInput for metadata that takes more than `max_size` bytes."""
    if len(msgspec.json.encode(metadata)) > max_size:
        raise InvalidInput(f"Metadata too large (max {max_size} bytes)", path=path)
