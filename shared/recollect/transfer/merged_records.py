"""Combine all records of a file about one entity or fact: a file may have several."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any
from uuid import UUID

import msgspec

from recollect.errors import Conflict, ErrorCode
from recollect.graph.nodes.labelling import fitting_tags, united_metadata
from recollect.graph.nodes.model import NodeFields, unique, unique_by
from recollect.times import offset_minutes
from recollect.transfer.expired import earlier
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord, FactRecord, ObservationRecord


@dataclass(slots=True)
class MergedRecord:
    """A name in a file: the record to import, the position where the name came first, and every record of it.

    `until`: the earliest expiry of the items to which these records refer, as far as the file has it.
    """

    where: str
    record: EntityRecord
    records: list[EntityRecord] = field(default_factory=list)
    until: datetime | None = None


def merge_entity_records(items: Sequence[ParsedRecord], strategy: Strategy) -> dict[str, MergedRecord]:
    """The record to import for each name, in order. Raises Conflict under FAIL for a name that comes twice."""
    by_name: dict[str, MergedRecord] = {}
    for item in items:
        assert isinstance(item.record, EntityRecord)
        merged = by_name.setdefault(item.record.name, MergedRecord(item.where, item.record))
        if merged.records and strategy is Strategy.FAIL:
            raise name_taken(item.record.name, item.where)
        merged.records.append(item.record)
        merged.until = earlier(merged.until, item.until)
    for merged in by_name.values():
        if strategy is Strategy.MERGE:
            merged.record = reduce(_merge_two, merged.records)
        elif strategy is Strategy.REPLACE:
            merged.record = merged.records[-1]
    return by_name


def name_taken(name: str, where: str) -> Conflict:
    """The error for a name that another entity already has."""
    return Conflict(f"There is already an entity named {name!r}.", code=ErrorCode.NAME_TAKEN, path=where)


def fields_of(record: EntityRecord | FactRecord, parent_id: UUID | None = None) -> NodeFields:
    """The node fields of the record of an entity or a fact."""
    name, kind = (record.name, record.entity_type) if isinstance(record, EntityRecord) else (None, record.kind)
    return NodeFields(
        name=name,
        kind=kind or None,
        content=record.text,
        summary=record.summary,
        tags=tuple(record.tags),
        importance=record.importance,
        metadata=record.metadata,
        parent_id=parent_id,
        status=record.status,
        source=record.source,
        thread=record.thread,
        said_at=record.at,
        said_offset=None if record.at is None else offset_minutes(record.at),
        freshness_at=record.freshness_at,
        ttl_days=record.ttl_days,
        expires_at=record.expires_at,
        reason=record.reason,
    )


def enriched(fields: NodeFields, others: NodeFields) -> NodeFields:
    """Fields, completed by others: own values stay, tags and metadata are united as far as one node may have them, and
    the greater importance counts."""
    tags = {tag.lower() for tag in fields.tags}
    importances = [i for i in (fields.importance, others.importance) if i is not None]
    return replace(
        fields,
        kind=fields.kind or others.kind,
        content=fields.content or others.content,
        summary=fields.summary or others.summary,
        tags=fitting_tags(
            (*fields.tags, *(tag for tag in unique_by(str.lower, others.tags) if tag.lower() not in tags))
        ),
        importance=max(importances, default=None),
        metadata=united_metadata(fields.metadata, [others.metadata]),
        source=fields.source or others.source,
    )


def merge_fact_records(first: FactRecord, second: FactRecord) -> FactRecord:
    """Combine two records of the same fact."""
    fields = enriched(fields_of(first), fields_of(second))
    return msgspec.structs.replace(first, kind=fields.kind or "", **_shared_fields(fields))


def observation_records(record: EntityRecord) -> Sequence[ObservationRecord]:
    """The attributes of each of an entity's observations, in order."""
    return record.said or [ObservationRecord()] * len(record.observations)


def _merge_two(first: EntityRecord, second: EntityRecord) -> EntityRecord:
    """Combine two records of one name."""
    fields = enriched(fields_of(first), fields_of(second))
    return msgspec.structs.replace(
        first,
        entity_type=fields.kind or "",
        observations=[*first.observations, *second.observations],
        said=[*observation_records(first), *observation_records(second)] if first.said or second.said else [],
        parent_id=first.parent_id or second.parent_id,
        aliases=unique([*first.aliases, *second.aliases]),
        different_from=unique([*first.different_from, *second.different_from]),
        text=fields.content,
        **_shared_fields(fields),
    )


def _shared_fields(fields: NodeFields) -> dict[str, Any]:
    """The fields that records of entities and facts have in common, out of fields that `enriched` combined."""
    return {
        "tags": list(fields.tags),
        "importance": fields.importance,
        "summary": fields.summary,
        "metadata": fields.metadata,
        "source": fields.source,
    }
