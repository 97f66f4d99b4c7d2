"""What the test asks a client to do, the person who is sent to a browser, and what the client found.

The program gets its errand as JSON in its first argument, and prints what it found as one line of JSON.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

CALLBACK = "http://127.0.0.1:33418/callback"
"""Where nobody listens: the person says to where they were sent."""


@dataclass(frozen=True)
class Errand:
    """An MCP address, a key or None to sign in, calls as [tool, arguments], and the address that asks the person."""

    url: str
    key: str | None
    calls: list[tuple[str, dict[str, Any]]]
    person: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a client that has a key."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def visit(self, url: str) -> dict[str, str]:
        """Have the person open an address; the parameters of the one to which they were sent at last."""
        with urlopen(f"{self.person}?url={quote(url, safe='')}") as answer:
            landed = answer.read().decode()
        return {name: values[0] for name, values in parse_qs(urlsplit(landed).query).items()}


def errand() -> Errand:
    """The errand of this program."""
    return Errand(**json.loads(sys.argv[1]))


def tell(tools: list[str], answers: list[str]) -> None:
    """Print the names of the listed tools, and the text of each answer."""
    print(json.dumps({"tools": tools, "answers": answers}), flush=True)
