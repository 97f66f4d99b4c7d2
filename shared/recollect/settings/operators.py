"""Settings of the operator API, and of what operators do with tenants."""

from pydantic import Field
from pydantic_settings import BaseSettings


class OperatorSettings(BaseSettings):
    """The operator API, and what operators do with tenants."""

    operator_database_url: str = Field(
        default="postgresql://recollect_operator@127.0.0.1:5432/recollect",
        description="The same database for the operator API (`recollect operator serve`). The login must be "
        "`recollect_operator` or may become it.",
    )
    operator_host: str = Field(
        default="127.0.0.1",
        description="Address that the operator API listens on: one that the internet does not reach.",
    )
    operator_port: int = Field(default=8788, ge=0, le=65535, description="Port that the operator API listens on.")
    tenant_deletion_grace_days: float = Field(
        default=30.0,
        ge=0,
        le=365,
        description="How long a deleted tenant can be restored before it is erased, where the operator does not say.",
    )
    operator_contact: str | None = Field(
        default=None,
        max_length=200,
        description="Whom tenants that were suspended read-only are told to ask, such as `support@example.com`.",
    )
