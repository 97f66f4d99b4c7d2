"""The secret under which what is stored is hashed and encrypted, and those that are accepted beside it for a while.

Whoever takes one secret takes a Pepper: as bytes it is the one of now, by which all that is new is stored.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Pepper(bytes):
    """The secret of now. `others`: what was stored under them holds as well."""

    others: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, secret: bytes, others: Iterable[bytes]) -> "Pepper":
        """This secret, and others beside it."""
        made = cls(secret)
        made.others = tuple(other for other in others if other != secret)
        return made


def others_of(pepper: bytes) -> tuple[bytes, ...]:
    """The secrets that are accepted beside this one: none, where it is only bytes."""
    return pepper.others if isinstance(pepper, Pepper) else ()


async def found_under(pepper: bytes, find: Callable[[bytes], Awaitable[T | None]]) -> T | None:
    """What is found under the secret of now; where nothing is, under the others, one after the other.

    Where none of them has it, under the one of now once more: between the two it may have been hashed anew.
    """
    others = others_of(pepper)
    for each in (pepper, *others, pepper) if others else (pepper,):
        if (found := await find(each)) is not None:
            return found
    return None


def hashes_under(pepper: bytes, hashed: Callable[[bytes], bytes]) -> list[bytes]:
    """What a secret may be stored as: by the secret of now, and by the others."""
    return [hashed(each) for each in (pepper, *others_of(pepper))]
