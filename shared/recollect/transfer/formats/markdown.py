"""Markdown for people: a section for each entity, the facts, and the relations."""

import re
from collections.abc import Sequence

from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.records import End, EntityRecord, FactRecord

_HEADINGS = {
    Stage.ENTITIES: "# Knowledge graph\n\n## Entities\n",
    Stage.FACTS: "\n## Facts\n\n",
    Stage.RELATIONS: "\n## Relations\n\n",
}
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_BLANK = re.compile(r"\s+")


class MarkdownWriter(Writer):
    """Writes one document."""

    writes_facts = True

    def opening(self, stage: Stage) -> str:
        """Write a heading."""
        return _HEADINGS[stage]

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write a section for each entity and a list item for each fact."""
        return "".join(
            _fact(n.record) if isinstance(n.record, FactRecord) else _entity(n.record) for n in nodes if n.record
        )

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write a list item for each relation."""
        relations = [edge.record for edge in edges]
        return "".join(f"- {_end(r.from_)} → *{plain(r.relation_type)}* → {_end(r.to)}\n" for r in relations)


def plain(text: str) -> str:
    """A text on one line without meaning to Markdown: every punctuation mark has a backslash before it.

    It cannot form HTML, a link, an image, code or emphasis. Any run of blanks becomes one space.
    """
    shown = "".join(character if character.isprintable() or character.isspace() else " " for character in text)
    return _PUNCTUATION.sub(r"\\\1", _BLANK.sub(" ", shown).strip())


def _entity(entity: EntityRecord) -> str:
    properties = [
        f"- **Type**: {plain(entity.entity_type)}\n" if entity.entity_type else "",
        f"- **Tags**: {', '.join(map(plain, entity.tags))}\n" if entity.tags else "",
        f"- **Importance**: {entity.importance:g}\n" if entity.importance is not None else "",
        f"- **Parent**: {plain(entity.parent_id)}\n" if entity.parent_id else "",
        f"\n{plain(entity.text)}\n" if entity.text else "",
    ]
    observations = "".join(f"- {plain(text)}\n" for text in entity.active_observations)
    head = "".join(properties)
    return f"\n### {plain(entity.name)}\n\n{head}{chr(10) if head and observations else ''}{observations}"


def _fact(fact: FactRecord) -> str:
    return f"- {plain(fact.text)}\n"


def _end(end: End) -> str:
    return f"**{plain(end)}**" if isinstance(end, str) else f"“{plain(end.text)}”"
