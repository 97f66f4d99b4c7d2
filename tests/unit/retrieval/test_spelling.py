"""Which words of a question may be mistyped, and what they are replaced by."""

import pytest

from recollect.retrieval.recall.spelling_correction import MAX_UNUSUAL, correct, nearest_words, unusual_words


@pytest.mark.parametrize(
    ("question", "unusual"),
    [
        ("Where does Ferran deploy the staging clster?", ["ferran", "clster"]),
        ("What do we know?", []),
        ("Mellanie's painitng", ["mellanie", "painitng"]),
        ("Was she deploying, and were they planted?", []),
        ("docs.exampel.com parseHtpRequest JIRA-4711 v1.26.4-rc2 a/pathh/to user@hosst.example", []),
        ("ORCL and NASDQ", []),
        ("hadn't, wouldn’t, d'Arvillle", ["arvillle"]),
        ("the backend's changelog, two frontends", []),
        ("abd xyz", []),
        ("北京的天气 日本語の質問 สวัสดีชาวโลก 안녕하세요", []),
        ("", []),
        ("\x00 \ud800 ' ’s", []),
        ("O\u0308sterreich", ["\u00f6sterreich"]),
    ],
)
def test_words_that_may_be_mistyped(question: str, unusual: list[str]) -> None:
    assert unusual_words([question]) == unusual


def test_the_first_unusual_words_of_all_questions_are_looked_up() -> None:
    words = [letter * 3 + "qx" for letter in "abcdefgh"]
    assert unusual_words([" ".join(words[:2]), " ".join(words)]) == words[:MAX_UNUSUAL]


@pytest.mark.parametrize(
    ("word", "similar", "nearest"),
    [
        ("clster", ["plaster", "cluster"], "cluster"),
        ("clster", ["cluster", "clusters"], "cluster"),
        ("frms", ["farms", "firms"], "farms"),
        ("deplyoemnt", ["deployment"], "deployment"),
        ("dplomt", ["diplomat"], None),
        ("clster", [], None),
    ],
)
def test_the_nearest_word_is_meant(word: str, similar: list[str], nearest: str | None) -> None:
    assert nearest_words({word: similar}, [f"Is {word.title()} here?"]) == ({} if nearest is None else {word: nearest})


@pytest.mark.parametrize(
    ("question", "word", "similar", "nearest"),
    [
        ("Bis wann muss ich die Miete überweißen?", "überweißen", ["überweisen"], "überweisen"),
        ("Wann war die Wanderung?", "wanderung", ["änderung"], None),
        ("Mit wem arbeiten wir?", "arbeiten", ["arbeitet"], None),
        ("Comment les visiteurs entrent-ils ?", "visiteurs", ["visitors"], None),
        ("Kubrnetes", "kubrnetes", ["kubernetes"], "kubernetes"),
        ("Wanderung", "wanderung", ["änderung"], None),
    ],
)
def test_other_languages_have_only_words_that_differ_a_little_inside(
    question: str, word: str, similar: list[str], nearest: str | None
) -> None:
    assert nearest_words({word: similar}, [question]) == ({} if nearest is None else {word: nearest})


@pytest.mark.parametrize(
    ("question", "similar", "right"),
    [
        ("Which instruemnt does she play?", [], {"instruemnt": "instrument"}),
        ("Who is the kernle?", ["kerns"], {"kernle": "kernel"}),
        ("Wo wohnt der kernle von Katrin jetzt?", [], {}),
        ("Who is Kernle?", [], {}),
    ],
)
def test_english_words_count_in_an_english_question(question: str, similar: list[str], right: dict[str, str]) -> None:
    (mistyped,) = right or {"kernle": ""}
    assert nearest_words({mistyped: similar}, [question]) == right


@pytest.mark.parametrize(
    ("question", "corrected"),
    [
        ("the staging Clster?", "the staging cluster?"),
        ("Clster's clster", "cluster's cluster"),
        ("clster.example.com /clster", "clster.example.com /clster"),
        ("clsters", "clsters"),
    ],
)
def test_only_whole_words_are_replaced(question: str, corrected: str) -> None:
    assert correct(question, {"clster": "cluster"}) == corrected


@pytest.mark.parametrize(
    ("question", "unusual"),
    [
        ("Wann kommt der Wagen, und warum nicht?", []),
        ("Quel jour parlons-nous au comptabel ?", ["comptabel"]),
        ("A que horas do dia prefiro fazer charlas?", []),
        ("De quel instrument a-t-elle appris à se servir ?", []),
        ("Bis wann muss ich die Miete überweißen?", ["überweißen"]),
        ("How do I get into the wifi?", []),
        ("Is the repo async, say the admins?", []),
        ("Which neighbour has a favourite colour?", []),
    ],
)
def test_short_words_of_other_languages_and_words_of_software_are_right(question: str, unusual: list[str]) -> None:
    assert unusual_words([question]) == unusual
