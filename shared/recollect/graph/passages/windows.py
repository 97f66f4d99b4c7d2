"""The words around a passage, by which it is found as by its own."""

from dataclasses import dataclass
from uuid import UUID

from recollect.graph.passages.model import FAR_WORDS, MAX_UNSPACED, MAX_WORDS, NEAR_WORDS
from recollect.words.analysis import Lexemes
from recollect.words.characters import UNSPACED


@dataclass(frozen=True, slots=True)
class Window:
    """A passage's text with the texts before and after it in its sequence, and the nearest passages there."""

    id: UUID
    text: str
    before: str | None
    after: str | None
    preceding: UUID | None
    following: UUID | None


@dataclass(frozen=True, slots=True)
class WindowWords:
    """The words of a passage with those up to NEAR_WORDS and up to FAR_WORDS around it, as texts of tsvectors."""

    window: Window
    near: str
    far: str


def window_words(window: Window) -> WindowWords:
    """The lexemes of a window, without function words: where these are names, they are looked for in passages alone."""
    before, after = last_words(window.before or "", FAR_WORDS), first_words(window.after or "", FAR_WORDS)
    near_before, near_after = last_words(before, NEAR_WORDS), first_words(after, NEAR_WORDS)
    lexemes = Lexemes(with_function_words=False)
    lexemes.add(" ".join((near_before, window.text, near_after)))
    near = lexemes.text()
    lexemes.add(before[: len(before) - len(near_before)])
    lexemes.add(after[len(near_after) :])
    return WindowWords(window, near, lexemes.text())


def first_words(text: str, most: int) -> str:
    """The first words of a text. MAX_UNSPACED characters of scripts without spaces count as much as MAX_WORDS words."""
    room, end = float(most), 0
    for word in text.split(" "):
        weight = _weight(word)
        if weight > room:
            return text[: end + (_signs(room) if weight > 1 else 0)].rstrip(" ")
        room -= weight
        end += len(word) + 1
    return text


def last_words(text: str, most: int) -> str:
    """The last words of a text, counted as by `first_words`."""
    room, start = float(most), len(text) + 1
    for word in reversed(text.split(" ")):
        weight = _weight(word)
        if weight > room:
            cut = start - 1 - _signs(room) if weight > 1 else start
            return text[cut:].lstrip(" ")
        room -= weight
        start -= len(word) + 1
    return text


def _weight(word: str) -> float:
    return max(1.0, len(word) * MAX_WORDS / MAX_UNSPACED) if UNSPACED.search(word) else 1.0


def _signs(room: float) -> int:
    return int(room * MAX_UNSPACED / MAX_WORDS)
