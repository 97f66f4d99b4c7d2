"""What a form says when it is refused: its page is shown again, with what was entered."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from recollect.errors import ErrorKind, PreconditionFailed, RecollectError

SEEN = "seen"
"""The field of a form with the mark of what it was made from."""

_STATUSES = {
    ErrorKind.INVALID: 400,
    ErrorKind.TOO_LARGE: 400,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.CONFLICT: 409,
    ErrorKind.PRECONDITION_FAILED: 409,
    ErrorKind.UNPROCESSABLE: 400,
    ErrorKind.RATE_LIMITED: 429,
    ErrorKind.UNAVAILABLE: 503,
}


@dataclass(frozen=True, slots=True)
class FormRefusal:
    """Why nothing was changed, and the status of the page that says so. `is_outdated`: another user was faster."""

    status: int
    text: str
    is_outdated: bool = False


def refusal_of(error: RecollectError) -> FormRefusal:
    """The refusal to show in a form; any other error is raised again, and becomes a page of its own."""
    status = _STATUSES.get(error.kind)
    if status is None:
        raise error
    return FormRefusal(status, error.message, isinstance(error, PreconditionFailed))


def mark_of(thing: object) -> str:
    """What stands for the state of an object in a form."""
    return hashlib.blake2b(msgspec.json.encode(thing), digest_size=12).hexdigest()


def unchanged_since(mark: str) -> Callable[[Any], None]:
    """A check that the object is as it was when a form was made that has this mark. It raises PreconditionFailed."""

    def check(thing: object) -> None:
        if mark != mark_of(thing):
            raise PreconditionFailed(
                "Somebody changed this after you opened the page. Nothing of yours is saved yet: compare with what "
                "applies now, and save again."
            )

    return check
