"""Export of metrics: to a collector by OTLP, to Prometheus by a port of its own, or both."""

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
"""The attributes of HTTP metrics: never a host or a path, which clients choose."""


def install_metrics(settings: Settings, resource: Resource) -> Callable[[], object]:
    """Export the metrics of this process until the returned function is called. Raises as `_serve_prometheus` does."""
    readers: list[MetricReader] = []
    shutdowns: list[Callable[[], object]] = []
    if settings.metrics_port is not None:
        reader, shutdown = _serve_prometheus(settings.metrics_host, settings.metrics_port)
        readers.append(reader)
        shutdowns.append(shutdown)
    if settings.otlp_endpoint is not None:
        endpoint = f"{settings.otlp_endpoint.rstrip('/')}/v1/metrics"
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)))
    http_view = View(instrument_name="http.server.*", attribute_keys=set(HTTP_ATTRIBUTES))
    provider = MeterProvider(metric_readers=readers, resource=resource, views=[http_view], shutdown_on_exit=False)
    metrics.set_meter_provider(provider)

    def shutdown_all() -> None:
        for shutdown in shutdowns:
            shutdown()
        provider.shutdown()

    return shutdown_all


def _serve_prometheus(host: str, port: int) -> tuple[MetricReader, Callable[[], object]]:
    """A reader that Prometheus scrapes from a server in a thread of its own, and a function that ends the server.

    Raises InvalidInput where the port is taken, or the host is no address of this machine.
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

    def shutdown() -> None:
        server.shutdown()
        server.server_close()
        thread.join(1)

    return reader, shutdown
