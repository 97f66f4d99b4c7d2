"""Who wrote something: the subject of a version, as a name that people know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.service import GRANT_SUBJECT, KEY_SUBJECT, PERSON_SUBJECT
from recollect.accounts.members import service as members
from recollect.accounts.oauth.grants import service as grants
from recollect.graph.graphs import history
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.observations import service as observations
from recollect.postgres.transactions import Transaction

MOST = 200
"""Keys, members and grants of which the names are known; others are shown by their kind."""

_ICONS = {KEY_SUBJECT: "key", PERSON_SUBJECT: "user", GRANT_SUBJECT: "bot"}
_UNNAMED = {KEY_SUBJECT: "an API key", PERSON_SUBJECT: "a former member", GRANT_SUBJECT: "a former client"}


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote: a name, the icon of what it is, and, of a client, the person for whom it acts."""

    name: str
    icon: str
    on_behalf_of: str = ""


async def authors_of(tx: Transaction, subjects: Iterable[str]) -> Mapping[str, Author]:
    """The author of each of these subjects."""
    sought = set(subjects)
    known: dict[str, Author] = {}
    if _any(sought, KEY_SUBJECT):
        known |= {f"{KEY_SUBJECT}{key.id}": Author(key.name, "key") for key in await identity.list_keys(tx, limit=MOST)}
    if _any(sought, PERSON_SUBJECT):
        found = await members.list_members(tx, limit=MOST)
        known |= {f"{PERSON_SUBJECT}{member.person_id}": Author(member.name, "user") for member in found}
    if _any(sought, GRANT_SUBJECT):
        known |= {
            f"{GRANT_SUBJECT}{grant.id}": Author(grant.client_name, "bot", grant.person_name)
            for grant in await grants.list_grants(tx, limit=MOST)
        }
    return {subject: known.get(subject) or _unnamed(subject) for subject in sought}


async def writers_lately(view: GraphView) -> list[str]:
    """The subjects that wrote in a graph of late, for a choice."""
    if not view.is_there:
        return []
    actors, _ = await history.actors_of(view.tx, view.graph, await graphs.newest_revision(view.tx, view.graph))
    return list(actors)


async def writers_of(view: GraphView, memory_ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """The subject that wrote each of these memories, by its id; observations and nodes that are gone are left out."""
    if not memory_ids:
        return {}
    said = await observations.observations_by_id(view.tx, view.graph, memory_ids)
    facts = await lineages.get_nodes(view, [memory_id for memory_id in memory_ids if memory_id not in said])
    return {id_: each.created_by for id_, each in said.items()} | {fact.node_id: fact.created_by for fact in facts}


def _any(subjects: Iterable[str], kind: str) -> bool:
    return any(subject.startswith(kind) for subject in subjects)


def _unnamed(subject: str) -> Author:
    kind = f"{subject.partition(':')[0]}:"
    return Author(_UNNAMED.get(kind, subject.partition(":")[0] or "unknown"), _ICONS.get(kind, "server"))
