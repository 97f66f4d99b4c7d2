"""CrewAI's memory: its page, and what a memory promises."""

from datetime import UTC, datetime, timedelta
from typing import Any

from crewai import BaseLLM
from crewai.memory.storage.backend import StorageBackend
from page import run_page

from recollect_client import Recollect
from recollect_client.integrations.crewai import RecollectMemory, RecollectStorage


class Repeating(BaseLLM):
    """A model that says which line of what it was told speaks of Ada, and takes one fact out of a result."""

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        told = "\n".join(str(message["content"]) for message in messages)
        if "Expected result:" in told:
            return '{"memories": ["Ada was served green tea."]}'
        known = next(line for line in told.splitlines() if "Ada drinks" in line).partition(") ")[2]
        return f"Thought: I now can give a great answer\nFinal Answer: I know: {known}"

    def supports_function_calling(self) -> bool:
        return False


def test_records(client: Recollect, llm: BaseLLM) -> None:
    memory = RecollectMemory(client=client, llm=llm, root_scope="/crew")
    assert isinstance(memory.storage, StorageBackend)
    honey = memory.remember("Bees make honey.", scope="/bees", categories=["food"], metadata={"n": 1}, importance=0.9)
    assert honey
    assert (honey.scope, honey.importance) == ("/crew/bees", 0.9)
    memory.remember("Bees make wax.", scope="/bees/wax", categories=["material"])
    memory.remember("Bees keep a secret.", source="ada", private=True)
    memory.remember_many(["Wasps build nests.", "Wasps make no honey."], scope="/wasps")
    assert {match.record.content for match in memory.recall("honey")} >= {"Bees make honey.", "Wasps make no honey."}
    [found] = memory.recall("honey", scope="/bees", categories=["food"])
    assert (found.record.id, found.record.metadata, found.record.created_at) == (honey.id, {"n": 1}, honey.created_at)
    assert memory.recall("secret", source="grace") == []
    assert memory.recall("secret", source="ada")[0].record.private
    assert memory.recall("secret", include_private=True)
    assert memory.recall("honey", scope="/Bees") == [], "case counts"
    assert memory.list_scopes() == ["/crew/bees", "/crew/wasps"]
    assert memory.info("/bees").record_count == 2
    assert memory.list_categories() == {"food": 1, "material": 1}
    assert len(memory.list_records(limit=2, offset=1)) == 2
    changed = memory.update(honey.id, metadata={"n": 2})
    assert changed.metadata == {"n": 2}
    assert memory.info("/bees").record_count == 2
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert memory.forget(older_than=yesterday) == 0
    assert memory.forget(metadata_filter={"n": 2}) == 1
    assert memory.forget(scope="/wasps") == 2
    RecollectMemory(client=client, llm=llm, root_scope="/other").remember("It stays.")
    memory.reset()
    assert RecollectStorage(client).count() == 1
    memory.close()


def test_updates(client: Recollect, llm: BaseLLM) -> None:
    storage, memory = RecollectStorage(client), RecollectMemory(client=client, llm=llm)
    record = memory.remember("The office is in Bonn.")
    assert record
    storage.update(record.model_copy(update={"content": "The office is in Ulm."}))
    assert [match.record.content for match in memory.recall("Where is the office?")] == ["The office is in Ulm."]
    moved = storage.get_record(record.id)
    assert moved
    assert (moved.id, moved.content) == (record.id, "The office is in Ulm.")
    memory.close()


if __name__ == "__main__":
    model = Repeating(model="repeating")
    run_page(llm=model)
    with Recollect(graph="records") as records, Recollect(graph="updates") as updates:
        test_records(records, model)
        test_updates(updates, model)
