"""Chooses the terms of a question: the words that are searched for, and by which candidates are ranked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.retrieval.recall.english_words import english
from recollect.retrieval.recall.ranking import Term
from recollect.words.analysis import AskedWord, passages_with, query_of

MAX_TERMS = 32
"""The maximum number of terms of a question: the rarest ones in the graph."""

PROMPT_WORDS = 16
"""The number of words from which a question counts as a prompt. In a short question, a word that no passage has shows
that there is no answer. A prompt has many such words, which have nothing to do with what is asked."""

MAX_EVIDENT = 10
"""The maximum number of passages with an identifier for it to be evidence by itself."""

SIGN_SHARE = 20
"""One passage in this many is assumed to have a given sign of a script without spaces: signs are not counted."""


@dataclass(frozen=True, slots=True)
class CountedWord:
    """A word of a question, and about how many passages have it (0: none, or not known)."""

    word: AskedWord
    passages: int


def counted_words(words: Sequence[AskedWord], counts: Mapping[str, int]) -> list[CountedWord]:
    """Pair the words with the numbers of their passages. A compound that no passage has is followed by its parts."""
    counted: dict[str, CountedWord] = {}
    for word in words:
        found = CountedWord(word, passages_with(word, counts))
        parts = [AskedWord((part,)) for part in word.parts] if found.passages == 0 and not word.is_beginning else []
        for each in [found, *(CountedWord(part, passages_with(part, counts)) for part in parts)]:
            counted.setdefault(each.word.forms[0], each)
    return list(counted.values())


def depends_on_unknown(words: Sequence[AskedWord]) -> bool:
    """Whether it matters which of a question's words no passage has, beside those that were counted.

    Not in a short question of plain words, where such a word counts as one that a single passage has.
    """
    plain = [word for word in words if not word.is_function]
    special = any(word.is_sign or word.is_name or word.parts for word in words)
    return special or not 0 < len(plain) < PROMPT_WORDS


def question_terms(words: Sequence[CountedWord], passages: int, *, all_known: bool = True) -> list[Term]:
    """The terms of a question in a graph of so many counted passages (0: not counted yet): rarest first.

    Of equally rare ones, identifiers come first.

    Function words count only where there are no others: a bare name may be one. As one in capitals they count where any
    passage writes them so. Of words that no passage has, those of a prompt do not count, nor signs that need be no
    words; `all_known` is False where it is not known which these are.
    """
    content = [word for word in words if _is_content(word)]
    chosen = content or words
    if all_known:
        is_prompt = not content or len(content) >= PROMPT_WORDS
        chosen = [word for word in chosen if word.passages or not _is_void(word.word, is_prompt=is_prompt)]
    terms = [_term(word, passages) for word in chosen]
    return sorted(terms, key=lambda term: (term.passages, not term.is_evident, term.lexeme))[:MAX_TERMS]


def label_words(words: Sequence[CountedWord]) -> tuple[list[AskedWord], frozenset[AskedWord]]:
    """The words of a question by which labels are found, and which of these do not count where no label has them.

    Function words count only where there are no others. Whether passages have a word does not matter: labels may.
    """
    chosen = [word for word in words if not word.word.is_function] or list(words)
    is_prompt = len(chosen) >= PROMPT_WORDS
    unknown = (word.word for word in chosen if word.passages == 0)
    optional = frozenset(w for w in unknown if is_prompt or w.is_sign or w.is_name or w.parts)
    rarest = sorted(chosen, key=lambda word: (word.passages, word.word.forms[0]))[:MAX_TERMS]
    return [word.word for word in rarest], optional


def _is_void(word: AskedWord, *, is_prompt: bool) -> bool:
    """Whether a word that no passage has does not count. Two signs side by side may be parts of two words."""
    return not word.is_beginning and (is_prompt or word.is_sign)


def _is_content(word: CountedWord) -> bool:
    """Whether a word is neither a function word nor one that only the question writes as a name."""
    return not word.word.is_function and (not word.word.is_name or word.passages > 0)


def _term(word: CountedWord, passages: int) -> Term:
    count = max(word.passages, passages // SIGN_SHARE if word.word.is_sign and word.word.is_beginning else 0, 1)
    is_evident = word.word.is_identifier and word.passages <= MAX_EVIDENT and not _is_product(word.word.forms[0])
    return Term(word.word.forms[0], idf(count, passages), count, tsquery=query_of(word.word), is_evident=is_evident)


def _is_product(form: str) -> bool:
    """Whether a word with capitals inside is the name of something that many questions name beside what they ask for.

    TypeScript or PostgreSQL, unlike UserService, says of what a memory is as any other word does.
    """
    return form.isalpha() and form in english().frequencies


def idf(count: int, passages: int) -> float:
    """The inverse document frequency (of BM25: Robertson and Spärck Jones) of a word that `count` passages have."""
    return math.log(1 + (max(passages - count, 0) + 0.5) / (count + 0.5)) if passages else 1.0
