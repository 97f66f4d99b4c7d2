"""Texts are compared letter for letter, unlike names: each is stored as it was said, and deleted by itself."""

from recollect.memory.model import NewMemory, RememberOutcome
from tests.support.memories import Agent

TEXT = "likes café"
NEARLY = (TEXT + " ", TEXT + "\n", "  " + TEXT, "likes cafe\u0301")


async def test_texts_that_differ_in_white_space_or_normal_form_are_several(agent: Agent) -> None:
    await agent.create("Ada")
    assert await agent.observe("Ada", TEXT, *NEARLY) == [TEXT, *NEARLY]
    assert await agent.observe("Ada", *NEARLY, TEXT) == []
    await agent.unobserve(("Ada", TEXT))
    [ada] = (await agent.open("Ada")).entities
    assert ada.observations == NEARLY


async def test_a_nearly_known_memory_is_new_and_a_known_one_is_not(agent: Agent) -> None:
    for about in ((), ("Ada",)):
        for text in (TEXT, *NEARLY):
            outcomes = [(await agent.remember(NewMemory(text, about=about)))[0].outcome for _ in range(2)]
            assert outcomes == [RememberOutcome.NEW, RememberOutcome.KNOWN]
