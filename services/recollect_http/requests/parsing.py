"""Input of callers as structs: parsed, checked for what cannot be stored, and refused with all its faults at once."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache, partial
from itertools import islice
from math import inf, isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

import msgspec

from recollect.accounts.identity.pasted_secrets import refuse_secrets
from recollect.errors import InvalidInput, InvalidInputs
from recollect.fairness.computing import compute, in_one_slice
from recollect.text.digits import MAX_DIGITS, has_too_many_digits
from recollect.text.lone_surrogates import is_encodable
from recollect.text.visible import NO_VISIBLE_CHARACTER, is_visible
from recollect.times import inclusive_upper_bound, storable
from recollect_http.requests.argument_types import VISIBLE, plain_words

T = TypeVar("T", bound=msgspec.Struct)

MAX_DEPTH = 32
"""Nesting of arguments at most."""

MAX_FAULTS = 20
"""Faults of one call that its error lists, at most."""

MAX_NAME = 100
"""Characters of an argument's name that an error repeats, at most."""

_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]+)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>[^`]+)`$")


def parse(type_: type[T], arguments: Any) -> T:
    """Arguments, or an item of them, as a struct; raises InvalidInput with the dotted path of each fault.

    It lists MAX_FAULTS of them at most. The items of `read_one_by_one` are left to the handler.
    """
    faults = list(islice(overlong_lists(type_, arguments), MAX_FAULTS + 1))
    try:
        if not faults:
            parsed = msgspec.convert(arguments, type_)
            parts = _parts_to_check(type_, arguments)
            check_text(parts)
            faults = list(islice(_blank_texts(type_, parts, ""), MAX_FAULTS + 1))
            if not faults:
                return parsed
    except (msgspec.ValidationError, InvalidInput):
        faults = list(islice(_faults(type_, arguments, ""), MAX_FAULTS + 1))
    raise faults[0] if len(faults) == 1 else InvalidInputs(faults[:MAX_FAULTS], more=len(faults) > MAX_FAULTS)


def parse_stored(type_: type[T], arguments: Any) -> T:
    """As `parse`, for what is stored: raises InvalidInput, too, for a key or a token of this service in it."""
    parsed = parse(type_, arguments)
    refuse_secrets(arguments)
    return parsed


def parse_removal(type_: type[T], arguments: Any) -> T:
    """As `parse_stored`, for what is removed: lists may name a secret that was stored before."""
    parsed = parse(type_, arguments)
    refuse_secrets({name: part for name, part in arguments.items() if not isinstance(part, list)})
    return parsed


async def parse_in_thread(tenant_id: UUID, type_: type[T], arguments: Any, parser: Callable[..., T] = parse) -> T:
    """As `parse`, for large arguments, in a thread. Its cost is bounded by the size of a body."""
    slices = in_one_slice(partial(parser, type_, arguments))
    return await compute(tenant_id, slices, seconds=inf, advice="")


def overlong_lists(type_: type[msgspec.Struct], arguments: Any) -> Iterator[InvalidInput]:
    """The faults of lists that are too long, before any of their elements is looked at."""
    if not isinstance(arguments, dict):
        return
    for name, (type_of_list, longest) in _bounded_lists(type_).items():
        value = arguments.get(name)
        if isinstance(value, list) and len(value) > longest:
            yield from _faults_of_parts(type_of_list, value, name)


@cache
def _bounded_lists(type_: type[msgspec.Struct]) -> dict[str, tuple[Any, int]]:
    """The lists of a struct that have a greatest length, by their names in JSON."""
    bounded = {}
    for field in msgspec.structs.fields(type_):
        inner, bounds = unwrapped(field.type)
        longest = min((b.max_length for b in bounds if getattr(b, "max_length", None) is not None), default=None)
        if get_origin(inner) is list and longest is not None:
            bounded[field.encode_name] = (field.type, longest)
    return bounded


def _faults(type_: Any, value: Any, path: str) -> Iterator[InvalidInput]:
    """The faults of a value: those of its parts, or else its own. A valid value is passed over at once.

    The elements of a list that is too long or too short are not looked at, however many they are.
    """
    try:
        msgspec.convert(value, type_)
        parts = _parts_to_check(type_, value)
        check_text(parts, path)
        yield from _blank_texts(type_, parts, path)
        return
    except InvalidInput as fault:
        yield fault
        return
    except msgspec.ValidationError as error:
        own_fault = _invalid(str(error), path, choices=_choices(type_))
    part_faults = _faults_of_parts(type_, value, path)
    yield next(part_faults, own_fault)
    yield from part_faults


def _blank_texts(type_: Any, value: Any, path: str) -> Iterator[InvalidInput]:
    """The faults of texts inside a valid value that must show something and do not."""
    if not _has_visible_texts(type_):
        return
    inner, marks = unwrapped(type_)
    if isinstance(value, str):
        if VISIBLE in marks and not is_visible(value):
            yield InvalidInput(NO_VISIBLE_CHARACTER, path=path or None)
    elif isinstance(value, list):
        (element,) = get_args(inner)
        for index, item in enumerate(value):
            yield from _blank_texts(element, item, _under(path, str(index)))
    elif isinstance(value, dict):
        for field in msgspec.structs.fields(inner):
            if field.encode_name in value:
                yield from _blank_texts(field.type, value[field.encode_name], _under(path, field.encode_name))


@cache
def _has_visible_texts(type_: Any) -> bool:
    """Whether a type is of texts that must show something, or has such texts in its lists and structs."""
    inner, marks = unwrapped(type_)
    if inner is str:
        return VISIBLE in marks
    if get_origin(inner) is list:
        return _has_visible_texts(get_args(inner)[0])
    is_struct = isinstance(inner, type) and issubclass(inner, msgspec.Struct)
    return is_struct and any(_has_visible_texts(field.type) for field in msgspec.structs.fields(inner))


def _parts_to_check(type_: Any, value: Any) -> Any:
    """The parts of a value that are checked here: all but the items that its handler reads one by one."""
    apart = getattr(type_, "read_one_by_one", frozenset[str]())
    return {name: part for name, part in value.items() if name not in apart} if apart else value


def _faults_of_parts(type_: Any, value: Any, path: str) -> Iterator[InvalidInput]:
    inner, bounds = unwrapped(type_)
    if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        yield from _faults_of_fields(inner, value, path)
    elif isinstance(value, list) and get_origin(inner) is list:
        try:
            msgspec.convert(value, Annotated[list[Any], *bounds] if bounds else list[Any])
        except msgspec.ValidationError as error:
            yield _invalid(str(error), path)
            return
        (element,) = get_args(inner)
        for index, item in enumerate(value):
            yield from _faults(element, item, _under(path, str(index)))


def _faults_of_fields(type_: type[msgspec.Struct], value: dict[str, Any], path: str) -> Iterator[InvalidInput]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(type_)}
    for name, field in fields.items():
        if name in value:
            yield from _faults(field.type, value[name], _under(path, name))
        elif field.required:
            yield InvalidInput("Required", path=_under(path, name))
    if type_.__struct_config__.forbid_unknown_fields:
        for name in value:
            if name not in fields:
                try:
                    check_text(name, path)
                    yield InvalidInput("Unknown argument", path=_under(path, name[:MAX_NAME]))
                except InvalidInput as fault:
                    yield fault


def unwrapped(type_: Any) -> tuple[Any, list[Any]]:
    """A type without its annotations, null and `UnsetType`; and its annotations."""
    bounds: list[Any] = []
    while True:
        if get_origin(type_) is Annotated:
            type_, *more = get_args(type_)
            bounds += more
        elif get_origin(type_) in (Union, UnionType):
            options = [option for option in get_args(type_) if option not in (NoneType, msgspec.UnsetType)]
            if len(options) != 1:
                return type_, bounds
            type_ = options[0]
        else:
            return type_, bounds


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def check_text(value: Any, path: str = "", depth: int = 0) -> None:
    """Raise InvalidInput for what JSON may carry but PostgreSQL cannot: NUL, lone surrogates, endless nesting.

    Also for infinite numbers (1e400) and NaN, which would be stored as null, and for numbers of too many digits.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(f"Nested deeper than {MAX_DEPTH} levels", path=path.rsplit(".", 1)[0] or None)
    match value:
        case str():
            if "\x00" in value or not is_encodable(value):
                raise InvalidInput(
                    "Holds a NUL or half a character (a lone surrogate), which cannot be stored", path=path or None
                )
        case int() if has_too_many_digits(value):
            raise InvalidInput(f"Is a number of more than {MAX_DIGITS} digits", path=path or None)
        case float() if not isfinite(value):
            raise InvalidInput("Is a number that cannot be stored", path=path or None)
        case dict():
            for key, item in value.items():
                check_text(key, path, depth + 1)
                check_text(item, f"{path}.{key}" if path else key, depth + 1)
        case list():
            for index, item in enumerate(value):
                check_text(item, f"{path}.{index}" if path else str(index), depth + 1)


def utc(time: datetime | None, path: str) -> datetime | None:
    """The same moment in UTC, as it can be stored; raises InvalidInput for one outside the calendar."""
    try:
        return None if time is None else storable(time)
    except OverflowError:
        raise InvalidInput("Outside the years 1 to 9999", path=path) from None


def utc_through(time: datetime | None, path: str) -> datetime | None:
    """As `utc`, for an upper bound: the end of its millisecond, where it has no microseconds."""
    moment = utc(time, path)
    return None if moment is None else inclusive_upper_bound(moment)


def _choices(type_: Any) -> str:
    """The values of a Literal type, in order; empty for any other type."""
    inner, _ = unwrapped(type_)
    return ", ".join(sorted(get_args(inner))) if get_origin(inner) is Literal else ""


def _invalid(message: str, under: str, *, choices: str = "") -> InvalidInput:
    """The fault that the parser reports of a value at `under`, with the path inside it, and its possible values."""
    at = _AT.search(message)
    path = re.sub(r"\[(\d+)\]", r".\1", at["path"] if at else "").replace("[...]", "").lstrip(".")
    path = _under(under, path) if path else under
    text = message[: at.start()] if at else message
    for pattern, fault in ((_MISSING, "Required"), (_UNKNOWN, "Unknown argument")):
        if field := pattern.match(text):
            return InvalidInput(fault, path=_under(path, field["field"][:MAX_NAME]))
    fault = plain_words(text)
    return InvalidInput(f"{fault}; the values are: {choices}" if choices else fault, path=path or None)
