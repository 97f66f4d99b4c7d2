"""The stored state of an export job stays the same across versions: two versions run during an upgrade."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from recollect.transfer.exports import Cursor, Export
from recollect.transfer.formats.writer import Stage
from recollect.transfer.model import ExportSelection, Snapshot

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
STORED_EXPORT = (
    b'{"snapshot":{"graph_id":"00000000-0000-0000-0000-000000000001","revision":7,"at":"2026-11-26T12:00:00Z",'
    b'"entities":1,"facts":2,"placeholders":3,"relations":4},"format":"json",'
    b'"only":{"kind":"note","tags":["a","b"],"since":"2026-11-26T12:00:00Z","until":null}}'
)
EXPORT = Export(
    Snapshot(UUID(int=1), 7, NOON, 1, 2, 3, 4), "json", ExportSelection("note", ("a", "b"), since=NOON, until=None)
)
STORED_CURSOR = b'{"stage":"relations","after":"00000000-0000-0000-0000-000000000009","begun":true}'


def test_the_stored_form_of_an_export_is_frozen() -> None:
    assert msgspec.json.decode(STORED_EXPORT, type=Export) == EXPORT
    assert msgspec.json.encode(EXPORT) == STORED_EXPORT


def test_the_stored_form_of_a_cursor_is_frozen() -> None:
    cursor = Cursor(Stage.RELATIONS, UUID(int=9), begun=True)
    assert msgspec.json.decode(STORED_CURSOR, type=Cursor) == cursor
    assert msgspec.json.encode(cursor) == STORED_CURSOR
