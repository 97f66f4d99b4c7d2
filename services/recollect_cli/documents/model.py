"""A document, as its readers give it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recollect.text.visible import is_visible

LONGEST_PASSAGE = 1_200
"""Characters of a passage, at most: what recall gives back at a time."""

LONGEST_HEADING = 200
"""Characters of the headings before a passage, at most; of longer ones the last are kept."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Some blocks of a document that belong together. `anchor`: where they stand, such as `#Setup` or ` p. 3`."""

    text: str
    headings: tuple[str, ...] = ()
    anchor: str = ""

    @property
    def text_under_headings(self) -> str:
        """The text, after the headings under which it stands."""
        heading = " › ".join(self.headings)[-LONGEST_HEADING:]
        return f"{heading}: {self.text}" if heading else self.text


@dataclass(frozen=True, slots=True)
class Document:
    """What was read of a file. `links`: the names of documents and things that it links to, as written there."""

    passages: list[Passage]
    title: str | None = None
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)


def gathered(blocks: Iterable[str], headings: tuple[str, ...], anchor: str) -> Iterator[Passage]:
    """Blocks in passages, in order: as many in each as fit; one that is too long is cut between words."""
    text = ""
    for piece in (piece for block in blocks for piece in _pieces(block.strip())):
        if text and len(text) + 2 + len(piece) > LONGEST_PASSAGE:
            yield Passage(text, headings, anchor)
            text = ""
        text = f"{text}\n\n{piece}" if text else piece
    if text:
        yield Passage(text, headings, anchor)


def _pieces(block: str) -> Iterator[str]:
    while len(block) > LONGEST_PASSAGE:
        ends = (block.rfind(mark, LONGEST_PASSAGE // 2, LONGEST_PASSAGE) for mark in ("\n", ". ", "。", " "))
        end = next((end + 1 for end in ends if end > 0), LONGEST_PASSAGE)
        yield block[:end].strip()
        block = block[end:].strip()
    if is_visible(block):
        yield block
