"""Passwords: which are accepted, how they are stored, and how they are verified.

They are stored as argon2id with the parameters of RFC 9106, 4 (its second choice: 64 MiB, three passes). A verification
takes that memory and about 50 ms of a core, so a process does few at a time, in threads beside the event loop.

Passwords are refused that are short, that a service knows as stolen, or that can be guessed: `zxcvbn` knows common
passwords, words, names, keyboard walks and their usual variations (https://www.usenix.org/conference/usenixsecurity16/technical-sessions/presentation/wheeler).
"""

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from argon2 import PasswordHasher, profiles
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from recollect.accounts.people.breached import BreachedPasswords
from recollect.errors import InvalidInput

MIN_LENGTH = 12
MAX_LENGTH = 128
"""Characters of a password."""

MIN_GUESSES = 10**8
"""The fewest guesses that a password must take by zxcvbn's estimate: more than can be tried against a service."""

GUESSED_LENGTH = 64
"""Characters that the estimate looks at; its time grows with their square."""

AT_ONCE = 2
"""Passwords that a process hashes at a time."""

_HASHER = PasswordHasher.from_parameters(profiles.RFC_9106_LOW_MEMORY)
_NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$PluztlyLWtlAumdf5UFfSQ$m2zpsBeiCrHt03UBb2Su0tIIqOaRxhPph6T8rqNjLFU"
"""The hash of random characters that were not kept. Verifying against it takes as long as against a real hash."""
_limiter: RunVar[CapacityLimiter] = RunVar("passwords")


async def require_strong(password: str, known: tuple[str, ...], breached: BreachedPasswords | None = None) -> None:
    """Raise InvalidInput for a password that is short, long, easily guessed, or among the breached ones.

    `known`: strings that an attacker knows, such as the address; `breached` None: no look-up of stolen passwords.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise InvalidInput(f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters", path="password")
    guesses = await anyio.to_thread.run_sync(_guesses, password, known, limiter=_limit())
    if guesses < MIN_GUESSES:
        raise InvalidInput(
            "This password is easy to guess: choose several words that do not belong together", path="password"
        )
    if breached is not None and await breached.holds(password):
        raise InvalidInput(
            "This password was stolen from another service, so attackers try it: choose another", path="password"
        )


async def hash_password(password: str) -> str:
    """The password as it is stored: argon2id, with its salt and parameters."""
    return await anyio.to_thread.run_sync(_HASHER.hash, password, limiter=_limit())


async def matches(password: str, password_hash: str | None) -> bool:
    """Whether this is the password. Without a hash it is False after the same time, which hides who has an account."""
    found = await anyio.to_thread.run_sync(_verify, password, password_hash or _NOBODYS, limiter=_limit())
    return found and password_hash is not None


def _guesses(password: str, known: tuple[str, ...]) -> float:
    # Imported here because its lists of words take 12 MB, which gateways without sign-ups need not load.
    from zxcvbn import zxcvbn

    return float(zxcvbn(password[:GUESSED_LENGTH], user_inputs=list(known), max_length=GUESSED_LENGTH)["guesses"])


def _verify(password: str, password_hash: str) -> bool:
    try:
        return _HASHER.verify(password_hash, password[:MAX_LENGTH])
    except (VerifyMismatchError, InvalidHashError):
        return False


def _limit() -> CapacityLimiter:
    """The limiter of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
        return limiter
