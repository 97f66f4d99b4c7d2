"""An embedder of which spans and metrics tell how often it is asked, how long it takes and how it fails: no texts."""

import time
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

from recollect.errors import ErrorCode, RecollectError
from recollect.platform.embedding.embedder import Embedder
from recollect.platform.embedding.vectors import Vectors
from recollect.platform.metrics import record_embedding_call


class MeasuredEmbedder:
    """An embedder as it is, measured as OpenTelemetry's conventions for generative AI say.

    `provider`: what RECOLLECT_EMBEDDER names.
    """

    def __init__(self, embedder: Embedder, provider: str) -> None:
        self.embedder = embedder
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self.similarity_thresholds = embedder.similarity_thresholds
        self._attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": embedder.model,
            "gen_ai.embeddings.dimension.count": embedder.dimensions,
        }

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        tracer, began, code = trace.get_tracer(__name__), time.perf_counter(), None
        attributes = self._attributes | {"recollect.embedding.texts": len(texts)}
        name = f"embeddings {self.model}"
        with tracer.start_as_current_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes) as span:
            try:
                return await self.embedder.embed(texts)
            except Exception as error:
                code = str(error.code if isinstance(error, RecollectError) else ErrorCode.INTERNAL)
                span.set_attribute("error.type", code)
                raise
            finally:
                record_embedding_call(self.model, time.perf_counter() - began, code)

    async def close(self) -> None:
        """See Embedder."""
        await self.embedder.close()
