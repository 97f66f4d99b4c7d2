"""What the benchmark of costs measures and how it reports it."""

import itertools
from pathlib import Path

import msgspec
import pytest

from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.benchmarks.__main__ import OTHERS
from tests.benchmarks.before_after import cost_figures
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.cost.calls import reading_calls, writing_calls
from tests.benchmarks.cost.figures import MeasuredCost, MeasuredMix, SizeCosts
from tests.benchmarks.cost.mix import mixed_calls
from tests.benchmarks.cost.report import cost_markdown
from tests.benchmarks.cost.spent import Spent
from tests.benchmarks.cost.statements import Sent
from tests.benchmarks.cost.stock import Stock
from tests.benchmarks.groups import PLANS

_STOCK = Stock(Corpus())
_CALLS = [*reading_calls(_STOCK), *writing_calls(_STOCK)]
_BENCHMARKS = Path(__file__).parents[3] / "docs" / "benchmarks.md"


def test_each_measured_call_uses_a_tool_of_its_toolset(subtests: pytest.Subtests) -> None:
    for call in _CALLS:
        with subtests.test(call.label):
            tool = TOOLS[call.tool]
            assert call.toolset in tool.toolsets
            assert call.writes is not tool.read_only


def test_every_tool_of_the_agent_toolset_is_measured() -> None:
    offered = {tool.name for tool in TOOLS.values() if "agent" in tool.toolsets}
    assert offered <= {call.tool for call in _CALLS}


def test_one_call_in_ten_of_the_mix_writes() -> None:
    calls = list(itertools.islice(mixed_calls(), 100))
    assert sum(call.writes for call in calls) == 10
    assert len({call.label for call in calls}) == 5


def test_costs_are_reported_as_multiples_of_an_echo_call() -> None:
    spent = Spent(gateway=0.003, postgres=0.0012, echo=0.0006)
    cost = MeasuredCost("memory", "open_nodes (3)", 200, spent, Sent(5, 6, 3, 0.5, 0.25))
    size = SizeCosts(1_000, Spent(), others=0.5, calls=[cost], mixes=[MeasuredMix(2, 8, 500, 10.0, spent, 400.0)])
    tables = [line for line in cost_markdown([size], cores=2).splitlines() if line.startswith("|")]
    costs, mixes = tables[:3], tables[3:]
    assert "| `open_nodes` (3) | 3.0 | 1.2 |" in costs[2]
    assert "| 5.0 + 2.0 | 5 | 6 |" in costs[2]
    assert mixes[2].startswith("| 1,000 | 2 | 8 | 50 | 400 |")
    assert mixes[2].endswith("| 4.2 | 0.60 | 7.0 |")
    for table in (costs, mixes):
        assert len({row.count("|") for row in table}) == 1


def test_costs_before_and_after_are_compared_in_echoes() -> None:
    spent = Spent(gateway=0.003, postgres=0.0012, echo=0.0006)
    size = SizeCosts(1_000, Spent(), calls=[MeasuredCost("memory", "open_nodes (3)", 200, spent, Sent(5, 6, 3, 0, 0))])
    document = msgspec.json.decode(msgspec.json.encode({"cost": [size]}))
    assert cost_figures(document)[1_000] == {
        "open_nodes (3), gateway": pytest.approx(5.0),
        "open_nodes (3), PostgreSQL": pytest.approx(2.0),
    }


@pytest.mark.parametrize("group", [*PLANS, *OTHERS])
def test_every_group_of_benchmarks_is_documented(group: str) -> None:
    assert f"--group {group}" in _BENCHMARKS.read_text()
