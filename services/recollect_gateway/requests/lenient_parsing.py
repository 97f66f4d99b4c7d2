"""Parses arguments as models and clients send them: JSON in texts, empty texts, nulls, 5.0 for 5, days for times.

Some clients send lists and objects as texts, or fill in every argument; some models write every number with a point. A
value that is valid is never changed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from recollect.accounts.identity.pasted_secrets import refuse_secrets
from recollect.errors import InvalidInput
from recollect.text.digits import MAX_DIGITS
from recollect.times import lacks_offset, parse_local
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE, UP_TO
from recollect_http.requests.bodies import MAX_VALUES
from recollect_http.requests.parsing import overlong_lists, parse, unwrapped

T = TypeVar("T", bound=msgspec.Struct)

_JSON_TYPES: dict[Any, tuple[type, ...]] = {
    list: (list,),
    dict: (dict,),
    bool: (bool,),
    int: (int, float),
    float: (int, float),
    NoneType: (NoneType,),
}
"""The types of JSON values that each type accepts. Types that accept texts are left out."""

_MANY_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")


def parse_leniently(type_: type[T], arguments: Any, *, zone: tzinfo = UTC) -> T:
    """Parse the arguments that a model sent. Raises InvalidInput as `parse` does.

    A value that is not valid is interpreted, if possible: JSON in a text is decoded if the argument is no text, null
    counts as left out, 5.0 as 5, and a day or a time without an offset as one of `zone`. An empty text counts as left
    out if the argument may be left out, unless its type says otherwise.
    """
    try:
        if not any(_empty_texts(type_, arguments)):
            return parse(type_, arguments)
    except InvalidInput:
        if any(overlong_lists(type_, arguments)):
            raise
    return parse(type_, _normalized(type_, arguments, _TextDecoder(), zone))


def has_local_times(type_: Any, value: Any) -> bool:
    """Whether arguments have a day, or a time without an offset, in place of a time."""
    if not _has_times(type_):
        return False
    inner, bounds = _meant(type_, value)
    if isinstance(value, str):
        return inner is datetime and lacks_offset(value)
    if isinstance(value, dict) and _is_struct(inner):
        fields = _fields(inner)
        return any(name in fields and has_local_times(fields[name].type, part) for name, part in value.items())
    if not isinstance(value, list) or _is_too_long(value, bounds):
        return False
    element = _element(inner)
    return element is not None and any(has_local_times(element, item) for item in value)


@cache
def _has_times(type_: Any) -> bool:
    """Whether a type is a time, or has times in its lists and structs."""
    inner, _ = _meant(type_, {})
    if (element := _element(inner)) is not None:
        return _has_times(element)
    return inner is datetime or (_is_struct(inner) and any(_has_times(field.type) for field in _fields(inner).values()))


def with_offsets(type_: Any, value: Any, zone: tzinfo) -> Any:
    """Add the offset of a zone to each day, and to each time without one, that stands in place of a time."""
    if not _has_times(type_):
        return value
    inner, bounds = _meant(type_, value)
    if isinstance(value, str):
        return _moment(value, bounds, zone) if inner is datetime else value
    if isinstance(value, dict) and _is_struct(inner):
        fields = _fields(inner)
        return {
            name: with_offsets(fields[name].type, part, zone) if name in fields else part
            for name, part in value.items()
        }
    if isinstance(value, list) and (element := _element(inner)) is not None and not _is_too_long(value, bounds):
        return [with_offsets(element, item, zone) for item in value]
    return value


def parse_to_store(type_: type[T], arguments: Any, *, destructive: bool = False, zone: tzinfo = UTC) -> T:
    """Parse arguments to store, as `parse_leniently`. Raises InvalidInput also for a key or token of this service.

    The handler checks the items of `read_one_by_one`, and files, whose reader reports the line. In calls that are
    `destructive`, lists are not checked: they name what to delete, which may be a secret that was stored before.
    """
    parsed = parse_leniently(type_, arguments, zone=zone)
    apart = getattr(type_, "read_one_by_one", frozenset[str]()) | getattr(type_, "files", frozenset[str]())
    values: dict[str, Any] = msgspec.to_builtins(parsed)
    refuse_secrets(
        {
            name: part
            for name, part in values.items()
            if name not in apart and not (destructive and isinstance(part, list))
        }
    )
    return parsed


def _empty_texts(type_: Any, value: Any) -> Iterator[bool]:
    """True for each empty text that counts as left out."""
    inner, _ = _meant(type_, value)
    if isinstance(value, dict) and _is_struct(inner):
        fields = _fields(inner)
        for name, part in value.items():
            if name in fields:
                if _is_left_out(fields[name], part):
                    yield True
                yield from _empty_texts(fields[name].type, part)
    elif isinstance(value, list) and (element := _element(inner)) is not None and _is_struct(unwrapped(element)[0]):
        for item in value:
            yield from _empty_texts(element, item)


def _normalized(type_: Any, value: Any, decoder: "_TextDecoder", zone: tzinfo) -> Any:
    """A value with what its type wants in place of what clients send for it."""
    inner, bounds = _meant(type_, value)
    if isinstance(value, str):
        value = _moment(value, bounds, zone) if inner is datetime else decoder.decoded(type_, value)
    if isinstance(value, dict) and _is_struct(inner):
        fields = _fields(inner)
        return {
            name: normalized
            for name, part in value.items()
            for normalized in [_normalized(fields[name].type, part, decoder, zone) if name in fields else part]
            if name not in fields or not (_is_left_out(fields[name], part) or _is_left_out(fields[name], normalized))
        }
    if isinstance(value, list) and (element := _element(inner)) is not None and not _is_too_long(value, bounds):
        return [_normalized(element, item, decoder, zone) for item in value]
    if isinstance(value, float) and value.is_integer() and _takes(type_, int) and not _takes(type_, float):
        return int(value)
    return value


def _is_left_out(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    """Whether a value counts as none: an empty text, or a null where null is not valid."""
    if field.required:
        return False
    if value == "":
        return not _says(unwrapped(field.type)[1], EMPTY_IS_A_VALUE)
    return value is None and not _takes(field.type, NoneType)


@dataclass(slots=True)
class _TextDecoder:
    """Decodes the texts of one call, which hold no more values together than a body may: parsing holds the loop."""

    left: int = MAX_VALUES

    def decoded(self, type_: Any, text: str) -> Any:
        """The value that a text of JSON stands for, where the type takes such a value and no text; else the text."""
        taken = _json_types(type_)
        if not taken or not self._take(text) or _MANY_DIGITS.search(text):
            return text
        try:
            value = msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return text
        return value if type(value) in taken else text

    def _take(self, text: str) -> bool:
        """Count the values that a text may hold; False where they are too many."""
        self.left -= 1 + sum(text.count(separator) for separator in ",[{")
        return self.left >= 0


def _json_types(type_: Any) -> frozenset[type]:
    """The types of JSON that a type takes; none where a text is valid, too."""
    found: set[type] = set()
    for option in _options(type_):
        plain = dict if _is_struct(option) else get_origin(option) or option
        if plain is msgspec.UnsetType:
            continue
        if plain not in _JSON_TYPES:
            return frozenset()
        found.update(_JSON_TYPES[plain])
    return frozenset(found)


def _moment(text: str, bounds: list[msgspec.Meta], zone: tzinfo) -> str:
    """A time with its offset, in place of a day or of a time without one, which are those of a zone.

    A day is its beginning, or its end for an upper bound.
    """
    if not lacks_offset(text):
        return text
    try:
        return parse_local(text, last=_says(bounds, UP_TO), zone=zone).isoformat()
    except (ValueError, OverflowError):
        return text


def _meant(type_: Any, value: Any) -> tuple[Any, list[Any]]:
    """As `unwrapped`; of a union with one struct, such as of a text and a struct, an object is meant as that."""
    inner, bounds = unwrapped(type_)
    if not isinstance(value, dict) or get_origin(inner) not in (Union, UnionType):
        return inner, bounds
    structs = [option for option in _options(inner) if _is_struct(option)]
    return (structs[0] if len(structs) == 1 else inner), bounds


def _options(type_: Any) -> Iterator[Any]:
    """The members of a union, or the type alone, without annotations."""
    while get_origin(type_) is Annotated:
        type_ = get_args(type_)[0]
    if get_origin(type_) in (Union, UnionType):
        for member in get_args(type_):
            yield from _options(member)
    else:
        yield type_


def _takes(type_: Any, wanted: type) -> bool:
    """Whether a type is `wanted`, or a union that has it."""
    return wanted in _options(type_)


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def _says(bounds: list[msgspec.Meta], word: str) -> bool:
    """Whether the annotations of a type have a word in `extra`."""
    return any(word in (getattr(bound, "extra", None) or {}) for bound in bounds)


def _is_too_long(value: list[Any], bounds: list[msgspec.Meta]) -> bool:
    return any(bound.max_length is not None and len(value) > bound.max_length for bound in bounds)


def _element(type_: Any) -> Any:
    """The type of a list's elements; None where it is no list."""
    return get_args(type_)[0] if get_origin(type_) is list else None


@cache
def _fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields of a struct, by their names in JSON."""
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}
