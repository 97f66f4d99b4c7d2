"""`python -m recollect_gateway`: serve from RECOLLECT_* variables."""

import gc
import signal
import sys

from recollect.errors import RecollectError
from recollect.settings import Settings, read_settings
from recollect.telemetry.logs import configure_logging, warn_of_unknown_settings
from recollect.telemetry.tracing import configure_tracing
from recollect_gateway.app import create_app
from recollect_gateway.process.starting import Starting
from recollect_http.server.draining import Drain
from recollect_http.server.tracing import traced
from recollect_http.server.uvicorn_server import GatewayServer, allow_open_files, server_config

COLLECTION_THRESHOLDS = (5_000, 10, 20)
"""A full garbage collection after about a million new objects, not after 70,000 (`gc.set_threshold`): it holds the
event loop for 50 ms where a call has 130,000 objects in hand, and one such call had several."""


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    # uvicorn raises the signal again when it has stopped; this lets the last spans be exported before the process ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        settings = read_settings()
        configure_logging(settings)
        warn_of_unknown_settings()
        shutdown = configure_tracing(settings, "recollect-gateway")
        try:
            serve(settings)
        finally:
            shutdown()
    except RecollectError as error:
        sys.exit(f"recollect: {error}")


def serve(settings: Settings) -> None:
    """Serve the gateway; raises InvalidInput for settings that would not be safe, and what keeps it from starting."""
    settings.require_own_secret()
    allow_open_files(settings)
    app = create_app(settings, on_start=freeze_loaded_objects)
    drain: Drain = app.state.drain
    starting = Starting(traced(app, settings))
    try:
        GatewayServer(server_config(starting, settings, drain), drain, settings.drain_seconds).run()
    except SystemExit:  # uvicorn ends the process where the application does not start.
        if starting.refusal is None:
            raise
        raise starting.refusal from None


def freeze_loaded_objects() -> None:
    """Exempt what the process has loaded from garbage collection, which blocked the event loop for 0.3 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)


if __name__ == "__main__":
    main()
