"""Lists in settings, which people write as JSON or with commas."""

import json
import re
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

_BRACKETED_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]")
"""An IPv6 address in brackets, with which a list with commas may begin."""


def read_list(value: Any) -> Any:
    """The entries of a list that came as text; anything else as it is. Raises ValueError."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith("[") or _BRACKETED_HOST.match(text):
        return [entry.strip() for entry in text.split(",") if entry.strip()]
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError('It is neither a JSON list, such as ["one", "two"], nor entries with commas between') from None


Texts = Annotated[list[str], NoDecode, BeforeValidator(read_list)]
"""A list of texts, such as names of hosts."""

Numbers = Annotated[list[int], NoDecode, BeforeValidator(read_list)]
"""A list of numbers, such as ports."""
