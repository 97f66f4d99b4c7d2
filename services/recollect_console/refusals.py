"""A check that nobody was faster than a visitor's form."""

from collections.abc import Callable
from typing import Any

from recollect_console.visit import Visit
from recollect_http.web.refusals import SEEN, unchanged_since


def unchanged(visit: Visit) -> Callable[[Any], None]:
    """A check that the object is as it was when the visitor's form was made. It raises PreconditionFailed."""
    return unchanged_since(visit.value(SEEN))
