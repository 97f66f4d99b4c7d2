"""How one text became another."""

from hypothesis import given
from hypothesis import strategies as st

from recollect_console.diffs import MAX_WORDS, diff_words


def test_words_that_were_added_and_removed_are_told() -> None:
    assert diff_words("Ada likes tea", "Ada likes green tea") == [
        ("same", "Ada likes "),
        ("added", "green "),
        ("same", "tea"),
    ]
    assert diff_words("", "new") == [("added", "new")]
    assert diff_words("old", "") == [("removed", "old")]
    assert diff_words("same", "same") == [("same", "same")]


def test_long_texts_are_shown_one_after_the_other() -> None:
    old, new = "a " * MAX_WORDS, "b " * MAX_WORDS
    assert diff_words(old, new) == [("removed", old), ("added", new)]


@given(st.text("aé .\n", max_size=30), st.text("aé .\n", max_size=30))
def test_the_parts_make_up_both_texts(old: str, new: str) -> None:
    parts = diff_words(old, new)
    assert "".join(text for change, text in parts if change != "added") == old
    assert "".join(text for change, text in parts if change != "removed") == new
