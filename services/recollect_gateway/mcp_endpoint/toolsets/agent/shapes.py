"""What the tools of toolset `agent` share: bounds and types."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

MAX_ITEMS = 100

Time = Annotated[datetime, Meta(tz=True)]
Reason = Annotated[str, Meta(max_length=1_000)]
