"""The lexemes of passages, and the words that questions ask for."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from recollect.fairness.computing import Slices
from recollect.words.characters import CHUNK, bigrams, normalised, sign_count
from recollect.words.compounds import MAX_CACHED_LENGTH, compound, is_compound
from recollect.words.languages import language_of
from recollect.words.stemming import CACHED, MAX_LENGTH, forms
from recollect.words.stop_words import STOP_WORDS

WORDS_VERSION = 4
"""Of this analysis: raise it with any change in what passages are found by, PyStemmer's version included; a migration
then has the worker analyse them anew."""

LABELS_VERSION = 2
"""The same of the labels of nodes."""

MAX_ASKED = 2_000
"""Different words of a question, at most."""

LABEL = "B"
"""The weight of words that only label a text: tags and the like. They rank lowest, and count for no length."""

MAX_LABEL_CHARACTERS = 10_000
"""Characters of the tags and the summary of a node that are analysed, at most."""

_WORDS_PER_SLICE = 250
_MAX_POSITION = 16_383
"""The greatest position that a tsvector holds."""

_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_SENTENCE_STARTS = frozenset(".!?:;…\"'“”‘«([{—–-•*>|。！？")


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question. A passage with any of its `forms` has it.

    `parts`: what to ask for where no passage has the whole. `is_identifier`: it names one thing. `is_function`: it is
    a word of English that most sentences have, written as such; `is_name`: written as a name, whose form this is.
    `is_beginning`: words that begin with it count. `is_sign`: it is a sign of a script without spaces, or two.
    """

    forms: tuple[str, ...]
    parts: tuple[str, ...] = ()
    is_identifier: bool = False
    is_function: bool = False
    is_name: bool = False
    is_beginning: bool = False
    is_sign: bool = False


@dataclass(slots=True)
class Lexemes:
    """The lexemes of texts with their positions, as they are added.

    `with_function_words`: words such as "will" are among them. They count as little as variants and parts of words do
    for the length of a passage: their positions have the weight C, those of its words D, and both rank alike.
    """

    with_function_words: bool = True
    positions: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def add(self, text: str, *, is_name: bool = False, weight: str = "") -> None:
        """Add the lexemes of a text. `is_name`: it is one, so that its words are no function words.

        `weight`: of all of them; "": as described above.
        """
        text = normalised(text)
        chunks = list(CHUNK.finditer(text))
        language = _language(chunks)
        positions = self.positions
        for chunk in chunks:
            if chunk.lastgroup != "word":
                self._put_signs(chunk.group(), weight)
                continue
            self.count += 1
            word = chunk["word"]
            main, variants, is_function = _lexemes(word, language)
            if is_function:
                if not self.with_function_words:
                    continue
                if word[0].isupper() and (is_name or _is_name(text, word, chunk.start())):
                    variants = (*variants, word)
            position = str(min(self.count, _MAX_POSITION)) + weight
            for lexeme in main:
                positions.setdefault(lexeme, []).append(position)
            if variants:
                position += "" if weight else "C"
                for lexeme in variants:
                    positions.setdefault(lexeme, []).append(position)

    def add_labels(self, labels: Iterable[str]) -> None:
        """Add the lexemes of labels that are not there yet, with the least weight."""
        others = Lexemes()
        for label in labels:
            others.add(label, is_name=True, weight=LABEL)
        self.positions = {lexeme: [f"1{LABEL}"] for lexeme in others.positions} | self.positions

    def add_day(self, day: date) -> None:
        """Add the words of a day, as in "7 May 2023"."""
        for word in (str(day.day), _MONTHS[day.month - 1], str(day.year)):
            self._put(forms(word.lower())[0])

    def text(self) -> str:
        """All of them as the text of a tsvector."""
        return " ".join([f"{_quoted(lexeme)}:{','.join(positions)}" for lexeme, positions in self.positions.items()])

    def _put_signs(self, run: str, weight: str) -> None:
        for word in bigrams(run):
            self._put(word, weight)

    def _put(self, lexeme: str, weight: str = "") -> None:
        self.count += 1
        self.positions.setdefault(lexeme, []).append(str(min(self.count, _MAX_POSITION)) + weight)


def passage_vector(
    text: str, *, about: str | None = None, said_on: date | None = None, labels: Sequence[str] = ()
) -> str:
    """What a passage is found by, as the text of a tsvector: its words, those of the entity's names, and its day.

    `labels`: its memory's tags and the like, whose words it has with the least weight.
    """
    lexemes = Lexemes()
    if about:
        lexemes.add(about, is_name=True)
    lexemes.add(text)
    if said_on is not None:
        lexemes.add_day(said_on)
    if labels:
        lexemes.add_labels(labels)
    return lexemes.text()


def label_vector(summary: str | None, tags: Iterable[str]) -> str | None:
    """What the labels of a node are found by, as the text of a tsvector; None of a node without any.

    The words of its tags have the weight of labels, those of its summary the others. The first MAX_LABEL_CHARACTERS
    count, of the tags first.
    """
    lexemes, room, is_labelled = Lexemes(), MAX_LABEL_CHARACTERS, summary is not None
    for tag in tags:
        is_labelled = True
        lexemes.add(tag[: max(room, 0)], is_name=True, weight=LABEL)
        room -= len(tag)
        if room <= 0:
            break
    if summary and room > 0:
        lexemes.add(summary[:room])
    return lexemes.text() if is_labelled else None


def has_any(text: str, words: Iterable[AskedWord]) -> bool:
    """Whether a short text, such as a tag, has any of the words of a question."""
    lexemes = Lexemes()
    lexemes.add(text, is_name=True)
    found = lexemes.positions
    return any(
        any(lexeme.startswith(form) for lexeme in found) if word.is_beginning else form in found
        for word in words
        for form in word.forms
    )


def asked_words(text: str) -> Slices[list[AskedWord]]:
    """The words that a question asks for, each once, at most MAX_ASKED: identifiers first, then in order."""
    text = normalised(text)
    chunks = list(CHUNK.finditer(text))
    language = _language(chunks)
    found: dict[str, AskedWord] = {}
    for number, chunk in enumerate(chunks, start=1):
        if chunk.lastgroup == "word":
            words = _asked(text, chunk["word"], chunk.start(), language)
        else:
            words = _asked_signs(chunk.group())
        for word in words:
            found.setdefault(word.forms[0], word)
        if number % _WORDS_PER_SLICE == 0:
            yield
    return sorted(found.values(), key=lambda word: not word.is_identifier)[:MAX_ASKED]


def find_words(text: str, asked: Sequence[AskedWord]) -> list[tuple[int, int]]:
    """Where a text has words that a question asks for, in whichever form: beginnings and ends, none in another."""
    sought = {form for word in asked if not word.is_function for form in (*word.forms, *word.parts)}
    chunks = list(CHUNK.finditer(text))
    language, found = _language(chunks), list[tuple[int, int]]()
    for chunk in chunks:
        if chunk.lastgroup != "word":
            found += _find_signs(chunk, sought)
            continue
        main, variants, is_function = _lexemes(normalised(chunk["word"]), language)
        if not is_function and not sought.isdisjoint((*main, *variants)):
            found.append(chunk.span())
    return found


def _find_signs(run: re.Match[str], sought: Set[str]) -> list[tuple[int, int]]:
    """Where a run of signs has some of the words that are sought, those that touch as one."""
    positions = sorted(
        match.span()
        for word in set(bigrams(run.group())) & sought
        for match in re.finditer(re.escape(word), run.group())
    )
    found: list[tuple[int, int]] = []
    for start, end in ((run.start() + start, run.start() + end) for start, end in positions):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def all_of(text: str) -> str:
    """A tsquery for passages that have every word of a text; empty for a text without words."""
    words = [word for word in _finished(asked_words(text)) if not word.is_function or word.forms[0].islower()]
    return " & ".join(f"({query_of(word)})" for word in words)


def query_of(word: AskedWord) -> str:
    """A tsquery for passages that have a word."""
    ending = ":*" if word.is_beginning else ""
    return " | ".join(f"{_quoted(form)}{ending}" for form in word.forms)


def query_of_word(word: str) -> str:
    """A tsquery for passages that have a word of small letters, in whichever form."""
    return query_of(AskedWord(forms(word)))


def lexemes_of(words: Sequence[AskedWord]) -> list[str]:
    """The lexemes that decide how many passages have each of these words, or its parts."""
    return list(dict.fromkeys(lexeme for word in words for lexeme in (*word.forms, *word.parts)))


def passages_with(word: AskedWord, counts: Mapping[str, int]) -> int:
    """How many passages have a word, about, where `counts` are those of the lexemes that any passage has."""
    return max((counts.get(form, 0) for form in word.forms), default=0)


def _asked(text: str, word: str, start: int, language: str | None) -> list[AskedWord]:
    if is_compound(word):
        found = compound(word)
        whole = AskedWord(
            found.forms,
            () if found.is_plain else found.parts,
            is_identifier=found.is_identifier,
            is_beginning=found.is_hash,
        )
        return [whole, *(AskedWord((part,)) for part in found.parts if found.is_plain and part not in STOP_WORDS)]
    lowered = word.lower()
    if lowered not in STOP_WORDS:
        return [AskedWord(forms(lowered, language))]
    words = [AskedWord((lowered,), is_function=True)]
    if word != lowered and word != "I":
        is_name = _is_name(text, word, start)
        words.append(AskedWord((word,), is_function=not is_name, is_name=is_name))
    return words


def _asked_signs(run: str) -> list[AskedWord]:
    if sign_count(run) <= 1:
        return [AskedWord((run,), is_beginning=True, is_sign=True)]
    return [AskedWord((word,), is_sign=True) for word in list(bigrams(run))[:-1]]


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether a function word is written as a name: in capitals, or with one inside a sentence."""
    if word == "I" or not word[0].isupper():
        return False
    if len(word) > 1 and word.isupper():
        return True
    before = text[max(0, start - 3) : start].rstrip()
    return bool(before) and before[-1] not in _SENTENCE_STARTS and "\n" not in text[max(0, start - 3) : start]


_FoundBy = tuple[tuple[str, ...], tuple[str, ...], bool]


def _lexemes(word: str, language: str | None) -> _FoundBy:
    """The lexemes of a word that count, those of its variants and parts, and whether it is a function word."""
    is_short = len(word) <= MAX_CACHED_LENGTH
    return _remembered_lexemes(word, language) if is_short else _new_lexemes(word, language)


@lru_cache(maxsize=CACHED)
def _remembered_lexemes(word: str, language: str | None) -> _FoundBy:
    return _new_lexemes(word, language)


def _new_lexemes(word: str, language: str | None) -> _FoundBy:
    if is_compound(word):
        found = compound(word)
        whole, *others = found.forms
        if found.is_plain:
            main = tuple(part for part in found.parts if part not in STOP_WORDS)
            return (whole, *main), (*others, *(set(found.parts) - set(main))), False
        return (whole,), (*others, *found.parts), False
    lowered = word.lower()
    if lowered in STOP_WORDS:
        return (), (lowered,), True
    first, *variants = forms(lowered, language)
    return (first,), tuple(variants), False


def _language(chunks: Sequence[re.Match[str]]) -> str | None:
    return language_of([chunk.group().lower() for chunk in chunks])


def _quoted(lexeme: str) -> str:
    if "\\" in lexeme or "'" in lexeme:
        lexeme = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{lexeme[:MAX_LENGTH]}'"


def _finished(slices: Slices[list[AskedWord]]) -> list[AskedWord]:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            words: list[AskedWord] = end.value
            return words
