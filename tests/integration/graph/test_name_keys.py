"""The keys of names: Python and PostgreSQL compute the same, and the rows have them."""

import sys
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite, name_key
from recollect.graph.relations import service as relations
from tests.support.memories import Agent, names

NFC, NFD = "Zoë", "Zoe\u0308"
WHITE_SPACE = list(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
SCRIPTS = (
    st.characters(min_codepoint=0x1100, max_codepoint=0x11FF),  # Hangul, in parts
    st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),  # Hangul, composed
    st.characters(min_codepoint=0x0900, max_codepoint=0x097F),  # Devanagari
    st.characters(min_codepoint=0x1E00, max_codepoint=0x1EFF),  # Latin with marks, as Vietnamese is written
    st.characters(min_codepoint=0x0300, max_codepoint=0x036F),  # marks that combine
    st.characters(min_codepoint=0x1D15E, max_codepoint=0x1D1C0),  # musical symbols, which no normal form composes
    st.sampled_from(WHITE_SPACE),
    st.sampled_from("aeioAEIO\u212b\u2126\ufb01\u0344\u0958\u200b\u200d\ufeff"),
)
NAMES = st.text(st.one_of(*SCRIPTS), min_size=1, max_size=24)


def is_known(text: str) -> bool:
    """Whether all characters were assigned long ago: newer ones may be unknown to one of Python and PostgreSQL."""
    return all(unicodedata.ucd_3_2_0.category(character) != "Cn" for character in text)


@pytest.fixture(scope="module")
async def reader(owner_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(owner_url, server_settings={"search_path": "recollect, public"})
    yield connection
    await connection.close()


async def test_every_white_space_of_unicode_is_trimmed_by_both(reader: asyncpg.Connection) -> None:
    assert len(WHITE_SPACE) == 29
    padded = [f"{space}a{space}b{space}" for space in WHITE_SPACE]
    stored = [row["key"] for row in await reader.fetch("SELECT name_key(n) AS key FROM unnest($1::text[]) n", padded)]
    assert stored == [name_key(name) for name in padded]
    assert stored == [unicodedata.normalize("NFC", f"a{space}b") for space in WHITE_SPACE]


async def test_no_other_character_is_trimmed(reader: asyncpg.Connection) -> None:
    others = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000 and not chr(code).isspace()]
    padded = [f"{other}a{other}" for other in others if is_known(other)]
    rows = await reader.fetch("SELECT n, name_key(n) AS key FROM unnest($1::text[]) n", padded)
    assert [row["n"] for row in rows if row["key"] != name_key(row["n"])] == []


@given(written=st.lists(NAMES.filter(is_known), min_size=1, max_size=50))
@example(written=["\u1d15e" * 3, "각", "\u1100\u1161\u11a8", "क\u093c", "\u0958", "e\u0302\u0323", "ệ", " \u0301a"])
@example(written=["\U0001d160" * 512, "\ufb2c" * 512, "a" * 512, "\u0390" * 512])
async def test_both_compute_the_same_key(reader: asyncpg.Connection, written: list[str]) -> None:
    rows = await reader.fetch("SELECT name_key(n) AS key FROM unnest($1::text[]) n", written)
    keys = [row["key"] for row in rows]
    assert keys == [name_key(name) for name in written]
    assert all(len(key.encode()) <= 2048 for key in keys)
    assert [name_key(key) for key in keys] == keys


async def test_only_names_that_differ_from_their_keys_have_one_stored(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)), NewEntity(f"{NFD} ", "person", ("sails",)))
    assert await stored_keys(owner, agent.caller) == {"Ada": None, f"{NFD} ": NFC}
    await rename(agent, f"{NFD} ", "Zoe")
    assert await stored_keys(owner, agent.caller) == {"Ada": None, "Zoe": None}
    await rename(agent, "Zoe", NFD)
    assert await stored_keys(owner, agent.caller) == {"Ada": None, NFD: NFC}
    versions = await owner.fetch(
        "SELECT name, name_key FROM node_versions WHERE tenant_id = $1 AND name <> 'Ada' ORDER BY version",
        agent.caller.tenant_id,
    )
    assert [tuple(row) for row in versions] == [(f"{NFD} ", NFC), ("Zoe", None), (NFD, NFC)]
    assert await agent.create(NFC) == []


async def test_an_entity_can_be_renamed_to_another_form_of_its_name(agent: Agent) -> None:
    await agent.create(NFD)
    await rename(agent, NFD, NFC)
    assert names(await agent.read()) == [NFC]


async def test_the_longest_names_fit_the_indexes(agent: Agent) -> None:
    longest = ["\U0001d160" * 512, "\ufdfa" * 512, f"{chr(0x10000) * 511} ", "\u0390" * 512]
    assert await agent.create(*longest) == longest
    assert await agent.create(*longest) == []


async def test_where_both_forms_are_stored_the_exact_one_is_found(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        fields = [NodeFields(name=form, kind="person") for form in (NFD, NFC, f"{NFC} ")]
        _, composed, _ = await nodes.create_nodes(tx, revision, fields, exactly=True)
    for form in (NFC, NFD, f"{NFC} "):
        assert await agent.observe(form, f"said of {form!r}") == [f"said of {form!r}"]
    graph = await agent.read()
    assert {e.name: e.observations for e in graph.entities} == {f: (f"said of {f!r}",) for f in (NFD, NFC, f"{NFC} ")}
    await agent.observe(f" {NFD}", "of no exact form")  # Its key is the name of one.
    assert "of no exact form" in {e.name: e for e in (await agent.read()).entities}[NFC].observations
    async with agent.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, [composed])
    await agent.observe(NFC, "of the oldest form that is left")
    assert "of the oldest form that is left" in {e.name: e for e in (await agent.read()).entities}[NFD].observations


async def test_an_expired_entity_gives_its_name_away_in_every_form(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NFD)
    await owner.execute(
        "UPDATE nodes SET expires_at = now() - interval '1 day' WHERE tenant_id = $1", agent.caller.tenant_id
    )
    assert await agent.create(NFC) == [NFC]
    assert names(await agent.read()) == [NFC]


async def stored_keys(owner: asyncpg.Connection, caller: Caller) -> dict[str, str | None]:
    rows = await owner.fetch("SELECT name, name_key FROM nodes WHERE tenant_id = $1", caller.tenant_id)
    return {row["name"]: row["name_key"] for row in rows}


async def rename(agent: Agent, name: str, new_name: str) -> None:
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, [name]))[name]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=new_name))])
