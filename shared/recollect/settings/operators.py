"""Settings of the operator API, and of operators' work on tenants."""

from pydantic import Field
from pydantic_settings import BaseSettings


class OperatorSettings(BaseSettings):
    """The operator API, and operators' work on tenants."""

    operator_database_url: str = Field(
        default="postgresql://recollect_operator@127.0.0.1:5432/recollect",
        description="Address of the same database for the operator API (`recollect operator serve`). The login must "
        "be `recollect_operator` or be able to become it.",
    )
    operator_host: str = Field(
        default="127.0.0.1",
        description="Address that the operator API listens on. Choose one that cannot be reached from the internet.",
    )
    operator_port: int = Field(default=8788, ge=0, le=65535, description="Port that the operator API listens on.")
    tenant_deletion_grace_days: float = Field(
        default=30.0,
        ge=0,
        le=365,
        description="Time, in days, for which a deleted tenant can be restored before it is erased, unless the "
        "operator names another time.",
    )
    operator_contact: str | None = Field(
        default=None,
        max_length=200,
        description="Contact that is shown to tenants which were suspended read-only, such as `support@example.com`.",
    )
