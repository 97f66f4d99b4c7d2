"""Credentials: the one place where a request's Authorization header becomes a Caller."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from litestar.datastructures import Headers

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.service import NoteUse
from recollect.caller import Caller
from recollect.errors import Unauthenticated
from recollect.platform.db import Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Turns `Authorization: Bearer rcl_…` into a Caller."""

    db: Database
    pepper: bytes
    note_use: NoteUse | None = None

    async def caller(self, headers: Headers, tenant: str | None = None) -> Caller:
        """The Caller of a request, who must be of `tenant` where the address names one.

        Raises Unauthenticated, alike for every reason, or Unavailable.
        """
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not credential.strip():
            raise Unauthenticated(identity.REFUSAL)
        caller = await identity.authenticate(self.db, credential.strip(), pepper=self.pepper, note_use=self.note_use)
        if tenant not in (None, caller.tenant):
            raise Unauthenticated(identity.REFUSAL)
        return caller

    async def while_it_holds(self, headers: Headers, parts: AsyncIterator[T]) -> AsyncIterator[T]:
        """The parts of what takes long, before each of which the credential is asked for anew.

        Raises Unauthenticated once it is revoked, or has ended, or its tenant is suspended.
        """
        async for part in parts:
            await self.caller(headers)
            yield part
