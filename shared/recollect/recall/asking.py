"""What a question asks for, and whether a text tells such a thing: by their words, those of English for questions."""

import re
from dataclasses import dataclass
from typing import Self

SELVES = ("i", "me", "myself", "user", "human")
OTHERS = ("ai", "agent", "assistant", "bot", "system")
"""What the one who asks, and the one who answers, are called in transcripts."""

_WHEN = re.compile(
    r"\b(when|what (?:time|date|day|month|year)|which (?:day|month|year)|how long|"
    r"how many (?:days|weeks|months|years))\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|often|far|big|tall)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(who|whom|whose|where|which|names?|called)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:(?i:i|me|my|mine|myself|we|our|ours)|us)\b")
_THE_FIRST = re.compile(r"(?<=\w )[A-Z]\w* I\b")
"""A name with a number: World War I."""

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|"
    r"once|twice|both|couple|few|several|many|every)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[^.!?:…。\s][ \u00a0])[A-ZÀ-ÖØ-ÞΑ-ΫЀ-Я]\w+|[\"“«][^\"“”«»]{1,80}[\"”»]")
_SENTENCE = re.compile(r"[^.!?…。！？؟]+[.!?…。！？؟]*")
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(frozen=True, slots=True)
class Asked:
    """What would answer a question, as far as its words tell: a time, a number, a name."""

    time: bool = False
    number: bool = False
    name: bool = False

    @classmethod
    def by(cls, question: str) -> Self:
        """What this question asks for (English)."""
        asks = (pattern.search(question) is not None for pattern in (_WHEN, _HOW_MANY, _WHO))
        return cls(*asks)

    def told_by(self, text: str) -> bool:
        """Whether a text holds a number or a name, where one of them was asked for."""
        if self.number and _NUMBER.search(text) is not None:
            return True
        return self.name and _NAME.search(text) is not None


def speaks_of_self(question: str) -> bool:
    """Whether a question is asked in the first person (English)."""
    return _FIRST_PERSON.search(_THE_FIRST.sub("", question)) is not None


def stated(text: str) -> float:
    """The share of a text's words that stand in sentences which are no questions; 1 where it asks nothing."""
    if not _asks(text):
        return 1.0
    words = asked = 0
    for sentence in _SENTENCE.findall(text):
        count = len(sentence.split())
        words += count
        asked += count if _asks(sentence) else 0
    return 1 - asked / (words or 1)


def _asks(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS)
