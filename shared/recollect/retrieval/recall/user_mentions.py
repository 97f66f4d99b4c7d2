"""Removes mentions of the user from questions in English: nearly everything that an agent remembers is about the user.

With the mention, "What is the name of the user's dentist?" is near to everything that begins with "User …". Without it,
"What is the name of dentist?" is farther from "The user's name is …" than it should be. So the mean of both vectors is
searched for (measured: docs/adr/0006-embedders.md).
"""

import re

from recollect.words.stop_words import STOP_WORDS

_AUXILIARY = r"do|does|did|has|have|had|can|could|shall|should|will|would|may|might|must"
_BE = r"is|are|was|were"

_MENTION = re.compile(
    rf"""
    \b(?:the\ )?user['’]s\s+(?=\w)                              # the user's dog
    | \b (?P<auxiliary>{_AUXILIARY}) \s+ the\ user \b(?!['’])   # does the user have a dog
    | \b (?P<be>{_BE}) \s+ the\ user \s+ (?=\w+(?:ing|ed)\b)    # is the user looking for a dog
    | \b the\ user (?= \s*(?:[?.,;:!]|$) | \s+(?:{"|".join(sorted(STOP_WORDS - {"own"}))})\b)  # is the user a vet
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A mention of the user. In "the user table" and "the user guide" there is none: a noun follows."""

_WORD = re.compile(r"\w+")
_GAP = re.compile(r"\s+(?=[?.,;:!]|\s|$)")


def without_user(question: str) -> str:
    """Remove mentions of the user from a question, unless nothing else would be left to ask for."""
    if "user" not in question.lower():
        return question
    rest = _GAP.sub("", _MENTION.sub(_name_of_mention, question)).strip()
    return rest if any(word.lower() not in STOP_WORDS for word in _WORD.findall(rest)) else question


def _name_of_mention(mention: re.Match[str]) -> str:
    auxiliary, be = mention["auxiliary"], mention["be"]
    return auxiliary or (f"{be} " if be else "")
