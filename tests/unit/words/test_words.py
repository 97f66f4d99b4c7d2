"""One analysis of words for passages and questions, in every script."""

import unicodedata
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.fairness.computing import finish
from recollect.words.analysis import (
    MAX_ASKED,
    MAX_LABEL_CHARACTERS,
    AskedWord,
    Lexemes,
    all_of,
    asked_words,
    has_any,
    label_vector,
    lexemes_of,
    passage_vector,
    passages_with,
    query_of,
)
from recollect.words.characters import bigrams
from recollect.words.compounds import MAX_PARTS
from recollect.words.stop_words import STOP_WORDS

FOUND = [
    # Accents, case, width, ligatures, and what NFC and NFD write differently.
    ("A reunião em São João", "reuniao sao joao"),
    ("Łódź is cold", "lodz"),
    ("Muñoz called", "munoz"),
    ("Hôtel Élysée", "hotel elysee"),
    ("Đà Nẵng", "Da Nang"),
    ("Straße", "strasse"),
    ("Straße", "STRASSE"),
    ("strasse", "Straße"),
    ("Herr Müller", "mueller"),
    ("Herr Mueller", "Müller"),
    ("die großen Hunde", "grossen"),
    ("συνάντηση αύριο", "συναντηση"),
    ("Işıklar", "isiklar"),
    ("Işıklar", "IŞIKLAR"),
    ("Ｐｒｏｊｅｃｔ　Ｆａｌｃｏｎ", "project falcon"),
    ("the ﬁnal eﬃcient one", "final efficient"),
    ("10 µs", "μs"),
    ("caf\u00e9", "cafe\u0301"),
    ("O’Brien", "o'brien"),
    ("co\u00adoperate", "cooperate"),
    # Inflections: English, and the language of the text or the script.
    ("She was running races", "run race"),
    ("Die Häuser sind mit dem Garten verkauft", "mit dem Haus"),
    ("Мы обсудили переговоры о продажах", "переговоров"),
    ("Ёлка", "елка"),
    ("الكتاب الجديد", "كتاب جديد"),
    ("כתבנו את הפגישה", "פגישה"),
    ("फ़ाइल की लड़कियाँ", "लड़की"),
    # Scripts without spaces.
    ("适者生存是道理", "生存"),
    ("王小明喜欢绿茶", "王小明"),
    ("王小明喜欢绿茶", "茶"),
    ("绿茶好喝", "茶"),
    ("東京都庁で会議があります", "会議"),
    ("カタカナのテスト", "テスト"),
    ("수급자에게 서울에서 알렸다", "서울"),
    ("ไปกรุงเทพมหานครพรุ่งนี้", "กรุงเทพ"),
    ("ຂ້ອຍຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
    ("ខ្ញុំរស់នៅភ្នំពេញ", "ភ្នំពេញ"),
    ("ရန်ကုန်မြို့မှာနေတယ်", "ရန်ကုန်"),
    ("Redis缓存过期时间设置为3600秒", "Redis 3600"),
    ("使用React框架", "React"),
    # Parts of identifiers, the whole, and other ways to write it.
    ("released v1.26.4-rc2", "1.26.4"),
    ("released v1.26.4-rc2", "v1.26.4-rc2"),
    ("see some/path/file.yaml", "some/path/file"),
    ("see some/path/file.yaml", "file.yaml"),
    ("call os.path.join", "os.path"),
    ("com.example.app.UserService", "UserService"),
    ("docs.example.com", "example.com"),
    ("commit 3f5a9c1e7bab", "3f5a9c1"),
    ("parseHttpRequest", "HttpRequest"),
    ("parseHttpRequest", "http request"),
    ("costs 1,299.99", "1299.99"),
    ("costs 1299.99", "1,299.99"),
    ("JIRA-4711", "4711"),
    ("row B-12", "B12"),
    ("row B12", "B-12"),
    ("max_retry_count", "retry count"),
    ("ORA-01555 again", "01555"),
    ("error E4012", "4012"),
    ("a well-known bug", "known"),
    ("written in C++ and C#", "C++"),
    ("user@mail.example.org", "mail.example.org"),
    ("a 🎉 for Ida", "🎉"),
    ("Called Zbigniew🎉", "Zbigniew"),
    ("Called Zbigniew🎉", "🎉"),
    ("✅Deployed", "deployed"),
    ("Deployed 🚀🔥", "🔥"),
    ("from 👍🏽 Ola", "👍"),
    ("from 👍 Ola", "👍🏽"),
    ("love ❤️", "❤"),
    ("the 🇩🇪🇫🇷 office", "🇫🇷"),
    ("step 1️⃣ first", "1"),
    ("at ⏰9:30", "9:30"),
    # Names that are function words.
    ("Will meets IT; The Who play", "IT"),
    ("Will meets IT; The Who play", "The Who"),
    ("Will meets IT; The Who play", "will"),
]

NOT_FOUND = [
    ("适者生存是道理", "王小明"),
    ("서울", "부산"),
    ("กรุงเทพ", "เชียงใหม่"),
    ("f47ac10b-58cc-4372-a567-0e02b2c3d479", "f47ac10b-58cc-4372-a567-0e02b2c3d478"),
    ("v1.26.4", "v1.26.5"),
    ("user", "users' group"),
    ("samsung", "Sam"),
    ("written in C", "C++"),
    ("the 🇩🇪 office", "🇩🇰"),
    ("Deployed 🚀", "🔥"),
]


def finds(text: str, question: str) -> bool:
    """Whether a passage with this text has every word of the question, or all its parts where it lacks the whole."""
    lexemes = Lexemes()
    lexemes.add(text)
    return all(
        _has(lexemes, word) or (word.parts and all(part in lexemes.positions for part in word.parts))
        for word in finish(asked_words(question))
        if not (word.is_function and word.forms[0][0].isupper())
    )


def _has(lexemes: Lexemes, word: AskedWord) -> bool:
    if word.is_beginning:
        return any(lexeme.startswith(word.forms) for lexeme in lexemes.positions)
    return any(form in lexemes.positions for form in word.forms)


def test_words_are_found_in_every_script_and_spelling(subtests: pytest.Subtests) -> None:
    for text, question in FOUND:
        with subtests.test(question, text=text):
            assert finds(text, question)
    for text, question in NOT_FOUND:
        with subtests.test(question, not_in=text):
            assert not finds(text, question)


@given(st.text(max_size=60))
def test_every_text_is_found_by_itself(text: str) -> None:
    assert finds(text, text)


@given(st.text(max_size=60))
def test_all_normal_forms_have_the_same_lexemes(text: str) -> None:
    vectors = {passage_vector(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert len(vectors) == 1


def test_a_passage_has_the_lexemes_of_its_entity_and_its_day() -> None:
    vector = passage_vector("The dogs ran", about="Will", said_on=date(2023, 5, 7))
    assert vector == "'will':1C 'Will':1C 'the':2C 'dog':3 'ran':4 '7':5 'may':6 '2023':7"


def test_what_counts_for_the_length_of_a_passage_has_no_label() -> None:
    """Variants, parts of compounds and function words have the label C; all that PostgreSQL's English had has none."""
    vector = passage_vector("Über well-known snake_case the")
    assert vector == (
        "'über':1 'uber':1C 'ueber':1C 'well-known':2 'well':2 'known':2 'wellknown':2C 'snake_case':3 "
        "'snakecase':3C 'snake':3C 'case':3C 'the':4C"
    )


def test_windows_have_no_function_words() -> None:
    lexemes = Lexemes(with_function_words=False)
    lexemes.add("Will was the first of IT")
    assert list(lexemes.positions) == ["first"]


def test_function_words_in_capitals_are_names() -> None:
    def asked(text: str) -> list[tuple[str, bool]]:
        return [(word.forms[0], word.is_function) for word in finish(asked_words(text))]

    assert asked("Where does Will work?") == [
        ("where", True),
        ("Where", True),
        ("does", True),
        ("will", True),
        ("Will", False),
        ("work", False),
    ]
    assert asked("IT") == [("it", True), ("IT", False)]
    assert asked("Will") == [("will", True), ("Will", True)]
    assert asked("so I will") == [("so", True), ("i", True), ("will", True)]


def test_identifiers_of_a_question_come_first(subtests: pytest.Subtests) -> None:
    identifiers = [
        "parseHttpRequest",
        "JIRA-4711",
        "v1.26.4",
        "3f5a9c1e7bab4455",
        "src/app/main.py:42",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "E4012",
        "47110815",
        "docs.example.com",
        "1,299.99",
    ]
    for identifier in identifiers:
        with subtests.test(identifier):
            first, *others = finish(asked_words(f"Please tell me about {identifier} in May 2023, the well-known one"))
            assert first.is_identifier
            assert identifier.lower().replace(",", "") in first.forms
            assert not any(word.is_identifier for word in others)


def test_quantities_dates_and_years_are_no_identifiers() -> None:
    words = finish(asked_words("the 20th at 10:30pm, 2023-05-07, 1500ms, 250kg, in the 1990s, 2024, 3.5 and 12"))
    assert not any(word.is_identifier for word in words)


def test_texts_that_are_made_to_be_slow_are_not() -> None:
    """Each is analysed in one pass; of a compound, a bounded number of parts are looked at."""
    for text in ("_" * 8_000, "a-" * 4_000, "a." * 4_000, "-" * 8_000, "Aa" * 4_000, "1," * 4_000, "ก" * 8_000):
        words = finish(asked_words(text))
        assert len(words) <= MAX_ASKED
        assert all(len(word.parts) <= MAX_PARTS for word in words)


def test_the_words_of_a_question_are_bounded_and_each_is_asked_once() -> None:
    words = finish(asked_words(" ".join(f"w{n}x" for n in range(MAX_ASKED + 500)) + " tea tea Tea"))
    assert len(words) == MAX_ASKED
    assert [word.forms for word in finish(asked_words("tea Tea TEA"))] == [("tea",)]


def test_queries_are_quoted() -> None:
    [path] = finish(asked_words(r"c:\temp\file"))
    assert query_of(path) == "'c:\\\\temp\\\\file'"
    assert all_of("Jean Müller") == "('jean') & ('müller' | 'muller' | 'mueller')"
    assert all_of("...") == ""
    assert query_of(AskedWord(("茶",), is_beginning=True)) == "'茶':*"


def test_a_word_is_in_as_many_passages_as_its_most_frequent_form() -> None:
    word = AskedWord(("straße", "strass"), parts=("x",))
    assert lexemes_of([word, word]) == ["straße", "strass", "x"]
    assert passages_with(word, {"strass": 3, "x": 9}) == 3
    assert passages_with(word, {}) == 0


def test_bigrams_of_scripts_with_marks_are_of_whole_signs() -> None:
    assert list(bigrams("กรุงเทพ")) == ["กรุ", "รุง", "งเท", "เทพ", "พ"]
    assert list(bigrams("ភ្នំពេញ")) == ["ភ្នំពេ", "ពេញ", "ញ"]
    assert list(bigrams("茶")) == ["茶"]


def test_long_words_are_cut_alike_in_passages_and_questions() -> None:
    assert finds("x" * 5_000, "x" * 5_000)
    assert max(len(lexeme) for lexeme in lexemes_of(finish(asked_words("Ü" * 5_000)))) <= 400


def test_stop_words_are_no_list_that_swallows_a_name() -> None:
    for word in STOP_WORDS:
        assert finds(f"{word.capitalize()} was here", word.capitalize())


def test_a_mark_without_a_letter_is_a_sign_of_its_own() -> None:
    for mark in ("\u17d2", "\u1039", "\u0e31"):
        assert list(bigrams(mark)) == [mark]
        assert finish(asked_words(f"a {mark} b"))
        assert passage_vector(mark)


def test_labels_have_the_least_weight_and_count_where_the_text_has_them_not() -> None:
    vector = passage_vector("Tea is served", labels=["tea", "Teatime", "München"])
    assert {"'tea':1", "'teatim':1B", "'munchen':1B"} <= set(vector.split())
    assert "'tea':1B" not in vector
    assert passage_vector("Tea is served") == " ".join(part for part in vector.split() if not part.endswith("B"))


def test_the_words_of_a_node_s_labels_are_those_of_its_tags_and_of_its_summary() -> None:
    found = label_vector("Serves tea", ["Straße", "部署流程"])
    assert found is not None
    assert {"'straße':1B", "'strass':1B", "'部署':2B", "'serv':6", "'tea':7"} <= set(found.split())
    assert label_vector(None, []) is None
    assert label_vector(None, ["!"]) == ""
    many = label_vector("the summary", (f"tag{n}" for n in range(MAX_LABEL_CHARACTERS)))
    assert many is not None
    assert len(many) < 5 * MAX_LABEL_CHARACTERS
    assert "summari" not in many


def test_a_tag_has_a_word_in_whichever_form() -> None:
    for tag, question in (
        ("Straße", "strasse"),
        ("部署流程", "怎么部署"),
        ("JIRA-4711", "4711"),
        ("Wills", "will wills"),
    ):
        assert has_any(tag, finish(asked_words(question)))
    assert not has_any("Straße", finish(asked_words("street")))
    assert has_any("東京都", finish(asked_words("東")))
