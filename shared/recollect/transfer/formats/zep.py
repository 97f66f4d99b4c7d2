"""A graph of Zep, or of Graphiti, on which Zep is built: its nodes, edges and episodes.

    {"nodes": [{"uuid": "…", "name": "Ada", "labels": ["Entity", "Person"], "summary": "…", "created_at": "…"}],
     "edges": [{"uuid": "…", "name": "WORKS_AT", "fact": "Ada works at Acme", "source_node_uuid": "…",
                "target_node_uuid": "…", "valid_at": "…", "invalid_at": null}],
     "episodes": [{"uuid": "…", "content": "I started at Acme", "created_at": "…"}]}

Fields as versions 2 to 4 of Zep's SDK have them (`zep-cloud` of PyPI; https://help.getzep.com/sdk-reference), and
`EntityNode`, `EntityEdge` and `EpisodicNode` of https://github.com/getzep/graphiti. Others, such as embeddings, are
skipped. Nodes come before edges, which name them by their ids.

A node becomes an entity with its summary as an observation. An edge becomes a fact, whose time is when it became
true, and which is outdated if it is no longer true; and, if it is still true, a relation between the two entities. An
episode becomes a fact.
"""

from collections.abc import Callable, Iterator
from typing import Any

from recollect.errors import InvalidInput, TooLarge
from recollect.graph.relations.model import MENTIONS_ENTITY
from recollect.transfer.formats.decoding import Read
from recollect.transfer.formats.foreign import Found, end_of, entity, fact, moment, relation, text_of, without_empty
from recollect.transfer.formats.json_stream import JsonStream
from recollect.transfer.model import ImportProblem, UnreadableLine

SOURCE = "zep"
EVERY_NODE = "Entity"
"""The label that all nodes have."""
MAX_NODES = 1_000_000
"""Nodes of a file at most: their names are kept until its end, since edges name ids."""
_IDS = ("uuid", "uuid_")
"""The fields of an item's id. Version 3 of the SDK writes it under its name in Python, the second."""
_THREADS = ("thread_uuid", "thread_id", "session_id", "document_id")
"""The fields of an episode's thread in versions 4, 3 and 2; or its document, whose parts are read together."""
UNKNOWN_NODE = "names a node that does not come before it in the file"


class _Names:
    """The names of entities by the ids of nodes. If several nodes have one name, later ones get their id appended."""

    def __init__(self) -> None:
        self._by_node: dict[str, str] = {}
        self._taken: set[str] = set()

    def give(self, node: str, name: str) -> str:
        if len(self._by_node) >= MAX_NODES:
            raise TooLarge(f"More than {MAX_NODES} nodes in one file: send several")
        if node not in self._by_node:
            short = f"{name} ({node[:8]})"
            free = (candidate for candidate in (name, short) if candidate not in self._taken)
            self._by_node[node] = next(free, f"{name} ({node})")
            self._taken.add(self._by_node[node])
        return self._by_node[node]

    def of(self, edge: Any, end: str) -> str:
        node = text_of(edge, f"{end}_node_uuid")
        try:
            return self._by_node[node]
        except KeyError:
            raise UnreadableLine(f"{end}_node_uuid: {UNKNOWN_NODE}") from None


def read(texts: Iterator[str]) -> Read:
    """Yield the items of the file. Raises InvalidInput for a file that is not a JSON object of such lists."""
    source, names = JsonStream(texts), _Names()
    for part in source.names():
        if part not in _PARTS:
            raise InvalidInput(f"Unknown part; the parts are {', '.join(_PARTS)}", path=source.location)
        for number, item in enumerate(source.values()):
            where = f"{part}.{number}"
            try:
                yield from list(_PARTS[part](where, item, names))
            except UnreadableLine as error:
                yield ImportProblem(where, error.reason)
    source.end()


def _node(where: str, item: Any, names: _Names) -> Found:
    node, name = text_of(item, *_IDS), text_of(item, "name")
    labels = item.get("labels")
    kinds = [label for label in labels if label != EVERY_NODE] if isinstance(labels, list) else []
    summary = item.get("summary")
    yield from entity(
        where,
        names.give(node, name),
        kinds[0] if kinds else "",
        (summary,) if summary else (),
        tags=kinds[1:],
        createdAt=moment(item.get("created_at")),
        source=SOURCE,
        metadata=_metadata(item, "attributes"),
    )


def _edge(where: str, item: Any, names: _Names) -> Found:
    source, target = names.of(item, "source"), names.of(item, "target")
    ended = item.get("invalid_at") or item.get("expired_at")
    record = fact(
        where,
        text_of(item, "fact"),
        at=moment(item.get("valid_at") or item.get("created_at")),
        createdAt=moment(item.get("created_at")),
        status="outdated" if ended else None,
        source=SOURCE,
        metadata=_metadata(item, "attributes", "name", "valid_at", "invalid_at", "expired_at"),
    )
    yield record
    for name in dict.fromkeys((source, target)):
        yield relation(where, end_of(record), name, MENTIONS_ENTITY)
    if not ended:
        yield relation(where, source, target, text_of(item, "name"), createdAt=moment(item.get("created_at")))


def _episode(where: str, item: Any, _: _Names) -> Found:
    yield fact(
        where,
        text_of(item, "content"),
        thread=next((item[name] for name in _THREADS if item.get(name)), None),
        at=moment(item.get("valid_at") or item.get("reference_time") or item.get("created_at")),
        createdAt=moment(item.get("created_at")),
        source=SOURCE,
        metadata=_metadata(item, "metadata", "role", "role_name", "role_type", "source_description"),
    )


def _metadata(item: Any, whole: str, *names: str) -> dict[str, Any]:
    """The metadata of an item (its field `whole`), with its id and some more of its fields."""
    metadata = item.get(whole)
    fields = {"uuid": next((item[name] for name in _IDS if item.get(name)), None)} | {
        name: item.get(name) for name in names
    }
    return without_empty(fields) | (metadata if isinstance(metadata, dict) else {})


_PARTS: dict[str, Callable[[str, Any, _Names], Found]] = {"nodes": _node, "edges": _edge, "episodes": _episode}
