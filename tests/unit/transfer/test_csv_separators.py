"""An exported CSV file in spreadsheets that separate cells by another character: no cell of theirs is a formula."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.transfer.batches import read_items
from recollect.transfer.formats.csv_files import CsvWriter, guarded, unguarded
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage
from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord
from tests.support.examples import examples

DELIMITERS = ",;\t|"

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")
"""A formula, for a spreadsheet that drops white space before it."""

CALL = "=cmd|' /C calc'!A0"

texts = st.text(";|\t\r\n\"' =+-@＝,\\[a1\u00a0\x0b", min_size=1, max_size=12)


def graph_of(text: str) -> tuple[EntityRecord, FactRecord, RelationRecord]:
    """A graph that has the text in each of its free cells, some of which it begins."""
    said, shown = [text, f"x{text}"], f"x{text}"
    entity = EntityRecord(f"e{text}", f"p{text}", said, tags=[shown], text=f"{text}y", summary=f"{text}y")
    fact = FactRecord(f"{text}f", kind=f"k{text}", metadata={text: text}, source=f"{text}y")
    return entity, fact, RelationRecord(f"e{text}", f"{text}b", f"r{text}", metadata={"a": text}, ordinal=-1)


def file_of(text: str) -> str:
    """An export of that graph."""
    entity, fact, relation = graph_of(text)
    return exported([entity], [fact], [relation])


def exported(entities: Sequence[EntityRecord], facts: Sequence[FactRecord], relations: Sequence[RelationRecord]) -> str:
    writer, nobody = CsvWriter(), UUID(int=0)
    return "".join(
        [
            writer.opening(Stage.ENTITIES),
            writer.nodes([ExportedNode(nobody, each.name, each) for each in entities], first=True),
            writer.opening(Stage.FACTS),
            writer.nodes([ExportedNode(nobody, None, each) for each in facts], first=True),
            writer.opening(Stage.RELATIONS),
            writer.edges([ExportedEdge(nobody, nobody, nobody, each) for each in relations], first=True),
        ]
    )


def cells(text: str) -> Iterator[str]:
    """Every cell of a file, by every separator."""
    for delimiter in DELIMITERS:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            yield from row


def formulas(text: str) -> list[str]:
    return [cell for cell in cells(text) if FORMULA.match(cell)]


@pytest.mark.proves("security: export-formulas")
def test_a_spreadsheet_of_another_separator_finds_no_formula(subtests: pytest.Subtests) -> None:
    for before in (";", "\t", "|", "\n", "\r\n", "; ", ';"', ';"\u00a0', ";;", "|;\t"):
        with subtests.test(before):
            text = file_of(f"a{before}{CALL}")
            assert formulas(text) == []
            assert f"a{before}=" not in text


def test_a_cell_that_another_separator_would_cut_is_quoted(subtests: pytest.Subtests) -> None:
    for separator in (",", ";", "\t", "|", "\n", "\r"):
        with subtests.test(separator):
            assert f'\n"a{separator}b",p,' in exported([EntityRecord(f"a{separator}b", "p", [])], [], [])
    assert "\na b,p," in exported([EntityRecord("a b", "p", [])], [], [])


@pytest.mark.proves("security: export-formulas")
@given(text=texts)
@examples(500)
@example(text="\t=1")
@example(text=";'=1;''=1;=1")
@example(text=';"";"=1')
def test_no_text_is_a_formula_in_any_of_them_and_the_same_graph_is_read_back(text: str) -> None:
    assert formulas(file_of(text)) == []
    read = list(read_items("csv", [file_of(text).encode()]))
    assert [item.record if isinstance(item, ParsedRecord) else item for item in read] == list(graph_of(text))


@given(cell=texts)
@examples(1000)
@example(cell=";'=1;''=1;=1'")
@example(cell="';=1")
@example(cell="\t'\t''=1")
def test_the_guard_can_be_removed(cell: str) -> None:
    assert unguarded(guarded(cell)) == cell
    assert unguarded(guarded(guarded(cell))) == guarded(cell)


def test_what_is_no_formula_stays_as_it_is(subtests: pytest.Subtests) -> None:
    for cell in ("a; b", "a-b", "x;y=1", "it's", "a;'b'", "1;2", "a\nb", "tel|x"):
        with subtests.test(cell):
            assert guarded(cell) == cell
            assert unguarded(cell) == cell
