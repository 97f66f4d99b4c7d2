"""The npm package oidc-provider as a process: a third-party identity provider and issuer of access tokens."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from joserfc.jwk import RSAKey

from recollect.settings.addresses.public_url import local_url
from recollect_local.process import start_process, stop_process
from tests.support.gateway import NO_AUTHORITIES
from tests.verify.node import node

PROGRAM = Path(__file__).parent / "oidc_provider.mjs"
SECRET = "kept-between-the-two"
PERSONS, AGENTS = "recollect", "agents"
"""Its two clients: Recollect, for people who sign in, and programs that act for themselves."""

START_SECONDS = 60.0
STOP_SECONDS = 10.0


def signing_key(name: str) -> dict[str, Any]:
    """A signing key for the provider."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"}, private=True).as_dict(private=True)


@dataclass(frozen=True)
class OidcProvider:
    """A provider at this port, which can run repeatedly with different keys, and logs what it does."""

    port: int
    redirect_uri: str
    log: Path

    @property
    def issuer(self) -> str:
        return local_url("127.0.0.1", self.port)

    @contextmanager
    def running(self, *keys: dict[str, Any]) -> Iterator[None]:
        """Run the provider, which signs with the first of these keys."""
        known = {"client_secret": SECRET, "grant_types": ["authorization_code"], "response_types": ["code"]}
        clients = [
            known | {"client_id": PERSONS, "redirect_uris": [self.redirect_uri]},
            known
            | {"client_id": AGENTS, "redirect_uris": [], "grant_types": ["client_credentials"], "response_types": []},
        ]
        configuration = json.dumps({"port": self.port, "keys": keys, "clients": clients})
        before = len(self.logged("listens"))
        process = start_process([node(), str(PROGRAM), configuration], log=self.log, environment=dict(os.environ))
        try:
            give_up = time.monotonic() + START_SECONDS
            while len(self.logged("listens")) == before:
                assert process.poll() is None, self.log.read_text()
                assert time.monotonic() < give_up, self.log.read_text()
                time.sleep(0.05)
            yield
        finally:
            stop_process(process, grace_seconds=STOP_SECONDS)

    def logged(self, what: str) -> list[Any]:
        """The entries of the log of that kind: `listens`, `asked` (authorization requests) or `error`."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [logged[what] for line in lines if line.startswith("{") and what in (logged := json.loads(line))]

    async def access_token(self, resource: str) -> str:
        """An access token of an agent for this resource."""
        form = {"grant_type": "client_credentials", "resource": resource, "scope": "memory:read memory:write"}
        async with httpx2.AsyncClient(verify=NO_AUTHORITIES) as http:
            answer = await http.post(f"{self.issuer}/token", data=form, auth=(AGENTS, SECRET))
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token
