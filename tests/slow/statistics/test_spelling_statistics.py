"""Whether words of a question are mistyped is looked up, however many passages and words the graph has."""

from itertools import product

from recollect.graph.graphs import service as graphs
from recollect.memory.model import NewMemory
from recollect.postgres.sql import QueryPlan
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from tests.support.column_statistics import BATCH, Work
from tests.support.memories import count_words, embedded_questions

BATCHES, LETTERS = 2, "bdfgklmnprst"
NAME = "Zambonelli"
WORDS = ["".join(syllables) for syllables in product(*[[f"{letter}o" for letter in LETTERS]] * 3)][: BATCHES * BATCH]
"""Words of one length. In all, a twelfth of them begins with the same letter, and all end in one."""


async def fill(work: Work) -> None:
    """Memories of one entity, whose name none of them says, each with a word of its own."""
    for start in range(0, len(WORDS), BATCH):
        words = WORDS[start : start + BATCH]
        await work.agent.remember(*(NewMemory(f"Drinks {word}.", about=(NAME,)) for word in words))
    async with work.agent.db.transaction(work.agent.caller) as tx:
        await count_words(tx)


async def corrected(work: Work, text: str) -> list[str]:
    """The question without its typing errors."""
    questions = await embedded_questions(text)
    work.watch.clear()
    async with work.agent.db.transaction(work.agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
        view = await graphs.view(tx, None)
        found = await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_000, correcting=True)
    return list(found.corrected)


async def test_a_name_that_all_passages_have_is_looked_up(work: Work) -> None:
    await fill(work)
    assert await corrected(work, f"What does {NAME} drink?") == []
    assert 0 < work.watch.rows["recall.unknown_words"] < 20


async def test_only_words_of_the_same_length_and_letter_are_compared(work: Work) -> None:
    await fill(work)
    assert await corrected(work, "Who drinks bobodq?") == ["Who drinks bobodo?"]
    # Each of a twelfth of the words passes several steps of the plan.
    assert 0 < work.watch.rows["recall.similar_words"] < 2 * len(WORDS)


async def test_a_word_that_no_passage_has_is_looked_up(work: Work) -> None:
    await fill(work)
    await work.owner.execute("ANALYZE")
    assert await corrected(work, "Who drinks xylqvor?") == []
    read = work.watch.rows
    assert read["recall.unknown_words"] + read.get("recall.is_word_in_use", 0) < 20
