"""Which mentions of the user a question loses before it is embedded, and what is searched for."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest

from recollect.accounts.identity.model import worker_caller
from recollect.embedding import UNMEASURED, Vectors
from recollect.embedding.vectors import unit_length
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.retrieval.recall.user_mentions import without_user

WITHOUT = {
    "What is the name of the user's dog?": "What is the name of dog?",
    "Does the user have any food allergies?": "Does have any food allergies?",
    "Who does the user's taxes?": "Who does taxes?",
    "Is the user a vegetarian?": "Is a vegetarian?",
    "Which race is the user training for?": "Which race is training for?",
    "How tall is the user?": "How tall is?",
    "Why does THE USER not drink wine?": "Why does not drink wine?",
    "What did I tell the user about Rust?": "What did I tell about Rust?",
    "Is the user’s laptop new? Does the user like it?": "Is laptop new? Does like it?",
}

AS_THEY_ARE = (
    "Who is the user?",
    "Is it the user's?",
    "Where is the user table defined?",
    "Suggest a schema for my user model",
    "How do users sign in?",
    "Where does she live?",
    "the user",
    "",
)


def test_mentions_of_the_user_are_left_out(subtests: pytest.Subtests) -> None:
    for question, rest in WITHOUT.items():
        with subtests.test(question):
            assert without_user(question) == rest


def test_other_users_and_what_would_leave_nothing_stay(subtests: pytest.Subtests) -> None:
    for question in AS_THEY_ARE:
        with subtests.test(question):
            assert without_user(question) == question


def test_a_long_question_takes_no_long_time() -> None:
    """Nothing in the pattern repeats without a bound, so that time grows with the text alone."""
    text = "does the user " * 500 + " " * 500
    assert "user" not in without_user(f"{text}like tea?")


class _ByLength:
    """An embedder whose vectors tell how many characters and words a text has."""

    model, dimensions, similarity_thresholds = "lengths", 2, UNMEASURED

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return unit_length(np.array([[len(text), len(text.split())] for text in texts], np.float32))

    async def close(self) -> None:
        """Nothing to close."""


async def test_what_is_searched_for_is_the_mean_of_the_question_with_the_user_and_without() -> None:
    mentioning, other = "Does the user like tea?", "Where is the key?"
    encoder = QuestionEncoder(_ByLength())
    asked = await encoder.questions(worker_caller(UUID(int=1)), [mentioning, other])
    whole, rest, key = await _ByLength().embed([mentioning, "Does like tea?", other])
    assert [question.text for question in asked] == [mentioning, other]
    assert asked[0].vector == pytest.approx(unit_length((whole + rest)[None])[0])
    assert asked[1].vector == pytest.approx(key)
