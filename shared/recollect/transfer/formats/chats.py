"""The exports of two assistants: `conversations.json`, as it lies in the archive that they send to a person.

`chatgpt`, a tree of messages, of which the branch that the person sees is read:

    [{"id": "…", "title": "Trip", "current_node": "b", "mapping": {
        "a": {"message": {"author": {"role": "user"}, "create_time": 1780000000.5,
                          "content": {"content_type": "text", "parts": ["Where is it warm?"]}}, "parent": null},
        "b": {"message": {…}, "parent": "a"}}}]

`claude`, a list of messages:

    [{"uuid": "…", "name": "Trip", "chat_messages": [
        {"sender": "human", "text": "Where is it warm?", "created_at": "2026-05-28T20:26:40.5Z",
         "content": [{"type": "text", "text": "Where is it warm?"}]}]}]

Each turn becomes a fact in the thread of its conversation, as `remember` stores one. Other fields are skipped.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from recollect.errors import InvalidInput
from recollect.text.turns import Turn, speaker_of, texts_of
from recollect.transfer.formats.decoding import Read
from recollect.transfer.formats.foreign import Found, fact, moment, text_of
from recollect.transfer.formats.json_stream import JsonStream
from recollect.transfer.model import ImportProblem, UnreadableLine

_SAID = frozenset({"text", "multimodal_text"})
"""The types of ChatGPT's contents that people or it said; others are code that it ran, and its tools' answers."""


def read_chatgpt(texts: Iterator[str]) -> Read:
    """Yield the turns of ChatGPT's export. Raises InvalidInput for a file that is no list of conversations."""
    return _read(texts, "chatgpt", ("conversation_id", "id"), "title", _chatgpt_turns)


def read_claude(texts: Iterator[str]) -> Read:
    """Yield the turns of Claude's export. Raises InvalidInput for a file that is no list of conversations."""
    return _read(texts, "claude", ("uuid",), "name", _claude_turns)


def _read(
    texts: Iterator[str],
    source: str,
    ids: tuple[str, ...],
    title: str,
    turns_of: Callable[[dict[str, Any]], Iterator[Turn]],
) -> Read:
    stream = JsonStream(texts)
    if not stream.begins_list():
        raise InvalidInput("Not a list of conversations: choose conversations.json of the export", path=stream.location)
    for number, conversation in enumerate(stream.values()):
        where = f"conversations.{number}"
        try:
            thread = text_of(conversation, *ids)
            about = {"thread": thread, "source": source, "metadata": _metadata(conversation.get(title))}
            for index, turn in enumerate(list(turns_of(conversation))):
                yield from _facts(f"{where}.{index}", turn, about)
        except UnreadableLine as error:
            yield ImportProblem(where, error.reason)
    stream.end()


def _facts(where: str, turn: Turn, about: dict[str, Any]) -> Found:
    at = None if turn.at is None else turn.at.isoformat()
    for text in texts_of(turn):
        try:
            yield fact(where, text, at=at, **about)
        except UnreadableLine as error:
            yield ImportProblem(where, error.reason)


def _chatgpt_turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    """The messages from the first to the one that the person saw last."""
    nodes = conversation.get("mapping")
    if not isinstance(nodes, dict):
        raise UnreadableLine("mapping: Required")
    branch: list[Any] = []
    node = nodes.pop(_text(conversation.get("current_node")), None)
    while isinstance(node, dict):
        branch.append(node.get("message"))
        node = nodes.pop(_text(node.get("parent")), None)  # Taken out, so that a circle ends.
    for message in reversed(branch):
        if isinstance(message, dict) and not _dict(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            yield _chatgpt_turn(message)


def _chatgpt_turn(message: dict[str, Any]) -> Turn:
    author, content = _dict(message.get("author")), _dict(message.get("content"))
    parts = content.get("parts") if content.get("content_type") in _SAID else None
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    speaker = speaker_of(_text(author.get("role")), _text(author.get("name")))
    return Turn("\n\n".join(texts), speaker, _second(message.get("create_time")))


def _claude_turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    messages = conversation.get("chat_messages")
    if not isinstance(messages, list):
        raise UnreadableLine("chat_messages: Required")
    for message in messages:
        if isinstance(message, dict):
            speaker = speaker_of(_text(message.get("sender")), None)
            yield Turn(_claude_words(message), speaker, _time(message.get("created_at")))


def _claude_words(message: dict[str, Any]) -> str:
    """What was said: the parts of the content that are text, or else the text of the message."""
    content = message.get("content")
    parts = [_dict(part) for part in content] if isinstance(content, list) else []
    texts = [text for part in parts if part.get("type") == "text" and (text := _text(part.get("text")))]
    return "\n\n".join(texts) or _text(message.get("text")) or ""


def _metadata(title: Any) -> dict[str, Any]:
    return {"title": title} if title and isinstance(title, str) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _second(value: Any) -> datetime | None:
    """The time so many seconds after the beginning of 1970; None for what is none."""
    if not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(moment(value)) if isinstance(value, str) else None
    except ValueError:
        return None
