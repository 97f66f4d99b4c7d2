"""Whether a text is English, by its letters and its function words: for models that know English best.

The texts are short, often one sentence, and identifiers and names are in every language. So a text is English unless it
shows that it is not: a quarter of its letters are of another script, or more of its words are function words of another
language than of English. Where as many are, a word of one side alone decides, and then a letter that English has not.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import chain

_OTHER_SCRIPT = 0.25
"""Share of a text's letters from which another script than Latin decides."""

_READ = 2_000
"""Characters of a text that are looked at, at most."""

_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['’][^\W\d_]+)?(?!\w)")

_FUNCTION_WORDS = {
    "en": """
        the of and to is was for that it with as his her he she they we you your my our their its this these
        those are be been at by from or had have has not but what all were when who which where why how will
        would there can could if out up about into than them then some more after before does did do don't
        doesn't didn't isn't i'm i'll i've it's an every each any should must i a in on no so me us am go see
        under never between while because through during without against
    """,
    "de": """
        der die das den dem des ein eine einen einem einer und ist nicht mit von zu im auf für sich auch als
        wird sind ich du er sie wir ihr ihm ihn wie wann wo wer welche welcher welches warum wurde haben hat
        hatte mein meine unser unsere sein seine aus bei nach vom zum zur über oder aber noch nur kein keine
        wenn dass daß bis jeden jede uns mich was in an am so
    """,
    "fr": """
        le la les un une des du de et est que qui dans pour pas sur avec ne se ce cette ces il elle nous vous
        ils elles je tu mon ma mes ton ta son sa ses notre nos leur leurs au aux où quand comment pourquoi quel
        quelle quels quelles mais ou par plus sont être avoir était chez sans c'est d'un d'une l'on j'ai qu'il a
        on me y en
    """,
    "es": """
        el la los las un una unos unas de del y es que en por para con no se su sus lo le les al como más pero
        sin sobre este esta estos mi mis tu tus nuestro nuestra yo él ella nosotros está están era fue son qué
        cuál cuándo dónde quién cómo porque hay muy ya también a me he
    """,
    "pt": """
        o os as um uma uns umas de do da dos das e é que em no na nos nas por para com não se seu sua seus suas
        ao aos como mais mas sem sobre este esta meu minha meus minhas nosso nossa eu ele ela nós está estão foi
        são qual quando onde quem porque há muito já também pelo pela a me
    """,
    "it": """
        il lo la i gli le un uno una di del della dei delle e è che in per con non si suo sua al alla dal dalla
        nel nella come più ma senza su questo questa mio mia nostro nostra io lui lei noi sono era stato quale
        quando dove chi perché c'è molto già anche ogni quali cosa a no ha mi ci
    """,
    "nl": """
        de het een en van is niet op te met voor zijn ook als er aan om dat die wordt werd ik jij hij zij wij
        mijn onze ons haar hun naar bij uit over maar of nog geen wat welke wanneer waar wie waarom heeft hebben
        had deze dit elke in was me
    """,
    "pl": """
        i w na z do nie się jest to że o za od po dla przez jak ale czy kiedy gdzie kto co który która które
        jego jej mój moja nasz nasza ma są był była było być oraz lub też już tylko jako u ze we każdy każdego a
    """,
    "tr": """
        ve bir bu da de için ile çok ne mi mı mu mü değil var yok olan olarak gibi daha en her o ben sen biz siz
        onlar kadar sonra önce nerede zaman kim hangi neden nasıl benim bizim onun ise ama veya on
    """,
}
"""Function words of English, and of the other languages in the Latin script that the second model knows."""


@cache
def _languages_of() -> Mapping[str, set[str]]:
    """The languages of each function word."""
    languages: dict[str, set[str]] = {}
    for code, words in _FUNCTION_WORDS.items():
        for word in words.split():
            languages.setdefault(word, set()).add(code)
    return languages


def is_function_word(word: str) -> bool:
    """Whether a word in lower case is a function word of English, or of another language in the Latin script."""
    return word in _languages_of()


def is_english(text: str) -> bool:
    """Whether a text is English, or in no language that can be distinguished from it."""
    read = text[:_READ]
    letters = [character for character in read if character.isalpha()]
    foreign = [letter for letter in letters if not letter.isascii()]
    if sum(not _is_latin(letter) for letter in foreign) > _OTHER_SCRIPT * len(letters):
        return False
    known = _languages_of()
    languages = [known[word] for word in _WORD.findall(read.casefold()) if word in known]
    counts = Counter(chain.from_iterable(languages))
    english = counts.pop("en", 0)
    most = max(counts.values(), default=0)
    if most != english:
        return english > most
    if any(of == {"en"} for of in languages):
        return True
    return not foreign and all("en" in of for of in languages)


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN")
