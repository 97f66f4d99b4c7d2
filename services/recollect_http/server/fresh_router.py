"""Routers that are made for one app."""

from typing import Any, Self

from litestar import Router


class FreshRouter(Router):
    """A router that one app registers, once. Litestar copies a router with all of its routes, so that others can
    register it, too: half of the time in which the app starts."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same."""
        return self
