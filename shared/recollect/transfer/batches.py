"""A file of any format and size in bounded batches; each is written in one revision.

Each reading of a file gives the same batches: an import that was interrupted reads it again and skips the batches that
it had written. Memory holds one batch, and hashes of the names that were read.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from recollect.accounts.identity.pasted_secrets import REASON, secrets_in
from recollect.errors import ErrorCode, TooLarge
from recollect.transfer.expired import ExpiringRecords
from recollect.transfer.formats import reader_named
from recollect.transfer.formats.decoding import ParsedRecord, Read, decoded
from recollect.transfer.model import CYCLE, TOO_LARGE_ADVICE, ImportProblem
from recollect.transfer.records import EntityRecord, Placement

BATCH_ITEMS = 500
BATCH_OBSERVATIONS = 2_000
BATCH_BYTES = 1024 * 1024
"""The most that a batch holds, as JSON; it always holds one item. A batch is one transaction, for which the other
writers of the graph wait. An entity with more observations or aliases comes in parts."""

SMALL_LINES = 100_000
"""Most lines of a file that one call reads: many more than items, since an item may have several lines."""

SLICE = 50
"""Items that are read before other computations get a turn."""

MAX_LATE = 100_000
"""Most entities of one file whose parents come after them: they are kept until the end."""


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Items to write in one revision, and the problems found among them. `number` counts from 0."""

    number: int
    items: tuple[ParsedRecord, ...]
    problems: tuple[ImportProblem, ...]

    @property
    def read(self) -> int:
        """How many entities, facts and relations of the file it has, broken ones too.

        A placement is none of these, and of an entity that comes in parts, only the first counts.
        """
        sound = sum(not isinstance(item.record, Placement) and not item.continues for item in self.items)
        return sound + sum(not problem.of_part for problem in self.problems)


def read_items(format_name: str, chunks: Iterable[bytes]) -> Read:
    """The items of a file, one after the other; placements come last. Parents that would form a cycle are problems.

    Raises InvalidInput for a format that cannot be read, and if the rest of the file is unreadable.
    """
    reader = reader_named(format_name)
    items = _without_secrets(reader.read(decoded(chunks, by_line=reader.by_line)))
    return _with_expiries(_with_late_parents(items))


def read_batches(format_name: str, chunks: Iterable[bytes], *, in_parts: bool = True) -> Iterator[ImportBatch]:
    """The batches of a file, in order. Raises InvalidInput as `read_items` does.

    `in_parts`: an entity with more observations or aliases than a batch holds comes in parts; else it is a batch by
    itself.
    """
    number, builder = 0, _BatchBuilder()
    items = read_items(format_name, chunks)
    for item in _in_parts(items) if in_parts else items:
        size = _bytes(item)
        if not builder.has_room(item, size):
            yield builder.batch(number)
            number, builder = number + 1, _BatchBuilder()
        builder.add(item, size)
    if builder.items or builder.problems:
        yield builder.batch(number)


def read_small(
    format_name: str, chunks: Sequence[bytes], *, max_items: int, max_observations: int
) -> Generator[None, None, tuple[list[ParsedRecord], list[ImportProblem]]]:
    """A computation: all items and problems of a file.

    Raises TooLarge for more items, or observations with aliases, than given.
    """
    items: list[ParsedRecord] = []
    problems: list[ImportProblem] = []
    observations = 0
    if sum(chunk.count(b"\n") for chunk in chunks) > SMALL_LINES:
        raise TooLarge(f"More than {SMALL_LINES} lines at once. {TOO_LARGE_ADVICE}", code=ErrorCode.REQUEST_TOO_LARGE)
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
                f"More than {max_items} entities, facts and relations, or {max_observations} observations and other "
                f"names, at once. {TOO_LARGE_ADVICE}",
                code=ErrorCode.REQUEST_TOO_LARGE,
            )
    return items, problems


def _in_parts(items: Read) -> Read:
    """The items; an entity with more observations or aliases than a batch holds as parts, each with so many of them."""
    for item in items:
        if isinstance(item, ParsedRecord) and isinstance(item.record, EntityRecord):
            yield from _parts_of(item, item.record)
        else:
            yield item


def _parts_of(item: ParsedRecord, record: EntityRecord) -> Read:
    """The entity with its first aliases and observations, and then records of the same name with the others.

    All aliases come before the observations, whose passages have words of them.
    """
    names, texts = _slices(record.aliases), _slices(record.observations)
    if len(names) == len(texts) == 1:
        yield item
        return
    if len(names) > 1:
        texts = [slice(0), *texts]
    first, said = texts[0], record.said
    yield replace(
        item,
        record=msgspec.structs.replace(
            record, aliases=record.aliases[names[0]], observations=record.observations[first], said=said[first]
        ),
    )
    bare = EntityRecord(
        name=record.name,
        entity_type=record.entity_type,
        observations=[],
        status=record.status,
        expires_at=record.expires_at,
    )
    rest = [msgspec.structs.replace(bare, aliases=record.aliases[part]) for part in names[1:]]
    rest += [msgspec.structs.replace(bare, observations=record.observations[p], said=said[p]) for p in texts[1:]]
    for later in rest:
        yield replace(item, record=later, continues=True)


def _slices(texts: Sequence[str]) -> list[slice]:
    """Where to cut texts, so that no part has more of them, or of their characters, than a batch holds."""
    starts = [0]
    size = 0
    for index, text in enumerate(texts):
        size += len(text)
        if index - starts[-1] >= BATCH_OBSERVATIONS or (size > BATCH_BYTES and index > starts[-1]):
            starts.append(index)
            size = len(text)
    return [slice(start, end) for start, end in pairwise([*starts, len(texts)])]


def _without_secrets(items: Read) -> Read:
    """The items; a problem in place of one that holds a key or a token of this service."""
    for item in items:
        if isinstance(item, ParsedRecord) and any(secrets_in(msgspec.to_builtins(item.record))):
            yield ImportProblem(item.where, REASON)
        else:
            yield item


def _with_late_parents(items: Read) -> Read:
    """The items; a parent that comes after its entity is taken out of it, and follows at the end as a placement.

    A parent that would close a cycle is a problem. It is found here, because no other function sees the whole file.
    """
    seen: set[int] = set()  # Hashes, since a name may be long.
    parents: dict[int, int] = {}
    late: list[tuple[str, Placement]] = []
    for item in items:
        record = item.record if isinstance(item, ParsedRecord) else None
        if isinstance(record, Placement):
            late.append((item.where, record))
            continue
        if isinstance(record, EntityRecord):
            seen.add(hash(record.name))
            if record.parent_id is not None:
                where, link = f"{item.where}.parentId", Placement(name=record.name, parent_id=record.parent_id)
                orphan = ParsedRecord(item.where, msgspec.structs.replace(record, parent_id=None))
                if hash(link.parent_id) not in seen:
                    late.append((where, link))
                    item = orphan
                elif not _add_link(parents, link):
                    yield ImportProblem(where, CYCLE, of_part=True)
                    item = orphan
        if len(late) > MAX_LATE:
            raise TooLarge(f"More than {MAX_LATE} entities come before their parents: put parents first")
        yield item
    for where, link in late:
        yield ParsedRecord(where, link) if _add_link(parents, link) else ImportProblem(where, CYCLE, of_part=True)


def _add_link(parents: dict[int, int], link: Placement) -> bool:
    """Record a parent in `parents`, by hashes. Returns False, and records nothing, if it would close a cycle.

    If a name gets several parents, the first counts, as with `skip` and `merge`. So an entity that has a parent never
    gets another one, and its entry in `parents` may be replaced by any of its ancestors, which keeps the paths short.
    """
    name, top = hash(link.name), hash(link.parent_id)
    if name in parents:
        return True
    while top in parents:
        parents[top] = parents.get(parents[top], parents[top])
        top = parents[top]
    if top == name:
        return False
    parents[name] = top
    return True


def _with_expiries(items: Read) -> Read:
    """The items, each with the earliest expiry of the items before it to which it refers."""
    expiring = ExpiringRecords()
    for item in items:
        if isinstance(item, ParsedRecord):
            expiring.note(item.record)
            yield expiring.with_expiry(item)
        else:
            yield item


@dataclass(slots=True)
class _BatchBuilder:
    items: list[ParsedRecord]
    problems: list[ImportProblem]
    observations: int
    size: int

    def __init__(self) -> None:
        self.items, self.problems, self.observations, self.size = [], [], 0, 0

    def has_room(self, item: ParsedRecord | ImportProblem, size: int) -> bool:
        if isinstance(item, ImportProblem):
            return len(self.problems) < BATCH_ITEMS
        return not self.items or (
            len(self.items) < BATCH_ITEMS
            and self.observations + _observations(item) <= BATCH_OBSERVATIONS
            and self.size + size <= BATCH_BYTES
        )

    def add(self, item: ParsedRecord | ImportProblem, size: int) -> None:
        if isinstance(item, ImportProblem):
            self.problems.append(item)
            return
        self.items.append(item)
        self.observations += _observations(item)
        self.size += size

    def batch(self, number: int) -> ImportBatch:
        return ImportBatch(number, tuple(self.items), tuple(self.problems))


def _observations(item: ParsedRecord) -> int:
    """The observations of an item, and its aliases, each of which is a row, too."""
    record = item.record
    return len(record.observations) + len(record.aliases) if isinstance(record, EntityRecord) else 0


def _bytes(item: ParsedRecord | ImportProblem) -> int:
    return len(msgspec.json.encode(item.record)) if isinstance(item, ParsedRecord) else 0
