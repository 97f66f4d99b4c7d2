"""Which questions ask for everything, and about what."""

import pytest

from recollect.retrieval.recall.overviews import MAX_OVERVIEW, Overview, overview_of
from recollect.retrieval.recall.pages import Order


def test_questions_for_everything_are_known_in_several_languages(subtests: pytest.Subtests) -> None:
    for question in (
        "everything",
        "All memories!",
        "Summarize",
        "Give me an overview, please.",
        "What do you know?",
        "What is new?",
        "alles",
        "Was weißt du?",
        "tout",
        "Que sais-tu ?",
        "¿Qué sabes?",
        "resumo",
        "riassunto",
        "samenvatting",
        "wszystko",
        "Расскажи мне всё",
        "her şeyi anlat",
        "总结一下",
        "すべて教えて",
        "모두 알려줘",
        "*",
        " .* ",
        "%",
    ):
        with subtests.test(question):
            assert overview_of(question) == Overview()


def test_they_may_name_something(subtests: pytest.Subtests) -> None:
    for question, name in {
        "What do you know about Bob?": "Bob",
        "Tell me everything about Maria.": "Maria",
        "summary of acme-api": "acme-api",
        "Bob: everything": "Bob",
        "Show me notes on Bank of America": "Bank of America",
        "tell me about my_project": "my_project",
        "Was weißt du über Bob?": "Bob",
        "Dis-moi tout sur Marie !": "Marie",
        "¿Qué sabes de Bob?": "Bob",
        "Расскажи про Анну": "Анну",
        "Bob hakkında ne biliyorsun?": "Bob",
        "关于张伟你知道什么？": "张伟",
        "ボブについて知っていることをすべて教えて": "ボブ",
        "밥에 대해 알고 있는 것을 모두 알려줘": "밥",
    }.items():
        with subtests.test(question):
            overview = overview_of(question)
            assert overview is not None
            assert overview.subjects[0] == name
            assert not overview.is_sure, "without an entity of that name, it is a question like others"


def test_a_name_may_consist_of_words_that_ask_or_end_in_a_possessive() -> None:
    assert overview_of("Tell me about The Who") == Overview(("The Who",), is_sure=True)
    assert overview_of("everything about it") == Overview(("it",), is_sure=True)
    found = overview_of("Summarize Bob’s notes")
    assert found is not None
    assert "Bob" in found.subjects


def test_questions_for_something_are_none(subtests: pytest.Subtests) -> None:
    for question in (
        "Who is Bob?",
        "notes",
        "memory",
        "Will",
        "IT",
        "The Who",
        "todo",
        "last",
        "Which port does the staging API listen on?",
        "🎉",
        "everything " * MAX_OVERVIEW,
    ):
        with subtests.test(question):
            assert overview_of(question) is None
    about_nothing = overview_of("Did all the tests pass?")
    assert about_nothing is None or not about_nothing.is_sure


def test_beside_a_filter_words_that_add_nothing_ask_for_everything(subtests: pytest.Subtests) -> None:
    for question in ("notes", "list all memories tagged deadline", "deadline", "what is there?", "the Deadlines"):
        with subtests.test(question):
            assert overview_of(question, filtered=True, values=("deadline", "Deadlines")) == Overview()
    assert overview_of("taxes", filtered=True, values=("deadline",)) is None
    assert overview_of("deadline", filtered=True, values=("travel",)) is None


def test_the_most_important_come_first_where_they_are_asked_for() -> None:
    assert overview_of("What are the most important things?") == Overview(order=Order.IMPORTANCE)


def test_punctuation_and_emoji_ask_for_nothing(subtests: pytest.Subtests) -> None:
    """They are searched for as they are, beside a filter, too."""
    for question in ("?", "???", "...", "-", "。。。", "🎉", "🎉🔥 !"):
        with subtests.test(question):
            assert overview_of(question) is None
            assert overview_of(question, filtered=True, values=("travel",)) is None
