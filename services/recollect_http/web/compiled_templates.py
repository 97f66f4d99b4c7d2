"""Compiled templates, kept next to their sources, as Python keeps its own bytecode.

To compile the templates of all pages takes most of a second at each start. Their bytecode is as trustworthy as that of
the package: it is in the same folders, and who may write there may change the code itself.
"""

import os
import pickle
import sys
from contextlib import suppress
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment
from jinja2.bccache import Bucket, BytecodeCache

UNREADABLE = (OSError, EOFError, ValueError, pickle.UnpicklingError)
"""Errors of a file that is absent, cut off, or of something else."""


class CompiledTemplates(BytecodeCache):
    """The bytecode of templates, in the folder `__pycache__` next to each.

    `made_by`: what decides, with its source, what a template is compiled to. Bytecode that something else made is not
    used. As for modules, nothing is written where Python writes no bytecode, or may not.
    """

    def __init__(self, made_by: bytes) -> None:
        self._made_by = f"{version('jinja2')} {made_by!r} "

    def get_bucket(self, environment: Environment, name: str, filename: str | None, source: str) -> Bucket:
        """The bytecode of that template, if there is some of this source."""
        checksum = self.get_source_checksum(f"{self._made_by}{filename} {source}")
        bucket = Bucket(environment, filename or "", checksum)
        self.load_bytecode(bucket)
        return bucket

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read it, if it is there and current."""
        try:
            with _file(bucket).open("rb") as stored:
                bucket.load_bytecode(stored)
        except UNREADABLE:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write it. Processes that start at once write one after the other: each file is put there whole."""
        if sys.dont_write_bytecode or not bucket.key:
            return
        path = _file(bucket)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, delete=False) as written:
                bucket.write_bytecode(written)
            os.replace(written.name, path)


def _file(bucket: Bucket) -> Path:
    return Path(cache_from_source(bucket.key or "none"))
