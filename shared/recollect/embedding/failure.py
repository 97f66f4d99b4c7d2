"""Failures of embedders, and whether the texts may be their cause."""

from enum import StrEnum

from recollect.errors import ErrorCode, Unavailable


class FailureCause(StrEnum):
    """The cause of a failure.

    AWAY: the embedder fails for any text. TEXT: the request fails again with the same texts. UNSURE: either.
    """

    UNREACHABLE = "away"
    TEXT = "text"
    UNSURE = "unsure"


class EmbeddingFailed(Unavailable):
    """The embedder returned no vectors. `retry_after`: seconds after which it may be asked again, if it said so."""

    default_code = ErrorCode.EMBEDDER_UNAVAILABLE

    def __init__(
        self, reason: str, *, cause: FailureCause = FailureCause.UNSURE, retry_after: float | None = None
    ) -> None:
        super().__init__(f"The embedder {reason}.")
        self.cause = cause
        self.retry_after = retry_after


class WrongDimensions(EmbeddingFailed):
    """The embedder returned vectors of another length than configured: no vector of it can be used."""
