"""An OpenAI-compatible embedder for tests, which can misbehave."""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 8


@dataclass(frozen=True)
class EmbeddingAnswer:
    """The answer of the server to one request."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def embeddings(*rows: tuple[int, list[float]]) -> EmbeddingAnswer:
    """A well-formed answer with the index and the vector of each row."""
    return EmbeddingAnswer(json.dumps({"data": [{"index": index, "embedding": row} for index, row in rows]}).encode())


def made_up(text: str) -> list[float]:
    """A vector of DIMENSIONS numbers that depends on the text alone."""
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


class EmbeddingServer(ThreadingHTTPServer):
    """Sends the queued `answers` in order, and repeats the last one; without any, made-up vectors.

    Requests with a text that holds `poison` get `poisoned` instead, and any request what `mischief` says, if it says
    anything. `vouched` counts how often each text was given a made-up vector. Each answer takes `seconds`, and is given
    while `answering` is set. `requests` keeps what was asked, `requested_at` when (in seconds of the monotonic clock);
    `asked` is set once anything was.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.answers: list[EmbeddingAnswer] = []
        self.requests: list[dict[str, Any]] = []
        self.requested_at: list[float] = []
        self.requested = threading.Event()
        self.answering = threading.Event()
        self.answering.set()
        self.seconds = 0.0
        self.poison: str | None = None
        self.poisoned = EmbeddingAnswer(b"", 400)
        self.mischief: Callable[[], EmbeddingAnswer | None] = lambda: None
        self.vouched: Counter[str] = Counter()

    def answer(self, texts: list[str]) -> EmbeddingAnswer:
        """The answer to the latest request."""
        if (trouble := self.mischief()) is not None:
            return trouble
        if self.poison is not None and any(self.poison in text for text in texts):
            return self.poisoned
        if not self.answers:
            self.vouched.update(texts)
            return embeddings(*[(index, made_up(text)) for index, text in enumerate(texts)])
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requested_at.append(time.monotonic())
        self.server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        self.server.requested.set()
        time.sleep(self.server.seconds)
        self.server.answering.wait()
        answer = self.server.answer(body["input"])
        try:
            self._send(answer)
        except ConnectionError:
            """The client has gone, as some tests want it to."""

    def _send(self, answer: EmbeddingAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving_embeddings() -> Iterator[EmbeddingServer]:
    """A running server on a free port."""
    with EmbeddingServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
