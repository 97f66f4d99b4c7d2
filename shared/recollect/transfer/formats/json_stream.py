"""JSON text that arrives in pieces, read item by item."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from recollect.errors import InvalidInput
from recollect.transfer.formats.decoding import MAX_CELL


class JsonStream:
    """JSON text that arrives in pieces, read item by item with the standard library's decoder."""

    _BLANK = re.compile(r"[ \t\r\n]*")

    def __init__(self, texts: Iterator[str]) -> None:
        self._texts = texts
        self._text, self._at, self._line = "", 0, 1
        self._decoder = json.JSONDecoder(parse_constant=self._refuse)

    @property
    def place(self) -> str:
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
        if self._peek() not in ("{", "[", '"'):  # numbers and words may go on in the next piece; no item is one
            self._refuse()
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
                return value
            except RecursionError:
                raise InvalidInput("Nested too deeply", path=self.place) from None
            except ValueError as error:
                # An error in the middle is final; at the end, the rest may not have arrived yet.
                if not self._may_be_cut(error) or not self._more(double=True):
                    self._refuse()

    def _may_be_cut(self, error: ValueError) -> bool:
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 16

    def _more(self, *, double: bool = False) -> bool:
        """Double the buffer, up to its bound, so that a long item is not decoded again for each piece."""
        rest = self._text[self._at :]
        self._line += self._text.count("\n", 0, self._at)
        if len(rest) > MAX_CELL:
            raise InvalidInput(f"An item has more than {MAX_CELL} characters", path=self.place)
        pieces, missing = [rest], min(len(rest), MAX_CELL - len(rest) + 1) if double else 1
        while missing > 0 and (piece := next(self._texts, None)) is not None:
            pieces.append(piece)
            missing -= len(piece)
        self._text, self._at = "".join(pieces), 0
        return len(self._text) > len(rest)

    def _refuse(self, _: str = "") -> NoReturn:
        raise InvalidInput("Not a JSON object of lists", path=self.place) from None
