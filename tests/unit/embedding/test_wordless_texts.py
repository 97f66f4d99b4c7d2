"""Texts without words, or of letters that a model does not know, have no direction in any embedder."""

import numpy as np
import pytest

from recollect.embedding import Embedder, embed_questions
from recollect.embedding.vectors import worded_rows
from tests.unit.embedding.test_embedding import embedder

__all__ = ["embedder"]

WORDLESS = ["🎉", "🎉🔥", "👩‍👩‍👧", "🇩🇪", "❤️", "???", "?!", "—", "…", "。。。", "()", "$$", "_", "\u0301"]

WORDED = ["x", "7", "5️⃣", "🎉 party", "C++?", "дом", "家", "מה"]


def test_rows_with_a_letter_or_a_digit_are_worded() -> None:
    assert worded_rows([*WORDLESS, *WORDED]) == list(range(len(WORDLESS), len(WORDLESS) + len(WORDED)))


async def test_texts_without_words_have_no_direction(embedder: Embedder) -> None:
    made = await embed_questions(embedder, [*WORDLESS, "coffee"])
    assert [text for text, vector in zip(WORDLESS, made.vectors, strict=False) if vector.any()] == []
    assert [len(tokens) for tokens in made.tokens[:-1]] == [0] * len(WORDLESS)
    assert made.vectors[-1].any()


@pytest.mark.parametrize("embedder", ["minilm", "multilingual"], indirect=True)
async def test_letters_that_the_model_does_not_know_are_no_words(embedder: Embedder) -> None:
    """Phoenician, Gothic, Deseret and Cherokee: one unknown token each, the same for all."""
    vectors = await embedder.embed(["𐤀𐤁𐤂 𐤃", "𐌰𐌱𐌲", "𐐔𐐯𐑅𐐨𐑉𐐯𐐻", "ᏣᎳᎩ", "𐤀 coffee"])
    assert vectors.any(axis=1).tolist() == [False, False, False, False, True]
    assert np.linalg.norm(vectors[-1]) == pytest.approx(1, abs=1e-6)
