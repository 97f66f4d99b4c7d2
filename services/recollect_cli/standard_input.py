"""Standard input that Ctrl-C can always stop."""

import os
import select
import sys
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Parameter

from recollect.errors import InvalidInput

SecretFile = Annotated[Path | None, Parameter(help="File whose first line is the secret. Default: standard input.")]

CHECK_SECONDS = 0.5
"""How long a read waits for input until Python checks for signals again."""


class InterruptibleFile(FileIO):
    """A file that is read only once it has data.

    Python runs the handler of a signal between two of its own steps. A signal that arrives when a blocking read is just
    about to begin would wait until that read ends, which on a silent pipe is never.
    """

    def readinto(self, buffer: Any) -> int | None:
        """Read the available data, at least one byte unless the file has ended."""
        while not select.select([self], [], [], CHECK_SECONDS)[0]:
            pass
        return super().readinto(buffer)


def standard_input() -> BufferedReader:
    """The bytes that are piped or typed in. On Windows, which cannot wait for them, a read blocks."""
    if os.name == "nt":
        return cast(BufferedReader, sys.stdin.buffer)
    return BufferedReader(InterruptibleFile(sys.stdin.fileno(), closefd=False))


def read_secret(file: Path | None, path: str) -> str:
    """One line of a file, or of standard input: arguments of commands are visible to every user of the machine.

    `path`: its name in errors. Raises InvalidInput.
    """
    try:
        line = sys.stdin.readline() if file is None else file.read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file or 'Standard input'} cannot be read", path=path) from error
    secret = line.strip()
    if not secret:
        raise InvalidInput("The secret is empty. Pass it on standard input, or in a file with --secret-file", path=path)
    return secret
