"""What a client does with memories: the six verbs, and listing them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from recollect_client.answers.memories import (
    Explored,
    Forgotten,
    Item,
    Memory,
    Message,
    Recalled,
    RecalledMemory,
    Related,
    Remembered,
    RememberedConversation,
    Revised,
    Triple,
)
from recollect_client.errors import ConfigurationError
from recollect_client.operations import listing, operation
from recollect_client.requests import Names, PagedRequest, Request, given, listed, path_of

AsOf = int | str | datetime
"""A revision, or a time."""

Ids = str | UUID | Sequence[str | UUID]
MAX_LISTED_MEMORIES = 100
MAX_LISTED_TOKENS = 50_000


class MemoryOperations:
    """Methods for the memories of one graph: that of the client, or the one that a call names."""

    default_graph: str

    @operation
    def remember(
        self,
        items: Item | Sequence[Item],
        *,
        about: Names | None = None,
        thread: str | None = None,
        at: datetime | None = None,
        kind: str | None = None,
        tags: Names | None = None,
        importance: float | None = None,
        ttl_days: float | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        supersedes: Ids | None = None,
        time_zone: str | None = None,
        graph: str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Remembered]:
        """Store facts for later: a text, a Memory, or up to 100 of them, in one revision.

        Name the entities that each is `about`, so that it is found with them. A known fact is updated, not duplicated.
        What an item does not say of itself, the other arguments say for all of them. `at`: when it was said;
        `ttl_days`: how long it holds; `supersedes`: ids of memories that it makes outdated.
        """
        common = given(
            about=listed(about),
            thread=thread,
            at=at,
            kind=kind,
            tags=listed(tags),
            importance=importance,
            ttl_days=ttl_days,
            source=source,
            metadata=metadata,
            supersedes=listed(supersedes),
        )
        several = [items] if isinstance(items, str | Memory | Mapping) else items
        body = given(items=[{**common, **_item(item)} for item in several], time_zone=time_zone)
        return self._act(graph, "memories", Remembered, body, idempotency_key, is_repeatable=True)

    @operation
    def remember_conversation(
        self,
        thread: str,
        messages: Sequence[Message | Mapping[str, Any]] | str,
        *,
        tags: Names | None = None,
        source: str | None = None,
        time_zone: str | None = None,
        graph: str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[RememberedConversation]:
        """Store a conversation as it is: messages, as the APIs of OpenAI and Anthropic have them, or its text.

        What is known is not stored twice, so a conversation may be sent again when it has grown; 500 messages a call.
        """
        what: dict[str, Any] = {"text": messages} if isinstance(messages, str) else {"messages": list(messages)}
        body = given(thread=thread, **what, tags=listed(tags), source=source, time_zone=time_zone)
        return self._act(graph, "conversations", RememberedConversation, body, idempotency_key, is_repeatable=True)

    @operation
    def recall(
        self,
        query: str | None = None,
        *,
        queries: Names | None = None,
        limit: int | None = None,
        token_budget: int | None = None,
        kinds: Names | None = None,
        not_kinds: Names | None = None,
        tags: Names | None = None,
        all_tags: bool | None = None,
        not_tags: Names | None = None,
        about: Names | None = None,
        under: str | None = None,
        thread: str | None = None,
        min_importance: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        time_zone: str | None = None,
        fresh_only: bool | None = None,
        include_outdated: bool | None = None,
        explain: bool | None = None,
        order: Literal["newest", "importance"] | None = None,
        cursor: str | None = None,
        as_of: AsOf | None = None,
        graph: str | None = None,
    ) -> Request[Recalled]:
        """Find memories by words and by meaning, best first; or list what passes a filter, newest first.

        Filters apply to a memory's own properties, or else its entity's; any of several values counts (`all_tags`: all
        of them). In a graph that does not exist, nothing is found.
        """
        body = given(
            query=query,
            queries=listed(queries),
            limit=limit,
            token_budget=token_budget,
            kinds=listed(kinds),
            not_kinds=listed(not_kinds),
            tags=listed(tags),
            all_tags=all_tags,
            not_tags=listed(not_tags),
            about=listed(about),
            under=under,
            thread=thread,
            min_importance=min_importance,
            since=since,
            until=until,
            time_zone=time_zone,
            fresh_only=fresh_only,
            include_outdated=include_outdated,
            explain=explain,
            order=order,
            cursor=cursor,
            as_of=moment_of(as_of),
        )
        return Request("POST", self._path(graph, "recall"), Recalled, body=body)

    @operation
    def relate(
        self,
        triples: Sequence[Triple | tuple[str, str, str]],
        *,
        graph: str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Related]:
        """Store how entities relate, in active voice: `relate([("Ada", "works at", "Acme")])`, up to 100 triples.

        The entities need not exist yet. The metadata of a Triple replaces that of a known one.
        """
        body = {"triples": [triple if isinstance(triple, Triple) else Triple(*triple) for triple in triples]}
        return self._act(graph, "relate", Related, body, idempotency_key, is_repeatable=True)

    @operation
    def revise(
        self,
        id: str | UUID | None = None,
        *,
        name: str | None = None,
        text: str | None = None,
        tags: Names | None = None,
        importance: float | None = None,
        status: Literal["active", "outdated", "archived"] | None = None,
        ttl_days: float | None = None,
        reason: str | None = None,
        based_on_version: int | None = None,
        graph: str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Revised]:
        """Correct a memory or node, by its id or an entity's name. The earlier version stays in history.

        `based_on_version`: the version that was read; if there is a newer one, `status` of the answer is conflict.
        """
        body = given(
            id=id,
            name=name,
            text=text,
            tags=listed(tags),
            importance=importance,
            status=status,
            ttl_days=ttl_days,
            reason=reason,
            based_on_version=based_on_version,
        )
        return self._act(graph, "revise", Revised, body, idempotency_key)

    @operation
    def forget(
        self,
        ids: Ids | None = None,
        *,
        names: Names | None = None,
        reason: str | None = None,
        mode: Literal["outdated", "delete"] | None = None,
        graph: str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Forgotten]:
        """Mark memories or nodes as outdated, so that only `include_outdated` finds them, or delete them (`mode`)."""
        body = given(ids=listed(ids), names=listed(names), reason=reason, mode=mode)
        return self._act(graph, "forget", Forgotten, body, idempotency_key, is_repeatable=True)

    @operation
    def explore(
        self,
        start: str | UUID,
        to: str | UUID | None = None,
        *,
        depth: int | None = None,
        direction: Literal["outgoing", "incoming", "both"] | None = None,
        predicates: Names | None = None,
        max_nodes: int | None = None,
        as_of: AsOf | None = None,
        graph: str | None = None,
    ) -> Request[Explored]:
        """Show what surrounds a node, by its id or name, or the paths from it to another."""
        body = given(
            start=start,
            to=to,
            depth=depth,
            direction=direction,
            predicates=listed(predicates),
            max_nodes=max_nodes,
            as_of=moment_of(as_of),
        )
        return Request("POST", self._path(graph, "explore"), Explored, body=body)

    @listing
    def memories(
        self,
        *,
        kinds: Names | None = None,
        not_kinds: Names | None = None,
        tags: Names | None = None,
        all_tags: bool | None = None,
        not_tags: Names | None = None,
        about: Names | None = None,
        under: str | None = None,
        thread: str | None = None,
        min_importance: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        include_outdated: bool | None = None,
        order: Literal["newest", "importance"] | None = None,
        graph: str | None = None,
    ) -> PagedRequest[RecalledMemory]:
        """Every memory that passes the filter, of which there must be one; the newest first."""
        body = given(
            limit=MAX_LISTED_MEMORIES,
            token_budget=MAX_LISTED_TOKENS,
            kinds=listed(kinds),
            not_kinds=listed(not_kinds),
            tags=listed(tags),
            all_tags=all_tags,
            not_tags=listed(not_tags),
            about=listed(about),
            under=under,
            thread=thread,
            min_importance=min_importance,
            since=since,
            until=until,
            include_outdated=include_outdated,
            order=order,
        )
        return PagedRequest(Request("POST", self._path(graph, "recall"), Recalled, body=body))

    def _path(self, graph: str | None, *parts: object) -> str:
        name = graph or self.default_graph
        if not name:
            raise ConfigurationError("Name a graph")
        return path_of("graphs", name, *parts)

    def _act(
        self,
        graph: str | None,
        verb: str,
        answer: Any,
        body: Mapping[str, Any],
        idempotency_key: str | None,
        *,
        is_repeatable: bool = False,
    ) -> Request[Any]:
        return Request(
            "POST",
            self._path(graph, verb),
            answer,
            body=body,
            is_write=True,
            is_repeatable=is_repeatable,
            idempotency_key=idempotency_key,
        )


def _item(item: Item) -> Mapping[str, Any]:
    if isinstance(item, str):
        return {"text": item}
    return msgspec.to_builtins(item, builtin_types=(datetime,)) if isinstance(item, Memory) else item


def moment_of(as_of: AsOf | None) -> int | str | None:
    """A revision or time as requests have it."""
    return as_of.isoformat() if isinstance(as_of, datetime) else as_of
