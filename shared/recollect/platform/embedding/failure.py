"""How embedders fail, and what that says of the texts that they were given."""

from enum import StrEnum

from recollect.errors import ErrorCode, Unavailable


class FailureCause(StrEnum):
    """Whose fault a failure is.

    AWAY: the embedder's, whatever it is given. TEXT: the request's, as long as it holds the same texts. UNSURE: either.
    """

    AWAY = "away"
    TEXT = "text"
    UNSURE = "unsure"


class EmbeddingFailed(Unavailable):
    """No vectors can be had. `retry_after`: seconds that the embedder wants to be left alone, if it said so."""

    default_code = ErrorCode.EMBEDDER_UNAVAILABLE

    def __init__(
        self, what: str, *, cause: FailureCause = FailureCause.UNSURE, retry_after: float | None = None
    ) -> None:
        super().__init__(f"The embedder {what}.")
        self.cause = cause
        self.retry_after = retry_after
