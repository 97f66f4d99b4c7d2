"""`docs/conformance.md`: the results of the official MCP conformance suite at both revisions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.verify.conformance import HELD, Checks
from tests.verify.conformance_findings import EXPECTED
from tests.verify.processes import ROOT

PAGE = ROOT / "docs" / "conformance.md"
_LOCK = Path(__file__).parent / "package-lock.json"

INTRODUCTION = """# Conformance

What the official suite of the protocol (`@modelcontextprotocol/conformance` {version}) says of a gateway, by
`make conformance`, which `make verify` calls: it fails where a scenario comes out otherwise than here.

It is the application that `python -m recollect_gateway` serves, on its own transport and with authentication on; a
small proxy adds the API key, which the suite does not know of. What the suite wants to meet on a server, such as a tool
that answers with an image or asks back, is mounted beside our own tools by the tests alone
(`tests/support/example_offer.py`), and a worker does what of it is a [task](jobs.md#as-tasks). The suite is run at
`/mcp`, and again at an address of a tenant.

A check is held only where it succeeded: one that warned or was skipped is not, and each such has its reason. Shapes
that a revision does not have, such as batches, are answered by an error of the protocol
(`tests/integration/gateway/test_mcp_endpoint.py`).
"""


def conformance_page(results: Mapping[str, Checks]) -> str:
    """The page, from the checks of each revision."""
    version = json.loads(_LOCK.read_text())["packages"]["node_modules/@modelcontextprotocol/conformance"]["version"]
    return "\n".join([INTRODUCTION.format(version=version), *(_section(*result) for result in results.items())])


def _section(revision: str, checks: Checks) -> str:
    rows = [_row(revision, scenario, checks[scenario]) for scenario in sorted(checks)]
    whole = sum(row.count("| holds |") for row in rows)
    head = f"## {revision}\n\n{whole} of {len(rows)} scenarios hold whole.\n"
    return "\n".join([head, "| scenario | checks held | outcome | reason |", "|---|---|---|---|", *rows, ""])


def _row(revision: str, scenario: str, checks: Sequence[Mapping[str, Any]]) -> str:
    tried = [check for check in checks if check["status"] != "INFO"]
    held = sum(check["status"] in HELD for check in tried)
    reasons = {reason: None for finding, reason in EXPECTED[revision].items() if finding.startswith(f"{scenario}: ")}
    if not reasons:
        return f"| `{scenario}` | {held} of {len(tried)} | holds | |"
    outcome = "in part" if held else "unsupported"
    return f"| `{scenario}` | {held} of {len(tried)} | {outcome} | {'; '.join(reasons)} |"
