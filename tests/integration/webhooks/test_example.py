"""The example receiver in docs/webhooks.md works as printed."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.webhooks import WebhookDesk

PAGE = Path(__file__).parents[3] / "docs" / "webhooks.md"


@contextmanager
def listening(receiver: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_the_example_accepts_each_event_once_and_refuses_forged_ones(
    desk: WebhookDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    example: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, str(PAGE), "exec"), example)
    with listening(example["Receiver"]) as url:
        made = await desk.make(url)
        example["SECRET"] = made.secret
        await desk.write("Ada")
        await desk.tell()
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.last_status, example["seen"]) == ("delivered", 204, {str(delivery.id)})
        await desk.replay(made.webhook.id, delivery.id)
        await desk.tell()
        assert capsys.readouterr().out.count("graph.changed {") == 1
        example["SECRET"] = (await desk.make(url)).secret
        await desk.test(made.webhook.id)
        await desk.tell()
        [refused, _] = await desk.deliveries(made.webhook.id)
        assert (refused.status, refused.last_status) == ("pending", 401)
