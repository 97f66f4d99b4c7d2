"""Conditions that have a name in planner.sql are written by it, so that nobody reads or changes an idiom alone."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import recollect
from recollect.postgres import schema
from recollect.postgres.sql import parse

CORE = Path(recollect.__file__).parent

NAMED = {
    "same_key(a, b)": r"([\w.:]+|\w+\([\w.:]+(?:, 0)?\)) BETWEEN ([\w.:]+|\w+\([\w.:]+(?:, 0)?\))\s+AND \2(?![\w.(])",
    "as_filter(…)": r"\) IS TRUE\b",
    "is_live(removed)": r"coalesce\([\w.]*removed_revision, 0\) = 0",
    "is_live_at(removed, revision)": r"\b([\w.]*_revision) IS NULL OR \1 > (?::as_of_revision|at_revision)\b",
    "is_current(expires)": r"\b([\w.]*expires_at) IS NULL OR \1 > statement_timestamp\(\)",
    "is_current_at(expires, time)": r"\b([\w.]*expires_at) IS NULL OR \1 > (?::as_of_time|:revision_time|at_time)\b",
}
"""What to write, and the pattern of what it stands for."""

DEFINITION = re.compile(r"^(?:CREATE (?!FUNCTION)|ALTER)[^;]*;", re.MULTILINE)
"""Indexes and constraints, which use no function of planner.sql."""


def _texts() -> Iterator[tuple[str, str]]:
    for file in sorted(CORE.rglob("queries.sql")):
        yield str(file.relative_to(CORE)), file.read_text("utf-8")
    for name in schema.FILES:
        if name != "planner":
            text = (files(schema) / f"{name}.sql").read_text("utf-8")
            yield f"schema/{name}.sql", DEFINITION.sub("", text)


def test_named_conditions_are_written_by_their_names(subtests: pytest.Subtests) -> None:
    for file, text in _texts():
        with subtests.test(file):
            code = re.sub(r"--(?! include).*", "", text)
            found = {name: match[0] for name, idiom in NAMED.items() if (match := re.search(idiom, code))}
            assert found == {}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("same_key(a, b)", "id BETWEEN i.id AND i.id"),
        (
            "same_key(a, b)",
            "hashtextextended(content, 0) BETWEEN hashtextextended(i.content, 0)\n AND hashtextextended(i.content, 0)",
        ),
        ("as_filter(…)", "(graph_id = :graph_id) IS TRUE"),
        ("is_live(removed)", "coalesce(n.removed_revision, 0) = 0"),
        ("is_live_at(removed, revision)", "(removed_revision IS NULL OR removed_revision > :as_of_revision)"),
        ("is_current(expires)", "(n.expires_at IS NULL OR n.expires_at > statement_timestamp())"),
        ("is_current_at(expires, time)", "WHERE expires_at IS NULL OR expires_at > :as_of_time"),
    ],
)
def test_what_a_name_stands_for_is_found(name: str, written: str) -> None:
    assert re.search(NAMED[name], written)


MAX_TABLES_WITH_LETTERS = 3
"""Up to so many tables, an alias may be a letter."""

RELATIONS = set(
    re.findall(r"^CREATE (?:TABLE|VIEW) ([a-z_]+)", "\n".join(schema.read(name) for name in schema.FILES), re.MULTILINE)
)
TABLE = re.compile(rf"\b(?:FROM|JOIN|UPDATE|INTO|USING) ({'|'.join(sorted(RELATIONS))})\b")
LETTER = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING) [a-z_]+ ([a-z])\b|\) (?:AS )?([a-z])\b(?=[\s;]|$)")


def test_aliases_are_words_where_many_tables_are_read(subtests: pytest.Subtests) -> None:
    for file in sorted(CORE.rglob("queries.sql")):
        for name, statement in parse(file.read_text("utf-8")).items():
            text = re.sub(r"--.*", "", statement)
            if len(TABLE.findall(text)) > MAX_TABLES_WITH_LETTERS:
                with subtests.test(f"{file.parent.name}.{name}"):
                    assert LETTER.findall(text) == []
