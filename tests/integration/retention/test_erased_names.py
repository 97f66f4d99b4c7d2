"""A name is found in each of its forms, both by PostgreSQL and by Python."""

import json
import re
import unicodedata

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.nodes.model import NodeFields
from recollect.retention.erasure.model import redacted, texts_to_search
from recollect.retention.erasure.name_patterns import pattern_of, whole_pattern_of
from tests.support.examples import examples

pytestmark = pytest.mark.whole_database

FOUND = (
    ("李明", "李明喜欢茶"), ("李明", "我喜欢李明"), ("Ada", "我喜欢Ada的书"), ("か", "かは"),
    ("田中", "田中さんは来た"), ("김철수", "김철수는 왔다"), ("Ada", "Ada는 왔다"), ("김", "\u1100\u1175\u11b7은"),
    ("สมชาย", "ฉันชอบสมชายมาก"), ("ສົມ", "ຂ້ອຍຮູ້ຈັກສົມດີ"), ("သူရ", "ကိုသူရက"), ("សុខ", "លោកសុខបាន"),
    ("José", "Jose\u0301 left"), ("Jose\u0301", "JOSÉ left"), ("Nguyễn Độ", "Nguyê\u0303n Đô\u0323"),
    ("straße", "STRASSE"), ("Strasse", "straße"), ("Schlossstrasse", "SCHLOẞSTRASSE"), ("Fiona", "ﬁona"),
    ("İbrahim", "ibrahim"), ("ibrahim", "İBRAHİM"), ("İbrahim", "i\u0307brahim"), ("ışık", "IŞIK"),
    ("ΓΙΏΡΓΟΣ", "ο Γιώργος ήρθε"), ("Γιώργος", "ΓΙΏΡΓΟΣ"), ("Ka", "\u212aa"),
    ("Anne Marie", "Anne  Marie"), ("Anne Marie", "so Anne\nMarie"), ("Anne\u00a0Marie", "anne marie"),
    ("Anne Marie", json.dumps({"a": "met\nAnne\nMarie"})), ('A "B" \\c', json.dumps(['A "B" \\c'])),
    ("Ada", "Ada🎉"), ("Ada", "→Ada™"), ("Ada", "ADA's engine"), ("C++ (x)", "of c++ (x)!"), ("राम", "राम ने"),
)  # fmt: skip
MISSED = (
    ("Ada", "Adamant"), ("Ada", "granada"), ("Ada", "ada_1"), ("Jose", "José"), ("Jose", "Jose\u0301"), ("か", "が"),
    ("か", "か\u3099"), ("기", "김"), ("기", "\u1100\u1175\u11b7"), ("राम", "रामा"), ("Anne Marie", "AnneMarie"),
    ("Agent 7", "Agent 77"), ("", "anything"), (" ", "any thing"),
)  # fmt: skip

LETTERS = "aAkK\u212asSſßẞfiIıİlﬁﬃσςΣὧᾧ\u0345éE\u0301\u0302\u0323\u0307oộÔ李茶かがカ\u3099สช\u0e34김기\u1175\u11b7रा7_"
MARKS = " \n\t\u00a0\u3000-'\"\\.()[]{}^$|*+?nt🎉\ufe0f"
texts = st.text(st.sampled_from(LETTERS + MARKS), max_size=12)


def finds(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


@pytest.mark.parametrize("found", [True, False])
async def test_a_name_is_found_in_its_forms_and_not_within_other_words(owner: asyncpg.Connection, found: bool) -> None:
    for name, text in FOUND if found else MISSED:
        pattern = pattern_of([name])
        assert finds(pattern, text) is found, (name, text)
        assert await owner.fetchval("SELECT $1 ~ $2", text, pattern) is found, (name, text)
        fields = NodeFields(name="n", content=text, metadata={"a": [text]})
        taken = redacted(fields, {searched for searched in texts_to_search(fields) if finds(pattern, searched)})
        assert (taken.content is None, taken.metadata == {}) == (found, found)


async def test_an_empty_name_is_found_nowhere(owner: asyncpg.Connection) -> None:
    for pattern in (pattern_of([]), pattern_of(["", " "]), whole_pattern_of([]), whole_pattern_of([""])):
        assert not any(finds(pattern, text) for text in ("", " ", "a"))
        assert await owner.fetchval("SELECT '' ~ $1 OR ' ' ~ $1 OR 'a' ~ $1", pattern) is False


async def test_many_long_names_make_one_pattern(owner: asyncpg.Connection) -> None:
    names = [f"{'ffiss' * 40}{number} 李" for number in range(100)]
    assert await owner.fetchval("SELECT $1 ~ $2", f"so {names[-1].upper()}", pattern_of(names)) is True


@examples(30)
@given(names=st.lists(texts.filter(str.strip), min_size=1, max_size=3), given_texts=st.lists(texts, max_size=20))
async def test_postgresql_and_python_find_the_same(
    owner: asyncpg.Connection, names: list[str], given_texts: list[str]
) -> None:
    around = [f"{before}{name}{after}" for name in names for before in ("", "a", "李") for after in ("", "s", "さ")]
    looked = [*given_texts, *around, *(name.upper() for name in names), *(name.lower() for name in names)]
    for pattern in (pattern_of(names), whole_pattern_of(names)):
        found = await owner.fetchval("SELECT ARRAY(SELECT t ~ $2 FROM unnest($1::text[]) AS t)", looked, pattern)
        assert found == [finds(pattern, text) for text in looked]
    forms = [unicodedata.normalize(form, name.strip()) for form in ("NFC", "NFD") for name in names]
    assert all(finds(whole_pattern_of(names), form) for form in [*forms, *names])
