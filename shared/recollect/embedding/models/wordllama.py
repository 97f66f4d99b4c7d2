"""The embedder that averages static token vectors, of the optional package `wordllama`."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.embedding.embedder import SimilarityThresholds
from recollect.embedding.vectors import Vectors, encodable, unit_length, worded_rows
from recollect.errors import InvalidInput

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TABLE = "embedding.weight"


class WordLlamaEmbedder:
    """Static token vectors, averaged: in this process, from weights inside the wheel (about 0.1 ms per text)."""

    model = "wordllama/l2_supercat_256"
    dimensions = 256
    similarity_thresholds = SimilarityThresholds(meaning=0.2, best=0.3)  # Measured: docs/adr/0006-embedders.md.

    _inline_bytes = 2_000  # Below this, switching to a thread costs more time than it saves the event loop.
    _padded_bytes = 16_384  # Texts are padded to the longest of their batch, 1 kB a token: bounds that to 16 MB.

    def __init__(self) -> None:
        wordllama = _installed_package()
        package = Path(wordllama.__file__).parent
        self._model: Any = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
        # Replaces the float32 copy, which is twice as large: rows become float32 when they are multiplied.
        self._model.embedding = mapped_table(package / _WEIGHTS)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Long inputs are embedded in a thread, so that the event loop goes on."""
        clean_texts = [encodable(text) for text in texts]
        if sum(len(text.encode()) for text in clean_texts) <= self._inline_bytes:
            return self._embed(clean_texts)
        return await anyio.to_thread.run_sync(self._embed, clean_texts)

    def _embed(self, texts: list[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        rows = worded_rows(texts)
        if rows:
            longest = max(len(texts[row].encode()) for row in rows)
            batch = max(1, min(64, self._padded_bytes // longest))
            vectors[rows] = unit_length(self._model.embed([texts[row] for row in rows], batch_size=batch))
        return vectors

    async def close(self) -> None:
        """Nothing to close."""


def _installed_package() -> Any:
    """The package `wordllama`. It is imported late, since it is optional and configures the root logger.

    Raises InvalidInput, saying what to do, where it is not installed.
    """
    try:
        return importlib.import_module("wordllama")
    except ModuleNotFoundError as error:
        if error.name != "wordllama":
            raise
        raise InvalidInput(
            "The embedder wordllama is not installed: run `pip install 'recollect-memory[wordllama]'`, where that "
            "package has wheels (Python 3.11 to 3.13, and on Linux only x86_64), or set RECOLLECT_EMBEDDER to minilm "
            "or multilingual, and see docs/embedding.md for what is stored.",
            path="RECOLLECT_EMBEDDER",
        ) from None


def mapped_table(file: Path) -> NDArray[np.float16]:
    """The vectors of a safetensors file, (tokens, dimensions), not read but mapped: processes share its pages.

    The format: eight bytes for the length of a header in JSON, the header, and the numbers.
    """
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        table = msgspec.json.decode(stream.read(length))[_TABLE]
    begin, shape = 8 + length + table["data_offsets"][0], tuple(table["shape"])
    return np.asarray(np.memmap(file, "<f2", mode="r", offset=begin, shape=shape))
