"""Documents as a file that the gateway imports: an entity each, with its passages as observations, and their links."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import IO, Any

import msgspec

from recollect_cli.documents.model import Document, Passage
from recollect_cli.documents.reading import FoundFile

DOCUMENT = "document"
"""The type of the entity of a document."""

LINKS_TO = "links_to"
"""The type of the relation between a document and what it links to."""

MAX_NAME, MAX_LABEL, MAX_TAG, MOST_TAGS = 512, 256, 128, 50
"""Characters of a name, of a source and of a tag, and tags of a document, at most."""


class LinkTargets:
    """The names that links mean: of a document by its path, seen from the one that links, or by its last part."""

    def __init__(self, files: Iterable[FoundFile]) -> None:
        self._by_path: dict[str, str] = {}
        self._by_last: dict[str, list[str]] = {}
        for file in files:
            path = PurePosixPath(file.relative_path)
            for written in (file.relative_path, path.with_suffix("").as_posix()):
                self._by_path.setdefault(written.casefold(), file.name)
            self._by_last.setdefault(path.stem.casefold(), []).append(file.name)

    def of(self, link: str, file: FoundFile) -> str | None:
        """The name that a link in a file means. A link that no document answers is a name of its own, unless a path."""
        linked = _resolved(PurePosixPath(file.relative_path).parent / link)
        for path in (linked, _resolved(PurePosixPath(link))):
            if path is not None and path.casefold() in self._by_path:
                return self._by_path[path.casefold()]
        named = self._by_last.get(link.casefold(), [])
        if named:
            return named[0] if len(named) == 1 else None
        return None if PurePosixPath(link).suffix or link.startswith((".", "/")) else link[:MAX_NAME]


def _resolved(path: PurePosixPath) -> str | None:
    """A path without its `..`; None where it leads out of the folder."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in (".", "/"):
            parts.append(part)
    return "/".join(parts)


def write_records(target: IO[bytes], documents: Iterable[tuple[FoundFile, Document]], targets: LinkTargets) -> int:
    """Write documents in the format `json`; return how many they are."""
    links: list[dict[str, str]] = []
    count = 0
    target.write(b'{"entities":[')
    for file, document in documents:
        target.write(b",\n" if count else b"\n")
        target.write(msgspec.json.encode(_entity(file, document)))
        links += _links(file, document, targets)
        count += 1
    target.write(b'\n],"relations":[')
    for number, link in enumerate(links):
        target.write((b",\n" if number else b"\n") + msgspec.json.encode(link))
    target.write(b"\n]}\n")
    return count


def _entity(file: FoundFile, document: Document) -> dict[str, Any]:
    unique = {passage.text_under_headings: passage for passage in document.passages}
    metadata = {**document.metadata, "path": file.relative_path} | ({"title": document.title} if document.title else {})
    tags = [tag[:MAX_TAG] for tag in dict.fromkeys(document.tags)][:MOST_TAGS]
    return {
        "name": file.name[-MAX_NAME:],
        "entityType": DOCUMENT,
        "observations": list(unique),
        "said": [_said(file, passage) for passage in unique.values()],
        "metadata": metadata,
        "source": file.relative_path[-MAX_LABEL:],
    } | ({"tags": tags} if tags else {})


def _said(file: FoundFile, passage: Passage) -> dict[str, str]:
    """Where a passage stands: its document is its thread, so that passages are understood by their neighbours."""
    return {"thread": file.relative_path[-MAX_LABEL:], "source": f"{file.relative_path}{passage.anchor}"[-MAX_LABEL:]}


def _links(file: FoundFile, document: Document, targets: LinkTargets) -> Iterator[dict[str, str]]:
    names = dict.fromkeys(targets.of(link, file) for link in document.links)
    for name in names:
        if name and name != file.name:
            yield {"from": file.name[-MAX_NAME:], "to": name, "relationType": LINKS_TO}
