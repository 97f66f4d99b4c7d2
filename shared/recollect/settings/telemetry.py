"""Settings of traces, metrics and logs."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from recollect.settings.addresses.web_url import read_web_url


class TelemetrySettings(BaseSettings):
    """Traces, metrics and logs."""

    otlp_endpoint: str | None = Field(
        default=None,
        description="Address of an OTLP/HTTP collector for traces and metrics, such as http://127.0.0.1:4318. Unset: "
        "no traces are made, and nothing is sent.",
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of all traces that is sent, the same in all processes. Traces with an error or a slow span "
        "are always sent.",
    )
    trace_slow_seconds: float = Field(
        default=1.0,
        gt=0,
        description="Minimum duration, in seconds, of a span that counts as slow. The trace of a slow span is always "
        "sent.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port at which a gateway or worker serves its metrics to Prometheus, under `/metrics`. It must "
        "differ from the other ports; on one machine, each process needs its own. Unset: metrics are not served.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        description="Address that the metrics port listens on. The port asks for no credential: keep it inside your "
        "own networks.",
    )
    access_log: bool = Field(
        default=True, description="Whether the gateway logs a line for each request, at the level INFO."
    )
    log_format: str = Field(
        default="console", pattern="^(console|json)$", description="Format of log lines: `console` or `json`."
    )
    log_level: str = Field(
        default="INFO",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
        description="Lowest level that is logged: `DEBUG`, `INFO`, `WARNING` or `ERROR`.",
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _collector(cls, url: str | None) -> str | None:
        return None if url is None else read_web_url(url)

    @property
    def exports_metrics(self) -> bool:
        """Whether this process reports its metrics to anybody."""
        return self.otlp_endpoint is not None or self.metrics_port is not None
