"""A reader notes few expiring records, however long the file is."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.transfer import expired
from recollect.transfer.expired import SAFE_REMAINING_LIFE, ExpiringRecords
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.records import FactKey, FactRecord, RelationRecord

PAST = datetime.now(UTC) - timedelta(days=1)


def until(expiring: ExpiringRecords, text: str) -> datetime | None:
    """When the fact that a relation refers to expires, as far as is known."""
    relation = RelationRecord(from_=FactKey(text=text), to="Ada", relation_type="knows")
    return expiring.with_expiry(ParsedRecord("relations.0", relation)).until


def test_a_record_that_expires_much_later_is_not_noted() -> None:
    expiring = ExpiringRecords()
    for text, ends in (("over", PAST), ("later", datetime.now(UTC) + 2 * SAFE_REMAINING_LIFE), ("never", None)):
        expiring.note(FactRecord(text=text, expires_at=ends))
    assert [until(expiring, text) for text in ("over", "later", "never")] == [PAST, None, None]
    expiring.note(FactRecord(text="over"))
    assert expiring.ends == {}


def test_the_number_of_noted_records_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expired, "MAX_NOTED", 2)
    expiring = ExpiringRecords()
    for text in ("a", "b", "c", "a"):
        expiring.note(FactRecord(text=text, expires_at=PAST))
    assert [until(expiring, text) for text in ("a", "b", "c")] == [PAST, PAST, None]
