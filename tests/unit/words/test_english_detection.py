"""Which texts count as English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.words.english_detection import is_english

ENGLISH = [
    "Where did the team meet after the storm?",
    "She painted the boat.",
    "José lives with his sister in Oslo",
    "Café Müller opens at nine",
    "kubectl rollout restart deploy/api",
    "E4012",
    "v1.26.4-rc2",
    "Ada",
    "",
    "42",
]

OTHERS = [
    "Wer hat das Boot gestrichen?",
    "Was war gestern in der Schule los?",
    "Elle a peint le bateau.",
    "¿Quién pintó el barco?",
    "Ela pintou o barco a remos.",
    "Ha dipinto la barca.",
    "Wie heeft de boot geverfd?",
    "Kto pomalował łódź?",
    "Tekneyi kim boyadı?",
    "Кто покрасил лодку?",
    "谁给船刷了漆？",
    "ボートを塗ったのは誰ですか。",
    "누가 배를 칠했습니까?",
    "من دهن القارب؟",
    "नाव किसने रंगी?",
    "ใครทาสีเรือ",
    "我们从 Oracle 换到了 PostgreSQL 数据库",
]


def test_english_texts_names_and_identifiers_count_as_english(subtests: pytest.Subtests) -> None:
    for text in ENGLISH:
        with subtests.test(text):
            assert is_english(text)


def test_texts_of_other_languages_and_scripts_do_not(subtests: pytest.Subtests) -> None:
    for text in OTHERS:
        with subtests.test(text):
            assert not is_english(text)


@given(st.text())
def test_every_text_has_an_answer(text: str) -> None:
    assert is_english(text) in (True, False)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert is_english("The boat is red. " * 200 + "Das Boot ist rot. " * 1_000)
