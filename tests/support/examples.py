"""Which examples a property test tries, and how many.

`make test` tries the same examples each time, so that its result depends on the commit and not on luck. `make soak`
tries new ones, SOAK_FACTOR times as many, to find unknown faults.
"""

import hypothesis
from hypothesis import HealthCheck, Phase

SOAK_FACTOR = 40

_factor = 1


def choose_profile(*, soak: bool) -> None:
    """Set what every property test has in common, before any is defined.

    How fast examples are made says something of the machine and not of the code, so that no time is checked. Fixtures
    are the servers, and each example has a graph of its own. Explaining a failure takes minutes: it traces each line.
    """
    global _factor
    _factor = SOAK_FACTOR if soak else 1
    hypothesis.settings.register_profile(
        "recollect",
        max_examples=100 * _factor,
        deadline=None,
        derandomize=not soak,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    hypothesis.settings.load_profile("recollect")


def examples(count: int) -> hypothesis.settings:
    """Decorate a property test: how many examples it tries in `make test`."""
    return hypothesis.settings(max_examples=count * _factor)


def one_in(count: int) -> int:
    """Test one of how many cases: of `count` in `make test`, and every case in `make soak`."""
    return 1 if _factor > 1 else count
