"""PDF files, page by page, by pypdf."""

import logging
import re
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from recollect.errors import InvalidInput
from recollect_cli.documents.model import Document, gathered

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # We report what is wrong with a file, once.


def read_pdf(path: Path) -> Document:
    """The document of a PDF file. Raises InvalidInput for one that cannot be read, or has no text."""
    try:
        reader = PdfReader(path)
        pages = [page.extract_text() for page in reader.pages]
        title = reader.metadata.title if reader.metadata else None
    except (PyPdfError, ValueError, KeyError, RecursionError, NotImplementedError) as error:
        raise InvalidInput(f"pypdf cannot read it: {error}") from None
    if not any(page.strip() for page in pages):
        raise InvalidInput("It has no text: pages that are pictures need character recognition first")
    passages = [
        passage
        for number, page in enumerate(pages, 1)
        for passage in gathered(re.split(r"\n\s*\n", page), (), f" p. {number}")
    ]
    return Document(passages, title=title or None)
