"""The results of the official MCP conformance suite, and its findings in them.

The list of expected failures of the suite ignores warnings and skipped checks; here they count as findings.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.verify.node import node, script

HELD = ("SUCCESS", "INFO")

Checks = Mapping[str, list[dict[str, Any]]]
"""Scenario -> its checks."""


def suite(*arguments: str) -> list[str]:
    """The command that runs the suite."""
    return [node(), script("@modelcontextprotocol/conformance"), *arguments]


def read_checks(folder: Path, kind: str) -> Checks:
    """The checks of each scenario, from its folder of results, whose name is KIND-SCENARIO-TIME."""
    return {_scenario(path.parent.name, kind): json.loads(path.read_text()) for path in folder.glob("*/checks.json")}


def findings(checks: Checks) -> dict[str, str]:
    """`scenario: check` -> the message of the suite, for each check that did not succeed."""
    found = {
        f"{scenario}: {check['id']}": f"{check['status']}: {check.get('errorMessage') or check.get('description')}"
        for scenario, entries in checks.items()
        for check in entries
        if check["status"] not in HELD
    }
    idle = [scenario for scenario, entries in checks.items() if all(check["status"] == "INFO" for check in entries)]
    return found | {f"{scenario}: nothing was checked": "" for scenario in idle}


def _scenario(folder: str, kind: str) -> str:
    match = re.fullmatch(rf"{kind}-(.+)-\d{{4}}-\d\d-\d\dT[\d-]+Z", folder)
    assert match, folder
    return match[1]
