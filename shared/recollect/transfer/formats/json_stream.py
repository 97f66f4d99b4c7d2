"""JSON text that arrives in pieces, read item by item."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NoReturn

from recollect.errors import InvalidInput
from recollect.transfer.formats.decoding import MAX_CELL

MAX_VALUES = 1_500_000
"""Values of one item, or of one line, at most: decoded, those of 16 million characters could take half a gigabyte."""

TOO_MANY_VALUES = f"More than {MAX_VALUES} values"

_LONGEST_WORD = 10_000
"""Characters of a number, at most; no number that is read has as many."""

_TOKEN = re.compile(r""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},:]""", re.DOTALL)
"""A string, whole or cut off at the end, or a mark of JSON's structure outside of strings."""


def has_too_many_values(text: str) -> bool:
    """Whether a JSON text has more than MAX_VALUES values: each begins after one of the marks that are counted."""
    if sum(map(text.count, "[{,:")) <= MAX_VALUES:  # Those in strings are counted, too.
        return False
    marks = (mark for token in _TOKEN.finditer(text) if (mark := token[0]) in ("[", "{", ",", ":"))
    return next(islice(marks, MAX_VALUES, None), None) is not None


class JsonStream:
    """JSON text that arrives in pieces, read item by item with the standard library's decoder."""

    _BLANK = re.compile(r"[ \t\r\n]*")
    _WORD = re.compile(r"[^ \t\r\n\[\]{},:\"]*")

    def __init__(self, texts: Iterator[str]) -> None:
        self._texts = texts
        self._text, self._at, self._line, self._is_sparse = "", 0, 1, True
        self._decoder = json.JSONDecoder(parse_constant=self._refuse)

    @property
    def location(self) -> str:
        """The current line, for the path of an error."""
        return f"line {self._line + self._text.count(chr(10), 0, self._at)}"

    def names(self) -> Iterator[str]:
        """Yield the names in the object. The caller reads each list before it asks for the next name."""
        self._take("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                self._refuse()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def values(self) -> Iterator[Any]:
        """Yield the items of a list."""
        self._take("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            if self._take(",]") == "]":
                return

    def begins_list(self) -> bool:
        """Whether the text is a list, and not an object."""
        return self._peek() == "["

    def skip(self) -> None:
        """Skip the value of a name, of any type."""
        if self._peek() in ("{", "[", '"'):
            self._value()
            return
        while (found := self._peek()) and found not in ",}":
            self._at += 1

    def end(self) -> None:
        """Raise InvalidInput for text after the object."""
        if self._peek():
            self._refuse()

    def _peek(self) -> str:
        while True:
            blank = self._BLANK.match(self._text, self._at)
            assert blank is not None
            self._at = blank.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _take(self, expected: str) -> str:
        found = self._peek()
        if not found or found not in expected:
            self._refuse()
        self._at += 1
        return found

    def _value(self) -> Any:
        if self._peek() not in ("{", "[", '"'):
            return self._word()
        while True:
            self._require_few_values()
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
                return value
            except RecursionError:
                raise InvalidInput("Nested too deeply", path=self.location) from None
            except ValueError as error:
                # An error in the middle is final; at the end, the rest may not have arrived yet.
                if not self._may_be_cut(error) or not self._more(double=True):
                    self._refuse()

    def _word(self) -> Any:
        """A number, or `true`, `false` or `null`: it may go on in the next piece, and ends at a mark or a blank."""
        while True:
            found = self._WORD.match(self._text, self._at)
            assert found is not None
            word = found[0]
            if found.end() < len(self._text) or not self._more():
                break
            if len(word) > _LONGEST_WORD:
                self._refuse()
        self._at += len(word)
        try:
            return self._decoder.decode(word)
        except ValueError:
            self._refuse()

    def _require_few_values(self) -> None:
        """Raise InvalidInput for an item with too many values, as far as it has arrived.

        Most buffers are too short to hold one, or have few values in all. Otherwise the next item is looked through,
        no further than it may go.
        """
        if len(self._text) - self._at <= MAX_VALUES or self._is_sparse:
            return
        depth = count = 0
        for token in _TOKEN.finditer(self._text, self._at):
            mark = token[0]
            depth += (mark in ("[", "{")) - (mark in ("]", "}"))
            count += mark in ("[", "{", ",", ":")
            if count > MAX_VALUES:
                raise InvalidInput(TOO_MANY_VALUES, path=self.location)
            if depth == 0:
                return

    def _may_be_cut(self, error: ValueError) -> bool:
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 16

    def _more(self, *, double: bool = False) -> bool:
        """Double the buffer, up to its bound, so that a long item is not decoded again for each piece."""
        rest = self._text[self._at :]
        self._line += self._text.count("\n", 0, self._at)
        if len(rest) > MAX_CELL:
            raise InvalidInput(f"An item has more than {MAX_CELL} characters", path=self.location)
        pieces, missing = [rest], min(len(rest), MAX_CELL - len(rest) + 1) if double else 1
        while missing > 0 and (piece := next(self._texts, None)) is not None:
            pieces.append(piece)
            missing -= len(piece)
        self._text, self._at = "".join(pieces), 0
        self._is_sparse = sum(map(self._text.count, "[{,:")) <= MAX_VALUES
        return len(self._text) > len(rest)

    def _refuse(self, _: str = "") -> NoReturn:
        raise InvalidInput("Not a JSON object of lists", path=self.location) from None
