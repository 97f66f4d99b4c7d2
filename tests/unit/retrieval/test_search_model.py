"""The patterns of LIKE."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.search.model import like_pattern, loose_pattern, plain_patterns


@given(text=st.text(alphabet="ab%_\\é*?[", max_size=8), around=st.text(alphabet="ab%_\\", max_size=3))
def test_a_pattern_matches_its_text_anywhere_and_no_other_text(text: str, around: str) -> None:
    pattern = like_pattern(text)
    assert _like(pattern, f"{around}{text}{around}")
    assert _like(pattern, around) == (text in around)


def _like(pattern: str, text: str) -> bool:
    """LIKE, as PostgreSQL has it: % any characters, _ one, \\ takes the next as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meanings = {"%": ".*", "_": "."}
    expression = "".join(
        re.escape(part[1:]) if len(part) == 2 else meanings.get(part, re.escape(part)) for part in parts
    )
    return re.fullmatch(expression, text, re.DOTALL) is not None


def test_a_loose_pattern_matches_a_text_in_each_mixture_of_forms() -> None:
    for text in ("Ångström résumé", "naïve 100%", "tiếng Việt"):
        loose, composed = loose_pattern(text), unicodedata.normalize("NFC", text)
        assert loose is not None
        for place, character in enumerate(composed):
            mixed = composed[:place] + unicodedata.normalize("NFD", character) + composed[place + 1 :]
            assert _like(loose, f"an {mixed} of it")
        assert not _like(loose, "Angst")
        assert plain_patterns(text) == [f"%{composed.replace('%', chr(92) + '%')}%"]


def test_a_loose_pattern_needs_a_trigram_and_a_letter_of_several_forms() -> None:
    for text in ("tea", "100%", "한국어", "がぎ", "éa", "O’Brien"):
        assert loose_pattern(text) is None
    assert plain_patterns("tea") is None
    assert plain_patterns("O’Brien") == ["%O'Brien%"]
