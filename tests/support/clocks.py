"""A process whose clock differs from that of its database."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest


class _Kind(type):
    """Real times are instances, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, datetime)


@contextmanager
def clock_ahead(by: timedelta) -> Iterator[None]:
    """Have the clock of this process be ahead of others in the block, or behind by a negative time.

    It is that of all modules of the service that are loaded. Clocks that only measure (monotonic ones) stay.
    """

    class Shifted(datetime, metaclass=_Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + by

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0].startswith("recollect") and vars(module).get("datetime") is datetime:
                patch.setattr(module, "datetime", Shifted)
        yield


@pytest.fixture
def noon() -> Iterator[datetime]:
    """Have the clock of this process say noon (UTC) when the test begins, so that no day ends during it."""
    now = datetime.now(UTC)
    noon = now.replace(hour=12, minute=0)
    with clock_ahead(noon - now):
        yield noon
