"""Each alert of infra/observability fires when it should, and only then, as evaluated by Prometheus."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.unit.project.test_observability import LABELS, OF_HTTP
from tests.verify.promtool import ALERTS, RULES, Case, promtool, try_case

CALLS = "mcp_server_operation_duration_seconds"
HTTP = "http_server_request_duration_seconds_count"
EMBEDDER = "gen_ai_client_operation_duration_seconds_count"
FAILURES = "recollect_database_failures_total"
READS = "recollect_replica_reads_total"
OLDEST = "recollect_queue_oldest_age_seconds"
JOBS = "recollect_jobs_failed_total"
CONNECTIONS = "db_client_connection_count"
MOVES = "recollect_move_step_age_seconds"
A, B = 'instance="a"', 'instance="b"'


def quantile(name: str, bound: str, share: int, labels: str = "") -> dict[str, str]:
    """A histogram of a hundred calls per minute, of which `share` took no longer than `bound`."""
    return {
        f'{name}_bucket{{{labels}le="{bound}"}}': f"0+{share}x120",
        f'{name}_bucket{{{labels}le="30"}}': "0+100x120",
        f'{name}_bucket{{{labels}le="+Inf"}}': "0+100x120",
    }


def waiting(queue: str, seconds: int, cell: str = "") -> dict[str, str]:
    """The oldest entry of a queue has always waited for so many seconds."""
    of_cell = f',recollect_cell="{cell}"' if cell else ""
    return {f'{OLDEST}{{recollect_queue_name="{queue}"{of_cell}}}': f"{seconds}+0x60"}


def workers_of(*cells: str) -> dict[str, str]:
    """Workers of these cells report the lengths of their queues."""
    return {
        f'recollect_queue_waiting{{recollect_queue_name="jobs",recollect_cell="{cell}"}}': "0+0x60" for cell in cells
    }


def connections_to(*cells: str) -> dict[str, str]:
    """A gateway is connected to these cells."""
    named = "db_client_connection_pool_name", "tenants"
    return {f'{CONNECTIONS}{{{named[0]}="{named[1]}",recollect_cell="{cell}"}}': "1+0x60" for cell in cells}


OF_TENANTS = 'db_client_connection_pool_name="tenants",'
READY, UNREADY = "1+0x60", "0+0x60"
NOTHING: Mapping[str, str] = {"up": "1+0x60"}
ONE: list[Mapping[str, str]] = [{}]

CASES = [
    Case("RecollectNoGateway", "none tells anything", NOTHING, "5m", ONE),
    Case(
        "RecollectNoGateway",
        "none is ready",
        {f"recollect_gateway_ready{{{A}}}": UNREADY, f"recollect_gateway_ready{{{B}}}": UNREADY},
        "5m",
        ONE,
    ),
    Case(
        "RecollectNoGateway",
        "one of two is ready",
        {f"recollect_gateway_ready{{{A}}}": UNREADY, f"recollect_gateway_ready{{{B}}}": READY},
        "30m",
    ),
    Case(
        "RecollectGatewayUnready",
        "one of two is not",
        {f"recollect_gateway_ready{{{A}}}": UNREADY, f"recollect_gateway_ready{{{B}}}": READY},
        "12m",
        ONE,
    ),
    Case(
        "RecollectGatewayUnready",
        "one was not while it started",
        {f"recollect_gateway_ready{{{A}}}": "0 0 0 1+0x60", f"recollect_gateway_ready{{{B}}}": READY},
        "12m",
    ),
    Case(
        "RecollectToolErrors",
        "three of a hundred",
        {f'{CALLS}_count{{error_type="internal_error"}}': "0+3x60", f"{CALLS}_count": "0+97x60"},
        "15m",
        ONE,
    ),
    Case(
        "RecollectToolErrors",
        "errors that callers make",
        {f'{CALLS}_count{{error_type="invalid_input"}}': "0+50x60", f"{CALLS}_count": "0+50x60"},
        "15m",
    ),
    Case(
        "RecollectHttpFaults",
        "three of a hundred",
        {
            f'{HTTP}{{http_response_status_code="503"}}': "0+3x60",
            f'{HTTP}{{http_response_status_code="200"}}': "0+97x60",
        },
        "15m",
        ONE,
    ),
    Case(
        "RecollectHttpFaults",
        "what clients do wrong",
        {
            f'{HTTP}{{http_response_status_code="404"}}': "0+50x60",
            f'{HTTP}{{http_response_status_code="200"}}': "0+50x60",
        },
        "15m",
    ),
    Case("RecollectSlowCalls", "one of ten is slow", quantile(CALLS, "1", 90), "20m", ONE),
    Case("RecollectSlowCalls", "three of a hundred are", quantile(CALLS, "1", 97), "20m"),
    Case(
        "RecollectPoolWaits",
        "of one pool of one cell",
        quantile("db_client_connection_wait_time_seconds", "0.5", 90, OF_TENANTS)
        | quantile("db_client_connection_wait_time_seconds", "0.5", 90, f'{OF_TENANTS}recollect_cell="b",')
        | quantile("db_client_connection_wait_time_seconds", "0.5", 99, f'{OF_TENANTS}recollect_cell="c",'),
        "15m",
        [
            {"db_client_connection_pool_name": "tenants"},
            {"db_client_connection_pool_name": "tenants", "recollect_cell": "b"},
        ],
    ),
    Case(
        "RecollectPoolWaits",
        "hardly any waits",
        quantile("db_client_connection_wait_time_seconds", "0.5", 99, OF_TENANTS),
        "15m",
    ),
    Case(
        "RecollectDatabaseAway",
        "two failures a minute, of one cell",
        {f'{FAILURES}{{{OF_TENANTS}error_type="refused",recollect_cell="b"}}': "0+2x30"},
        "10m",
        [{"recollect_cell": "b"}],
    ),
    Case(
        "RecollectDatabaseAway",
        "the replica only",
        {f'{FAILURES}{{db_client_connection_pool_name="replica",error_type="refused"}}': "0+2x30"},
        "10m",
    ),
    Case("RecollectDatabaseAway", "a few, once", {f'{FAILURES}{{{OF_TENANTS}error_type="refused"}}': "0 4+0x30"}, "5m"),
    Case(
        "RecollectReplicaUnused",
        "it is away",
        {
            f'{READS}{{recollect_replica_outcome="paused"}}': "0+6x60",
            f'{READS}{{recollect_replica_outcome="replica"}}': "0+4x60",
        },
        "20m",
        ONE,
    ),
    Case(
        "RecollectReplicaUnused",
        "graphs that are being written",
        {
            f'{READS}{{recollect_replica_outcome="behind"}}': "0+6x60",
            f'{READS}{{recollect_replica_outcome="replica"}}': "0+4x60",
        },
        "20m",
    ),
    Case(
        "RecollectCallsWaiting",
        "one of ten for long",
        quantile("recollect_call_wait_duration_seconds", "2.5", 90),
        "15m",
        ONE,
    ),
    Case("RecollectCallsWaiting", "hardly any", quantile("recollect_call_wait_duration_seconds", "1", 99), "15m"),
    Case(
        "RecollectRequestsRefused",
        "two a second",
        {'recollect_requests_refused_total{recollect_limit="calls_at_work"}': "0+120x60"},
        "15m",
        [{"recollect_limit": "calls_at_work"}],
    ),
    Case(
        "RecollectRequestsRefused",
        "rates, as intended",
        {'recollect_requests_refused_total{recollect_limit="key"}': "0+120x60"},
        "15m",
    ),
    Case("RecollectEmbeddingBehind", "in one cell", waiting("passages", 700, "b"), "12m", [{"recollect_cell": "b"}]),
    Case("RecollectEmbeddingBehind", "five minutes", waiting("passages", 300) | waiting("jobs", 700), "12m"),
    Case(
        "RecollectEmbedderFails",
        "two of ten calls",
        {f'{EMBEDDER}{{error_type="embedder_unavailable"}}': "0+2x60", EMBEDDER: "0+8x60"},
        "15m",
        ONE,
    ),
    Case(
        "RecollectEmbedderFails",
        "one of a hundred",
        {f'{EMBEDDER}{{error_type="embedder_unavailable"}}': "0+1x60", EMBEDDER: "0+99x60"},
        "15m",
    ),
    Case("RecollectJobsBehind", "a quarter of an hour", waiting("jobs", 1000), "12m", ONE),
    Case("RecollectJobsBehind", "ten minutes", waiting("jobs", 600) | waiting("passages", 1000), "12m"),
    Case(
        "RecollectJobsFail",
        "four at once, each the first of its worker and kind",
        {
            f'{JOBS}{{{worker},recollect_job_kind="{kind}",error_type="busy"}}': "0x3 1+0x60"
            for worker in (A, B)
            for kind in ("export_graph", "import_graph")
        },
        "15m",
        ONE,
    ),
    Case(
        "RecollectJobsFail",
        "three",
        {f'{JOBS}{{recollect_job_kind="export_graph",error_type="busy"}}': "0x3 3+0x60"},
        "30m",
    ),
    Case(
        "RecollectJobsFail",
        "for what their input holds",
        {f'{JOBS}{{recollect_job_kind="import_graph",error_type="invalid_input"}}': "0+1x60"},
        "30m",
    ),
    Case("RecollectDeliveriesBehind", "a quarter of an hour", waiting("deliveries", 1000), "12m", ONE),
    Case("RecollectDeliveriesBehind", "ten minutes", waiting("deliveries", 600) | waiting("jobs", 1000), "12m"),
    Case("RecollectNoWorker", "none tells anything", {CONNECTIONS: "1+0x60"}, "12m", ONE),
    Case(
        "RecollectNoWorker",
        "one of several cells has none",
        connections_to("home", "b", "c") | workers_of("home", "c"),
        "12m",
        [{"recollect_cell": "b"}],
    ),
    Case("RecollectNoWorker", "each cell has one", connections_to("home", "b") | workers_of("home", "b"), "12m"),
    Case(
        "RecollectNoWorker",
        "the one cell has one",
        {CONNECTIONS: "1+0x60", 'recollect_queue_waiting{recollect_queue_name="jobs"}': "0+0x60"},
        "12m",
    ),
    Case(
        "RecollectRedisAway",
        "all the time, found once",
        {"recollect_redis_away": "0x3 1+0x60", "recollect_rate_fallbacks_total": "0x3 1+0x60"},
        "40m",
        ONE,
    ),
    Case(
        "RecollectRedisAway",
        "for moments, again and again",
        {"recollect_redis_away": "0+0x60", "recollect_rate_fallbacks_total": "0+1x60"},
        "15m",
        ONE,
    ),
    Case(
        "RecollectRedisAway",
        "for a moment, once",
        {"recollect_redis_away": "0 0 0 1 0+0x60", "recollect_rate_fallbacks_total": "0x3 1+0x60"},
        "14m",
    ),
    Case(
        "RecollectRecallMisses",
        "one of five",
        {"recollect_recall_audit_sum": "0+8x240", "recollect_recall_audit_count": "0+10x240"},
        "2h",
        ONE,
    ),
    Case(
        "RecollectRecallMisses",
        "one of fifty",
        {"recollect_recall_audit_sum": "0+49x240", "recollect_recall_audit_count": "0+50x240"},
        "2h",
    ),
    Case("RecollectUsageUncounted", "some, once", {"recollect_usage_uncounted_total": "0x3 7+0x60"}, "10m", ONE),
    Case("RecollectUsageUncounted", "none", {"recollect_usage_uncounted_total": "0+0x60"}, "10m"),
    Case(
        "RecollectMoveInterrupted",
        "at its switch",
        {
            f'{MOVES}{{recollect_move_step="switch"}}': "901+60x60",
            f'{MOVES}{{recollect_move_step="copy"}}': "901+60x60",
        },
        "5m",
        [{"recollect_move_step": "switch"}],
    ),
    Case("RecollectMoveInterrupted", "a copy", {f'{MOVES}{{recollect_move_step="copy"}}': "901+60x60"}, "5m"),
    Case(
        "RecollectMoveStalls",
        "a copy of hours",
        {f'{MOVES}{{recollect_move_step="copy"}}': "21601+60x60"},
        "15m",
        [{"recollect_move_step": "copy"}],
    ),
    Case("RecollectMoveStalls", "a copy of an hour", {f'{MOVES}{{recollect_move_step="copy"}}': "3600+60x60"}, "15m"),
]


def test_prometheus_accepts_the_rules() -> None:
    finished = promtool("check", "rules", ALERTS)
    assert finished.returncode == 0, finished.stderr
    assert f"{len(RULES)} rules found" in finished.stdout


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exactly_the_expected_alerts_fire(case: Case, tmp_path: Path) -> None:
    finished = try_case(case, tmp_path)
    assert finished.returncode == 0, f"{finished.stdout}\n{finished.stderr}"


@pytest.mark.parametrize("alert", RULES)
def test_each_alert_has_cases_in_which_it_fires_and_does_not_fire(alert: str) -> None:
    assert {bool(case.fires) for case in CASES if case.alert == alert} == {True, False}


def named_series() -> Iterator[tuple[str, set[str]]]:
    for case in CASES:
        for series in case.series:
            name, _, labels = series.partition("{")
            yield name, set(re.findall(r"(\w+)=", labels))


def test_the_series_of_cases_have_the_names_in_alerts_and_metrics() -> None:
    """A case with a series that no process reports proves nothing. Another test compares alerts with metrics."""
    expressions = " ".join(rule["expr"] for rule in RULES.values())
    for name, labels in named_series():
        assert name == "up" or re.search(rf"\b{name}\b", expressions) or name in OF_HTTP, name
        assert labels <= LABELS | {"instance"}, name
