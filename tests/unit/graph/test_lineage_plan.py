"""The plan that is made of drafts before anything is written."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.graph.graphs.model import Graph
from recollect.graph.lineages.model import Draft, plan_puts
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite

NOW = datetime(2027, 1, 31, tzinfo=UTC)
ADA, BABBAGE = UUID(int=1), UUID(int=2)


def graph(policy: str = "lww", kinds: tuple[str, ...] | None = None) -> Graph:
    return Graph(UUID(int=9), "default", policy, kinds, {}, NOW, "operator")


def head(node_id: UUID, version: int = 3, **fields: Any) -> NodeHead:
    return NodeHead(
        id=node_id,
        graph_id=UUID(int=9),
        version=version,
        version_id=UUID(int=100 + version),
        created_at=NOW,
        created_by="operator",
        updated_at=NOW,
        **fields,
    )


HEADS = {ADA: head(ADA, name="Ada", kind="person"), BABBAGE: head(BABBAGE, name="Babbage", kind="cat")}
NAMES = {"Ada": ADA, "Babbage": BABBAGE}


def test_a_draft_without_a_node_is_a_new_lineage() -> None:
    draft = Draft(NodeFields(content="it rained"))
    assert plan_puts(graph(), [draft], {}, {}) == [draft]


@pytest.mark.parametrize(
    ("policy", "based_on", "beside"),
    [
        ("lww", None, False),
        ("lww", 1, False),
        ("lww", 3, False),
        ("manual", None, False),
        ("manual", 3, False),
        ("manual", 2, True),
        ("manual", 1, True),
    ],
)
def test_a_stale_draft_becomes_a_sibling_head_only_under_the_manual_policy(
    policy: str, based_on: int | None, beside: bool
) -> None:
    draft = Draft(NodeFields(name="Ada", kind="person"), ADA, based_on, actor="somebody")
    (step,) = plan_puts(graph(policy), [draft], HEADS, NAMES)
    assert step == Rewrite(HEADS[ADA], draft.fields, based_on, beside, "somebody")


@pytest.mark.parametrize("based_on", [0, 4, -1])
def test_a_draft_based_on_a_nonexistent_version_is_refused(based_on: int) -> None:
    (step,) = plan_puts(graph(), [Draft(NodeFields(name="Ada"), ADA, based_on)], HEADS, NAMES)
    assert isinstance(step, InvalidInput)
    assert step.path == "based_on_version"


def test_a_draft_of_a_placeholder_or_missing_node_is_not_found() -> None:
    heads = {ADA: head(ADA, name="Ada", placeholder=True)}
    steps = plan_puts(graph(), [Draft(NodeFields(), ADA), Draft(NodeFields(), BABBAGE)], heads, {})
    assert [type(step) for step in steps] == [NotFound, NotFound]


def test_a_refused_draft_does_not_affect_the_next() -> None:
    drafts = [Draft(NodeFields(name="Grace"), ADA, 9), Draft(NodeFields(name="Grace"), ADA)]
    steps = plan_puts(graph(), drafts, HEADS, NAMES)
    assert [type(step) for step in steps] == [InvalidInput, Rewrite]


@pytest.mark.parametrize(
    "drafts",
    [
        [Draft(NodeFields(name="Ada"))],
        [Draft(NodeFields(name="Babbage"), ADA)],
        [Draft(NodeFields(name="Grace")), Draft(NodeFields(name="Grace"))],
        [Draft(NodeFields(name="Grace")), Draft(NodeFields(name="Grace"), ADA)],
        [Draft(NodeFields(name="Grace"), ADA), Draft(NodeFields(name="Grace"), BABBAGE)],
        [Draft(NodeFields(name="Grace"), ADA), Draft(NodeFields(name="Grace"))],
    ],
    ids=["made anew", "renamed", "made twice", "made and renamed", "renamed twice", "renamed and made"],
)
def test_a_name_belongs_to_one_node(drafts: list[Draft]) -> None:
    *others, last = plan_puts(graph(), drafts, HEADS, NAMES)
    assert not any(isinstance(step, Exception) for step in others)
    assert isinstance(last, Conflict)
    assert last.path == "name"


def test_a_whitelist_of_kinds_applies_only_to_new_kinds() -> None:
    narrow = graph(kinds=("person",))
    drafts = [
        Draft(NodeFields(name="Grace", kind="cat")),
        Draft(NodeFields(name="Babbage", kind="cat", importance=5), BABBAGE),
        Draft(NodeFields(name="Ada", kind="cat"), ADA),
    ]
    steps = plan_puts(narrow, drafts, HEADS, NAMES)
    assert [type(step) for step in steps] == [InvalidInput, Rewrite, InvalidInput]
    assert [type(step) for step in plan_puts(narrow, [replace(drafts[2], actor="x")], HEADS, NAMES)] == [InvalidInput]
