"""Ask: what a recall finds, and how it was ranked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.errors import InvalidInput
from recollect.fairness.computing import interleave
from recollect.graph.graphs.view import GraphView
from recollect.graph.observations import service as observations
from recollect.retrieval.recall.model import MemoryAttributes, Recalled
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.ranking_weights import parts_of_score
from recollect.times import with_offset
from recollect.words.analysis import AskedWord, asked_words, find_words
from recollect_console.authors import authors_of, writers_of
from recollect_console.filters import day_of, importance_of, several_of
from recollect_console.recall_code import recall_as_code
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.operations import recall as memories

FOUND, NEARLY_FOUND = 10, 20
"""Memories that a recall returns here, as it does for agents, and further ones that are shown as nearly found."""

MAX_TOKENS = 20_000
"""Tokens of the texts on one page, at most."""

LEAST_SHOWN = 0.0005
"""The part of a score from which a term is shown."""

TERMS = {
    "win": ("Words and their meaning, one by one", "meaning"),
    "meaning": ("Meaning as a whole", "meaning"),
    "own": ("Words in it", "words"),
    "near": ("Words around it", "words"),
    "far": ("Words further around", "words"),
    "coverage": ("How much of the question it has", "words"),
    "identified": ("The very thing that is named", "words"),
    "about": ("It is about what is named", "subject"),
    "asked": ("It answers the turn before", "subject"),
    "date": ("The day that is named", "time"),
    "time": ("It has a time", "time"),
    "length": ("It is long enough", "form"),
    "answer": ("It has what is asked for", "form"),
    "statement": ("It is a statement", "form"),
}
"""The explanation of each term of a score, and the colour of its part of the bar."""

SUPERSEDED = re.compile(r"Superseded by ([0-9a-f-]{36})")
"""The reason that `remember` gives for a memory that another one made outdated."""

NOTHING_ASKED: dict[str, Any] = {
    "asked": False,
    "fault": "",
    "found": [],
    "nearly": [],
    "authors": {},
    "waiting": 0,
    "corrected": [],
    "note": None,
    "code": [],
}
"""What the page shows before anything is asked."""

Asked = Annotated[str, QueryParameter(max_length=MAX_QUESTION)]
Filter = Annotated[str, QueryParameter(max_length=512)]
Outdated = Annotated[Literal["", "yes"], QueryParameter()]


@dataclass(frozen=True, slots=True)
class Part:
    """What one term adds to a score: where its part of the bar begins, and how long it is, of 100."""

    label: str
    colour: str
    value: float
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Card:
    """A memory that was found: pieces of its text (whether each was asked for), and the parts of its score.

    `replaced_by`: the node of the memory that made it outdated, if that is known. `writer`: the subject, if known.
    """

    hit: Hit
    attributes: MemoryAttributes
    pieces: Sequence[tuple[bool, str]]
    parts: Sequence[Part]
    said: str
    writer: str | None
    replaced_by: UUID | None


class AskPages(Controller):
    """One question to a graph."""

    path = "/ask"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        q: Asked = "",
        kind: Filter = "",
        tag: Filter = "",
        thread: Filter = "",
        since: Filter = "",
        until: Filter = "",
        importance: Filter = "",
        outdated: Outdated = "",
    ) -> Response[str]:
        """The question with what is found and nearly found; without a question, what passes the filters."""
        filters = {"kind": kind, "tag": tag, "thread": thread, "since": since, "until": until}
        filters |= {"importance": importance, "outdated": outdated}
        context: dict[str, Any] = NOTHING_ASKED | {"q": q, "filters": filters}
        try:
            arguments = _arguments(q.strip(), filters, visit.as_of)
            body = _body(arguments)
        except InvalidInput as error:
            async with visit.reading_tenant():
                return render(visit, "ask/show.html", status=400, **(context | {"fault": error.message}))
        if body is not None:
            call = visit.call("recall", read_only=True)
            recalled = await memories.recall(call, visit.graph, body, only_near_best=False)
            context |= {"asked": True, **await _shown(visit, q, recalled)}
            context["code"] = recall_as_code(visit.services.settings.base_url, visit.graph, arguments)
        else:
            async with visit.reading("recall"):
                pass
        return render(visit, "ask/show.html", **context)


async def _shown(visit: Visit, question: str, recalled: Recalled) -> dict[str, Any]:
    """The cards of what was found, and of what was nearly found."""
    asked = await interleave(asked_words(" ".join(recalled.corrected or [question])))
    async with visit.reading("recall") as view:
        ids = [hit.memory_id for hit in recalled.hits]
        writers = await writers_of(view, ids)
        replacing = await _replacing(view, recalled)
        authors = await authors_of(view.tx, writers.values())
    cards = [
        _card(hit, recalled.attributes[hit.memory_id], asked, writers.get(hit.memory_id), replacing)
        for hit in recalled.hits
    ]
    near = [card for card in cards if card.hit.is_near_best][:FOUND]
    return {
        "found": near,
        "nearly": [card for card in cards if card not in near],
        "authors": authors,
        "waiting": recalled.waiting,
        "corrected": list(recalled.corrected),
        "note": memories.note_of(recalled.holdings),
    }


async def _replacing(view: GraphView, recalled: Recalled) -> Mapping[UUID, UUID]:
    """The node of each memory that replaced a found one, by the id of the found one."""
    named = {hit.memory_id: _successor(recalled.attributes[hit.memory_id]) for hit in recalled.hits if hit.outdated}
    successors = {old: new for old, new in named.items() if new is not None}
    if not successors:
        return {}
    nodes = await observations.nodes_of_observations(view, list(successors.values()))
    return {old: nodes.get(new, new) for old, new in successors.items()}


def _successor(attributes: MemoryAttributes) -> UUID | None:
    match = SUPERSEDED.fullmatch(attributes.reason or "")
    return None if match is None else UUID(match[1])


def _card(
    hit: Hit,
    attributes: MemoryAttributes,
    asked: Sequence[AskedWord],
    writer: str | None,
    replacing: Mapping[UUID, UUID],
) -> Card:
    said = "" if hit.at is None else f"said at {with_offset(hit.at, attributes.said_offset):%Y-%m-%d %H:%M %z}".strip()
    pieces = _pieces(hit.text, asked)
    return Card(hit, attributes, pieces, _parts(hit), said, writer, replacing.get(hit.memory_id))


def _pieces(text: str, asked: Sequence[AskedWord]) -> list[tuple[bool, str]]:
    """A text in pieces, each with whether it is a word that was asked for."""
    pieces: list[tuple[bool, str]] = []
    end = 0
    for start, after in find_words(text, asked):
        pieces += [(False, text[end:start]), (True, text[start:after])]
        end = after
    return [(is_asked, piece) for is_asked, piece in (*pieces, (False, text[end:])) if piece]


def _parts(hit: Hit) -> list[Part]:
    """The bar of a score, the greatest part first; none for a memory of a list, which has no score."""
    parts: list[Part] = []
    start = 0.0
    for name, value in parts_of_score(hit.terms).items():
        if value < LEAST_SHOWN:
            continue
        label, colour = TERMS[name]
        parts.append(Part(label, colour, value, round(start, 2), round(100 * value, 2)))
        start += 100 * value
    return parts


def _arguments(question: str, filters: Mapping[str, str], as_of: str | None) -> dict[str, Any]:
    """The arguments of the recall, as code has them. Raises InvalidInput."""
    since, until = day_of(filters["since"], "since"), day_of(filters["until"], "until")
    given = {
        "query": question,
        "kinds": several_of(filters["kind"]),
        "tags": several_of(filters["tag"]),
        "thread": filters["thread"],
        "since": since and since.isoformat(),
        "until": until and (until + timedelta(days=1, microseconds=-1)).isoformat(),
        "min_importance": importance_of(filters["importance"]),
        "include_outdated": bool(filters["outdated"]),
    }
    narrowing = {name: value for name, value in given.items() if value not in ("", [], None, False)}
    if not set(narrowing) - {"include_outdated"}:
        return {}
    bounds = {"limit": FOUND, "token_budget": MAX_TOKENS, "explain": True}
    return narrowing | ({"as_of": as_of} if as_of else {}) | bounds


def _body(arguments: Mapping[str, Any]) -> memories.RecallBody | None:
    """The recall, with room for what is nearly found; None where nothing is asked. Raises InvalidInput."""
    if not arguments:
        return None
    try:
        return msgspec.convert({**arguments, "limit": FOUND + NEARLY_FOUND}, memories.RecallBody)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{error}") from None
