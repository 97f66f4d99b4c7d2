"""Group `telemetry`: what traces and metrics cost a call, compared with the same calls at gateways without telemetry.

Gateways on one database take turns, a few calls at a time, so that other work of the machine affects all equally.
Telemetry goes to a collector in another process of this machine, which keeps all that it receives.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median

from rich import box
from rich.table import Table

from recollect_local.server import Server
from tests.benchmarks.memory import new_tenant
from tests.benchmarks.processes import processor_seconds
from tests.benchmarks.stack import Stack
from tests.benchmarks.wire import LEGACY, McpConnection
from tests.support.otlp import collecting

CALLS = 10
"""The number of calls per turn."""

PLAIN = "nothing is told"
CALL = ("recall", {"query": "which colour does the kettle have"})


@dataclass(slots=True)
class MeasuredTelling:
    """One gateway: its telemetry, the seconds of each call, and the processor seconds of the gateway in all calls."""

    tells: str
    seconds: list[float] = field(default_factory=list)
    processor: float = 0.0


async def measure_telemetry(stack: Stack, turns: int, rows: list[MeasuredTelling]) -> None:
    """Measure so many turns of each gateway, into `rows`."""
    _, key = await new_tenant(stack.settings)
    url = stack.settings.database_url
    with collecting() as collector:
        sent = {"RECOLLECT_ACCESS_LOG": "false", "RECOLLECT_OTLP_ENDPOINT": collector.endpoint}
        told = {
            PLAIN: {"RECOLLECT_ACCESS_LOG": "false"},
            "the access log": {"RECOLLECT_LOG_LEVEL": "INFO", "RECOLLECT_LOG_FORMAT": "json"},
            "5 % of traces, metrics": {**sent, "RECOLLECT_TRACE_RATIO": "0.05"},
            "all traces, metrics": sent,
        }
        async with AsyncExitStack() as open_:
            gateways = []
            for number, (tells, variables) in enumerate(told.items()):
                place = stack.another_gateway(f"telling-{number}", url, **variables)
                gateway, port = await open_.enter_async_context(place)
                connection = await open_.enter_async_context(McpConnection(port, "/mcp", LEGACY, key))
                await connection.call("remember", {"items": [{"text": f"The kettle number {number} is blue"}]})
                rows.append(row := MeasuredTelling(tells))
                gateways.append((gateway, connection, row))
                await _turn(gateway, connection, MeasuredTelling("until it is warm"))
            for _ in range(turns):
                for gateway, connection, row in gateways:
                    await _turn(gateway, connection, row)


async def _turn(gateway: Server, connection: McpConnection, row: MeasuredTelling) -> None:
    assert gateway.pid is not None, "it was started"
    before = processor_seconds(gateway.pid)
    for _ in range(CALLS):
        exchange = await connection.call(*CALL)
        exchange.result()
        row.seconds.append(exchange.seconds)
    row.processor += processor_seconds(gateway.pid) - before


def telemetry_table(rows: Sequence[MeasuredTelling]) -> Table:
    """The table of the measurements, each row compared with the first."""
    table = Table(box=box.SIMPLE, title="Telemetry: what a recall costs the gateway that tells of it")
    for column in ("told", "calls", "median ms", "ratio", "processor ms a call", "ratio"):
        table.add_column(column, justify="left" if column == "told" else "right")
    plain = next((row for row in rows if row.seconds), None)
    for row in rows:
        if plain is None or not row.seconds:
            continue
        own, base = row.processor / len(row.seconds), plain.processor / len(plain.seconds)
        table.add_row(
            row.tells,
            f"{len(row.seconds):,}",
            f"{median(row.seconds) * 1000:.2f}",
            f"{median(row.seconds) / median(plain.seconds):.2f}",
            f"{own * 1000:.2f}",
            f"{own / base:.2f}" if base else "",
        )
    return table
