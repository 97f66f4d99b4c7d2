"""The kind of answer that a question expects, and whether a text has one: by words, in questions English ones."""

import re
from dataclasses import dataclass, field
from typing import Self

from recollect.words.dates.phrase_tables import ENGLISH
from recollect.words.dates.phrases import DIGITS
from recollect.words.english_detection import is_english
from recollect.words.stop_words import STOP_WORDS

FIRST_PERSON_SPEAKERS = ("i", "me", "myself", "user", "human")
ASSISTANT_SPEAKERS = ("ai", "agent", "assistant", "bot", "system")
"""Names in transcripts of the speaker who asks (the user), and of the one who answers (the assistant)."""

_WHEN = re.compile(
    r"\b(when|what (?:time|date|day|month|year)|which (?:day|month|year)|how long|"
    r"how many (?:days|weeks|months|years))\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|often|far|big|tall)\b", re.IGNORECASE)
_AMOUNT_FIRST = re.compile(
    rf"""
    \W* (?:(?:{"|".join(sorted(STOP_WORDS - {"how"}))})\W+)* how\s+
    (?:many|much|long|often|frequently|old|far|big|large|small|short|tall|high|deep|wide|heavy|strong|fast|quickly|soon|
    late|early)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Questions whose first word, stop words aside, is one of an amount: "For how many days …"."""

_WHO = re.compile(r"\b(who|whom|whose|where|which|names?|called)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:(?i:i|me|my|mine|myself|we|our|ours)|us)\b")
_THE_FIRST = re.compile(r"(?<=\w )[A-Z]\w* I\b")
"""A name with a number: World War I."""

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|"
    r"once|twice|both|couple|few|several|many|every)\b",
    re.IGNORECASE,
)
_AMOUNT = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|"
    r"seventy|eighty|ninety|dozens?|hundreds?|thousands?|million|billion|half|both|couple|few|several|many|all|none|no|"
    r"single)\b"
)
_FREQUENCY = (
    r"\b(?:every|each|once|twice|daily|weekly|monthly|nightly|hourly|yearly|annually|quarterly|always|never|rarely|often|"
    r"seldom|sometimes|regularly)\b"
)
_MOMENT = (
    r"\b(?:noon|midnight|dawn|dusk|before|after|until|till|during|since|soon|later|breakfast|lunch|dinner|christmas|easter|"
    rf"holidays?|{'|'.join(sorted(ENGLISH.anchors - {DIGITS}))})\b"
)
_KINDS = tuple(
    (re.compile(asking, re.IGNORECASE), re.compile("|".join(parts), re.IGNORECASE))
    for asking, parts in (
        (r"\bhow often\b", (_AMOUNT, _FREQUENCY, _MOMENT)),
        (r"\bhow (?:many|much|old|far|big|tall|high|heavy|large)\b", (_AMOUNT,)),
        (
            r"\b(?:when|what (?:time|date|day|month|year)|which (?:day|month|year)|how long)\b",
            (_AMOUNT, _FREQUENCY, _MOMENT),
        ),
    )
)
"""What questions for an amount, a frequency or a time are known by, and of what an answer has something."""

_NAME = re.compile(r"(?<=[^.!?:…。\s][ \u00a0])[A-ZÀ-ÖØ-ÞΑ-ΫЀ-Я]\w+|[\"“«][^\"“”«»]{1,80}[\"”»]")
_SENTENCE = re.compile(r"[^.!?…。！？؟]+[.!?…。！？؟]*")
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The kinds of answer that a question's words ask for: a time, a number, a name.

    `amount_first`: its first word, stop words aside, is one of an amount, such as "many" or "long". `needed`: of what a
    text has something that answers by itself; None where that may be anything.
    """

    time: bool = False
    number: bool = False
    name: bool = False
    amount_first: bool = field(default=False, compare=False)
    needed: re.Pattern[str] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, question: str) -> Self:
        """The kinds of answer that this question (in English) asks for."""
        time, number, name = (pattern.search(question) is not None for pattern in (_WHEN, _HOW_MANY, _WHO))
        needed = next((answering for asking, answering in _KINDS if asking.search(question)), None)
        return cls(time, number, name, _AMOUNT_FIRST.match(question) is not None, needed)

    def is_of_other_kind(self, text: str) -> bool:
        """Whether an English text has no amount, frequency or time, where the question asks for one."""
        return self.needed is not None and self.needed.search(text) is None and is_english(text)

    def found_in(self, text: str) -> bool:
        """Whether a text has a number and the question asks for one, or a name and the question asks for one."""
        if self.number and _NUMBER.search(text) is not None:
            return True
        return self.name and _NAME.search(text) is not None


def is_first_person(question: str) -> bool:
    """Whether a question is asked in the first person (English)."""
    return _FIRST_PERSON.search(_THE_FIRST.sub("", question)) is not None


def statement_share(text: str) -> float:
    """The share of a text's words that are in statements, not in questions; 1 for a text without a question."""
    if not _has_question(text):
        return 1.0
    words = question_words = 0
    for sentence in _SENTENCE.findall(text):
        count = len(sentence.split())
        words += count
        question_words += count if _has_question(sentence) else 0
    return 1 - question_words / (words or 1)


def _has_question(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS)
