"""A model for programs that want one: it answers every prompt with the same text, in the dialect of each model API."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Model:
    """Where it is, what it answers, and what it was asked."""

    url: str
    answer: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def model(answer: str) -> Iterator[Model]:
    """A model that listens on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            if "count_tokens" not in self.path:
                served.asked.append(body)
            self._send(*reply(self.path, body, answer))

        def do_GET(self) -> None:
            self._send("application/json", b"{}")

        def _send(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Model(f"http://127.0.0.1:{server.server_port}", answer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def reply(path: str, body: str, answer: str) -> tuple[str, bytes]:
    """The content type and the body of the answer at a path."""
    if "count_tokens" in path:
        return "application/json", b'{"input_tokens": 1}'
    if "/responses" in path:
        return stream(openai_responses(answer))
    if "/chat/completions" in path:
        return stream(openai_chat(answer), end="data: [DONE]\n\n")
    if "streamGenerateContent" in path:
        return stream([gemini(answer)])
    if "generateContent" in path:
        return "application/json", json.dumps(gemini(answer)).encode()
    if "/messages" in path and '"stream":true' in body.replace(" ", ""):
        return stream(anthropic(answer))
    if "/messages" in path:
        return "application/json", json.dumps(anthropic_message([{"type": "text", "text": answer}])).encode()
    return "application/json", b"{}"


def stream(events: list[dict[str, Any]], end: str = "") -> tuple[str, bytes]:
    """Server-sent events; those with a type have it as their name, too."""
    named = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    return "text/event-stream", ("".join(named) + end).encode()


def anthropic_message(content: list[dict[str, Any]]) -> dict[str, Any]:
    """A message of the Messages API."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    shared = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "stop_sequence": None}
    return {**shared, "content": content, "stop_reason": "end_turn" if content else None, "usage": usage}


def anthropic(answer: str) -> list[dict[str, Any]]:
    """The events of the Messages API."""
    return [
        {"type": "message_start", "message": anthropic_message([])},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": answer}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]


def openai_responses(answer: str) -> list[dict[str, Any]]:
    """The events of the Responses API."""
    content = [{"type": "output_text", "text": answer, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "r1", "object": "response", "status": "completed", "output": [message], "usage": usage}
    return [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": response},
    ]


def openai_chat(answer: str) -> list[dict[str, Any]]:
    """The chunks of Chat Completions."""
    shared = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        {**shared, "choices": [{"index": 0, "delta": {"role": "assistant", "content": answer}, "finish_reason": None}]},
        {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
    ]


def gemini(answer: str) -> dict[str, Any]:
    """A response of the Gemini API."""
    candidate = {"content": {"role": "model", "parts": [{"text": answer}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-test"}
