"""How one text became another."""

from hypothesis import given
from hypothesis import strategies as st

from recollect_console.diffs import MAX_PAGE_WORDS, MAX_SHOWN, MAX_WORDS, diff_words, diffs_of


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


def test_words_that_changed_side_by_side_are_one_piece() -> None:
    assert diff_words("a b c.", "x y c.") == [("removed", "a b"), ("added", "x y"), ("same", " c.")]
    assert diff_words("a b", "x y") == [("removed", "a b"), ("added", "x y")]


async def test_a_page_compares_a_bounded_number_of_words() -> None:
    pair = ("a " * 900, "b " * 900)
    pairs = [pair] * 20
    diffs = await diffs_of(pairs)
    assert [len(parts) for parts in diffs] == [3] * 5 + [2] * 15
    assert 5 * 2 * 1_800 <= MAX_PAGE_WORDS < 6 * 2 * 1_800
    [[(_, cut)]] = await diffs_of([("", "x" * (MAX_SHOWN + 5))])
    assert cut == "x" * MAX_SHOWN + "…"
