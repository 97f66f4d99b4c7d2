"""Times in query parameters."""

from recollect.errors import InvalidInput
from recollect.times import NEEDED
from recollect_http.requests import AnyRequest


def require_written_times(request: AnyRequest, *names: str) -> None:
    """Raise InvalidInput if one of these parameters is a number: the framework reads it as seconds since 1970."""
    for name in names:
        value = request.query_params.get(name, "")
        if value and not value[4:5] == "-":
            raise InvalidInput(NEEDED, path=name)
