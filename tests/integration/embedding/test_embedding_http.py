"""The OpenAI-compatible embedder against a real HTTP server, which answers well or badly."""

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from pydantic import SecretStr

from recollect.embedding import EmbeddingFailed, FailureCause, OpenAIEmbedder
from recollect.errors import ErrorCode, Unavailable
from recollect.settings import Settings
from tests.support.embedding_server import EmbeddingAnswer, EmbeddingServer, embeddings, serving_embeddings

KEY = "sk-never-to-be-shown"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving_embeddings() as server:
        yield server


def settings_for(url: str, seconds: float = 5) -> Settings:
    return Settings(
        embedder="openai",
        embedding_url=url,
        embedding_api_key=SecretStr(KEY),
        embedding_model="small",
        embedding_dimensions=2,
        embedding_timeout_seconds=seconds,
    )


@pytest.fixture
async def embedder(server: EmbeddingServer) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(settings_for(server.url))
    yield embedder
    await embedder.close()


async def refusal(embedder: OpenAIEmbedder, *texts: str) -> str:
    """The message of the Unavailable error that embedding raises."""
    with pytest.raises(Unavailable) as raised:
        await embedder.embed(texts or ("one",))
    assert raised.value.code is ErrorCode.EMBEDDER_UNAVAILABLE
    assert KEY not in repr(raised.value)
    return raised.value.message


async def test_vectors_are_normalised(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [embeddings((0, [3, 4]), (1, [0, 2]))]
    vectors = await embedder.embed(["one", "two"])
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(np.array([[0.6, 0.8], [0, 1]]))
    assert server.requests == [
        {"path": "/v1/embeddings", "key": f"Bearer {KEY}", "model": "small", "input": ["one", "two"]}
    ]
    assert embedder.model == "openai/small_2"


async def test_rows_are_ordered_by_their_index(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [embeddings((1, [0, 1]), (0, [1, 0]))]
    assert (await embedder.embed(["one", "two"])).tolist() == [[1, 0], [0, 1]]


async def test_blank_texts_are_not_sent(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [embeddings((0, [1, 0]))]
    assert (await embedder.embed(["", "one", "  "])).tolist() == [[0, 0], [1, 0], [0, 0]]
    assert (await embedder.embed([""])).tolist() == [[0, 0]]
    assert [request["input"] for request in server.requests] == [["one"]]


async def test_lone_surrogates_are_sent_as_replacements(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [embeddings((0, [1, 0]))]
    await embedder.embed(["a\ud800b"])
    assert server.requests[0]["input"] == ["a?b"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (embeddings((0, [1, 2, 3])), "vectors of length 3 where RECOLLECT_EMBEDDING_DIMENSIONS is 2"),
        (embeddings(), "0 embeddings"),
        (embeddings((0, [1, 0]), (1, [1, 0])), "2 embeddings"),
        (embeddings((7, [1, 0])), "1 embeddings, or the wrong ones"),
        (embeddings((0, [float("nan"), 0])), "not a list of embeddings"),
        (embeddings((0, [1e308, 1e308])), "not finite"),
        (EmbeddingAnswer(b'{"data": [{"index": 0, "embedding": "AAAA"}]}'), "not a list of embeddings"),
        (EmbeddingAnswer(b"<html>\xff Welcome"), "not a list of embeddings"),
        (EmbeddingAnswer(b""), "not a list of embeddings"),
        (EmbeddingAnswer(b"not gzip", headers={"Content-Encoding": "gzip"}), "DecodingError"),
    ],
)
async def test_an_invalid_answer_is_reported(
    server: EmbeddingServer, embedder: OpenAIEmbedder, answer: EmbeddingAnswer, said: str
) -> None:
    server.answers = [answer]
    assert said in await refusal(embedder)


async def test_a_busy_server_is_asked_again_after_its_retry_after(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    server.answers = [EmbeddingAnswer(b"", 429, {"Retry-After": "1"}), embeddings((0, [1, 0]))]
    started = time.monotonic()
    assert (await embedder.embed(["one"])).tolist() == [[1, 0]]
    assert time.monotonic() - started >= 1


async def test_a_long_retry_after_ends_the_attempt(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [EmbeddingAnswer(b"", 429, {"Retry-After": "3600"})]
    assert "HTTP 429" in await refusal(embedder)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (EmbeddingAnswer(b"", 400), FailureCause.TEXT),
        (EmbeddingAnswer(b"", 413), FailureCause.TEXT),
        (EmbeddingAnswer(b"", 422), FailureCause.TEXT),
        (EmbeddingAnswer(b"", 401), FailureCause.UNREACHABLE),
        (EmbeddingAnswer(b"", 404), FailureCause.UNREACHABLE),
        (EmbeddingAnswer(b"", 503), FailureCause.UNREACHABLE),
        (EmbeddingAnswer(b"", 500), FailureCause.UNSURE),
        (EmbeddingAnswer(b"garbage"), FailureCause.UNSURE),
    ],
)
async def test_the_cause_of_a_failure_is_classified(
    server: EmbeddingServer, embedder: OpenAIEmbedder, answer: EmbeddingAnswer, cause: FailureCause
) -> None:
    server.answers = [answer]
    with pytest.raises(EmbeddingFailed) as raised:
        await embedder.embed(["one"])
    assert raised.value.cause is cause


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("90", (90, 90)),
        (timedelta(hours=1), (3_000, 3_601)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", (0, 0)),
        ("-5", (0, 0)),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
    ids=["seconds", "in an hour", "long ago", "negative", "nan", "a word", "nothing"],
)
async def test_the_requested_pause_is_passed_on(
    server: EmbeddingServer, embedder: OpenAIEmbedder, asked: str | timedelta, seconds: tuple[float, float] | None
) -> None:
    """A time is relative to the test, and not to its collection."""
    header = asked if isinstance(asked, str) else format_datetime(datetime.now(UTC) + asked, usegmt=True)
    server.answers = [EmbeddingAnswer(b"", 429, {"Retry-After": header})]
    with pytest.raises(EmbeddingFailed) as raised:
        await embedder.embed(["one"])
    told = raised.value.retry_after
    assert told is None if seconds is None else told is not None and seconds[0] <= told <= seconds[1]


async def test_a_failing_server_is_asked_three_times(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [EmbeddingAnswer(b"", 500)]
    assert "HTTP 500" in await refusal(embedder)
    assert len(server.requests) == 3


async def test_a_refused_key_is_not_retried(server: EmbeddingServer, embedder: OpenAIEmbedder) -> None:
    server.answers = [EmbeddingAnswer(b"", 401)]
    assert "check RECOLLECT_EMBEDDING_API_KEY" in await refusal(embedder)
    assert len(server.requests) == 1


async def test_a_silent_server_times_out(server: EmbeddingServer) -> None:
    server.seconds = 600
    embedder = OpenAIEmbedder(settings_for(server.url, seconds=0.3))
    said = await refusal(embedder)
    assert "0.3 s" in said or "ReadTimeout" in said
    await embedder.close()


async def test_a_server_that_is_away_is_reported(server: EmbeddingServer) -> None:
    url = server.url
    server.server_close()
    embedder = OpenAIEmbedder(settings_for(url))
    assert "ConnectError" in await refusal(embedder)
    await embedder.close()
