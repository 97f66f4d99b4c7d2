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

Results of the official MCP conformance suite (`@modelcontextprotocol/conformance` {version}) against a gateway.
`make conformance`, a part of `make verify`, runs it, and fails if a result differs from this page.

The gateway runs as in production, with authentication; a small proxy adds the API key, which the suite does not know.
Tools that the suite expects and Recollect does not have, such as one that answers with an image, are added by the tests
(`tests/support/example_catalogue.py`); a worker runs those that are [tasks](jobs.md#as-tasks). The suite runs at
`/mcp`, and again at the address of a tenant.

A check counts as held only if it succeeded, not if it warned or was skipped; the last column gives the reason. Messages
that a revision does not define, such as batches, are answered by an error of the protocol
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
