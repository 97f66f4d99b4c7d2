"""Ask a gateway whether it is well and let a client of MCP introduce itself: what `helm test` runs.

Without API_KEY the gateway is to ask for a key, by 401; that shows the whole way as far as it goes without one.
"""

import json
import os
import sys
import urllib.error
import urllib.request

URL, HOST, KEY = os.environ["GATEWAY_URL"], os.environ["PUBLIC_HOST"], os.environ.get("API_KEY")
REVISION = "2025-11-25"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": REVISION,
        "capabilities": {},
        "clientInfo": {"name": "helm-test", "version": "1"},
    },
}


def ask(path: str, body: object = None, **headers: str) -> tuple[int, str, str]:
    """Status, type and text of an answer, also of one that refuses."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}{path}", data=content, headers={"Host": HOST, **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"] or "", answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers["Content-Type"] or "", refusal.read().decode()


def require(holds: bool, otherwise: str) -> None:
    """End with a line that says what was found where it does not hold."""
    if not holds:
        sys.exit(f"the gateway at {URL}: {otherwise}")


def main() -> None:
    """Health, then `initialize`."""
    for path in ("/health/live", "/health/ready"):
        status, _, text = ask(path)
        require(status == 200, f"{path} answers {status}: {text}")
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if KEY is None:
        status, _, text = ask("/mcp", INITIALIZE, **headers)
        require(status == 401, f"/mcp answers {status} without a key, not 401: {text}")
        print("health checks pass; MCP requires an API key, and test.secret is not set")
        return
    status, kind, text = ask("/mcp", INITIALIZE, Authorization=f"Bearer {KEY}", **headers)
    require(status == 200, f"initialize answers {status}: {text}")
    streamed = kind.startswith("text/event-stream")
    said = (
        [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")] if streamed else [text]
    )
    result = json.loads(said[-1])["result"]
    require(result["protocolVersion"] == REVISION, f"it answers with revision {result['protocolVersion']}")
    print(f"health checks pass; MCP is served by {result['serverInfo']['name']} {result['serverInfo']['version']}")


if __name__ == "__main__":
    main()
