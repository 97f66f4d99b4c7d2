"""Descriptions of the bodies that tools have, too. They are not at the types: tools would show them to models.

This is one table, in the order of the operations, and has no code: its length is that of what the API describes.
"""

from collections.abc import Mapping

from recollect.accounts.usage.model import StoredCounts, UsagePoint, UsageRow
from recollect_gateway.operations.conversations import (
    ContentPart,
    ConversationBody,
    Message,
    RememberedConversation,
    RememberedTurn,
)
from recollect_gateway.operations.explore import (
    MAX_EXCERPT,
    MAX_NODES,
    ExploreBody,
    ExploredEdge,
    ExploredGraph,
    ExploredNode,
)
from recollect_gateway.operations.forget import ForgetBody, ForgottenMemories
from recollect_gateway.operations.nodes import EXCERPT, NodeBody, NodeItemBody, VersionBody
from recollect_gateway.operations.plan import PlanBody, QuotaBody, RatesBody
from recollect_gateway.operations.recall import DEFAULT_LIMIT, RecallBody, RecalledMemories, RecalledMemory
from recollect_gateway.operations.relate import RelateBody, RelatedTriple, RelatedTriples, Triple
from recollect_gateway.operations.relations import RelationBody, RelationEndBody
from recollect_gateway.operations.remember import (
    CloseMemory,
    RememberBody,
    RememberedMemories,
    RememberedMemory,
    RememberItem,
)
from recollect_gateway.operations.revise import ReviseBody, RevisedMemory
from recollect_http.fields import SUBJECT
from recollect_http.openapi.schemas import SharedBody
from recollect_http.requests.argument_types import OmittedObservations

_MEMORY_ID = "Id of the memory, a UUID: of an observation, or of a fact"
_NODE_ID = "Id of the node, a UUID, which all its versions share"
_NAME = "Name of the entity; null: the node is a fact"
_KIND = "Type of the entity or fact, such as `person`; null: none"
_TAGS = "Tags, which filters compare ignoring case"
_IMPORTANCE = "Importance from 0 to 10; null: not set"
_STATUS = "`active`, `outdated` (recalled only on request) or `archived` (not recalled)"
_STALE = "Whether `freshness_at` has passed"
_METADATA = "JSON object that clients define"
_CONFLICTS = "Ids of the versions that are in conflict with this one"
_SOURCE = "Where the memory came from, such as a document; null: not stated"
_REASON = "Why it was last changed; null: not stated"
_WRITTEN_BY = f"Subject that wrote this version, {SUBJECT}"
_SCORE = "Relevance, from 0 to 1, comparable within this response only"

_SUBJECT = "Name of the entity that the relation starts at; it need not exist yet"
_PREDICATE = "Type of the relation, such as `works_at`"
_OBJECT = "Name of the entity that the relation ends at; it need not exist yet"

_AS_OF = "Revision, or time such as 2027-01-31T12:00:00Z, as of which the graph is read; null: now"
_ZONE = "Time zone (IANA) of days, and of times without an offset"

_COUNTED = {
    "calls": "Number of calls; for the worker's work, number of batches",
    "errors": "Number of calls that failed or were cut off",
    "passages": "Number of passages that the worker embedded",
    "bytes_received": "Number of bytes of request bodies",
    "p50_ms": "Milliseconds within which half of the calls were answered, estimated; null where none was timed",
    "p95_ms": "Milliseconds within which 95 % of the calls were answered, estimated; null where none was timed",
}

_VERSION = {
    "id": _NODE_ID,
    "version_id": "Id of this version, a UUID",
    "version": "Number of this version, from 1",
    "name": _NAME,
    "kind": _KIND,
    "content": "Text of the node; null: none, as for most entities",
    "summary": "Summary of the content; null: none",
    "tags": _TAGS,
    "importance": _IMPORTANCE,
    "metadata": _METADATA,
    "parent_id": "Id of the entity above this one in the hierarchy; null: it is a root",
    "status": _STATUS,
    "source": _SOURCE,
    "thread": "Conversation or document that the fact came from; null: not stated",
    "said_at": "Time at which the fact was said; null: not stated",
    "freshness_at": "Time from which on the node counts as stale; null: never",
    "ttl_days": "Days that the node lasts, as they were requested; null: not set",
    "expires_at": "Time from which on the node is no longer found; null: never",
    "revision": "Revision of the graph that wrote this version",
    "written_at": "Time at which this version was written",
    "written_by": _WRITTEN_BY,
    "reason": _REASON,
    "based_on": "Number of the version that the writer had read; null: not stated",
    "superseded_by": "Id of the version that replaced this one; null: none did",
    "deleted": "Whether the node was deleted by this version",
    "conflicts": _CONFLICTS,
}

SHARED: Mapping[type, SharedBody] = {
    RememberBody: SharedBody(
        "Facts to store.",
        {
            "items": "Facts to store, 1 to 100, in one revision: all are stored or none",
            "time_zone": f"{_ZONE}, and by which clock a fact without a time is said; null: the graph's",
        },
    ),
    RememberItem: SharedBody(
        "One fact to store.",
        {
            "text": "One fact, in a sentence that can be understood by itself",
            "about": "Names of the entities that the fact is about, which are created if they do not exist",
            "thread": "Conversation or document that the fact came from; null: none",
            "at": "Time at which the fact was said; null: now",
            "kind": "Type of the fact, and of the entities that are created for it; null: none",
            "tags": "Tags of the fact",
            "importance": "Importance of the fact, from 0 to 10; null: not set",
            "ttl_days": "Days until the fact expires; 0: never; null: never for a new fact, unchanged for a known one",
            "source": "Where the fact came from, such as the name of a document; null: not stated",
            "name": "Name of one more entity that the fact is about; null: none",
            "metadata": _METADATA,
            "supersedes": "Ids of memories that become outdated by this one, with its id as the reason",
        },
    ),
    ConversationBody: SharedBody(
        "A conversation to store, or what it has gained.",
        {
            "thread": "Id or name of the conversation, the thread of its memories",
            "messages": "Its messages, 500 at most, in their order; or else `text`",
            "text": "Its text, in lines like `[2027-01-31 12:00] Ada: …`. A speaker has a usual name, such as User, or "
            "two turns at least. Null: `messages` has them",
            "tags": "Tags of its memories",
            "source": "Where it came from, such as the name of a client; null: not stated",
            "time_zone": f"{_ZONE}; null: the graph's",
        },
    ),
    Message: SharedBody(
        "A message as the APIs of OpenAI and Anthropic have it. Other fields are ignored.",
        {
            "content": "What was said: a text, or parts, of which those with a text are read. Null: nothing",
            "role": "Who speaks, such as `user`. Messages of `system`, `developer`, `tool` and `function` are left "
            "out; null: not stated",
            "name": "Name of who speaks, which is told in place of the role; null: none",
            "at": "Time at which it was said; null: not stated",
        },
    ),
    ContentPart: SharedBody(
        "A part of a message.",
        {
            "type": "Its type. Parts of `text`, `input_text` and `output_text` are read, others left out",
            "text": "Its text; null: none",
        },
    ),
    RememberedConversation: SharedBody(
        "What became of a conversation.",
        {
            "thread": "Its thread",
            "memories": "Its memories, in the order of the conversation: one for each message, several for a long one",
            "left_out": "Numbers of the messages, or turns of a text, in which nobody says anything, from 0",
        },
    ),
    RememberedTurn: SharedBody(
        "A memory of a conversation.",
        {
            "id": _MEMORY_ID,
            "message": "Number of its message, or turn of a text, from 0",
            "status": "`new`, `updated` (it was known, and changed) or `known` (it was known, and stays as it was)",
        },
    ),
    RememberedMemories: SharedBody(
        "What became of each item.", {"memories": "One entry for each item, in their order"}
    ),
    RememberedMemory: SharedBody(
        "What became of one item.",
        {
            "id": f"{_MEMORY_ID}; the first one if the item is about several entities",
            "node": "Id of the node, a UUID: the entity that the memory is about, or the fact",
            "status": "`new`, `updated` (it was known, and changed) or `known` (it was known, and stays as it was)",
            "close": "Older memories that say nearly the same",
        },
    ),
    CloseMemory: SharedBody(
        "An older memory that says nearly the same.",
        {
            "id": _MEMORY_ID,
            "text": "Text of the memory",
            "score": "Similarity of the two texts, from 0 to 1",
            "superseded": "Whether the new one probably replaces it: it begins alike and has another value",
        },
    ),
    RecallBody: SharedBody(
        "A question, and which memories may answer it; or a filter alone, whose memories are listed.",
        {
            "query": "Question, or a few words; null: `queries` has them, or the filter lists. What asks for all "
            '("everything", "what do you know about Bob?") lists, too',
            "queries": "Several phrasings of one question",
            "limit": f"Maximum number of memories; null: {DEFAULT_LIMIT}, without those far below the best",
            "token_budget": "Maximum number of tokens of all texts together, estimated as four bytes each",
            "kinds": "Only memories of any of these types, ignoring case; empty: all",
            "not_kinds": "Only memories of none of these types, ignoring case",
            "tags": "Only memories with any of these tags, ignoring case; empty: all",
            "all_tags": "Whether a memory needs all of `tags`",
            "not_tags": "Only memories with none of these tags, ignoring case",
            "about": "Only memories about one of these entities, given by name; empty: all",
            "under": "Only memories about the entity of this name or its descendants; null: all",
            "thread": "Only memories of this conversation or document; null: all",
            "min_importance": "Only memories of at least this importance, from 0 to 10; null: all",
            "since": "Only memories said at or after this time; null: all",
            "until": "Only memories said at or before this time; null: all",
            "time_zone": f"{_ZONE}, and of `yesterday` and the like; null: the graph's",
            "fresh_only": "Whether stale memories are left out",
            "include_outdated": "Whether outdated memories are included",
            "explain": "Whether each memory comes with the terms of its score (`why`)",
            "order": "Order of a list: the newest first, or the most important first; null: the newest, unless the "
            "question asks for what is important",
            "cursor": "`next_cursor` of the previous page of a list; null: the first page",
            "as_of": _AS_OF,
        },
    ),
    RecalledMemories: SharedBody(
        "The memories that were found, best first, or a page of those that are listed.",
        {
            "memories": "Memories, best first; in a list in its order, each with the score 0",
            "more": "Whether more were found than `limit` and `token_budget` allow",
            "waiting": "Number of passages of the graph that are not embedded yet, and are found by words only",
            "searched_for": "What was searched for, where a query has typing errors: the queries without them",
            "next_cursor": "Value of `cursor` for the next page of a list; omitted on the last one",
            "note": "What the graph holds, in a sentence, where nothing was found",
        },
    ),
    RecalledMemory: SharedBody(
        "One memory that was found. Fields that are null, false or empty are omitted.",
        {
            "id": _MEMORY_ID,
            "node": "Id of the node, a UUID: the entity that the memory is about, or the fact",
            "text": "Text of the memory, or the part of it that matches best",
            "score": _SCORE,
            "part": "Whether `text` is only a part of the memory",
            "name": "Name of the entity that the memory is about; null: it is a fact",
            "at": "Time at which it was said; null: not known",
            "outdated": "Whether the memory no longer holds",
            "version": "Number of the newest version of the memory, from 1; null: the text is from another version",
            "version_id": "Id of the version that the text is from; null: the newest version",
            "conflicts": _CONFLICTS,
            "why": "Terms of the score, by name, each from 0 to 1; null: not requested",
            "kind": _KIND,
            "tags": _TAGS,
            "importance": _IMPORTANCE,
            "source": _SOURCE,
            "metadata": _METADATA,
            "reason": _REASON,
        },
    ),
    RelateBody: SharedBody(
        "How entities relate.",
        {"triples": "Triples to store, 1 to 100, in one revision: all are stored or none"},
    ),
    Triple: SharedBody(
        "How one entity relates to another, in active voice: the subject does something to the object.",
        {
            "subject": _SUBJECT,
            "predicate": _PREDICATE,
            "object": _OBJECT,
            "metadata": f"{_METADATA}, which replaces that of a known triple; null: a known triple keeps its own",
        },
    ),
    RelatedTriples: SharedBody("What became of each triple.", {"relations": "One entry for each triple, in order"}),
    RelatedTriple: SharedBody(
        "What became of one triple.",
        {
            "subject": _SUBJECT,
            "predicate": _PREDICATE,
            "object": _OBJECT,
            "status": "`new`, `updated` (it had other metadata) or `known`",
        },
    ),
    ReviseBody: SharedBody(
        "What to change of one memory or node. Omitted fields stay as they are.",
        {
            "id": "Id of the memory or node; null: `name` has its name",
            "name": "Name of the entity; null: `id` has its id",
            "text": "New text of the memory, or content of the node; null: it stays",
            "tags": "New tags, which replace all that it has; null: they stay",
            "importance": "New importance, from 0 to 10; null: it stays",
            "status": f"New status: {_STATUS}; null: it stays, except that a new text makes it `active`",
            "ttl_days": "Days from now until it expires; 0: never; null: as before",
            "reason": "Why it is changed, which is stored with the new version; null: not stated",
            "based_on_version": "Number of the version that you read: the change is made only if there is no newer "
            "one; null: it is made in any case",
        },
    ),
    RevisedMemory: SharedBody(
        "The newest version of the memory or node. Fields that are null or empty are omitted.",
        {
            "id": "Id of the memory or node, a UUID; another one if its entity had another memory with this text",
            "node": _NODE_ID,
            "status": "`revised`, `unchanged` (it was like that already) or `conflict` (another version is newer)",
            "version": "Number of the newest version",
            "text": "Text of the newest version; null: none, as for most entities",
            "conflict": "Text that was not written; with the policy `manual`, texts of the other versions",
        },
    ),
    ForgetBody: SharedBody(
        "What to forget.",
        {
            "ids": "Ids of memories and nodes",
            "names": "Names of entities, each in all its forms",
            "reason": "Why they are forgotten, which is stored with them; null: not stated",
            "mode": "`outdated` (kept, and recalled on request only) or `delete`",
        },
    ),
    ForgottenMemories: SharedBody(
        "What was forgotten.",
        {
            "forgotten": "Ids of the memories and nodes that were forgotten",
            "not_found": "Ids and names of the request that do not exist; omitted: all exist",
        },
    ),
    ExploreBody: SharedBody(
        "Where to look around, and how far.",
        {
            "start": "Id of the node or memory, or name of the entity, where to start",
            "to": "Id or name of another one: the paths to it are returned instead; null: what surrounds the start",
            "depth": "Maximum number of relations between the start and a node",
            "direction": "Which relations are followed: `outgoing` from each node, `incoming`, or `both`",
            "predicates": "Only relations of these types; empty: all",
            "max_nodes": f"Maximum number of nodes, including the start; null: {MAX_NODES}",
            "as_of": _AS_OF,
        },
    ),
    ExploredGraph: SharedBody(
        "What was reached.",
        {
            "nodes": "Nodes, the nearest first",
            "relations": "Relations among the nodes",
            "paths": "Paths from `start` to `to`, each as the names (or ids) of its nodes; empty without `to`",
            "cut": "Name of the limit that ended the search early, such as `nodes`; empty: nothing is missing",
        },
    ),
    ExploredNode: SharedBody(
        "A node that was reached. Fields that are null are omitted.",
        {
            "id": _NODE_ID,
            "version": "Number of its newest version",
            "name": _NAME,
            "kind": _KIND,
            "text": f"First {MAX_EXCERPT} characters of what is known of it, the newest first; null: nothing",
            "status": "`outdated` or `archived`; null: it is active",
        },
    ),
    ExploredEdge: SharedBody(
        "A relation between two of the nodes.",
        {
            "subject": "Name of the entity, or id of the fact, where it starts",
            "predicate": "Type of the relation, such as `works_at`",
            "object": "Name of the entity, or id of the fact, where it ends",
            "created_at": "Time of creation",
        },
    ),
    NodeItemBody: SharedBody(
        "A node in a list.",
        {
            "id": _NODE_ID,
            "name": _NAME,
            "kind": _KIND,
            "text": f"First {EXCERPT} characters of the summary or, without one, of the content",
            "text_cut": "Whether the node has more text than `text`",
            "tags": _TAGS,
            "importance": _IMPORTANCE,
            "status": _STATUS,
            "stale": _STALE,
            "version": "Number of the version, from 1",
            "conflicts": _CONFLICTS,
            "created_at": "Time at which the first version was written",
            "updated_at": "Time at which this version was written",
            "updated_by": _WRITTEN_BY,
        },
    ),
    VersionBody: SharedBody("One version of a node.", _VERSION),
    NodeBody: SharedBody(
        "The newest version of a node, with its observations.",
        {
            **_VERSION,
            "created_at": "Time at which the first version was written",
            "stale": _STALE,
            "observations": "Texts of the entity's observations, oldest first; empty for a fact",
            "omitted_observations": "Where all observations would not fit a reply, and the newest are told: how many "
            "older ones are left out, and what tells the next of them; null: none are left out",
        },
    ),
    OmittedObservations: SharedBody(
        "How many older observations of an entity an answer leaves out, and what tells the next of them.",
        {
            "count": "How many observations are left out",
            "next": "What tells the next of them, with the argument that says how many were told before",
        },
    ),
    RelationBody: SharedBody(
        "A relation of a node.",
        {
            "id": "Id of the relation, a UUID",
            "type": "Type of the relation, such as `works_at`",
            "direction": "`outgoing` if the relation starts at the requested node, otherwise `incoming`",
            "source": "Node at which the relation starts",
            "target": "Node at which the relation ends",
            "metadata": _METADATA,
            "ordinal": "Position among the relations of its source; null: none",
            "dangling": "Whether the target no longer exists",
            "created_at": "Time of creation",
            "created_by": f"Subject that created it, {SUBJECT}",
            "updated_at": "Time of the last change",
        },
    ),
    RelationEndBody: SharedBody(
        "One end of a relation.",
        {
            "id": "Id of the node, a UUID",
            "name": "Name of the entity; null: the node is a fact, or no longer exists",
            "graph": "Name of the node's graph; null: it no longer exists, or the credential may not access it",
        },
    ),
    PlanBody: SharedBody(
        "The limits of the tenant's plan, and what is used of them.",
        {
            "plan": "Name of the plan; `unlimited` has no limits",
            "quotas": "Limits of what the tenant may store, and have embedded in a day",
            "rates": "Limits of how often and how much at once the tenant may call",
        },
    ),
    QuotaBody: SharedBody(
        "One quota of the plan, and what is used of it.",
        {
            "quota": "`graphs`, `nodes_per_graph`, `observations`, `stored_bytes` or `embeddings_per_day`",
            "limit": "Maximum; null: no limit",
            "used": "What is used now, for `nodes_per_graph` in the fullest graph; null: the key is limited to some "
            "graphs and may not know",
        },
    ),
    RatesBody: SharedBody(
        "How often and how much at once the tenant may call.",
        {
            "requests_per_minute": "Maximum number of requests of the tenant in a minute; null: no limit",
            "key_requests_per_minute": "Maximum number of requests of the calling key in a minute; null: no limit",
            "concurrent_calls": "Maximum number of calls of the tenant at the same time; null: no limit",
        },
    ),
    UsageRow: SharedBody(
        "The calls of one name in an hour, a day, a month, or the whole range.",
        {
            "since": "Start of the hour, day, month or range (UTC)",
            "kind": "`tool`, `resource`, `route` or `work` (of the worker)",
            "name": "Name of the tool, resource or work; of a route its method and path",
            **_COUNTED,
        },
    ),
    UsagePoint: SharedBody("The calls of one hour or day.", {"since": "Start of the hour or day (UTC)", **_COUNTED}),
    StoredCounts: SharedBody(
        "What a graph contains now, including what has expired and waits to be purged.",
        {
            "graph": "Name of the graph",
            "entities": "Number of entities",
            "facts": "Number of facts",
            "observations": "Number of observations",
            "relations": "Number of relations",
            "passages": "Number of live passages, the searchable pieces of texts",
            "passage_bytes": "Bytes that live passages take with their vectors, estimated from a sample",
        },
    ),
}
"""The bodies that tools have, too."""
