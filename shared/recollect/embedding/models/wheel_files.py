"""Files inside of wheels whose code is never run, and the memory that loading them takes."""

import ctypes
import gc
import hashlib
from importlib.metadata import distribution
from pathlib import Path

from recollect.embedding.failure import EmbeddingFailed


def checked_file(package: str, path: str, sha256: str) -> bytes:
    """A file of an installed package. Raises Unavailable (embedder_unavailable) when it is not the one expected."""
    content = Path(str(distribution(package).locate_file(path))).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbeddingFailed(f"finds that the weights in the package {package} are not those that were checked")
    return content


def return_freed_memory() -> None:
    """Return freed memory to the system, where the C library keeps it (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
