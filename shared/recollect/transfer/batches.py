"""A file of any format and size in bounded batches; each is written in one revision.

Each reading of a file gives the same batches: an import that was interrupted reads it again and skips as many batches
as it had written. Memory is that of one batch, and of hashes of the names that were read.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from recollect.errors import ErrorCode, TooLarge
from recollect.transfer.expired import ExpiringRecords
from recollect.transfer.formats import reader_named
from recollect.transfer.formats.decoding import ParsedRecord, Read, decoded
from recollect.transfer.model import CYCLE, ELSEWHERE, ImportProblem
from recollect.transfer.records import EntityRecord, Placement

BATCH_ITEMS = 500
BATCH_OBSERVATIONS = 2_000
BATCH_BYTES = 1024 * 1024
"""The most that a batch holds, as JSON; it always holds one item. A batch is one transaction, for which the other
writers of the graph wait."""

SMALL_LINES = 100_000
"""Most lines of a file that one call reads: many more than items, since an item may have several lines."""

SLICE = 50
"""Items that are read before other computations may have their turn."""

MAX_LATE = 100_000
"""Most entities of one file whose parents come after them: they are kept until the end."""


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Items to write in one revision, and what was found among them that cannot be imported. `number` counts from 0."""

    number: int
    items: tuple[ParsedRecord, ...]
    problems: tuple[ImportProblem, ...]

    @property
    def read(self) -> int:
        """How many entities, facts and relations of the file it has, broken ones too; a placement is none of these."""
        sound = sum(not isinstance(item.record, Placement) for item in self.items)
        return sound + sum(not problem.of_part for problem in self.problems)


def read_items(format_name: str, chunks: Iterable[bytes]) -> Read:
    """The items of a file, one after the other; placements come last. Parents that would form a cycle are problems.

    Raises InvalidInput for a format that cannot be read, and where the rest of the file is unreadable.
    """
    reader = reader_named(format_name)
    return _dated(_placed(reader.read(decoded(chunks, by_line=reader.by_line))))


def read_batches(format_name: str, chunks: Iterable[bytes]) -> Iterator[ImportBatch]:
    """The batches of a file, in order. Raises InvalidInput as `read_items` does."""
    number, filling = 0, _Filling()
    for item in read_items(format_name, chunks):
        size = _bytes(item)
        if not filling.has_room(item, size):
            yield filling.batch(number)
            number, filling = number + 1, _Filling()
        filling.add(item, size)
    if filling.items or filling.problems:
        yield filling.batch(number)


def read_small(
    format_name: str, chunks: Sequence[bytes], *, max_items: int, max_observations: int
) -> Generator[None, None, tuple[list[ParsedRecord], list[ImportProblem]]]:
    """A computation: all items and problems of a file. Raises TooLarge for more items or observations than given."""
    items: list[ParsedRecord] = []
    problems: list[ImportProblem] = []
    observations = 0
    if sum(chunk.count(b"\n") for chunk in chunks) > SMALL_LINES:
        raise TooLarge(f"More than {SMALL_LINES} lines at once. {ELSEWHERE}", code=ErrorCode.REQUEST_TOO_LARGE)
    for number, item in enumerate(read_items(format_name, chunks)):
        if number % SLICE == 0:
            yield
        if isinstance(item, ImportProblem):
            problems.append(item)
        else:
            items.append(item)
            observations += _observations(item)
        if len(items) + len(problems) > max_items or observations > max_observations:
            raise TooLarge(
                f"More than {max_items} entities, facts and relations, or {max_observations} observations, at once. "
                f"{ELSEWHERE}",
                code=ErrorCode.REQUEST_TOO_LARGE,
            )
    return items, problems


def _placed(items: Read) -> Read:
    """The items; a parent that comes after its entity is taken out of it, and follows at the end as a placement.

    A parent that would close a cycle is a problem. This is found here, since only here the whole file passes.
    """
    met: set[int] = set()  # Hashes, since a name may be long.
    above: dict[int, int] = {}
    late: list[tuple[str, Placement]] = []
    for item in items:
        record = item.record if isinstance(item, ParsedRecord) else None
        if isinstance(record, Placement):
            late.append((item.where, record))
            continue
        if isinstance(record, EntityRecord):
            met.add(hash(record.name))
            if record.parent_id is not None:
                where, link = f"{item.where}.parentId", Placement(name=record.name, parent_id=record.parent_id)
                bare = ParsedRecord(item.where, msgspec.structs.replace(record, parent_id=None))
                if hash(link.parent_id) not in met:
                    late.append((where, link))
                    item = bare
                elif not _links(above, link):
                    yield ImportProblem(where, CYCLE, of_part=True)
                    item = bare
        if len(late) > MAX_LATE:
            raise TooLarge(f"The parents of more than {MAX_LATE} entities come after them: put parents first")
        yield item
    for where, link in late:
        yield ParsedRecord(where, link) if _links(above, link) else ImportProblem(where, CYCLE, of_part=True)


def _links(above: dict[int, int], link: Placement) -> bool:
    """Record a parent in `above`, by hashes. Returns False, and records nothing, if it would close a cycle.

    If a name gets several parents, the first counts, as with `skip` and `merge`. So an entity that has a parent never
    gets another one, and its entry in `above` may be replaced by any of its ancestors, which keeps the ways short.
    """
    name, top = hash(link.name), hash(link.parent_id)
    if name in above:
        return True
    while top in above:
        above[top] = above.get(above[top], above[top])
        top = above[top]
    if top == name:
        return False
    above[name] = top
    return True


def _dated(items: Read) -> Read:
    """The items, each with the moment until which there is what it refers to, as far as the file told before it."""
    expiring = ExpiringRecords()
    for item in items:
        if isinstance(item, ParsedRecord):
            expiring.note(item.record)
            yield expiring.dated(item)
        else:
            yield item


@dataclass(slots=True)
class _Filling:
    items: list[ParsedRecord]
    problems: list[ImportProblem]
    observations: int
    held: int

    def __init__(self) -> None:
        self.items, self.problems, self.observations, self.held = [], [], 0, 0

    def has_room(self, item: ParsedRecord | ImportProblem, size: int) -> bool:
        if isinstance(item, ImportProblem):
            return len(self.problems) < BATCH_ITEMS
        return not self.items or (
            len(self.items) < BATCH_ITEMS
            and self.observations + _observations(item) <= BATCH_OBSERVATIONS
            and self.held + size <= BATCH_BYTES
        )

    def add(self, item: ParsedRecord | ImportProblem, size: int) -> None:
        if isinstance(item, ImportProblem):
            self.problems.append(item)
            return
        self.items.append(item)
        self.observations += _observations(item)
        self.held += size

    def batch(self, number: int) -> ImportBatch:
        return ImportBatch(number, tuple(self.items), tuple(self.problems))


def _observations(item: ParsedRecord) -> int:
    return len(item.record.observations) if isinstance(item.record, EntityRecord) else 0


def _bytes(item: ParsedRecord | ImportProblem) -> int:
    return len(msgspec.json.encode(item.record)) if isinstance(item, ParsedRecord) else 0
