"""Make the first tenant and put what opens it into one Secret; nothing is logged. Where no Secret is named, print it.

The chart's bootstrap Job runs it, after upgrades too: its arguments are the command that makes the tenant and prints
what opens it. A tenant that is there stays as it is.
"""

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path(os.environ.get("ACCOUNT_FOLDER", "/var/run/secrets/kubernetes.io/serviceaccount"))
SLUG, SECRET = os.environ["FIRST_TENANT"], os.environ.get("FIRST_TENANT_SECRET")
OPENING = {"api-key": "rcl_", "invitation-link": "http"}
"""How the lines begin that open the tenant, by the key under which each is stored."""


def store(content: dict[str, str]) -> None:
    """Put these into the Secret, beside what it has."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    namespace = os.environ["FIRST_TENANT_NAMESPACE"]
    request = urllib.request.Request(
        f"https://{host}:{port}/api/v1/namespaces/{namespace}/secrets/{SECRET}",
        method="PATCH",
        data=json.dumps({"stringData": content}).encode(),
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        },
    )
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trusted):
        return


def made_by(command: list[str]) -> str | None:
    """What the command prints; None: the tenant was there before. Exits as the command does that fails."""
    made = subprocess.run(command, capture_output=True, text=True)
    sys.stderr.write(made.stderr)
    if made.returncode == 0:
        return made.stdout
    if f" a tenant {SLUG!r}" in made.stderr and " already" in made.stderr:
        return None
    sys.exit(made.returncode)  # It has said why.


def main(command: list[str]) -> None:
    """Make sure that it can be stored, then make what is to be stored."""
    try:
        if SECRET:
            store({})
        made = made_by(command)
        if made is None:
            print("the tenant exists already, nothing is created: `recollect keys create` creates another key")
        elif SECRET:
            lines = made.splitlines()
            store({key: line for line in lines for key, begin in OPENING.items() if line.startswith(begin)})
        else:
            print(made, end="")
    except urllib.error.URLError as error:
        sys.exit(f"the Secret {SECRET} cannot be changed: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
