"""Mentions of the user in a question, which say nothing: nearly all that an agent remembers is about the user.

With the mention, "What is the name of the user's dentist?" is near to everything that begins with "User …"; without it,
"What is the name of dentist?" is farther from "The user's name is …" than it should be. So what is searched for is the
mean of both (measured: docs/adr/0006-embedders.md). In questions in English.
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
"""Not "the user table" nor "the user guide": it is a mention where no noun follows, as far as this can be told."""

_WORD = re.compile(r"\w+")
_GAP = re.compile(r"\s+(?=[?.,;:!]|\s|$)")


def without_user(question: str) -> str:
    """A question without mentions of the user; as it is where nothing else would be left to ask for."""
    if "user" not in question.lower():
        return question
    rest = _GAP.sub("", _MENTION.sub(_name_of_mention, question)).strip()
    return rest if any(word.lower() not in STOP_WORDS for word in _WORD.findall(rest)) else question


def _name_of_mention(mention: re.Match[str]) -> str:
    auxiliary, be = mention["auxiliary"], mention["be"]
    return auxiliary or (f"{be} " if be else "")
