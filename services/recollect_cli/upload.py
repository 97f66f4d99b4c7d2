"""How an import's file is sent: JSON lines as they are, other formats in batches, as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from recollect.transfer.batches import ImportBatch, read_batches
from recollect.transfer.formats import FORMATS, Format
from recollect.transfer.formats.json import PARTS, write_items
from recollect.transfer.formats.jsonl import MEDIA_TYPE
from recollect.transfer.model import Strategy
from recollect.transfer.upload_chunks import BrokenLine, UploadChunk, read_upload_chunks
from recollect_cli.gateway import Gateway
from recollect_cli.progress import Meter

CHUNK_BYTES = 64 * 1024


class ImportReply(msgspec.Struct, frozen=True):
    """What the gateway says of one request."""

    class RejectedItem(msgspec.Struct, frozen=True):
        """Something that was not imported."""

        reason: str
        line: int = 0
        path: str = ""

    entities_created: int
    entities_updated: int
    facts_created: int
    facts_updated: int
    observations_added: int
    relations_created: int
    relations_updated: int
    lines_skipped: int
    errors: list[RejectedItem]


@dataclass(slots=True)
class ImportTally:
    """What became of a file so far."""

    entities: int = 0
    facts: int = 0
    observations: int = 0
    relations: int = 0
    changed: int = 0
    known: int = 0
    accepted: int = 0
    broken: int = 0
    read: int = 0

    def add(self, answer: ImportReply) -> None:
        """Add what the gateway says of one request."""
        self.entities += answer.entities_created
        self.facts += answer.facts_created
        self.changed += answer.entities_updated + answer.facts_updated + answer.relations_updated
        self.observations += answer.observations_added
        self.relations += answer.relations_created
        self.known += answer.lines_skipped

    def summary(self, item: str = "lines") -> str:
        """What became of it, for people."""
        facts = f"{_counted(self.facts, 'new facts')}, " if self.facts else ""
        parts = [
            f"{_counted(self.entities, 'new entities')}, {facts}{_counted(self.observations, 'new observations')}, "
            f"{_counted(self.relations, 'new relations')}",
            f"{_counted(self.changed, item)} changed what was there" if self.changed and item != "lines" else "",
            f"{_counted(self.known, item)} held nothing new" if self.known else "",
            _left_out(self.broken, item) if self.broken else "",
        ]
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Upload:
    """How a file is sent: its lines as they are, or what was read of it as JSON."""

    gateway: Gateway
    path: str
    format: Format
    strategy: Strategy | None

    @property
    def lines(self) -> bool:
        """Whether the file's lines are sent as they are."""
        return self.format.name == "jsonl" and self.strategy is None

    @property
    def item(self) -> str:
        """What is counted."""
        return "lines" if self.lines else "items"

    @property
    def one(self) -> str:
        """One of them."""
        return self.item.removesuffix("s")

    def parts(self, source: BinaryIO) -> Iterator[UploadChunk | ImportBatch]:
        """The file in requests."""
        if self.lines:
            return read_upload_chunks(source)
        return read_batches(self.format.name, chunks_of(source))

    def send(self, part: UploadChunk | ImportBatch) -> ImportReply:
        """What the gateway says of a part."""
        query = {}
        if isinstance(part, UploadChunk):
            content, media_type = part.body, MEDIA_TYPE
        else:
            content, media_type = write_items([item.record for item in part.items]), FORMATS["json"].media_type
            query = {"strategy": str(self.strategy or Strategy.SKIP)}
        return msgspec.json.decode(
            self.gateway.post(self.path, content, media_type=media_type, **query), type=ImportReply
        )


def chunks_of(source: BinaryIO) -> Iterator[bytes]:
    """What a file holds, in chunks of CHUNK_BYTES at most."""
    return iter(lambda: source.read(CHUNK_BYTES), b"")


def count(
    tally: ImportTally, part: UploadChunk | ImportBatch, answer: ImportReply, meter: Meter, source: BinaryIO
) -> None:
    """Add up what became of a part, and tell what of it is broken by its place in the file."""
    tally.add(answer)
    if isinstance(part, UploadChunk):
        refused = [BrokenLine(part.numbers[error.line - 1], _reason(error)) for error in answer.errors]
        lines = sorted((*part.broken, *refused), key=lambda line: line.number)
        told = [f"line {line.number}: {line.reason}" for line in lines]
        tally.accepted += len(part.numbers) - len(refused)
        meter.advance(part.lines_read, part.bytes_read)
    else:
        told = [f"{problem.where}: {problem.reason}" for problem in part.problems]
        told += [f"{_place(part, error.path)}: {error.reason}" for error in answer.errors]
        tally.accepted += len(part.items) - len(answer.errors)
        tally.read += len(part.items) + sum(not problem.of_part for problem in part.problems)
        meter.advance(tally.read, source.tell() if source.seekable() else 0)
    for line in told:
        meter.say(line)
    tally.broken += len(told)


def _reason(error: ImportReply.RejectedItem) -> str:
    return f"{error.path}: {error.reason}" if error.path else error.reason


def _place(batch: ImportBatch, path: str) -> str:
    """Where in the file something stands that the gateway tells by its place in what was sent (`entities.3`)."""
    part, _, rest = path.partition(".")
    number, _, field = rest.partition(".")
    of_part = [item.where for item in batch.items if isinstance(item.record, PARTS[part])] if part in PARTS else []
    if not number.isdecimal() or int(number) >= len(of_part):
        return path
    return f"{of_part[int(number)]}{f'.{field}' if field else ''}"


def _counted(count: int, plural: str) -> str:
    """How many there are: "1 new entity", "2 new entities"."""
    singular = f"{plural.removesuffix('ies')}y" if plural.endswith("ies") else plural.removesuffix("s")
    return f"{count} {singular if count == 1 else plural}"


def _left_out(broken: int, item: str) -> str:
    if broken == 1:
        return f"1 broken {item.removesuffix('s')}, or a part of it, was left out"
    return f"{broken} broken {item} or parts of them were left out"
