"""The words around a passage, in scripts with spaces and without."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.passages.model import FAR_WORDS, MAX_UNSPACED, MAX_WORDS, NEAR_WORDS
from recollect.graph.passages.windows import Window, first_words, last_words, window_words


def test_words_are_counted_by_spaces_and_signs_by_their_weight() -> None:
    assert last_words("a b c d", 2) == "c d"
    assert first_words("a b c d", 2) == "a b"
    assert (last_words("a b", 5), first_words("a b", 5)) == ("a b", "a b")
    assert 2 * MAX_UNSPACED / MAX_WORDS == 5
    assert last_words("东京都庁会議室", 2) == "都庁会議室"
    assert first_words("东京都庁会議室", 2) == "东京都庁会"


@given(st.text(alphabet="ab 东京", max_size=200), st.integers(1, 30))
def test_what_is_taken_is_an_end_of_the_text(text: str, most: int) -> None:
    assert text.startswith(first_words(text, most))
    assert text.endswith(last_words(text, most))
    assert len(first_words(text, most).split()) <= most
    assert len(last_words(text, most).split()) <= most


def test_a_window_has_its_own_words_and_as_many_around_as_its_width() -> None:
    before = " ".join(f"b{n}b" for n in range(200))
    after = " ".join(f"a{n}a" for n in range(200))
    made = window_words(Window(UUID(int=1), "own words", before, after, None, None))
    near, far = (set(vector.replace("'", "").split()) for vector in (made.near, made.far))
    assert {entry.rpartition(":")[0] for entry in near} == (
        {f"b{n}b" for n in range(200 - NEAR_WORDS, 200)} | {"own", "word"} | {f"a{n}a" for n in range(NEAR_WORDS)}
    ) - {"own"}
    assert len(far) == 2 * FAR_WORDS + 1
