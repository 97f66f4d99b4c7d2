"""What every in-process embedder promises, and how an embedder is chosen."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding import Embedder, WordLlamaEmbedder, create_embedder
from recollect.embedding.vectors import unit_length
from recollect.errors import InvalidInput
from recollect.settings import Settings
from tests.support.embedders import loaded_embedder

IN_PROCESS = {
    "wordllama": ("wordllama/l2_supercat_256", 256),
    "minilm": ("minilm/all-minilm-l6-v2_int8_384", 384),
    "multilingual": ("multilingual/minilm-l6-v2_use-v3_896", 896),
}

NOT_EVERYWHERE = "has wheels neither for Python 3.14 nor for Linux on arm64"
"""Why a test of the optional embedder is skipped."""

KEPT_MB = """
from pathlib import Path
from recollect.embedding.models.minilm import MiniLMEmbedder, return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

embedder = MiniLMEmbedder()
before = resident()
return_freed_memory()
print(before - resident())
"""


@pytest.fixture(scope="module", params=IN_PROCESS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "wordllama":
        pytest.importorskip("wordllama", reason=NOT_EVERYWHERE)
    return loaded_embedder(request.param)


async def cosine(embedder: Embedder, one: str, other: str) -> float:
    vectors = await embedder.embed([one, other])
    return float(vectors[0] @ vectors[1])


async def test_one_row_of_length_one_per_text(embedder: Embedder) -> None:
    vectors = await embedder.embed(["Alice drinks coffee.", "Bob drives to work.", "x"])
    assert vectors.shape == (3, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)


async def test_similar_meanings_have_similar_vectors(embedder: Embedder) -> None:
    assert await cosine(embedder, "automobile", "car") > await cosine(embedder, "car", "coffee") + 0.2


async def test_a_question_finds_an_answer_that_shares_no_word_with_it(embedder: Embedder) -> None:
    question = "Which beverage is preferred at dawn?"
    assert await cosine(embedder, question, "Alice enjoys coffee in the morning") > 0.2
    assert await cosine(embedder, question, "The invoice was paid by bank transfer") < 0.2


async def test_a_blank_text_has_a_zero_vector(embedder: Embedder) -> None:
    vectors = await embedder.embed(["", "coffee", " \n\t"])
    assert vectors[0].any() == vectors[2].any() == np.False_
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-6)


@given(st.lists(st.text(st.characters(), max_size=40), max_size=5))
def test_any_text_has_a_finite_vector(embedder: Embedder, texts: list[str]) -> None:
    vectors = asyncio.run(embedder.embed(texts))
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.isfinite(vectors).all()
    assert np.all((lengths == 0) | (np.abs(lengths - 1) < 1e-5))


async def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder: Embedder) -> None:
    short, long = "Alice drinks coffee.", "The meeting about the budget was moved. " * 200
    alone = (await embedder.embed([short]))[0]
    together = await embedder.embed([long, short, *["word"] * 100])
    assert together[1] == pytest.approx(alone, abs=1e-6)


async def test_embedding_does_not_block_the_event_loop(embedder: Embedder) -> None:
    count = 150 if embedder.model.startswith("wordllama") else 30  # The others take longer for each.
    texts = ["The quick brown fox jumps over the lazy dog, again and again. " * 20] * count
    work = asyncio.create_task(embedder.embed(texts))
    turns = 0
    while not work.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5


def test_each_embedder_has_a_model_name_for_storage(embedder: Embedder, request: pytest.FixtureRequest) -> None:
    assert (embedder.model, embedder.dimensions) == IN_PROCESS[request.node.callspec.params["embedder"]]


async def test_the_mapped_table_gives_the_vectors_of_the_wordllama_package() -> None:
    wordllama = pytest.importorskip("wordllama", reason=NOT_EVERYWHERE)
    texts = ["Alice drinks coffee.", "Über-große Straßen, 東京", "word " * 300]
    package = Path(wordllama.__file__).parent
    own = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    mapped = WordLlamaEmbedder()
    assert mapped._model.embedding.dtype == np.float16
    assert (own.embed(texts) == mapped._model.embed(texts)).all()
    assert (await mapped.embed(texts) == unit_length(own.embed(texts))).all()


@pytest.mark.skipif(sys.platform != "linux", reason="tells memory by /proc")
def test_minilm_returns_the_memory_that_loading_freed() -> None:
    """It used to keep 56 MB. This runs in a process of its own, because other code frees memory, too."""
    kept = subprocess.run([sys.executable, "-c", KEPT_MB], capture_output=True, text=True, check=True).stdout
    assert float(kept) < 10


def test_an_unknown_embedder_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"RECOLLECT_EMBEDDER.*'bert'"):
        create_embedder(Settings(embedder="bert"))


WITHOUT_WORDLLAMA = """
import sys

sys.modules["wordllama"] = None  # As where it is not installed: to import it fails.
from recollect.embedding import create_embedder
from recollect.settings import Settings

create_embedder(Settings(embedder="minilm"))
create_embedder(Settings(embedder="wordllama"))
"""


def test_without_the_optional_embedder_the_others_work_and_it_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_WORDLLAMA], capture_output=True, text=True, check=False)
    [*_, error] = done.stderr.splitlines()
    assert "RECOLLECT_EMBEDDER: The embedder wordllama is not installed" in error
    assert "pip install 'recollect-memory[wordllama]'" in error
