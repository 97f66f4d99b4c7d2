"""What a client reads of a graph: nodes, their history and relations, changes, and pairs that are no duplicates."""

from typing import Literal
from uuid import UUID

from recollect_client.answers.graphs import Change, Dismissal, FoundNode, Node, NodeItem, NodeVersion, Relation
from recollect_client.answers.pages import Page
from recollect_client.changes import FOLLOWING, ChangeFeed
from recollect_client.memories import AsOf, MemoryOperations, moment_of
from recollect_client.operations import following, listing, operation
from recollect_client.requests import MAX_PAGE, Names, PagedRequest, Request, get, given, listed, write
from recollect_client.retries import Retries


class GraphOperations(MemoryOperations):
    """Methods for one graph: that of the client, or the one that a call names."""

    @listing
    def nodes(
        self,
        *,
        kind: Names | None = None,
        tag: Names | None = None,
        status: str | None = None,
        prefix: str | None = None,
        author: str | None = None,
        as_of: AsOf | None = None,
        limit: int = MAX_PAGE,
        graph: str | None = None,
    ) -> PagedRequest[NodeItem]:
        """The entities and facts, oldest first; `prefix` of an entity's name. `limit` is the size of a page.

        `author`: only those whose newest version this subject wrote, as `updated_by` has it.
        """
        query = given(
            kind=listed(kind),
            tag=listed(tag),
            status=status,
            prefix=prefix,
            author=author,
            as_of=moment_of(as_of),
            limit=limit,
        )
        return PagedRequest(get(self._path(graph, "nodes"), Page[NodeItem], **query))

    @operation
    def node(
        self,
        name_or_id: str | UUID,
        *,
        as_of: AsOf | None = None,
        observations_offset: int | None = None,
        graph: str | None = None,
    ) -> Request[Node]:
        """One node with its observations, by its id or an entity's name (by its id, if the name contains a `/`)."""
        path = self._path(graph, "nodes", name_or_id)
        return get(path, Node, as_of=moment_of(as_of), observations_offset=observations_offset)

    @listing
    def history(
        self, name_or_id: str | UUID, *, limit: int = MAX_PAGE, graph: str | None = None
    ) -> PagedRequest[NodeVersion]:
        """The versions of a node, newest first; those of a deleted node by its id."""
        return PagedRequest(get(self._path(graph, "nodes", name_or_id, "history"), Page[NodeVersion], limit=limit))

    @listing
    def relations(
        self,
        name_or_id: str | UUID,
        *,
        type: str | None = None,
        direction: Literal["outgoing", "incoming", "both"] | None = None,
        as_of: AsOf | None = None,
        limit: int = MAX_PAGE,
        graph: str | None = None,
    ) -> PagedRequest[Relation]:
        """The relations that start or end at a node."""
        query = given(type=type, direction=direction, as_of=moment_of(as_of), limit=limit)
        return PagedRequest(get(self._path(graph, "nodes", name_or_id, "relations"), Page[Relation], **query))

    @listing
    def search(
        self,
        q: str,
        *,
        kind: Names | None = None,
        tag: Names | None = None,
        status: str | None = None,
        as_of: AsOf | None = None,
        limit: int = 50,
        graph: str | None = None,
    ) -> PagedRequest[FoundNode]:
        """The nodes for a question or a few words, best first; about a hundred at most."""
        query = given(q=q, kind=listed(kind), tag=listed(tag), status=status, as_of=moment_of(as_of), limit=limit)
        return PagedRequest(get(self._path(graph, "search"), Page[FoundNode], **query))

    @listing
    def dismissals(self, *, limit: int = MAX_PAGE, graph: str | None = None) -> PagedRequest[Dismissal]:
        """The pairs of entities that somebody said are different, the latest first."""
        return PagedRequest(get(self._path(graph, "dismissals"), Page[Dismissal], limit=limit))

    @operation
    def dismiss_pair(self, node_id: str | UUID, other_id: str | UUID, *, graph: str | None = None) -> Request[None]:
        """Record that two entities are different: they are neither proposed nor merged as duplicates."""
        return write("PUT", self._path(graph, "dismissals", node_id, other_id), None)

    @operation
    def take_back_dismissal(
        self, node_id: str | UUID, other_id: str | UUID, *, graph: str | None = None
    ) -> Request[None]:
        """Take back that two entities are different. If they were proposed as duplicates, they are again."""
        return write("DELETE", self._path(graph, "dismissals", node_id, other_id), None)

    @listing
    def change_log(
        self,
        *,
        after_revision: int | None = None,
        kind: Names | None = None,
        tag: Names | None = None,
        limit: int = MAX_PAGE,
        graph: str | None = None,
    ) -> PagedRequest[Change]:
        """The changes until now, oldest first: who did what, on which ids, when."""
        query = given(after_revision=after_revision, kind=listed(kind), tag=listed(tag), limit=limit)
        return PagedRequest(get(self._path(graph, "changes"), Page[Change], **query))

    @following
    def changes(
        self,
        *,
        after_revision: int | None = None,
        kind: Names | None = None,
        tag: Names | None = None,
        retries: Retries = FOLLOWING,
        graph: str | None = None,
    ) -> ChangeFeed:
        """The changes as they come, without end: from now on, or after a revision.

        After a lost connection it goes on where it was, so that nothing is missed. Raises ChangesLostError where the
        graph was replaced meanwhile, and ApiError or ConnectionError where `retries` do not help.
        """
        query = given(after_revision=after_revision, kind=listed(kind), tag=listed(tag))
        return ChangeFeed(self._path(graph, "changes"), query, retries)
