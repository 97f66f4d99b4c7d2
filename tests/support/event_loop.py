"""The event loop of tests: that of gateways and workers, which fails at its end if something was left open on it."""

import asyncio
import threading
import warnings

from recollect.event_loop import EventLoop


class StrictEventLoop(EventLoop):
    """Raises at its end for transports and servers that nobody closed.

    uvloop warns of each from a callback that cannot raise. Where warnings are errors, as in tests, it then neither
    closes it nor fails, but waits for it without end.
    """

    def close(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            super().close()
        if caught:
            warnings.warn("; ".join(str(warning.message) for warning in caught), ResourceWarning, stacklevel=2)


def use_event_loop() -> None:
    """Run tests, and whatever they run by `asyncio.run`, on this loop.

    The plugin's hook for loops would make the session's fixtures anew whenever a test without a loop comes in between.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 wants each caller to name its loop.
        asyncio.set_event_loop_policy(_policy())


def _policy() -> asyncio.AbstractEventLoopPolicy:
    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            """A strict one in the main thread only: filters of warnings belong to the whole process."""
            return StrictEventLoop() if threading.current_thread() is threading.main_thread() else EventLoop()

    return Policy()
