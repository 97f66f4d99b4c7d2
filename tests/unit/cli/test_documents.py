"""Documents as passages, and as records to import."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import docx
import openpyxl
import pptx
import pytest

from recollect.errors import InvalidInput
from recollect.transfer.batches import read_batches
from recollect.transfer.records import EntityRecord, RelationRecord
from recollect_cli import import_sources
from recollect_cli.documents import reading
from recollect_cli.documents.markdown import read_markdown, read_text
from recollect_cli.documents.model import LONGEST_PASSAGE, Document, Passage
from recollect_cli.documents.reading import UnreadFile, find_files, read_document
from recollect_cli.documents.records import LinkTargets, write_records
from recollect_cli.import_sources import import_source
from tests.support.pdf import pdf_of


def written(root: Path) -> dict[str, Any]:
    """The records of a folder, as the gateway reads them."""
    files, target = find_files(root), BytesIO()
    documents = [(file, document) for file in files if isinstance(document := read_document(file), Document)]
    write_records(target, documents, LinkTargets(files))
    batches = list(read_batches("json", [target.getvalue()]))
    assert not [problem for batch in batches for problem in batch.problems]
    records = [item.record for batch in batches for item in batch.items]
    return {
        "entities": {record.name: record for record in records if isinstance(record, EntityRecord)},
        "links": {(str(r.from_), r.relation_type, str(r.to)) for r in records if isinstance(r, RelationRecord)},
    }


class TestMarkdown:
    def test_headings_are_context_and_front_matter_is_metadata(self) -> None:
        document = read_markdown(
            "---\ntitle: Alpha\ntags: [work, '#pier']\nday: 2027-01-31\n---\nBefore.\n\n# Setup\n\nUse it.\n\n"
            "## Database\n\n- one\n- two\n\n```\n# no heading\n```\n\n# End\n\nlast\n"
        )
        assert [passage.text_under_headings for passage in document.passages] == [
            "Before.",
            "Setup: Use it.",
            "Setup › Database: - one\n- two\n\n```\n# no heading\n```",
            "End: last",
        ]
        assert [passage.anchor for passage in document.passages] == ["", "#Setup", "#Database", "#End"]
        assert (document.title, document.tags, document.metadata) == ("Alpha", ["work", "pier"], {"day": "2027-01-31"})

    def test_what_is_no_front_matter_is_text(self, subtests: pytest.Subtests) -> None:
        bomb = "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]"
        for front in ("- a list", "a: [", "!!python/object:os.system {}", bomb, "x" * 100):
            with subtests.test(front=front):
                document = read_markdown(f"---\n{front}\n---\n\ntext\n")
                assert document.metadata == {}
                assert document.passages[-1].text.endswith("text")

    def test_links_are_those_to_other_documents(self) -> None:
        text = "[[Beta]] [[Gamma#Part|the third]] [d](../d.md#x) [e](e%20f.md) [w](https://a.example/x.md) [h](#top)"
        assert read_markdown(text).links == ["Beta", "Gamma", "../d.md", "e f.md"]

    def test_a_long_block_is_cut_between_words_and_loses_nothing(self) -> None:
        words = "word " * 1_000
        passages = read_text(f"{words}\n\nshort").passages
        assert all(len(passage.text) <= LONGEST_PASSAGE for passage in passages)
        assert " ".join(passage.text for passage in passages).split() == [*words.split(), "short"]

    def test_long_headings_leave_room_for_the_text(self) -> None:
        assert Passage("text", ("x" * 500, "y" * 500)).text_under_headings.endswith("y: text")
        assert len(Passage("text", ("x" * 500, "y" * 500)).text_under_headings) < 250


class TestFolders:
    def test_documents_become_entities_with_their_links(self, tmp_path: Path) -> None:
        (tmp_path / "notes" / "deep").mkdir(parents=True)
        (tmp_path / ".hidden").mkdir()
        (tmp_path / ".hidden" / "x.md").write_text("secret")
        (tmp_path / "outside").symlink_to("/")
        (tmp_path / "notes" / "alpha.md").write_text(
            "# A\n\nSee [[beta]], [[Nobody]], [up](../top.txt), [gone](gone.md), [out](../../x.md)\n\n[[alpha]]"
        )
        (tmp_path / "notes" / "deep" / "beta.md").write_text("Beta.\n\nBeta.")
        (tmp_path / "top.txt").write_text("Top")
        (tmp_path / "top.md").write_text("The other top")
        (tmp_path / "empty.md").write_text("")
        (tmp_path / "picture.png").write_bytes(b"x")
        found = written(tmp_path)
        assert sorted(found["entities"]) == ["notes/alpha", "notes/deep/beta", "top.md", "top.txt"]
        beta = found["entities"]["notes/deep/beta"]
        assert (beta.entity_type, beta.source, beta.metadata) == (
            "document",
            "notes/deep/beta.md",
            {"path": "notes/deep/beta.md"},
        )
        assert {said.source for said in found["entities"]["notes/alpha"].said} == {"notes/alpha.md#A"}
        assert {said.thread for said in found["entities"]["notes/alpha"].said} == {"notes/alpha.md"}
        assert found["links"] == {
            ("notes/alpha", "links_to", "notes/deep/beta"),
            ("notes/alpha", "links_to", "Nobody"),
            ("notes/alpha", "links_to", "top.txt"),
        }

    def test_what_cannot_be_read_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "LARGEST_FILE", 1_000)
        (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
        (tmp_path / "large.txt").write_bytes(b"x" * 1_001)
        for suffix in ("pdf", "docx", "pptx", "xlsx"):
            (tmp_path / f"broken.{suffix}").write_bytes(b"no such file format")
        read = {file.relative_path: read_document(file) for file in find_files(tmp_path)}
        assert len(read) == 6
        assert all(isinstance(document, UnreadFile) and document.reason for document in read.values())

    def test_a_missing_reader_says_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a.pdf").write_bytes(b"x")

        def missing(name: str) -> None:
            raise ModuleNotFoundError(name)

        monkeypatch.setattr(reading, "import_module", missing)
        [file] = find_files(tmp_path)
        document = read_document(file)
        assert isinstance(document, UnreadFile)
        assert 'pip install "recollect-memory[documents]"' in document.reason

    def test_a_folder_without_documents_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="no documents"):
            find_files(tmp_path)


class TestOtherFormats:
    def test_pdf_tells_the_page(self, tmp_path: Path) -> None:
        (tmp_path / "manual.pdf").write_bytes(pdf_of("The north pier", "The south pier"))
        [manual] = written(tmp_path)["entities"].values()
        assert manual.observations == ["The north pier", "The south pier"]
        assert [said.source for said in manual.said] == ["manual.pdf p. 1", "manual.pdf p. 2"]

    def test_word_tells_the_heading(self, tmp_path: Path) -> None:
        document = docx.Document()
        document.add_heading("Piers", 1)
        document.add_paragraph("There are two.")
        document.add_heading("North", 2)
        table = document.add_table(1, 2)
        table.rows[0].cells[0].text, table.rows[0].cells[1].text = "length", "40 m"
        document.save(str(tmp_path / "piers.docx"))
        [piers] = written(tmp_path)["entities"].values()
        assert piers.observations == ["Piers: There are two.", "Piers › North: length | 40 m"]
        assert [said.source for said in piers.said] == ["piers.docx#Piers", "piers.docx#North"]

    def test_powerpoint_tells_the_slide(self, tmp_path: Path) -> None:
        presentation = pptx.Presentation()
        for text in ("The north pier", "The south pier"):
            slide = presentation.slides.add_slide(presentation.slide_layouts[5])
            slide.shapes.title.text = text
        slide.notes_slide.notes_text_frame.text = "is shorter"
        presentation.save(str(tmp_path / "piers.pptx"))
        [piers] = written(tmp_path)["entities"].values()
        assert piers.observations == ["The north pier", "The south pier\n\nis shorter"]
        assert [said.source for said in piers.said] == ["piers.pptx slide 1", "piers.pptx slide 2"]

    def test_excel_tells_the_columns(self, tmp_path: Path) -> None:
        book = openpyxl.Workbook()
        book.active.title = "Piers"
        for row in (["name", "length"], ["north", 40], [None, None], ["south", None]):
            book.active.append(row)
        book.save(tmp_path / "piers.xlsx")
        [piers] = written(tmp_path)["entities"].values()
        assert piers.observations == ["Piers: name: north; length: 40\n\nname: south"]


class TestArchives:
    @staticmethod
    def archive(path: Path, **members: Any) -> str:
        with ZipFile(path, "w") as target:
            for name, value in members.items():
                target.writestr(f"{name.replace('_', '-')}.json", json.dumps(value))
        return str(path)

    def test_conversations_are_found_and_told_apart(self, tmp_path: Path) -> None:
        claude = self.archive(tmp_path / "a.zip", users=[], conversations=[{"uuid": "u", "chat_messages": []}])
        with import_source(claude, None, lambda: "jsonl") as source:
            assert (source.format, json.loads(source.content.read())[0]["uuid"]) == ("claude", "u")

    def test_several_lists_are_one(self, tmp_path: Path) -> None:
        chats = [[{"id": str(n), "mapping": {}}] for n in range(3)]
        lists = {"conversations_000": chats[0], "conversations_001": chats[1], "conversations_002": []}
        with import_source(
            self.archive(tmp_path / "a.zip", **lists, conversations_003=chats[2]), None, lambda: "jsonl"
        ) as source:
            assert source.format == "chatgpt"
            assert [chat["id"] for chat in json.loads(source.content.read())] == ["0", "1", "2"]

    def test_what_unpacks_to_too_much_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(import_sources, "LARGEST_ARCHIVE", 10)
        archive = self.archive(tmp_path / "a.zip", conversations=[{"uuid": "u", "chat_messages": []}])
        with pytest.raises(InvalidInput, match="more than"), import_source(archive, None, lambda: "jsonl"):
            pass

    def test_other_archives_are_refused(self, tmp_path: Path, subtests: pytest.Subtests) -> None:
        broken = tmp_path / "broken.zip"
        broken.write_bytes(b"PK\x03\x04 and no more")
        for file in (
            str(broken),
            self.archive(tmp_path / "none.zip", other=[]),
            self.archive(tmp_path / "unknown.zip", conversations=[{"x": 1}]),
        ):
            with (
                subtests.test(file=file),
                pytest.raises(InvalidInput, match=r"archive|conversations"),
                import_source(file, None, lambda: "jsonl"),
            ):
                pass
