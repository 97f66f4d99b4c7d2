"""Names are the field's words: one noun for one concept (docs/glossary.md), and no word with many meanings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FOLDERS = ("shared", "services", "workers", "infra")

DENIED = {
    "place": "index, position, offset, location, permit, state or URL",
    "places": "the plural of one of those",
    "told": "what is done: listed, reported, shown",
    "tell": "report, publish or notify",
    "tells": "reports, exports or sends",
    "held": "locked, in use, or the thing that waits",
    "turn": "a time slice; a turn is one of a conversation only",
    "turns": "time slices",
    "gone": "deleted",
    "standing": "state or status",
    "way": "method, option or direction",
    "ways": "methods or options",
    "beside": "what stands there: neighbours, siblings",
    "meanwhile": "concurrent",
    "nowhere": "what it is: nil, no origin, never matches",
    "elsewhere": "where: in other cells",
    "somebody": "person, caller or subject",
    "stranger": "unknown or not linked",
    "soon": "the bound",
    "journey": "what is under way",
    "errand": "background task",
    "errands": "background tasks",
    "breath": "the bound",
    "farewell": "the command, such as QUIT",
    "merged_with": "merged",
}
"""Words that are no part of a name, with what to write instead."""

ALLOWED = {
    "turn": "conversations, and what embedders do with their turns",
    "turns": "conversations, and what embedders do with their turns",
}
"""Words that are a name where their files, below, say so."""

CONVERSATIONS = (
    "shared/plugins/recollect/hooks/",
    "shared/recollect/distilling/",
    "shared/recollect/graph/derivations/",
    "shared/recollect/embedding/embedder.py",
    "shared/recollect/memory/",
    "shared/recollect/retrieval/recall/ranking.py",
    "shared/recollect/text/turns.py",
    "shared/recollect/transfer/formats/chats.py",
    "shared/recollect_client/",
    "services/",
)
"""Where a turn is one of a conversation."""

EXCEPTIONS = {
    "GONE": "an HTTP status, and outcomes that others store",
    "gone": "the outcome of a delivery: 410 Gone",
    "held": "a column: a job that waits for its file",
    "held_for": "how long such a job waits",
    "HELD_FOR": "how long such a job waits",
    "calls_at_work_beside_others": "a public setting",
    "bulk_share_beside_calls": "a public setting",
    "held_until": "a column: until when writes of a tenant that moves are refused",
    "is_held": "whether a job waits for its file",
    "create_held_import": "a job that waits for its file",
}
"""Names that have such a word, each with its reason."""


DENIED_IN_SUMMARIES = {
    "told": "reported, listed or returned",
    "meanwhile": "since, until then, or what else happens",
    "of ours": "of what or whom",
    "of our own": "of what or whom",
}
"""Words that the first sentence of a docstring does without, with what to write instead."""

DENIED_ON_PAGES = {
    "is away": "is unavailable, unreachable or down",
    "are away": "are unavailable, unreachable or down",
    "somebody": "a user, a person, another caller or an attacker",
    "meanwhile": "while what happens, until when, or since when",
}
"""Words that pages of the documentation do without, with what to write instead."""

NOT_WRITTEN_AS_PAGES = ("docs/lab/", "docs/tools/", "docs/tools.md", "docs/settings.md", "docs/coverage.md")
"""Notebooks, which stay as they were written on their day, and pages that are made from code."""


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".sql") and "migrations" not in path.parts and "node_modules" not in path.parts:
                yield path


def _names(path: Path) -> Iterator[str]:
    """The names that a file defines: of modules, classes, functions, parameters, variables, attributes and queries."""
    text = path.read_text()
    if path.suffix == ".sql":
        yield from re.findall(r"^-- (?:name|fragment): (\w+)", text, re.MULTILINE)
        yield from re.findall(r"(?<!:):([a-z_]\w*)", text)
        return
    yield path.stem
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _denied(path: str, name: str) -> Iterator[str]:
    for word in _words(name):
        is_turn_of_conversation = word in ALLOWED and path.startswith(CONVERSATIONS)
        if word in DENIED and name not in EXCEPTIONS and not is_turn_of_conversation:
            yield f"{path}: {name}: not {word!r} but {DENIED[word]}"


def test_no_name_is_one_of_the_words_that_mean_many_things() -> None:
    names = {(str(path.relative_to(ROOT)), name) for path in _files() for name in _names(path)}
    assert len(names) > 10_000, "The files are not found"
    assert not sorted(line for path, name in names for line in _denied(path, name))


@pytest.mark.parametrize("name", ["place", "_find_place", "EdgePlace", "TOLD_NAME", "heldSlot"])
def test_a_denied_word_is_found_in_any_form_of_a_name(name: str) -> None:
    assert list(_denied("shared/recollect/example.py", name))


def test_each_exception_is_a_name_that_exists() -> None:
    names = {name for path in _files() for name in _names(path)}
    assert EXCEPTIONS.keys() <= names


SERVICE = ("shared/recollect/", "services/", "workers/", "infra/")
"""What runs together. Clients and plugins are packages of their own, with the names of the API."""

SHARED_NAMES = {"Search": "the arguments of `search`, in two dialects: a title that clients read in its schema"}
"""Names that several public classes have, each with its reason."""


def test_no_two_classes_have_the_same_name() -> None:
    """Else a reader, or a search, takes one for the other."""
    files: dict[str, list[str]] = {}
    for path in _files():
        name = str(path.relative_to(ROOT))
        if path.suffix == ".py" and name.startswith(SERVICE):
            for found in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
                files.setdefault(found, []).append(name)
    assert len(files) > 1_000, "The files are not found"
    assert {name for name, found in files.items() if len(found) > 1} == SHARED_NAMES.keys(), files


def test_each_type_of_request_has_one_name() -> None:
    """`AnyRequest` was a request of anybody in one module, of an operator in another, and of a caller in a third."""
    aliases = sorted(
        found
        for path in _files()
        if path.suffix == ".py"
        for found in re.findall(r"^(\w+ = Request\[.*\])$", path.read_text(), re.MULTILINE)
    )
    assert aliases == [
        "AnyRequest = Request[Any, Any, Any]",
        "CallerRequest = Request[Caller, Any, State]",
        "OperatorRequest = Request[OperatorIdentity, Any, State]",
    ]


def _summaries(path: Path) -> Iterator[str]:
    """The first sentences of a file's docstrings, those of variables too, but not of private things."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", [])
        if not isinstance(body, list) or str(getattr(node, "name", "")).startswith("_"):
            continue
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(text := getattr(statement.value, "value", None), str):
                yield re.split(r"(?<=[.!?:])\s|\n\n", re.sub(r"`[^`]*`", "", text), maxsplit=1)[0]


def _denied_in(summary: str) -> list[str]:
    return [word for word in DENIED_IN_SUMMARIES if re.search(rf"\b{word}\b", summary, re.IGNORECASE)]


def test_the_first_sentence_of_a_docstring_has_no_private_vocabulary() -> None:
    suspects = [path for path in _files() if path.suffix == ".py" and _denied_in(path.read_text())]
    assert suspects, "The files are not found: the words occur in other sentences"
    found = {(str(path.relative_to(ROOT)), text) for path in suspects for text in _summaries(path)}
    assert not sorted((path, text, words) for path, text in found if (words := _denied_in(text)))


@pytest.mark.parametrize("summary", ["Deleted meanwhile.", "What a client is\ntold.", "A path of ours"])
def test_a_denied_word_is_found_in_a_summary(summary: str) -> None:
    assert _denied_in(summary)


def _denied_on(text: str) -> list[str]:
    """The denied words of a page, also where a line or a comment ends within one, but not those in code."""
    prose = re.sub(r"\s+(?:# )?", " ", re.sub(r"`[^`\n]*`", "", text))
    return [word for word in DENIED_ON_PAGES if re.search(rf"\b{word}\b", prose, re.IGNORECASE)]


def test_no_page_has_the_private_vocabulary() -> None:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "helm").rglob("*.yaml")]
    pages = {name: path for path in files if not (name := str(path.relative_to(ROOT))).startswith(NOT_WRITTEN_AS_PAGES)}
    assert len(pages) > 100, "The pages are not found"
    assert not {name: words for name, path in sorted(pages.items()) if (words := _denied_on(path.read_text()))}


@pytest.mark.parametrize(
    "text", ["While Redis\nis away", "# if it is\n# away", "Meanwhile, it waits.", "somebody's key"]
)
def test_a_denied_word_is_found_on_a_page(text: str) -> None:
    assert _denied_on(text)


def test_a_denied_word_in_code_is_none_of_a_page() -> None:
    assert not _denied_on("The reason `is away` is what a log line has.")
