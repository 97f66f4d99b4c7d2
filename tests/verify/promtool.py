"""The alerts of infra/observability in the rule tests of Prometheus."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ALERTS = Path(__file__).parents[2] / "infra" / "observability" / "alerts.yaml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
}


@dataclass(frozen=True)
class Case:
    """Samples of metrics, one per minute, and the labels with which an alert fires at a time.

    `series` are in the notation of promtool: `0+2x30` is 0, 2, 4 and so on, thirty times more.
    """

    alert: str
    situation: str
    series: Mapping[str, str]
    at: str
    fires: Sequence[Mapping[str, str]] = ()

    def __str__(self) -> str:
        return f"{self.alert}: {self.situation}"


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool; fails if it is missing."""
    program = shutil.which("promtool")
    assert program, "this needs promtool: install it (the package prometheus of Debian)"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def try_case(case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool for a case: it fails if other alerts fire than expected."""
    rule = RULES[case.alert]
    expected = [
        {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": rule["annotations"]} for labels in case.fires
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}],
    }
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}))
    return promtool("test", "rules", path)
