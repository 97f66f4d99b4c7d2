"""Recollect's own metrics, for tests, without a collector."""

from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from recollect.telemetry import metrics

Point = tuple[dict[str, Any], Any]
"""The attributes of a data point, and the data point."""


@dataclass(frozen=True)
class Measured:
    """The records of this process since the fixture began."""

    reader: InMemoryMetricReader

    def points(self) -> dict[str, list[Point]]:
        """The points of every metric, by name."""
        found = self.reader.get_metrics_data()
        sources = found.resource_metrics if found else []
        told = [metric for source in sources for scope in source.scope_metrics for metric in scope.metrics]
        return {metric.name: [(dict(p.attributes or {}), p) for p in metric.data.data_points] for metric in told}

    def of(self, name: str) -> list[Point]:
        """The points of one metric."""
        return self.points().get(name, [])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """New instruments, whose records only this test reads."""
    reader = InMemoryMetricReader()
    made = metrics.Instruments(MeterProvider(metric_readers=[reader], shutdown_on_exit=False).get_meter("test"))
    monkeypatch.setattr(metrics, "_instruments", lambda: made)
    return Measured(reader)
