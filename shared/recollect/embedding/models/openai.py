"""The embedder behind any server that speaks OpenAI's `POST /v1/embeddings`: OpenAI, Ollama, vLLM, TEI, LM Studio."""

from collections.abc import Sequence
from http import HTTPStatus

import anyio
import httpx2
import msgspec
import numpy as np
import stamina

from recollect.embedding.embedder import UNMEASURED
from recollect.embedding.failure import EmbeddingFailed, FailureCause, WrongDimensions
from recollect.embedding.vectors import Vectors, encodable, unit_length, worded_rows
from recollect.fairness.slots import released_slot
from recollect.outbound.retry_after import seconds_until
from recollect.settings import Settings

_EMBEDDER_STATUSES = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
_TEXT_STATUSES = {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}


class OpenAIEmbedder:
    """Sends the texts of a call in one request, and tries again while there is time."""

    _longest_retry_after = 5.0  # Seconds; after a longer pause, the next sweep tries again.

    def __init__(self, settings: Settings) -> None:
        self.model = f"openai/{settings.embedding_model}_{settings.embedding_dimensions}"
        self.dimensions = settings.embedding_dimensions
        self.similarity_thresholds = UNMEASURED
        self._remote_model = settings.embedding_model
        self._timeout = settings.embedding_timeout_seconds
        key = settings.embedding_api_key
        self._client = httpx2.AsyncClient(
            base_url=settings.embedding_url,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            timeout=self._timeout,
        )

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. The whole call, tries and waits included, ends after `embedding_timeout_seconds`."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        rows = worded_rows(texts)  # OpenAI refuses a request that holds a blank text.
        if rows:
            async with released_slot():
                body = await self._request([encodable(texts[row]) for row in rows])
            vectors[rows] = self._parse(body, len(rows))
        return vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _request(self, texts: list[str]) -> bytes:
        try:
            with anyio.fail_after(self._timeout):
                async for attempt in stamina.retry_context(on=_retry_wait, attempts=3, timeout=None, wait_jitter=0.2):
                    with attempt:
                        return await self._post(texts)
        except TimeoutError:
            raise EmbeddingFailed(f"did not answer within {self._timeout:g} s") from None
        except _FailedAttempt as failed:
            raise failed.failure from None
        raise AssertionError("stamina either returns or raises")

    async def _post(self, texts: list[str]) -> bytes:
        # Errors are raised without the client's exceptions, whose texts hold the address and any password in it.
        try:
            response = await self._client.post("embeddings", json={"model": self._remote_model, "input": texts})
        except httpx2.RequestError as error:
            cause = (
                FailureCause.UNREACHABLE
                if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                else FailureCause.UNSURE
            )
            failure = EmbeddingFailed(f"cannot be reached ({type(error).__name__})", cause=cause)
            raise _FailedAttempt(failure, wait=True) from None
        if response.status_code == HTTPStatus.OK:
            return response.content
        failure = _refusal(response)
        raise _FailedAttempt(failure, wait=self._wait_after(response.status_code, failure.retry_after))

    def _wait_after(self, status: int, retry_after: float | None) -> bool | float:
        """Whether the request may be sent again: False, True after the usual wait, or after this many seconds."""
        if status != HTTPStatus.TOO_MANY_REQUESTS and status < 500:
            return False
        if retry_after is None:
            return True
        return retry_after <= self._longest_retry_after and retry_after

    def _parse(self, body: bytes, count: int) -> Vectors:
        try:
            rows = sorted(msgspec.json.decode(body, type=_Reply).data, key=lambda row: row.index)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise EmbeddingFailed("answered with something that is not a list of embeddings") from None
        if [row.index for row in rows] != list(range(count)):
            raise EmbeddingFailed(f"answered {len(rows)} embeddings, or the wrong ones, for {count} texts")
        if lengths := {len(row.embedding) for row in rows} - {self.dimensions}:
            raise WrongDimensions(
                f"answered vectors of length {min(lengths)} where RECOLLECT_EMBEDDING_DIMENSIONS is {self.dimensions}"
            )
        return unit_length(np.array([row.embedding for row in rows], np.float64))


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Embedding]


class _FailedAttempt(Exception):
    """One failed request: its failure, and whether (or after how many seconds) another may follow."""

    def __init__(self, failure: EmbeddingFailed, *, wait: bool | float) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.wait = wait


def _retry_wait(error: Exception) -> bool | float:
    return error.wait if isinstance(error, _FailedAttempt) else False


def _refusal(response: httpx2.Response) -> EmbeddingFailed:
    status = response.status_code
    hint = ": check RECOLLECT_EMBEDDING_API_KEY" if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else ""
    cause = (
        FailureCause.UNREACHABLE
        if status in _EMBEDDER_STATUSES
        else FailureCause.TEXT
        if status in _TEXT_STATUSES
        else FailureCause.UNSURE
    )
    retry_after = seconds_until(response.headers.get("retry-after"))
    return EmbeddingFailed(f"answered HTTP {status}{hint}", cause=cause, retry_after=retry_after)
