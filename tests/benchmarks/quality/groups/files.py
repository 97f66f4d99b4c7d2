"""The data of the groups, in files of TOML beside the code."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(name: str, type_: type[T]) -> T:
    """Read the file of a group; raises msgspec.ValidationError if its shape is another, or a field is unknown."""
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type_)
