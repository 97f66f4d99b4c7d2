"""Where metrics go: to a collector by OTLP, to Prometheus by a port of its own, or both."""

from collections.abc import Callable

from opentelemetry import metrics
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import View
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, start_http_server

from recollect.errors import InvalidInput
from recollect.settings import Settings

EXPORT_SECONDS = 10.0  # OTLP's own default: a collector that is busy loses nothing

HTTP_ATTRIBUTES = frozenset(
    {
        "http.request.method",
        "http.response.status_code",
        "http.route",
        "error.type",
        "network.protocol.version",
        "url.scheme",
    }
)
"""What metrics of HTTP tell: never a host or a path, which clients choose."""


def install_metrics(settings: Settings, resource: Resource) -> Callable[[], object]:
    """Have the metrics of this process told; what comes back ends it. Raises InvalidInput as `_served` does."""
    readers: list[MetricReader] = []
    endings: list[Callable[[], object]] = []
    if settings.metrics_port is not None:
        reader, end = _served(settings.metrics_host, settings.metrics_port)
        readers.append(reader)
        endings.append(end)
    if settings.otlp_endpoint is not None:
        endpoint = f"{settings.otlp_endpoint.rstrip('/')}/v1/metrics"
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)))
    bounded = View(instrument_name="http.server.*", attribute_keys=set(HTTP_ATTRIBUTES))
    provider = MeterProvider(metric_readers=readers, resource=resource, views=[bounded], shutdown_on_exit=False)
    metrics.set_meter_provider(provider)

    def end_all() -> None:
        for end in endings:
            end()
        provider.shutdown()

    return end_all


def _served(host: str, port: int) -> tuple[MetricReader, Callable[[], object]]:
    """What Prometheus reads, by a server in a thread of its own, and what ends that.

    Raises InvalidInput where the port is taken, or is none of this machine's.
    """
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(scope_info_enabled=False, registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise InvalidInput(
            f"Metrics cannot be served at {host}, port {port} ({error.strerror}). Each process needs another port.",
            path="RECOLLECT_METRICS_PORT",
        ) from None

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join(1)

    return reader, end
