"""Credentials: the one place where a request's Authorization header becomes a Caller."""

from dataclasses import dataclass

from litestar.datastructures import Headers

from recollect.caller import Caller
from recollect.errors import Unauthenticated
from recollect.identity import service as identity
from recollect.platform.db import Database


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Turns `Authorization: Bearer rcl_…` into a Caller."""

    db: Database
    pepper: bytes

    async def caller(self, headers: Headers) -> Caller:
        """The Caller of a request; raises Unauthenticated, alike for every reason, or Unavailable."""
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not credential.strip():
            raise Unauthenticated("A valid API key is needed: Authorization: Bearer rcl_…")
        return await identity.authenticate(self.db, credential.strip(), pepper=self.pepper)
