"""What was measured, as values."""

from dataclasses import dataclass, field

from tests.benchmarks.cost.spent import Spent
from tests.benchmarks.cost.statements import Sent


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """One call at one size. `spent` is by one call, but for the echo, which is by one echo."""

    toolset: str
    label: str
    calls: int
    spent: Spent
    sent: Sent


@dataclass(frozen=True, slots=True)
class MeasuredMix:
    """So many clients that read and write without pause, spread over so many gateways; `spent` is by one call.

    `echo_rate`: echoes a second, where as many clients ask the SDK's bare echo in turns with that; `spent.echo` is by
    one of these. The echo server is one process, as one gateway is.
    """

    gateways: int
    clients: int
    calls: int
    seconds: float
    spent: Spent
    echo_rate: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds

    @property
    def in_echoes(self) -> float:
        """What all servers spend on a call, in echoes."""
        return self.spent.all_servers / self.spent.echo


@dataclass(slots=True)
class SizeCosts:
    """All of one size (entities). `at_rest`: by a second. `others`: cores that the rest of the machine used."""

    entities: int
    at_rest: Spent
    others: float = 0.0
    calls: list[MeasuredCost] = field(default_factory=list)
    mixes: list[MeasuredMix] = field(default_factory=list)


def in_echoes(seconds: float, cost: MeasuredCost) -> float:
    """So many echoes, of those that were measured in turns with this call."""
    return seconds / cost.spent.echo
