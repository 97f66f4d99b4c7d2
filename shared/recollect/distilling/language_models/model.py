"""The language model of a tenant, as it is set and shown."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.outbound.chat_completions import LanguageModel
from recollect.text.control_characters import controls

MAX_MODEL = 200
"""Characters of a model's name, at most."""

MAX_API_KEY = 2_000
"""Characters of an API key, at most."""

PURPOSE = "language models"
"""What the keys of models are encrypted for."""


@dataclass(frozen=True, slots=True)
class NewModel:
    """A tenant's language model to set: the base address of its server, its name there, and the key, if any."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    def require_valid(self) -> None:
        """Raise InvalidInput for what cannot be a model."""
        if "?" in self.url:
            raise InvalidInput("The address must have no query: /chat/completions is added to it", path="url")
        if controls(self.model):
            raise InvalidInput("The name of a model has no control characters", path="model")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise InvalidInput("An API key has printable ASCII characters only", path="api_key")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A tenant's language model as it is stored; `api_key` is encrypted."""

    url: str
    model: str
    api_key: bytes | None
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The language model of a tenant's conversations. `is_own`: the tenant's own; else the operator's."""

    model: LanguageModel
    is_own: bool


def key_binding(tenant_id: UUID) -> str:
    """The binding of an encrypted key: in another tenant's row it cannot be decrypted."""
    return str(tenant_id)
