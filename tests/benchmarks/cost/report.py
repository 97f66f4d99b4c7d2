"""The measurements, in Markdown, as in docs/lab/call-costs.md."""

from collections.abc import Iterable, Sequence

from tests.benchmarks.cost.figures import MeasuredCost, MeasuredMix, SizeCosts, in_echoes
from tests.benchmarks.cost.spent import Spent

_COST_COLUMNS = (
    "toolset",
    "call",
    "gateway",
    "PostgreSQL",
    "worker",
    "PostgreSQL for it",
    "Valkey",
    "echo",
    "gateway + PostgreSQL, in echoes",
    "round trips",
    "statements",
    "planning",
    "running",
)
_MIX_COLUMNS = (
    "entities",
    "gateways",
    "clients",
    "calls a second",
    "echoes a second",
    "gateways",
    "PostgreSQL",
    "worker",
    "all servers",
    "echo",
    "all servers, in echoes",
)

_MIXED = (
    "Nine calls of ten read, one writes; milliseconds by call. As many clients ask the bare echo in turns with them."
)


def cost_markdown(sizes: Sequence[SizeCosts], cores: int) -> str:
    """A table for each size, and one for the mixes."""
    parts = [part for size in sizes if size.calls for part in _costs(size, cores)]
    mixes = [(size.entities, mix) for size in sizes for mix in size.mixes]
    if mixes:
        parts += [_MIXED, _mixes(mixes)]
    return "\n\n".join(parts)


def _costs(size: SizeCosts, cores: int) -> Iterable[str]:
    yield (
        f"{size.entities:,} entities; milliseconds by call. Beside it, the machine spent {size.others:.1f} of its "
        f"{cores} cores on other work. At rest, by second: {_at_rest(size.at_rest)}."
    )
    yield _table(_COST_COLUMNS, 2, (_cost_row(cost) for cost in size.calls))


def _at_rest(rest: Spent) -> str:
    named = {
        "gateway": rest.gateway,
        "PostgreSQL": rest.postgres + rest.worker_postgres,
        "worker": rest.worker,
        "Valkey": rest.valkey,
    }
    return ", ".join(f"{name} {_milliseconds(seconds)}" for name, seconds in named.items())


def _cost_row(cost: MeasuredCost) -> Sequence[str]:
    spent, sent = cost.spent, cost.sent
    times = (spent.gateway, spent.postgres, spent.worker, spent.worker_postgres, spent.valkey)
    gateway, postgres = in_echoes(spent.gateway, cost), in_echoes(spent.postgres, cost)
    return [
        cost.toolset,
        f"`{cost.label}`" if " (" not in cost.label else "`{}` ({}".format(*cost.label.split(" (")),
        *(_milliseconds(seconds) for seconds in times),
        f"{1_000 * spent.echo:.2f}",
        f"{gateway:.1f} + {postgres:.1f}",
        f"{sent.round_trips:g}",
        f"{sent.statements:g}",
        f"{sent.planning:.1f}",
        f"{sent.running:.1f}",
    ]


def _mixes(mixes: Sequence[tuple[int, MeasuredMix]]) -> str:
    return _table(_MIX_COLUMNS, 0, (_mix_row(entities, mix) for entities, mix in mixes))


def _mix_row(entities: int, mix: MeasuredMix) -> Sequence[str]:
    spent = mix.spent
    times = (spent.gateway, spent.postgres, spent.worker + spent.worker_postgres, spent.all_servers)
    return [
        f"{entities:,}",
        str(mix.gateways),
        str(mix.clients),
        f"{mix.rate:.0f}",
        f"{mix.echo_rate:.0f}",
        *(_milliseconds(seconds) for seconds in times),
        f"{1_000 * spent.echo:.2f}",
        f"{mix.in_echoes:.1f}",
    ]


def _table(columns: Sequence[str], texts: int, rows: Iterable[Sequence[str]]) -> str:
    """A table whose first `texts` columns are words; the others are figures, aligned right."""
    rule = ["---" if number < texts else "---:" for number in range(len(columns))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rule, *rows))


def _milliseconds(seconds: float) -> str:
    return f"{1_000 * seconds:.1f}"
