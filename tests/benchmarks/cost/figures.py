"""The measurements, as values."""

from dataclasses import dataclass, field

from tests.benchmarks.cost.spent import Spent
from tests.benchmarks.cost.statements import Sent


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The cost of one call at one size. `spent` is per call, except for the echo, which is per echo."""

    toolset: str
    label: str
    calls: int
    spent: Spent
    sent: Sent


@dataclass(frozen=True, slots=True)
class MeasuredMix:
    """So many clients that read and write without pause, on so many gateways; `spent` is per call.

    `echo_rate`: echoes per second of as many clients of the SDK's bare echo, measured in turns with the calls;
    `spent.echo` is per echo. The echo server is one process, like one gateway.
    """

    gateways: int
    clients: int
    calls: int
    seconds: float
    spent: Spent
    echo_rate: float

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def in_echoes(self) -> float:
        """The time that all servers spend on a call, in echoes."""
        return self.spent.all_servers / self.spent.echo


@dataclass(slots=True)
class SizeCosts:
    """All costs at one size (entities). `at_rest`: per second. `others`: cores used by the rest of the machine."""

    entities: int
    at_rest: Spent
    others: float = 0.0
    calls: list[MeasuredCost] = field(default_factory=list)
    mixes: list[MeasuredMix] = field(default_factory=list)


def in_echoes(seconds: float, cost: MeasuredCost) -> float:
    """The cost in echoes, of those that were measured in turns with this call."""
    return seconds / cost.spent.echo
