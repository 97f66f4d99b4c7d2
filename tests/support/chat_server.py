"""A language model for tests: a server that speaks OpenAI's chat completions over HTTP, with scripted answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Found = tuple[str, list[int]]
"""A fact that the model finds: its text, and the numbers of its turns."""


@dataclass(frozen=True)
class ChatAnswer:
    """The answer of the server to one request."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def completion(content: str | None, *, finish_reason: str = "stop", tokens: int = 7) -> ChatAnswer:
    """A well-formed answer with this text."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    usage = {"prompt_tokens": tokens - 2, "completion_tokens": 2, "total_tokens": tokens}
    told = {"id": "x", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}
    return ChatAnswer(json.dumps(told).encode())


def facts(*found: Found) -> ChatAnswer:
    """A well-formed answer with these facts."""
    return completion(json.dumps({"facts": [{"text": text, "turns": turns} for text, turns in found]}))


class ChatServer(ThreadingHTTPServer):
    """Sends the queued `answers` in order; then what `model` finds in the turns of a request: nothing, at first.

    `requests` keeps what was asked. Each answer is given while `answering` is set.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.answers: list[ChatAnswer] = []
        self.requests: list[dict[str, Any]] = []
        self.requested = threading.Event()
        self.answering = threading.Event()
        self.answering.set()
        self.model: Callable[[list[dict[str, Any]]], list[Found]] = lambda turns: []
        self.accepts: Callable[[dict[str, Any]], bool] = lambda request: True

    def answer(self, request: dict[str, Any]) -> ChatAnswer:
        """The answer to a request."""
        if not self.accepts(request):
            return ChatAnswer(b'{"error": {"message": "not supported"}}', 400)
        if self.answers:
            return self.answers.pop(0)
        return facts(*self.model(asked(request)["turns"]))


def asked(request: dict[str, Any]) -> Any:
    """What a request shows of the conversation."""
    return json.loads(request["messages"][-1]["content"])


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        self.server.requested.set()
        self.server.answering.wait()
        answer = self.server.answer(body)
        try:
            self._send(answer)
        except ConnectionError:
            """The client has gone, as some tests want it to."""

    def _send(self, answer: ChatAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving_model() -> Iterator[ChatServer]:
    """A running server on a free port."""
    with ChatServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.answering.set()
        server.shutdown()
