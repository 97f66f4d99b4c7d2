"""The secret for hashes and encryption of stored data, and earlier secrets that are accepted for a while.

A Pepper can be used wherever a function takes one secret: as bytes it is the current one, which is used for new data.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Pepper(bytes):
    """The current secret. `accepted_secrets`: others, under which stored data is still accepted."""

    accepted_secrets: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, secret: bytes, others: Iterable[bytes]) -> "Pepper":
        """This secret as the current one, and further accepted ones."""
        pepper = cls(secret)
        pepper.accepted_secrets = tuple(other for other in others if other != secret)
        return pepper


def accepted_secrets_of(pepper: bytes) -> tuple[bytes, ...]:
    """The other accepted secrets; none for plain bytes."""
    return pepper.accepted_secrets if isinstance(pepper, Pepper) else ()


async def find_under_any_secret(pepper: bytes, find: Callable[[bytes], Awaitable[T | None]]) -> T | None:
    """The value that `find` finds under the current secret, else under the others, one after the other.

    If none has it, the current secret is tried again: the value may have been rehashed in between.
    """
    others = accepted_secrets_of(pepper)
    secrets = (pepper, *others, pepper) if others else (pepper,)
    for secret in secrets:
        if (found := await find(secret)) is not None:
            return found
    return None


def hashes_under(pepper: bytes, make_hash: Callable[[bytes], bytes]) -> list[bytes]:
    """The hashes under which a value may be stored: by the current secret, and by the others."""
    return [make_hash(secret) for secret in (pepper, *accepted_secrets_of(pepper))]
