"""An embedder with spans and metrics of its calls: how many there are, how long they take and how they fail."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

from recollect.embedding.embedder import (
    Embedder,
    SimilarityThresholds,
    embed_passages,
    embed_questions,
    thresholds_of,
)
from recollect.embedding.failure import WrongDimensions
from recollect.embedding.vectors import Embedded, TokenBits, Vectors
from recollect.errors import ErrorCode, RecollectError
from recollect.telemetry.metrics import record_embedding_call


class MeasuredEmbedder:
    """Wraps an embedder, measured by OpenTelemetry's conventions for generative AI, without texts.

    `provider`: the value of RECOLLECT_EMBEDDER. `mismatch`: what is wrong with the length of the vectors that the
    embedder answered last; None where it is as configured, or nothing was asked yet.
    """

    def __init__(self, embedder: Embedder, provider: str) -> None:
        self.embedder = embedder
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self.similarity_thresholds = embedder.similarity_thresholds
        self.mismatch: str | None = None
        self._attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": embedder.model,
            "gen_ai.embeddings.dimension.count": embedder.dimensions,
        }

    async def thresholds_of(self, question: str, vector: Vectors | None) -> SimilarityThresholds:
        """See QuestionAware."""
        return await thresholds_of(self.embedder, question, vector)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        with self._measured(len(texts)):
            return await self.embedder.embed(texts)

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """See TokenEmbedder."""
        with self._measured(len(texts)):
            return await embed_passages(self.embedder, texts)

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder."""
        with self._measured(len(texts)):
            return await embed_questions(self.embedder, texts)

    @contextmanager
    def _measured(self, texts: int) -> Iterator[None]:
        tracer, began, code = trace.get_tracer(__name__), time.perf_counter(), None
        attributes = self._attributes | {"recollect.embedding.texts": texts}
        name = f"embeddings {self.model}"
        with tracer.start_as_current_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes) as span:
            try:
                yield
                self.mismatch = None
            except WrongDimensions as error:
                code, self.mismatch = str(error.code), error.message
                span.set_attribute("error.type", code)
                raise
            except Exception as error:
                code = str(error.code if isinstance(error, RecollectError) else ErrorCode.INTERNAL)
                span.set_attribute("error.type", code)
                raise
            finally:
                record_embedding_call(self.model, time.perf_counter() - began, code)

    async def close(self) -> None:
        """See Embedder."""
        await self.embedder.close()
