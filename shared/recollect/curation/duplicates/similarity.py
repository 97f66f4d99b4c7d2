"""How similar two entities of one type are, and which pairs of many can be similar enough.

The weights are those of the enhanced memory server: 0.4 for the name (1 - Levenshtein distance / length of the longer),
0.3 for the type, 0.2 for the observations and 0.1 for the tags (Jaccard). All texts are compared in lower case. If
neither entity has observations, or tags, that part counts 0.

Not every pair is compared. A *rare* statement is one that few entities share. If two entities have no rare statement in
common, the common ones bound the similarity of their observations, and their names must make up for the rest: for most
entities no name can, or only an equal one. So candidates are found by rare statements, by equal names and, if that is
not enough, by names of a suitable length (only among entities with a tag in common, if they need that). All names are
compared only if all entities have the same statements and the threshold is low (rapidfuzz: 50,000,000 pairs a second).
No pair that reaches the threshold is missed: a test compares the result with that of a full comparison.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from recollect.curation.dismissals.model import NONE_DISMISSED, Dismissed

NAME, KIND, STATEMENTS, TAGS = 0.4, 0.3, 0.2, 0.1
"""The weights. Every pair has that of the type, since only entities of one type are compared."""

COMMON_ABOVE = 32
"""A statement that more entities of a type have is common."""

MAX_UNEQUAL_SIMILARITY = 1 - 1 / 512
"""Names have 512 characters at most: two that are not equal are less similar than this."""

AT_ONCE = 64
"""Names that are compared with all others at once."""

CHUNK = 256
"""Entities whose candidates are looked for together."""

SHORT = 16
"""Characters: comparing shorter names takes as long as comparing names of this length."""

MAX_WORK = 200_000_000
"""In one slice, the characters of one side times those of the other: 20 ms."""

ROUNDING = 1e-6
"""By rounding, a sum of weighted parts may be this much below a threshold that it should reach."""

Indexes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Profile:
    """The fields by which an entity is compared, in lower case; statements are 64-bit hashes of their texts."""

    id: UUID
    kind: str
    name: str
    statements: frozenset[int]
    tags: frozenset[str]


def similarity(first: Profile, second: Profile, *, least: float = 0.0) -> float:
    """How similar two entities of one type are, 0.3 to 1; for less than `least` it may return 0."""
    rest = KIND + STATEMENTS * jaccard(first.statements, second.statements) + TAGS * jaccard(first.tags, second.tags)
    if rest + NAME < least - ROUNDING:
        return 0.0
    return rest + NAME * Levenshtein.normalized_similarity(first.name, second.name)


def jaccard(first: frozenset[int] | frozenset[str], second: frozenset[int] | frozenset[str]) -> float:
    """The size of the intersection divided by that of the union; 0 for two empty sets."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two entities and their similarity; `node_id`: the entity whose candidates were compared."""

    node_id: UUID
    other_id: UUID
    likeness: float


class DuplicateFinder:
    """Finds the similar entities among entities of one type. `threshold`: 0 to 1.

    Its methods are computations: they yield between slices of a few milliseconds.
    """

    def __init__(self, profiles: Sequence[Profile], threshold: float) -> None:
        self.profiles, self.threshold = profiles, threshold
        self._is_prepared = False
        self._postings: dict[int, list[int]] = {}
        self._namesakes: dict[str, list[int]] = {}
        self._needs, self._lengths = np.empty(0), np.empty(0, dtype=np.intp)
        self._pools: dict[str | None, Indexes] = {}

    def alike(
        self, indexes: Sequence[int], *, most: int | None = None
    ) -> Generator[None, None, list[tuple[int, list[tuple[int, float]]]]]:
        """For each of these entities, in order: the others that reach the threshold, with their similarities.

        `most`: bound of the candidates that have nothing but a similar name in common; the nearest names come first.
        """
        found = []
        for start in range(0, len(indexes), CHUNK):
            chunk = indexes[start : start + CHUNK]
            near = yield from self.near_names(chunk, most=most)
            for index in chunk:
                found.append((index, (yield from self._reaching(index, sorted(self.candidates(index, near))))))
        return found

    def groups(self, dismissed: Dismissed = NONE_DISMISSED) -> Generator[None, None, list[list[int]]]:
        """Groups of similar entities: the first one, then each later one that is similar to it and in no group yet.

        No group has a pair that is `dismissed`.
        """
        groups, taken = [], np.zeros(len(self.profiles), dtype=bool)
        for start in range(0, len(self.profiles), CHUNK):
            free = [index for index in range(start, min(start + CHUNK, len(taken))) if not taken[index]]
            near = yield from self.near_names(free)
            for index in free:
                if taken[index]:
                    continue
                later = [c for c in sorted(self.candidates(index, near)) if c > index and not taken[c]]
                reaching = yield from self._reaching(index, later)
                indexes = {self.profiles[each].id: each for each in (index, *(other for other, _ in reaching))}
                group = [indexes[node] for node in without_dismissed(indexes, dismissed)]
                if len(group) > 1:
                    groups.append(group)
                    taken[groups[-1]] = True
            self._pools = {tag: pool[~taken[pool]] for tag, pool in self._pools.items()}
        return groups

    def candidates(self, index: int, near: Mapping[int, Sequence[Indexes]]) -> set[int]:
        """Every other entity that may reach the threshold, and some that do not; `near` is from `near_names`."""
        profile = self.profiles[index]
        found = {i for statement in profile.statements for i in self._postings.get(statement, ())}
        if self._needs[index] <= 1:
            found.update(self._namesakes[profile.name])
        for others in near.get(index, ()):
            found.update(others.tolist())
        found.discard(index)
        return found

    def near_names(
        self, indexes: Sequence[int], *, most: int | None = None
    ) -> Generator[None, None, dict[int, list[Indexes]]]:
        """For each position, the others whose names are as similar as both entities need, one array a pool."""
        yield from self._prepare()
        seekers_by_pool: dict[str | None, list[int]] = {}
        for index in indexes:
            if self._needs[index] < MAX_UNEQUAL_SIMILARITY:
                for pool in self._pools_of(index):
                    seekers_by_pool.setdefault(pool, []).append(index)
        found: dict[int, list[Indexes]] = {}
        for pool, seekers in seekers_by_pool.items():
            seekers.sort(key=lambda index: int(self._lengths[index]))
            for start in range(0, len(seekers), AT_ONCE):
                rows = np.array(seekers[start : start + AT_ONCE])
                nearest = yield from self._near_in(self._of_length(self._pools[pool], rows), rows, most)
                for index, near in zip(rows.tolist(), nearest, strict=True):
                    found.setdefault(index, []).append(near)
        return found

    def reaches(self, score: float) -> bool:
        """Whether a similarity reaches the threshold."""
        return score >= self.threshold - ROUNDING

    def _prepare(self) -> Generator[None, None, None]:
        """Index entities by their rare statements and their names, once."""
        if self._is_prepared:
            return
        uses: Counter[int] = Counter()
        for index, profile in enumerate(self.profiles):
            uses.update(profile.statements)
            if index % CHUNK == 0:
                yield
        needs = []
        for index, profile in enumerate(self.profiles):
            for statement in profile.statements:
                if 1 < uses[statement] <= COMMON_ABOVE:
                    self._postings.setdefault(statement, []).append(index)
            needs.append(self._need(profile, uses))
            if needs[-1] <= 1:
                self._namesakes.setdefault(profile.name, []).append(index)
            if index % CHUNK == 0:
                yield
        self._needs, self._lengths = np.array(needs), np.array([len(profile.name) for profile in self.profiles])
        loose = np.flatnonzero(self._needs < MAX_UNEQUAL_SIMILARITY)
        self._pools = self._pooled(loose[np.argsort(self._lengths[loose], kind="stable")])
        self._is_prepared = True

    def _reaching(self, index: int, others: Sequence[int]) -> Generator[None, None, list[tuple[int, float]]]:
        """The others that reach the threshold, with their similarities, in the same order."""
        found, profile = [], self.profiles[index]
        for number, other in enumerate(others, start=1):
            score = similarity(profile, self.profiles[other], least=self.threshold)
            if self.reaches(score):
                found.append((other, score))
            if number % CHUNK == 0:
                yield
        yield
        return found

    def _need(self, profile: Profile, uses: Counter[int]) -> float:
        """The least similarity of names that a pair without a common rare statement needs; above 1: none is enough."""
        common = sum(uses[statement] > COMMON_ABOVE for statement in profile.statements)
        most = KIND + STATEMENTS * (common / len(profile.statements) if common else 0) + TAGS * bool(profile.tags)
        return (self.threshold - most - ROUNDING) / NAME

    def _pooled(self, loose: Indexes) -> dict[str | None, Indexes]:
        """The entities that a different name may make similar to others: all (None), and those of each tag."""
        by_tag: dict[str, list[int]] = {}
        for index in loose.tolist():
            for tag in self.profiles[index].tags:
                by_tag.setdefault(tag, []).append(index)
        return {None: loose, **{tag: np.array(indexes) for tag, indexes in by_tag.items()}}

    def _pools_of(self, index: int) -> Iterable[str | None]:
        """The pools to search: those of its tags if it needs a tag in common, else all."""
        tags = self.profiles[index].tags
        return tags if tags and self._needs[index] + TAGS / NAME >= MAX_UNEQUAL_SIMILARITY else (None,)

    def _near_in(self, others: Indexes, rows: Indexes, most: int | None) -> Generator[None, None, list[Indexes]]:
        """For each of `rows`, those of `others` (sorted by length) with similar enough names, at most `most`."""
        near: list[list[Indexes]] = [[others[:0]] for _ in rows]
        scores: list[list[NDArray[np.float32]]] = [[np.empty(0, np.float32)] for _ in rows]
        longest = self._lengths[others[-1]] if len(others) else 0
        work = int(np.maximum(self._lengths[rows], SHORT).sum()) * max(int(longest), SHORT)
        at_once = max(MAX_WORK // work, 1)
        for start in range(0, len(others), at_once):
            chunk = others[start : start + at_once]
            likeness = self._name_likeness(rows, chunk)
            enough = likeness >= np.maximum(self._needs[rows][:, None], self._needs[chunk][None, :]) - ROUNDING
            for row in range(len(rows)):
                near[row].append(chunk[enough[row]])
                scores[row].append(likeness[row][enough[row]])
            yield
        return [_nearest(np.concatenate(near[row]), np.concatenate(scores[row]), most) for row in range(len(rows))]

    def _of_length(self, pool: Indexes, rows: Indexes) -> Indexes:
        """The entities of a pool whose names are not too short or too long for `rows`; both are sorted by length."""
        need = max(float(self._needs[rows].min()), 0.0)
        lengths = self._lengths[pool]
        shortest, longest = self._lengths[rows[0]] * need, self._lengths[rows[-1]] / need if need else np.inf
        first = np.searchsorted(lengths, shortest - 1)
        return pool[first : np.searchsorted(lengths, longest + 1, side="right")]

    def _name_likeness(self, rows: Indexes, others: Indexes) -> NDArray[np.float32]:
        names = [self.profiles[index].name for index in rows]
        other_names = [self.profiles[index].name for index in others]
        least = max(float(self._needs[rows].min()) - ROUNDING, 0.0)
        return cdist(names, other_names, scorer=Levenshtein.normalized_similarity, score_cutoff=least, dtype=np.float32)


def work_of(profiles: Iterable[Profile]) -> int:
    """The work of comparing these names: comparing two sets takes time in proportion to the product of their work."""
    return sum(max(len(profile.name), SHORT) for profile in profiles)


def _nearest(indexes: Indexes, scores: NDArray[np.float32], most: int | None) -> Indexes:
    return indexes if most is None or len(indexes) <= most else indexes[np.argpartition(scores, -most)[-most:]]


def without_dismissed(group: Iterable[UUID], dismissed: Dismissed) -> list[UUID]:
    """The first of a group, and each later entity that is different from none of those before it."""
    kept = dict[UUID, None]()
    for node in group:
        if kept.keys().isdisjoint(dismissed.get(node, ())):
            kept[node] = None
    return list(kept)


def star_clusters(
    pairs: Sequence[SimilarPair], ages: Mapping[UUID, int], dismissed: Dismissed = NONE_DISMISSED
) -> list[list[UUID]]:
    """Groups of pairs: the oldest entity, then all that are similar to it and in no group yet; none is dismissed."""
    similar: dict[UUID, set[UUID]] = {}
    for pair in pairs:
        similar.setdefault(pair.node_id, set()).add(pair.other_id)
        similar.setdefault(pair.other_id, set()).add(pair.node_id)
    groups, taken = [], set[UUID]()
    for first in sorted(similar, key=ages.__getitem__):
        free = [node for node in sorted(similar[first], key=ages.__getitem__) if node not in taken]
        _, *others = without_dismissed([first, *free], dismissed)
        if first not in taken and others:
            taken.update((first, *others))
            groups.append([first, *others])
    return groups
