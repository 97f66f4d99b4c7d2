"""Memory for Pydantic AI: `Agent(model, toolsets=[memory_toolset(client)])`."""

from typing import Any, Literal

from pydantic_ai.toolsets import FunctionToolset

from recollect_client import AsyncRecollect

INSTRUCTIONS = (
    "You have a memory that outlasts this conversation. Recall before you answer from memory, and remember facts that "
    "will matter later, each in a sentence that stands alone, with the entities that it is about."
)


def memory_toolset(client: AsyncRecollect, *, instructions: str | None = INSTRUCTIONS) -> FunctionToolset[Any]:
    """The six verbs as tools, in the graph of the client; `instructions` tell the model when to call them."""

    async def remember(text: str, about: list[str] | None = None, tags: list[str] | None = None) -> str:
        """Store a fact for later, in one sentence that stands alone. A known fact is not stored twice.

        Args:
            text: The fact.
            about: The names of the entities that it is about, so that it is found with them.
            tags: Words to filter by.
        """
        [memory] = await client.remember(text, about=about, tags=tags)
        close = "".join(f"\nclose: {other.text} [{other.id}]" for other in memory.close)
        return f"{memory.status} [{memory.id}]{close}"

    async def recall(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
        """Find memories by words and by meaning.

        Args:
            query: A question, or a few words.
            limit: How many memories, at most (100).
            tags: Only memories with one of these tags.
        """
        found = await client.recall(query, limit=limit, tags=tags)
        return "\n".join(f"- {memory.text} [{memory.id}]" for memory in found) or found.note or "Nothing found."

    async def relate(subject: str, predicate: str, object: str) -> str:
        """Store how two entities relate, in active voice, such as Ada, works at, Acme.

        Args:
            subject: The name of an entity.
            predicate: The relation.
            object: The name of another entity.
        """
        [relation] = await client.relate([(subject, predicate, object)])
        return relation.status

    async def revise(id: str, text: str, reason: str | None = None) -> str:
        """Correct a memory. The earlier version stays in history.

        Args:
            id: Its id, which recall tells in brackets.
            text: What is right.
            reason: Why it is corrected.
        """
        revised = await client.revise(id, text=text, reason=reason)
        return f"{revised.status}: {revised.text}"

    async def forget(id: str, mode: Literal["outdated", "delete"] = "outdated", reason: str | None = None) -> str:
        """Mark a memory as outdated, or delete it.

        Args:
            id: Its id, which recall tells in brackets.
            mode: Outdated memories stay in history.
            reason: Why it is forgotten.
        """
        return "forgotten" if (await client.forget(id, mode=mode, reason=reason)).forgotten else "not found"

    async def explore(start: str, to: str | None = None) -> str:
        """Show what surrounds an entity, or the paths between two.

        Args:
            start: The name of an entity.
            to: The name of another one.
        """
        found = await client.explore(start, to)
        lines = [f"{each.subject} {each.predicate} {each.object}" for each in found.relations]
        return "\n".join([*lines, *(f"- {node.name}: {node.text}" for node in found.nodes)]) or "Nothing found."

    verbs: list[Any] = [remember, recall, relate, revise, forget, explore]
    return FunctionToolset(verbs, id="recollect", instructions=instructions)
