"""Settings of what processes tell of themselves."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from recollect.web_url import read_web_url


class TelemetrySettings(BaseSettings):
    """What processes tell of themselves: traces, metrics and logs."""

    otlp_endpoint: str | None = Field(
        default=None, description="OTLP/HTTP collector, such as http://127.0.0.1:4318. Unset: no telemetry is made."
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of traces that are sent whatever became of them, alike in all processes. What failed or "
        "was slow is sent in any case.",
    )
    trace_slow_seconds: float = Field(
        default=1.0, gt=0, description="How long a span takes that has its trace sent for being slow."
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of its own at which a gateway or worker tells Prometheus its metrics, at `/metrics`: on one "
        "machine, another for each process. Unset: none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        description="Address of that port. It asks for no credential: keep it to networks of your own.",
    )
    access_log: bool = Field(
        default=True, description="Whether the gateway logs a line for each request, at the level INFO."
    )
    log_format: str = Field(default="console", pattern="^(console|json)$", description="`console` or `json`.")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Least level logged.")

    @field_validator("otlp_endpoint")
    @classmethod
    def _collector(cls, url: str | None) -> str | None:
        return None if url is None else read_web_url(url)

    @property
    def tells_metrics(self) -> bool:
        """Whether anybody is told this process's metrics."""
        return self.otlp_endpoint is not None or self.metrics_port is not None
