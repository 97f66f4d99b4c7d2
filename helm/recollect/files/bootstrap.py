"""Make the first tenant and put what opens it into one Secret, from which it is not even read; nothing is logged.

The chart's bootstrap Job runs it: its arguments are the command that makes the tenant and prints the rest.
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
HOST, PORT = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
NAMESPACE, NAME = os.environ["FIRST_TENANT_NAMESPACE"], os.environ["FIRST_TENANT_SECRET"]


def store(content: dict[str, str]) -> None:
    """Put these into the Secret, beside what it has."""
    host = f"[{HOST}]" if ":" in HOST else HOST
    request = urllib.request.Request(
        f"https://{host}:{PORT}/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}",
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


def main(command: list[str]) -> None:
    """Make sure that it can be stored, then make what is to be stored."""
    try:
        store({})
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        lines = made.stdout.splitlines()
        opening = {"api-key": "rcl_", "invitation-link": "http"}
        store({key: line for line in lines for key, begin in opening.items() if line.startswith(begin)})
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # It has said why.
    except urllib.error.URLError as error:
        sys.exit(f"the Secret {NAME} cannot be changed: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
