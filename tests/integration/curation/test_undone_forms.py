"""Undo brings back no second form of a name that was not there before, and all forms that were."""

import unicodedata
from dataclasses import replace
from uuid import UUID

import pytest

from recollect.curation.undo.model import Reason
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.relations import service as relations
from tests.integration.curation.test_undo import undo
from tests.support.memories import Agent, names

COMPOSED = "Zoë"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.fixture
def other(agent: Agent) -> Agent:
    """Another actor on the same graph."""
    return replace(agent, caller=replace(agent.caller, subject="other"))


async def test_a_deleted_form_stays_deleted_where_another_was_created_since(agent: Agent, other: Agent) -> None:
    await agent.create(DECOMPOSED)
    await agent.delete(DECOMPOSED)
    await other.create(COMPOSED)
    done = await undo(agent, 1, actor=agent.caller.subject)
    assert [skipped.reason for skipped in done.skipped] == [Reason.NAME_TAKEN]
    assert names(await agent.read()) == [COMPOSED]


async def test_a_former_form_does_not_come_back_beside_one_that_took_the_name(agent: Agent, other: Agent) -> None:
    await agent.create(DECOMPOSED)
    await rename(agent, DECOMPOSED, "Anna")
    await other.create(COMPOSED)
    done = await undo(agent, 1, actor=agent.caller.subject)
    assert [skipped.reason for skipped in done.skipped] == [Reason.NAME_TAKEN]
    assert sorted(names(await agent.read())) == ["Anna", COMPOSED]


async def test_both_forms_come_back_where_both_were(agent: Agent) -> None:
    """As an import of old had made them."""
    await both_forms(agent)
    await agent.delete(COMPOSED)
    assert names(await agent.read()) == []
    done = await undo(agent, 1)
    assert done.skipped == []
    assert names(await agent.read()) == [DECOMPOSED, COMPOSED]


async def test_a_form_comes_back_beside_the_one_beside_which_it_stood(agent: Agent) -> None:
    decomposed, _ = await both_forms(agent)
    async with agent.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, [decomposed])
    assert names(await agent.read()) == [COMPOSED]
    done = await undo(agent, 1)
    assert done.skipped == []
    assert sorted(names(await agent.read())) == sorted([DECOMPOSED, COMPOSED])


async def test_a_change_of_the_form_is_undone(agent: Agent) -> None:
    await agent.create(DECOMPOSED)
    await rename(agent, DECOMPOSED, COMPOSED)
    done = await undo(agent, 1)
    assert done.skipped == []
    assert names(await agent.read()) == [DECOMPOSED]


async def both_forms(agent: Agent) -> list[UUID]:
    async with agent.writing() as (tx, revision):
        fields = [NodeFields(name=form, kind="person") for form in (DECOMPOSED, COMPOSED)]
        return await nodes.create_nodes(tx, revision, fields, exactly=True)


async def rename(agent: Agent, name: str, new_name: str) -> None:
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, [name]))[name]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=new_name))])
