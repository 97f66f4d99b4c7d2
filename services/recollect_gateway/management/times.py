"""Times in addresses."""

from typing import Any

from litestar import Request

from recollect.errors import InvalidInput
from recollect.times import NEEDED


def require_written_times(request: Request[Any, Any, Any], *names: str) -> None:
    """Raise InvalidInput for a parameter of these that is a number: the framework reads it as seconds since 1970."""
    for name in names:
        told = request.query_params.get(name, "")
        if told and not told[4:5] == "-":
            raise InvalidInput(NEEDED, path=name)
