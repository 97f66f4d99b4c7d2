"""Alerts and dashboards in infra/ use existing metrics, and each alert has its page of the runbook."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, generate_latest

from recollect.errors import ErrorCode
from recollect.jobs.model import SERVER_ERROR_CODES
from recollect.postgres.connections import OWNER_ROLE
from recollect.telemetry import metrics
from recollect.telemetry.metric_readers import HTTP_ATTRIBUTES
from tests.unit.telemetry.test_metrics import BOUNDED, RECORDS, record_connections

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "infra" / "observability"
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}
OF_HTTP = {f"http_server_request_duration_seconds_{part}" for part in ("bucket", "count", "sum")}
LABELS = {name.replace(".", "_") for name in {*BOUNDED, *HTTP_ATTRIBUTES}} | {"le"}


def expressions() -> dict[str, str]:
    """Every expression of alerts and dashboards, by its place."""
    asked = {rule["alert"]: rule["expr"] for rule in RULES}
    for board in BOARDS.values():
        for panel in board["panels"]:
            asked |= {f"{board['uid']}: {panel['title']} {t['refId']}": t["expr"] for t in panel["targets"]}
    return asked


@pytest.fixture
async def exported(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names by which Prometheus knows every metric of ours."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    made = metrics.Instruments(MeterProvider(metric_readers=[reader], shutdown_on_exit=False).get_meter("test"))
    monkeypatch.setattr(metrics, "_instruments", lambda: made)
    for record in RECORDS.values():
        record()
    await record_connections()
    samples = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    return {re.split(r"[{ ]", line)[0] for line in samples}


async def test_every_expression_uses_existing_metrics_and_labels(exported: set[str]) -> None:
    asked = expressions()
    assert len(asked) > 30
    for place, expression in asked.items():
        chosen = re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", expression)
        grouped = [label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")]
        assert {*chosen, *grouped} <= LABELS, place
        bare = re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)
        named = set(re.findall(r"\b(?:recollect|mcp|http|db|gen_ai)_\w+", bare))
        assert named, place
        assert named <= exported | OF_HTTP, place


def test_every_expression_uses_existing_error_codes() -> None:
    codes = {str(code) for code in ErrorCode}
    said = [re.findall(r"error_type=~?\"([^\"]+)\"", expression) for expression in expressions().values()]
    named = {code for found in said for each in found for code in each.split("|")}
    assert named
    assert named <= codes


def test_failed_jobs_are_counted_from_zero_for_each_code_in_alerts() -> None:
    [asked] = [rule["expr"] for rule in RULES if rule["alert"] == "RecollectJobsFail"]
    [codes] = re.findall(r"error_type=~\"([^\"]+)\"", asked)
    assert set(codes.split("|")) == set(SERVER_ERROR_CODES)


def test_the_table_of_alerts_lists_exactly_the_alerts() -> None:
    table = (ROOT / "docs" / "observability.md").read_text().partition("| alert | when |")[2]
    listed = re.findall(r"^\| \[(\w+)\]\((runbook/[\w-]+\.md)\)", table, re.MULTILINE)
    assert listed == [(rule["alert"], rule["annotations"]["runbook_url"].removeprefix("docs/")) for rule in RULES]


async def test_the_runbook_uses_existing_metrics(exported: set[str]) -> None:
    asked = {
        (page.name, name)
        for page in (ROOT / "docs" / "runbook").glob("*.md")
        for code in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
        for name in re.findall(r"\b(?:recollect|mcp|http|db|gen_ai)_\w+", re.sub(r"\"[^\"]*\"", "", code))
    }
    assert len(asked) > 20
    histograms = {name.removesuffix("_bucket") for name in exported if name.endswith("_bucket")}
    assert {each for each in asked if each[1] not in exported | histograms | OF_HTTP | LABELS | {OWNER_ROLE}} == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_a_page_that_says_what_it_means_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"]
    page = (ROOT / rule["annotations"]["runbook_url"]).read_text()
    assert f"`{rule['alert']}`" in page
    for heading in ("What it means", "What to look at", "What to do"):
        assert f"\n## {heading}\n" in page


def test_each_page_of_the_runbook_belongs_to_an_alert() -> None:
    pages = {f"docs/runbook/{page.name}" for page in (ROOT / "docs" / "runbook").glob("*.md")}
    assert pages == {rule["annotations"]["runbook_url"] for rule in RULES}


def test_the_runbook_names_existing_settings() -> None:
    documented = (ROOT / "docs" / "settings.md").read_text()
    for page in (ROOT / "docs" / "runbook").glob("*.md"):
        for setting in re.findall(r"RECOLLECT_[A-Z_]+", page.read_text()):
            assert f"`{setting}`" in documented, (page.name, setting)


async def test_the_metrics_of_alerts_are_shown_on_a_dashboard(exported: set[str]) -> None:
    alerted = {name for rule in RULES for name in re.findall(r"\w+", rule["expr"])} & (exported | OF_HTTP)
    shown = " ".join(
        target["expr"] for board in BOARDS.values() for panel in board["panels"] for target in panel["targets"]
    )
    assert {name for name in alerted if not re.search(rf"\b{name}\b", shown)} == set()


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS.keys())
def test_panels_of_a_dashboard_do_not_overlap(board: dict[str, Any]) -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
