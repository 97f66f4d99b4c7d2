"""How many pairs a pass keeps of one entity, however many are similar."""

from collections import Counter
from uuid import uuid4

from recollect.curation.duplicates.deduplication import MAX_PAIRS, pairs_of
from recollect.curation.duplicates.similarity import Profile
from recollect.fairness.computing import finish


def test_an_entity_has_a_bounded_number_of_proposed_pairs() -> None:
    """Of entities that are all equal."""
    profiles = [Profile(uuid4(), "person", "ada", frozenset({1}), frozenset()) for _ in range(3 * MAX_PAIRS)]
    pairs = finish(pairs_of(profiles, range(len(profiles)), 0.9))
    assert set(Counter(pair.node_id for pair in pairs).values()) == {MAX_PAIRS}
