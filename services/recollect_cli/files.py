"""The files that commands read and write; `-` is standard input or output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from recollect.errors import InvalidInput, RecollectError
from recollect_cli.standard_input import standard_input

STDIO = "-"


@contextmanager
def opened(file: str) -> Iterator[BufferedReader]:
    """The file, to be read. Raises InvalidInput where it cannot be opened."""
    if file == STDIO:
        source = standard_input()
    else:
        try:
            source = Path(file).open("rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise _file_error(error, file) from error
    with source:
        yield source


@contextmanager
def created(file: str) -> Iterator[BinaryIO]:
    """The file, to be written. It appears once it is whole; standard output and devices are written directly.

    Raises InvalidInput where it cannot be written.
    """
    path = Path(file).resolve()
    if file == STDIO:
        yield from _standard_output()
        return
    part = path.with_name(f".{path.name}.part") if path.is_file() or not path.exists() else path
    try:
        with part.open("wb") as target:
            yield target
        if part != path:
            part.replace(path)
    except OSError as error:
        raise _file_error(error, file) from error
    finally:
        if part != path:
            part.unlink(missing_ok=True)


def size_of(source: BinaryIO) -> int | None:
    """The size of an open file in bytes; None where it is not known before the file is read."""
    with suppress(OSError):
        return os.fstat(source.fileno()).st_size or None
    return None


def name_of(file: str) -> str:
    """The name of the file in error messages."""
    return "standard input" if file == STDIO else file


def _standard_output() -> Iterator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:  # The reader, such as `head`, has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        raise _file_error(error, "standard output") from error


def _file_error(error: OSError, file: str) -> RecollectError:
    return InvalidInput(f"{name_of(file)}: {error.strerror}")
