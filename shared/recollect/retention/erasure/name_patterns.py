r"""The forms in which a text may have a name: one regular expression that finds the same in Python and in PostgreSQL.

The classes (`\w`, `\s`) and the case folding of each follow its own tables, and fold one character into one: "ß", "İ",
a final "ς" and compositions of letter and mark would be missed. So all forms of each character are spelled out.

Such an expression is up to 25 times as long as its names, and PostgreSQL takes a time to compile it that grows with the
square of its length. So many names become several expressions, each of a bounded number of characters.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, permutations

from recollect.fairness.computing import Slices

NEVER_MATCHES = r"(?!)"
"""A pattern that finds nothing."""

MAX_PATTERN_NAMES = 2_048
"""Characters of the names of one pattern, at most: PostgreSQL compiles it in 60 ms at worst, and it takes 2 MB in the
backend, which keeps the last 32 (measured). A longer name has a pattern of its own."""

_SCANNED = [code for code in range(0x20000) if not 0xD800 <= code < 0xE000]
"""Later characters have one form, and belong to scripts without spaces."""

_LONGEST_BLOCK = 8
"""Characters whose compositions are all matched, at most: their number multiplies."""

_MOST_MARKS = 3
"""Marks on one letter whose orders are all matched, at most: their number multiplies, too."""

_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f"  # Thai to Balinese, Hangul
    "\u3005-\u3007\u3021-\u302f\u3031-\u318f\u31a0-\u31ff\u3400-\ua4cf\uf900-\ufaff\uff66-\uff9f"  # Han, kana, Yi
    "\ua960-\ua9ff\uaa60-\uaadf\uac00-\ud7ff\U00016fe0-\U0001b2ff\U00020000-\U0003ffff"  # Javanese, Burmese, Hangul
)
"""Scripts in which words follow each other without spaces, or, as in Korean, particles follow words."""

_CONJOINING = "\u1160-\u11ff\ud7b0-\ud7ff"
"""Letters that continue a Korean syllable: after a name they make another syllable of its end."""

_SELECTORS = "\u180b-\u180f\ufe00-\ufe0f"
"""Marks that do not change which character the one before them is."""

_SPACE = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_GAP = rf"(?:[{_SPACE}]|\\[nrtf])+"
"""White space, also as JSON text escapes it: metadata is searched as JSON text."""

_ESCAPED = {'"': r'\\?"', "\\": r"\\{1,2}"}
"""Characters that JSON text escapes."""

_unspaced, _selector = re.compile(f"[{_UNSPACED}]"), re.compile(f"[{_SELECTORS}]")
_no_part = re.compile(f"[{_UNSPACED}{_SELECTORS}]")


def patterns_of(names: Iterable[str]) -> Slices[tuple[str, ...]]:
    """Patterns, one of which finds any of these names as whole words. A name takes up to a tenth of a second."""
    return _patterns(pattern_of, names)


def whole_patterns_of(names: Iterable[str]) -> Slices[tuple[str, ...]]:
    """Patterns, one of which matches a text that is one of these names."""
    return _patterns(whole_pattern_of, names)


def _patterns(make: Callable[[Sequence[str]], str], names: Iterable[str]) -> Slices[tuple[str, ...]]:
    patterns = list[str]()
    for group in _groups(names):
        yield
        patterns.append(make(group))
    return tuple(patterns)


def _groups(names: Iterable[str]) -> Iterator[list[str]]:
    """The names in groups, each of which has MAX_PATTERN_NAMES characters at most or is one name."""
    group, length = list[str](), 0
    for name in names:
        if group and length + len(name) > MAX_PATTERN_NAMES:
            yield group
            group, length = [], 0
        group.append(name)
        length += len(name)
    if group:
        yield group


def pattern_of(names: Sequence[str]) -> str:
    """A regular expression, without flags, that finds any of these names as whole words; without names, nothing.

    It matches any case and composition, and any white space where a name has some. Next to a character of a script
    without spaces a word may begin or end anywhere.
    """
    ordered = sorted((name for name in set(names) if name.strip()), key=lambda name: (_edges(name), name))
    patterns = [
        f"{_before(starts)}(?:{'|'.join(map(_spelt, group))}){_after(ends)}"
        for (starts, ends), group in groupby(ordered, key=_edges)
    ]
    return f"(?:{'|'.join(patterns)})" if patterns else NEVER_MATCHES


def whole_pattern_of(names: Sequence[str]) -> str:
    """A regular expression that matches a text that is one of these names, with any white space around it."""
    patterns = [_spelt(name) if name.strip() else re.escape(name) for name in names if name]
    return f"^[{_SPACE}]*(?:{'|'.join(patterns)})[{_SPACE}]*$" if patterns else NEVER_MATCHES


def _edges(name: str) -> tuple[bool, bool]:
    """Whether a name begins, and ends, in a script without spaces."""
    folded = _folded(name.strip())
    return _unspaced.match(folded[0]) is not None, _unspaced.match(folded[-1]) is not None


def _before(unspaced: bool) -> str:
    """A pattern for the position before a name; also after white space that JSON text escapes with a letter.

    It is no lookbehind: two constraints at one position made PostgreSQL several times slower (measured).
    """
    return "" if unspaced else rf"(?:^|[^{_within_words()}]|\\[bfnrt])"


def _after(unspaced: bool) -> str:
    """A pattern for the position after a name: not within a character that is written as several."""
    return f"(?![{_marks()}{_CONJOINING}])" if unspaced else f"(?![{_within_words()}])"


def _folded(text: str) -> str:
    """The folded form of a text, which all its forms share: decomposed, in folded case, and with one i, dotted or not.

    Turkish has both, and which of them is the lower case of I depends on the language.
    """
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    return folded.replace("i\u0307", "i").replace("ı", "i")


def _spelt(name: str) -> str:
    """A regular expression for all forms of a name, with its marks in any order."""
    spelt = _GAP.join(
        "".join(_compositions(_orders(block)) for block in _blocks(word)) for word in _folded(name).split()
    )
    if name.isascii():
        return spelt
    # A long row of marks is not spelled out in all orders, nor a long row of letters that compose: as they are, though.
    forms = dict.fromkeys([*(unicodedata.normalize(form, name.strip()) for form in ("NFC", "NFD")), name.strip()])
    literal = (_GAP.join("".join(map(_escaped, word)) for word in form.split()) for form in forms)
    return f"(?:{'|'.join([spelt, *literal])})"


def _blocks(folded: str) -> Iterator[str]:
    """A folded word in parts; no character of an unfolded word spans two of them."""
    start = end = 0
    for at in range(len(folded)):
        if start < at and (at >= end or at - start == _LONGEST_BLOCK):
            yield folded[start:at]
            start = at
        end = max(end, at + len(_parts(folded[at:])[-1]))
    yield folded[start:]


def _orders(block: str) -> list[str]:
    """A letter with its marks, in each equivalent order."""
    letter, marks = block[0], block[1:]
    if not 1 < len(marks) <= _MOST_MARKS or not all(map(unicodedata.combining, marks)):
        return [block]
    orders = (letter + "".join(order) for order in permutations(marks))
    return [order for order in orders if unicodedata.normalize("NFD", order) == block]


def _compositions(blocks: Iterable[str]) -> str:
    """A regular expression for any of these blocks, in any composition."""
    patterns = [
        _form(part) + (_compositions([block[len(part) :]]) if len(part) < len(block) else "")
        for block in blocks
        for part in _parts(block)
    ]
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(dict.fromkeys(patterns))})"


def _parts(folded: str) -> list[str]:
    """The beginnings of a folded text that one character may stand for, shortest first."""
    forms, longest = _forms()
    return [folded[0], *(part for n in range(2, longest + 1) if len(part := folded[:n]) == n and part in forms)]


def _form(part: str) -> str:
    """A regular expression for any character that folds to a part."""
    forms = _forms()[0].get(part, part)
    if len(forms) == 1:
        return _escaped(forms)
    return f"[{forms}]\u0307?" if part == "i" else f"[{forms}]"


def _escaped(character: str) -> str:
    return _ESCAPED.get(character, re.escape(character))


@cache
def _forms() -> tuple[dict[str, str], int]:
    """The characters that fold to each text other than themselves, and the length of the longest such text."""
    forms = dict[str, str]()
    for character in map(chr, _SCANNED):
        folded = _folded(character)
        if folded != character:
            forms[folded] = forms.get(folded, folded if len(folded) == 1 else "") + character
    return forms, max(map(len, forms))


@cache
def _within_words() -> str:
    """The characters of words in scripts with spaces, as part of a class: letters, marks, digits, _ and the like."""
    return _ranges(
        code
        for code in _SCANNED
        if (category := unicodedata.category(chr(code)))[0] in "LM" or category in ("Nd", "Nl", "Pc")
        if not _no_part.match(chr(code))
    )


@cache
def _marks() -> str:
    """Marks that change which character the one before them is, as part of a class."""
    marks = (code for code in _SCANNED if unicodedata.category(chr(code))[0] == "M")
    return _ranges(code for code in marks if not _selector.match(chr(code)))


def _ranges(codes: Iterable[int]) -> str:
    """Characters, in order, as part of a class."""
    runs = (list(run) for _, run in groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)
