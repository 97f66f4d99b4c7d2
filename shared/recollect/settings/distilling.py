"""Settings of the language model that distils facts from conversations."""

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from recollect.settings.addresses.web_url import read_web_url


class DistillingSettings(BaseSettings):
    """The language model that distils facts from conversations."""

    distil_url: str | None = Field(
        default=None,
        description="Base address of an OpenAI-compatible language model (`/chat/completions` is added), such as "
        "`http://127.0.0.1:11434/v1`, that distils facts from conversations of every tenant without a model of its "
        "own. Unset: only tenants with a model of their own can use it. See docs/distilling.md.",
    )
    distil_model: str = Field(default="gpt-4o-mini", description="Model name that is sent to `RECOLLECT_DISTIL_URL`.")
    distil_api_key: SecretStr | None = Field(
        default=None, description="Bearer token for `RECOLLECT_DISTIL_URL`. Unset: none is sent."
    )
    distil_timeout_seconds: float = Field(
        default=40.0,
        gt=0,
        description="Maximum time for one answer of a language model, in seconds. Three quarters of "
        "`RECOLLECT_JOB_LEASE_SECONDS` at most, whatever the setting.",
    )
    distil_requests_per_day: int = Field(
        default=500,
        ge=1,
        description="Maximum number of requests to `RECOLLECT_DISTIL_URL` for one tenant in a day (UTC). Beyond it, "
        "jobs wait until the next day.",
    )
    distil_tenant_models: bool = Field(
        default=True,
        description="Whether the admins of a tenant may have its conversations distilled by a language model of their "
        "own, at a public address. If false, models that were set are not used.",
    )

    @field_validator("distil_url")
    @classmethod
    def _model_service(cls, url: str | None) -> str | None:
        return None if url is None else read_web_url(url)
