"""Text in XML: escaped so that every text that can be stored is read back unchanged.

XML 1.0 allows no control characters but three. They are written as `_x0001_`, as in Office Open XML (ECMA-376,
ST_Xstring), and the first character of a text that already looks like this is escaped, too.
"""

import re
from xml.sax.saxutils import escape, quoteattr  # writing only

FACT = "fact:"
"""The prefix of the ids of facts. An entity whose name has it gets its first letter escaped."""

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LOOKS_ESCAPED = re.compile(r"_(?=x[0-9A-F]{4})")
"""Without the last `_`, since the escape of the next character begins with one."""
_ESCAPED = re.compile(r"_x(00[01][0-9A-F]|005F|0066|FFF[EF])_")


def xml_text(text: str) -> str:
    """A text as it is written between tags."""
    return escape(_legal(text), {"\r": "&#13;"})


def xml_attribute(text: str) -> str:
    """A text as the value of an attribute, with its quotes."""
    return quoteattr(_legal(text))


def entity_id(name: str) -> str:
    """The id of an entity's node, made of its name."""
    legal = _legal(name)
    return quoteattr(f"_x0066_{legal[1:]}" if legal.startswith(FACT) else legal)


def restored(text: str) -> str:
    """The text as it was before it was escaped."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda match: f"_x{ord(match[0]):04X}_", _LOOKS_ESCAPED.sub("_x005F_", text))
