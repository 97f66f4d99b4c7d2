"""Word, PowerPoint and Excel files, by python-docx, python-pptx and openpyxl."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
from docx.table import Table

from recollect_cli.documents.model import Document, Passage, gathered

_Block = tuple[tuple[str, ...], str]


def read_word(path: Path) -> Document:
    """The document of a Word file: its paragraphs and tables, under their headings."""
    document = docx.Document(str(path))
    passages = [
        passage
        for headings, blocks in groupby(_word_blocks(document), key=lambda block: block[0])
        for passage in gathered((text for _, text in blocks), headings, f"#{headings[-1]}" if headings else "")
    ]
    return Document(passages, title=document.core_properties.title or None)


def _word_blocks(document: Any) -> Iterator[_Block]:
    headings: list[tuple[int, str]] = []
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            rows = ([cell.text.strip() for cell in row.cells] for row in block.rows)
            yield _names(headings), "\n".join(" | ".join(row) for row in rows)
            continue
        depth = _depth(block.style.name if block.style is not None else "")
        if depth is None:
            yield _names(headings), block.text
        elif block.text.strip():
            headings = [*(heading for heading in headings if heading[0] < depth), (depth, block.text.strip())]


def _names(headings: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name for _, name in headings)


def _depth(style: str) -> int | None:
    """The depth of a heading, by its style; None for other paragraphs."""
    if style == "Title":
        return 0
    depth = style.removeprefix("Heading ")
    return int(depth) if depth != style and depth.isdigit() else None


def read_slides(path: Path) -> Document:
    """The document of a PowerPoint file, slide by slide, with its notes."""
    presentation = pptx.Presentation(str(path))
    passages = [
        passage
        for number, slide in enumerate(presentation.slides, 1)
        for passage in gathered(_slide_texts(slide), (), f" slide {number}")
    ]
    return Document(passages, title=presentation.core_properties.title or None)


def _slide_texts(slide: Any) -> Iterator[str]:
    for shape in slide.shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.has_table:
            yield "\n".join(" | ".join(cell.text for cell in row.cells) for row in shape.table.rows)
    if slide.has_notes_slide:
        yield slide.notes_slide.notes_text_frame.text


def read_sheets(path: Path) -> Document:
    """The document of an Excel file: each row with the heads of its columns."""
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        passages = [passage for sheet in book.worksheets for passage in _sheet_passages(sheet)]
    finally:
        book.close()
    return Document(passages)


def _sheet_passages(sheet: Any) -> Iterator[Passage]:
    rows = sheet.iter_rows(values_only=True)
    heads = [str(value or "") for value in next(rows, ())]
    texts = (
        "; ".join(f"{head}: {value}" if head else str(value) for head, value in pairs)
        for row in rows
        if (pairs := [(head, value) for head, value in zip(heads, row, strict=False) if value is not None])
    )
    yield from gathered(texts, (sheet.title,), f"#{sheet.title}")
