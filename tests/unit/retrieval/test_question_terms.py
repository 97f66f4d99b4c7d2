"""Which words of a question count, and which part of a long one."""

import pytest

from recollect.fairness.computing import finish
from recollect.retrieval.recall.prompts import MAX_PART, SHORT_QUESTION, part_that_counts
from recollect.retrieval.recall.ranking import Term
from recollect.retrieval.recall.terms import (
    MAX_EVIDENT,
    MAX_TERMS,
    PROMPT_WORDS,
    counted_words,
    depends_on_unknown,
    question_terms,
)
from recollect.words.analysis import asked_words

CHATTER = " ".join(f"filler{chr(97 + n)}" for n in range(PROMPT_WORDS))


def terms_of(text: str, counts: dict[str, int], passages: int = 100, **how: bool) -> list[Term]:
    return question_terms(counted_words(finish(asked_words(text)), counts), passages, **how)


def test_rare_words_weigh_more_once_words_are_counted() -> None:
    rare, common = terms_of("play the cello", {"play": 50, "cello": 2})
    assert (rare.lexeme, common.lexeme) == ("cello", "play")
    assert rare.idf > common.idf > 0
    assert {term.idf for term in terms_of("play cello", {"play": 1, "cello": 1}, 0)} == {1.0}
    assert terms_of("grown", {"grown": 500})[0].idf > 0  # Counted before the graph shrank.


def test_function_words_count_only_where_there_are_no_others() -> None:
    assert [term.lexeme for term in terms_of("The Who", {"the": 90, "who": 9})] == ["who", "the"]
    assert [term.lexeme for term in terms_of("who played", {"who": 9, "play": 3})] == ["play"]
    named = terms_of("What did Will play", {"what": 50, "will": 40, "Will": 2, "play": 3})
    assert [term.lexeme for term in named] == ["Will", "play"]
    assert [term.lexeme for term in terms_of("What did Will play", {"will": 40, "play": 3})] == ["play"]


def test_words_that_no_passage_has_count_in_a_short_question_and_not_in_a_prompt() -> None:
    assert {term.lexeme for term in terms_of("cello lessons", {"cello": 2})} == {"cello", "lesson"}
    assert [term.lexeme for term in terms_of(f"cello {CHATTER}", {"cello": 2})] == ["cello"]
    unknown = terms_of(f"cello {CHATTER}", {"cello": 2}, all_known=False)
    assert len(unknown) == PROMPT_WORDS + 1


def test_plain_short_questions_do_not_depend_on_what_no_passage_has() -> None:
    for text, depends in (
        ("What does the cello cost", False),
        (CHATTER, True),
        ("The Who", True),
        ("Where does Will work", True),
        ("会議", True),
        ("what about parseHttpRequest", True),
    ):
        assert depends_on_unknown(finish(asked_words(text))) is depends


def test_the_terms_are_the_rarest() -> None:
    counts = {f"w{n:03}": 200 - n for n in range(150)}
    terms = terms_of(" ".join(counts), counts, 1_000)
    assert [term.passages for term in terms] == list(range(51, 51 + MAX_TERMS))


def test_parts_are_asked_for_where_no_passage_has_the_whole() -> None:
    parts = {"http": 4, "request": 9}
    whole = {"httprequest": 2, **parts}
    assert [term.lexeme for term in terms_of("HttpRequest", whole)] == ["httprequest"]
    assert {term.lexeme for term in terms_of("HttpRequest", parts)} == {"httprequest", "http", "request"}


def test_an_identifier_in_few_passages_is_evident_and_a_year_is_not() -> None:
    counts = {"jira-4711": 1, "jira-12": MAX_EVIDENT + 1, "2023": 2, "tea": 1}
    evident = {t.lexeme: t.is_evident for t in terms_of("JIRA-4711 JIRA-12 2023 tea", counts)}
    assert evident == {"jira-4711": True, "jira-12": False, "2023": False, "tea": False}


def test_the_name_of_a_product_is_a_word_and_that_of_a_class_an_identifier() -> None:
    asked = terms_of("Does UserService use TypeScript or SQLAlchemy?", {})
    assert [term.lexeme for term in asked if term.is_evident] == ["userservice"]
    assert {"typescript", "sqlalchemy"} < {term.lexeme for term in asked}


def test_a_single_sign_is_taken_for_a_common_word() -> None:
    [sign] = terms_of("茶", {}, 1_000)
    assert (sign.query, sign.passages) == ("'茶':*", 50)


WEATHER = "The weather was fine on that day. "
PADDING = WEATHER * 200
LOG = "2026-11-03T10:15:00Z INFO worker-7 handled GET /items?page=2 in 31 ms\n" * 20
PORT = "Which port does the gateway use?"


def test_of_a_long_text_the_questions_count(subtests: pytest.Subtests) -> None:
    for text, part in [
        (f"First sentence. {PADDING}{PORT} {PADDING}Last sentence.", PORT),
        (f"{LOG}{PORT}", PORT),
        (f"{PORT}\n{LOG}", PORT),
        (f"Good morning! {PADDING} {PORT} {PADDING} Who renewed the contract of v1.26.4-rc2?", None),
        (f"{LOG}哪个端口用于网关？\n{PORT}", f"哪个端口用于网关？ {PORT}"),
        (f'{PADDING}Somebody asked me "{PORT}"', f'Somebody asked me "{PORT}"'),
    ]:
        with subtests.test(text[-60:]):
            assert part_that_counts(text) == (part or f"{PORT} Who renewed the contract of v1.26.4-rc2?")


def test_a_question_that_refers_to_the_text_around_it_counts_with_it(subtests: pytest.Subtests) -> None:
    for question in ("Which port does it use?", "Can you check?", "Right?", "What is wrong with this log?"):
        with subtests.test(question):
            long = f"First sentence. {PADDING}{question} {PADDING}Last sentence."
            part = part_that_counts(long)
            assert len(part) <= MAX_PART
            assert part.startswith("First sentence. ")
            assert f"{question} " in part
            assert part.endswith("Last sentence.")
            shorter = f"{PADDING[: 15 * len(WEATHER)]}{question}"
            assert part_that_counts(shorter) == shorter


def test_a_short_text_counts_as_a_whole_and_of_one_without_questions_its_end() -> None:
    short = f"{PORT} " + "x" * (SHORT_QUESTION - len(PORT) - 1)
    assert part_that_counts(short) == short
    assert part_that_counts("y" * 900) == "y" * 900
    assert part_that_counts("y" * 5_000) == "y" * MAX_PART
    many = "".join(f"Which port does gateway number {number} use?\n" for number in range(100))
    part = part_that_counts(many)
    assert len(part) <= MAX_PART
    assert part.endswith("number 98 use? Which port does gateway number 99 use?")
