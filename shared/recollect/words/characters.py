"""Where words begin and end: an equal of UAX #29 for search, in one regular expression for each kind of text.

The classes of regular expressions (`\\w`) leave out the marks that are parts of words in many scripts, so those
characters that stand between words are spelled out instead. An emoji is a word of its own, and so is any other picture
or ornament: nobody who asks for Zbigniew writes "Zbigniew🎉". All other characters are parts of words.
Scripts without spaces are found in runs, of which `bigrams` makes words.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from recollect.text.unicode_forms import normalize

_BETWEEN = (
    r"\u0000-\u0020!-/:-@\[-\^`\{-~\u007f-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    r"\u02b9-\u02bf\u02c8\u037e\u0387\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4"
    r"\u0609\u060a\u060c\u060d\u061b-\u061f\u066a-\u066d\u06d4\u0700-\u070d\u0964\u0965\u0970\u0df4"
    r"\u0e2f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u0f3a-\u0f3d\u104a-\u104f\u10fb\u1360-\u1368\u1400\u166e\u1680\u169b\u169c"
    r"\u17d4-\u17d6\u17d8-\u17da\u1800-\u180a\u2000-\u206f\u20a0-\u20c0\u2190-\u22ff\u2329\u232a\u2500-\u257f"
    r"\u2768-\u2775\u27c5-\u27ef\u2983-\u2998\u29d8-\u29db\u2e00-\u2e5d\u3000-\u3003\u3008-\u3020\u3030\u303d\u30a0"
    r"\u30fb\ufe10-\ufe19\ufe30-\ufe6b\ufeff\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufffc\ufffd"
)
"""White space, punctuation and mathematical signs. An underscore is not among them."""

_SIGNS = (
    r"\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    r"\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    r"\u1100-\u11ff\uac00-\ud7ff"
)
"""Han, kana, Bopomofo and Hangul: each character is a sign."""

_CLUSTERED = (
    r"\u0e00-\u0e2e\u0e30-\u0e4e\u0e50-\u0e59\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17db-\u17ff"
    r"\ua9e0-\ua9ff\uaa60-\uaa7f"
)
"""Thai, Lao, Myanmar and Khmer: a sign is a letter with the marks on it."""

_CLUSTER = re.compile(
    r"[\u0e40-\u0e44\u0ec0-\u0ec4]?[^\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    r"\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3]?"
    r"(?:[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    r"\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d1\u17d3]|(?:\u1039|\u17d2).)*",
    re.DOTALL,
)
"""A vowel written before its letter, the letter, the marks on it, and letters stacked below it."""

_PICTURES = (
    r"\u2300-\u2328\u232b-\u23ff\u2580-\u2767\u2776-\u27bf\u2b00-\u2bff\U0001f000-\U0001f0ff\U0001f300-\U0001faff"
)
"""Emoji, and the symbols beside them in Unicode: check marks, stars, bullets, shapes, cards."""

_LETTERS_OF_FLAGS = r"\U0001f1e6-\U0001f1ff"
"""Of these, two make a flag."""

_STYLES = "\ufe0e\ufe0f\u20e3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""How an emoji before them is drawn: in colours or not, on a key, with which skin."""

_PICTURE = rf"(?:[{_PICTURES}]|[{_LETTERS_OF_FLAGS}]{{2}})[{_STYLES}]*"
_WITHIN = rf"[^{_BETWEEN}{_SIGNS}{_CLUSTERED}{_PICTURES}{_LETTERS_OF_FLAGS}_]"
_JOINER = r"[-._/:@\\#+&=~?%]"

CHUNK = re.compile(
    rf"(?P<signs>[{_SIGNS}]+)|(?P<clustered>[{_CLUSTERED}]+)"
    rf"|(?P<word>{_PICTURE}|{_WITHIN}+(?:(?:{_JOINER}{{1,3}}|(?<=\d),(?=\d)){_WITHIN}+)*(?:\+\+|\#(?!{_WITHIN}))?)"
)
"""One run of signs, one picture or one word: several words that signs join without a space are one, `compounds` has its
parts."""

UNSPACED = re.compile(rf"[{_SIGNS}{_CLUSTERED}]")
"""A character of a script without spaces."""

_RUN_OF_PICTURES = re.compile(rf"[{_PICTURES}{_LETTERS_OF_FLAGS}]+")

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\uff07"
_INVISIBLE = "\u00ad\u034f\u200c\u200d\u200e\u200f\u2060\ufeff"
_PLAIN = str.maketrans(dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_INVISIBLE + _STYLES, "") | {"\u200b": " "})


def normalised(text: str) -> str:
    """A text in Unicode's form NFKC, with plain apostrophes, and without invisible characters and styles of emoji."""
    return text if text.isascii() else normalize("NFKC", text).translate(_PLAIN)


def with_pictures_apart(text: str) -> str:
    """A text with spaces around its emoji and other pictures, for tokenizers that take them for parts of words."""
    return text if text.isascii() else _RUN_OF_PICTURES.sub(r" \g<0> ", text)


def bigrams(run: str) -> Iterator[str]:
    """The words of a run of signs: each two that stand side by side, and the last of all alone.

    A single sign is then found as the beginning of a word, wherever it stands.
    """
    signs = (_is_clustered(run) and _clusters(run)) or list(run)
    for first, second in pairwise(signs):
        yield first + second
    yield signs[-1]


def sign_count(run: str) -> int:
    """How many signs a run has."""
    return len(_clusters(run)) if _is_clustered(run) else len(run)


def _is_clustered(run: str) -> bool:
    return _CLUSTERED_RUN.match(run) is not None


_CLUSTERED_RUN = re.compile(rf"[{_CLUSTERED}]")


def _clusters(run: str) -> list[str]:
    return [cluster for cluster in _CLUSTER.findall(run) if cluster]
