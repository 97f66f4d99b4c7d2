"""The patterns of LIKE."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.search.model import like_pattern, plain_pattern


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


def test_patterns_are_composed_and_only_the_first_has_any_character_for_an_apostrophe() -> None:
    for form in ("NFC", "NFD"):
        asked = unicodedata.normalize(form, "Zoë O’Hara 한국 100%")
        assert like_pattern(asked) == "%Zoë O_Hara 한국 100\\%%"
        assert plain_pattern(asked) == "%Zoë O'Hara 한국 100\\%%"
