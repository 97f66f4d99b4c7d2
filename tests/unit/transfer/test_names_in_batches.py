"""Aliases count as observations do: each is a row of the transaction in which a batch is written."""

import json

import pytest

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness.computing import finish
from recollect.transfer.batches import BATCH_OBSERVATIONS, read_batches, read_small

PER_ENTITY = 150
ENTITIES = 2 * BATCH_OBSERVATIONS // PER_ENTITY


def file() -> bytes:
    entities = [
        {
            "name": f"E {n}",
            "entityType": "thing",
            "observations": [],
            "aliases": [f"{n} {m}" for m in range(PER_ENTITY)],
        }
        for n in range(ENTITIES)
    ]
    return json.dumps({"entities": entities, "relations": []}).encode()


def test_a_batch_has_a_bounded_number_of_names() -> None:
    batches = list(read_batches("json", [file()]))
    assert sum(len(batch.items) for batch in batches) == ENTITIES
    assert all(len(batch.items) * PER_ENTITY <= BATCH_OBSERVATIONS for batch in batches)


def test_a_call_takes_a_bounded_number_of_names() -> None:
    names = ENTITIES * PER_ENTITY
    items, problems = finish(read_small("json", [file()], max_items=1_000, max_observations=names))
    assert (len(items), problems) == (ENTITIES, [])
    with pytest.raises(TooLarge) as refusal:
        finish(read_small("json", [file()], max_items=1_000, max_observations=names - 1))
    assert refusal.value.code is ErrorCode.REQUEST_TOO_LARGE
