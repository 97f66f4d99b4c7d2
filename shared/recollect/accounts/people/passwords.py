"""Passwords: which are accepted, how they are stored, and how they are verified.

They are stored as argon2id with the parameters of RFC 9106, 4 (its second choice: 64 MiB, three passes). A verification
takes that memory and about 50 ms of a core, so a process does few at a time, in threads.

The accounts of one address share their salt, so that a sign-in takes one verification, however many there are: its
duration does not show whether tenants have accounts of an address.

Passwords are refused that are short, that a service knows as stolen, or that can be guessed: `zxcvbn` knows common
passwords, words, names, keyboard walks and their usual variations (https://www.usenix.org/conference/usenixsecurity16/technical-sessions/presentation/wheeler).
"""

import hmac
from base64 import b64decode
from collections.abc import Sequence

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from argon2 import PasswordHasher, extract_parameters, profiles
from argon2.exceptions import InvalidHashError
from argon2.low_level import hash_secret

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
    if breached is not None and await breached.contains(password):
        raise InvalidInput(
            "This password was stolen from another service, so attackers try it: choose another", path="password"
        )


async def hash_password(password: str, *, existing_hashes: Sequence[str | None] = ()) -> str:
    """The password as it is stored: argon2id, with its salt and parameters.

    `existing_hashes`: the hashes of the address's accounts, whose salt it gets.
    """
    return await anyio.to_thread.run_sync(_hash, password, tuple(existing_hashes), limiter=_limit())


async def matches(password: str, password_hash: str | None) -> bool:
    """Whether this is the password. Without a hash it is False after the same time, which hides who has an account."""
    return (await matches_each(password, [password_hash]))[0]


async def matches_each(password: str, hashes: Sequence[str | None]) -> list[bool]:
    """Which of these hashes of one address's accounts are of this password, after the time that one of them takes."""
    return await anyio.to_thread.run_sync(_verify_each, password, tuple(hashes), limiter=_limit())


def _guesses(password: str, known: tuple[str, ...]) -> float:
    # Imported here because its lists of words take 12 MB, which gateways without sign-ups need not load.
    from zxcvbn import zxcvbn

    return float(zxcvbn(password[:GUESSED_LENGTH], user_inputs=list(known), max_length=GUESSED_LENGTH)["guesses"])


def _hash(password: str, existing_hashes: tuple[str | None, ...]) -> str:
    salts = (_salt(found) for found in existing_hashes if found is not None and found.startswith("$argon2"))
    return _HASHER.hash(password, salt=next(salts, None))


def _verify_each(password: str, hashes: tuple[str | None, ...]) -> list[bool]:
    """Which of the hashes are of this password: one computation for each salt, and at least one."""
    computed: dict[str, str] = {}
    for stored in [found for found in hashes if found is not None] or [_NOBODYS]:
        salted = stored.rpartition("$")[0]
        if salted not in computed:
            computed[salted] = _hash_like(password[:MAX_LENGTH], stored)
    return [
        found is not None and hmac.compare_digest(computed[found.rpartition("$")[0]].encode(), found.encode())
        for found in hashes
    ]


def _hash_like(password: str, stored: str) -> str:
    """The password's hash with the salt and the parameters of a stored one; empty for text that is no hash."""
    try:
        parameters = extract_parameters(stored)
    except InvalidHashError:
        return ""
    return hash_secret(
        password.encode(),
        _salt(stored),
        time_cost=parameters.time_cost,
        memory_cost=parameters.memory_cost,
        parallelism=parameters.parallelism,
        hash_len=parameters.hash_len,
        type=parameters.type,
        version=parameters.version,
    ).decode()


def _salt(stored: str) -> bytes:
    encoded = stored.split("$")[-2]
    return b64decode(encoded + "=" * (-len(encoded) % 4))


def _limit() -> CapacityLimiter:
    """The limiter of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
        return limiter
