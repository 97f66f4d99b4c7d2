"""Which files of a folder are documents, and who reads each."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from recollect.errors import InvalidInput
from recollect_cli.documents.markdown import read_markdown, read_text
from recollect_cli.documents.model import Document

LARGEST_FILE = 100_000_000
"""Bytes of a file, at most: readers hold it in memory."""

MOST_FILES = 20_000
"""Files of a folder that are read, at most."""

EXTRA = 'Install what reads it: pip install "recollect-memory[documents]", or in a clone make setup'


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read. `name` is its path in the folder without the suffix, by which the graph knows it."""

    path: Path
    name: str
    relative_path: str


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that was left out, and why."""

    relative_path: str
    reason: str


def _decoded(read: Callable[[str], Document]) -> Callable[[Path], Document]:
    def read_file(path: Path) -> Document:
        try:
            return read(path.read_text("utf-8-sig"))
        except UnicodeDecodeError:
            raise InvalidInput("It is not UTF-8") from None

    return read_file


def _by_library(module: str, function: str) -> Callable[[Path], Document]:
    """A reader whose library is an extra, loaded with the first file that needs it."""

    def read_file(path: Path) -> Document:
        try:
            read: Callable[[Path], Document] = getattr(import_module(module), function)
        except ModuleNotFoundError:
            raise InvalidInput(EXTRA) from None
        return read(path)

    return read_file


_MARKDOWN, _TEXT = _decoded(read_markdown), _decoded(read_text)
READERS: dict[str, Callable[[Path], Document]] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".txt": _TEXT,
    ".pdf": _by_library("recollect_cli.documents.pdf", "read_pdf"),
    ".docx": _by_library("recollect_cli.documents.office", "read_word"),
    ".pptx": _by_library("recollect_cli.documents.office", "read_slides"),
    ".xlsx": _by_library("recollect_cli.documents.office", "read_sheets"),
}
"""The readers of documents, by the suffix of the file."""


def is_document(file: str) -> bool:
    """Whether a path is a folder, or a file that a reader of documents takes."""
    return Path(file).is_dir() or Path(file).suffix.lower() in READERS


def find_files(root: Path) -> list[FoundFile]:
    """The documents of a folder, in order of their paths, or the one file.

    Hidden files and folders, and links that lead elsewhere, are left out. Raises InvalidInput where there is none, and
    for more than MOST_FILES.
    """
    folder = root if root.is_dir() else root.parent
    paths = sorted(_walk(root)) if root.is_dir() else [root]
    if not paths:
        raise InvalidInput(f"{root}: no documents ({', '.join(READERS)})")
    if len(paths) > MOST_FILES:
        raise InvalidInput(f"{root}: more than {MOST_FILES} documents; import its folders one by one")
    relative_paths = [path.relative_to(folder).as_posix() for path in paths]
    return _named(paths, relative_paths)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix.lower() in READERS:
            yield path


def _named(paths: list[Path], relative_paths: list[str]) -> list[FoundFile]:
    """The files with their names; those that differ in their suffix alone keep it."""
    names = [Path(relative_path).with_suffix("").as_posix() for relative_path in relative_paths]
    counts = Counter(names)
    return [
        FoundFile(path, name if counts[name] == 1 else relative_path, relative_path)
        for path, name, relative_path in zip(paths, names, relative_paths, strict=True)
    ]


def read_document(file: FoundFile) -> Document | UnreadFile:
    """The document of a file, or why it was left out."""
    try:
        if file.path.stat().st_size > LARGEST_FILE:
            raise InvalidInput(f"It has more than {LARGEST_FILE // 1_000_000} MB")
        document = READERS[file.path.suffix.lower()](file.path)
    except InvalidInput as error:
        return UnreadFile(file.relative_path, str(error))
    except OSError as error:
        return UnreadFile(file.relative_path, error.strerror or "It cannot be read")
    except Exception as error:  # A library met what it does not know; the other files are read all the same.
        return UnreadFile(file.relative_path, f"It cannot be read: {type(error).__name__}")
    return document if document.passages else UnreadFile(file.relative_path, "It has no text")
