"""Why a request to an address that others chose failed, in words that may be logged.

Messages of libraries quote what strangers chose: host names, addresses, parts of an answer. A log keeps them after the
tenant that chose them was erased. So a reason has the kind of the error, and the fixed texts of the system for it.
"""

import os
import socket
import ssl
from collections.abc import Iterator


def reason_of(error: BaseException) -> str:
    """The kind of an error and, where the system has a text for it or for its cause, that."""
    details = (_detail(each) for each in _with_causes(error))
    detail = next((found for found in details if found), None)
    kind = type(error).__name__
    return kind if detail is None else f"{kind}: {detail}"


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        nested = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        current = next(iter(nested), None) or current.__cause__ or current.__context__


def _detail(error: BaseException) -> str | None:
    match error:
        case ssl.SSLCertVerificationError():
            return error.verify_message.partition(",")[0]  # After the comma, it quotes the name.
        case ssl.SSLError():
            return error.reason
        case socket.gaierror():
            return error.strerror
        case OSError(errno=int(number)):
            return os.strerror(number)  # The error's own text may quote the address.
        case _:
            return None
