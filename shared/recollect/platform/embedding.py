"""Embedders: from texts to vectors, behind one small protocol.

Every row that comes back has length one, so that an inner product is a cosine. The exception is a
blank text: it has no direction, so it gets the zero vector and is like nothing (inner product 0).
"""

from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

import anyio
import httpx2
import msgspec
import numpy as np
import stamina
from numpy.typing import NDArray

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect.settings import Settings

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Makes vectors of texts. `model` is stored beside each vector; vectors of two models never compare."""

    model: str
    dimensions: int

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in order: shape (len(texts), dimensions), of length one, or zero if blank.

        Raises Unavailable (embedder_unavailable) when there is no answer in time, or one that makes no sense.
        """

    async def close(self) -> None:
        """Give back connections."""


def create_embedder(settings: Settings) -> Embedder:
    """The embedder that `RECOLLECT_EMBEDDER` names, loaded. Raises InvalidInput for another name."""
    match settings.embedder:
        case "wordllama":
            return WordLlamaEmbedder()
        case "openai":
            return OpenAIEmbedder(settings)
    raise InvalidInput(
        f"There is no embedder {settings.embedder!r}: set RECOLLECT_EMBEDDER to wordllama or openai.",
        path="RECOLLECT_EMBEDDER",
    )


class WordLlamaEmbedder:
    """Static token vectors, averaged: in this process, from weights inside the wheel (about 0.1 ms per text)."""

    model = "wordllama/l2_supercat_256"
    dimensions = 256

    _inline_bytes = 2_000  # Below this a hop to a thread costs more than it frees the event loop of.
    _padded_bytes = 16_384  # Texts are padded to the longest of their batch, 1 kB a token: bounds that to 16 MB.

    def __init__(self) -> None:
        # Imported here because the package configures the root logger when it is imported.
        import wordllama

        package = Path(wordllama.__file__).parent
        self._model: Any = wordllama.WordLlama.load(cache_dir=package, disable_download=True)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Long inputs are embedded in a thread, so that the event loop goes on."""
        encodable = [_encodable(text) for text in texts]
        if sum(len(text.encode()) for text in encodable) <= self._inline_bytes:
            return self._embed(encodable)
        return await anyio.to_thread.run_sync(self._embed, encodable)

    def _embed(self, texts: list[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        worded = _worded(texts)
        if worded:
            longest = max(len(texts[row].encode()) for row in worded)
            batch = max(1, min(64, self._padded_bytes // longest))
            vectors[worded] = _unit(self._model.embed([texts[row] for row in worded], batch_size=batch))
        return vectors

    async def close(self) -> None:
        """Nothing to give back."""


class OpenAIEmbedder:
    """Any server that speaks OpenAI's `POST /v1/embeddings`: OpenAI, Ollama, vLLM, TEI, LM Studio."""

    _longest_retry_after = 5.0  # Seconds; a server that asks for more is left to the next sweep.

    def __init__(self, settings: Settings) -> None:
        self.model = f"openai/{settings.embedding_model}_{settings.embedding_dimensions}"
        self.dimensions = settings.embedding_dimensions
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
        worded = _worded(texts)  # Blank texts are not sent: OpenAI refuses a request that holds one.
        if worded:
            body = await self._ask([_encodable(texts[row]) for row in worded])
            vectors[worded] = self._read(body, len(worded))
        return vectors

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _ask(self, texts: list[str]) -> bytes:
        try:
            with anyio.fail_after(self._timeout):
                async for attempt in stamina.retry_context(on=_retry_wait, attempts=3, timeout=None, wait_jitter=0.2):
                    with attempt:
                        return await self._post(texts)
        except TimeoutError:
            raise _unavailable(f"did not answer within {self._timeout:g} s") from None
        except _FailedAttempt as failure:
            raise _unavailable(failure.reason) from None
        raise AssertionError("stamina either returns or raises")

    async def _post(self, texts: list[str]) -> bytes:
        # Failures leave without the client's own exceptions, whose texts hold the address and what is in it.
        try:
            response = await self._client.post("embeddings", json={"model": self._remote_model, "input": texts})
        except httpx2.RequestError as error:
            raise _FailedAttempt(f"cannot be reached ({type(error).__name__})", wait=True) from None
        if response.status_code == HTTPStatus.OK:
            return response.content
        raise _FailedAttempt(_refusal(response.status_code), wait=self._wait_after(response))

    def _wait_after(self, response: httpx2.Response) -> bool | float:
        """Whether the same request may be sent again: no, after the usual wait, or after so many seconds."""
        if response.status_code != HTTPStatus.TOO_MANY_REQUESTS and response.status_code < 500:
            return False
        try:
            seconds = float(response.headers.get("retry-after", ""))
        except ValueError:
            return True
        return 0 <= seconds <= self._longest_retry_after and seconds

    def _read(self, body: bytes, count: int) -> Vectors:
        try:
            rows = sorted(msgspec.json.decode(body, type=_Reply).data, key=lambda row: row.index)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise _unavailable("answered with something that is not a list of embeddings") from None
        if [row.index for row in rows] != list(range(count)):
            raise _unavailable(f"answered {len(rows)} embeddings, or the wrong ones, for {count} texts")
        if lengths := {len(row.embedding) for row in rows} - {self.dimensions}:
            raise _unavailable(
                f"answered vectors of length {min(lengths)} where RECOLLECT_EMBEDDING_DIMENSIONS is {self.dimensions}"
            )
        return _unit(np.array([row.embedding for row in rows], np.float64))


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Embedding]


class _FailedAttempt(Exception):
    """One request that failed: why, and whether (or after how many seconds) another may follow."""

    def __init__(self, reason: str, *, wait: bool | float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


def _retry_wait(error: Exception) -> bool | float:
    return error.wait if isinstance(error, _FailedAttempt) else False


def _refusal(status: int) -> str:
    hint = ": check RECOLLECT_EMBEDDING_API_KEY" if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else ""
    return f"answered HTTP {status}{hint}"


def _unavailable(what: str) -> Unavailable:
    return Unavailable(f"The embedder {what}.", code=ErrorCode.EMBEDDER_UNAVAILABLE)


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which have no UTF-8 form and which tokenizers refuse."""
    return text.encode(errors="replace").decode()


def _worded(texts: Sequence[str]) -> list[int]:
    """The rows whose text is not blank."""
    return [row for row, text in enumerate(texts) if text and not text.isspace()]


def _unit(vectors: NDArray[np.floating[Any]]) -> Vectors:
    """Each row divided by its length; a zero row stays zero. Raises Unavailable if a number is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise _unavailable("answered numbers that are not finite")
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
