"""Of tags and metadata of several nodes, one node has as many as it may."""

import json

import pytest

from recollect.graph.nodes.labelling import (
    MAX_METADATA_BYTES,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    fit_one_node,
    fitting_tags,
    united_metadata,
)
from recollect.transfer.model import UnreadableLine
from recollect.transfer.records import EntityRecord, FactRecord, parsed


def test_the_first_tags_that_fit_stay() -> None:
    for tags in ([f"t{n}" for n in range(MAX_TAGS + 1)], [f"{n:0100}" for n in range(MAX_TAG_CHARACTERS // 100 + 1)]):
        assert not fit_one_node(tags)
        assert fitting_tags(tags) == tuple(tags[:-1])
        assert fit_one_node(tags[:-1])


def test_own_metadata_stays_and_other_fields_as_far_as_they_fit() -> None:
    own, half = {"same": 1, "mine": True}, "x" * (MAX_METADATA_BYTES // 2)
    assert united_metadata(own, [{"same": 2, "first": 1}, {"first": 2, "b": None}]) == {**own, "first": 1, "b": None}
    united = united_metadata(own, [{"one": half}, {"same": 3, "two": half, "small": 1}])
    assert united == {**own, "one": half, "small": 1}
    assert len(json.dumps(united)) <= MAX_METADATA_BYTES
    too_large = {"whole": half * 3}
    assert united_metadata(too_large, [{"more": 1}]) == too_large, "what a node has already is not taken from it"


def test_an_item_of_a_file_with_more_tags_is_a_problem() -> None:
    many, long = [f"t{n}" for n in range(MAX_TAGS + 1)], [f"{n:0120}" for n in range(MAX_TAGS)]
    for tags in (many, long):
        with pytest.raises(UnreadableLine, match=r"^tags: "):
            parsed(FactRecord, {"text": "x", "tags": tags})
        with pytest.raises(UnreadableLine, match=r"^said\.0\.tags: "):
            parsed(EntityRecord, {"name": "x", "entityType": "t", "observations": ["y"], "said": [{"tags": tags}]})
