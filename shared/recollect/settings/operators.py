"""Settings of the operator API, and of operators' work on tenants."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from recollect.settings.addresses.public_url import local_url, read_public_url


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
    operator_public_url: str | None = Field(
        default=None,
        description="Address by which browsers of operators reach the process, such as "
        "`https://operators.internal.example`, if a proxy with TLS is in front of it. The pages' cookies are then sent "
        "by https only.",
    )
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

    @field_validator("operator_public_url")
    @classmethod
    def _canonical_address(cls, url: str | None) -> str | None:
        return None if url is None else read_public_url(url)

    @property
    def operator_address(self) -> str:
        """The address by which browsers of operators reach the process."""
        return self.operator_public_url or local_url(self.operator_host, self.operator_port)
