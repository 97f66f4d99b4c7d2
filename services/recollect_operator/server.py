"""The HTTP server of the operator API, behind the same public edge and protocol bounds as the gateway's."""

import sys

import uvicorn

from recollect.errors import RecollectError
from recollect.settings import Settings, read_settings
from recollect.telemetry.logs import configure_logging, warn_of_unknown_settings
from recollect.telemetry.tracing import configure_tracing
from recollect_http.server.tracing import traced
from recollect_http.server.uvicorn_server import server_config
from recollect_operator.app import create_app


def served_settings(settings: Settings) -> Settings:
    """The settings by which it listens: on its own address, and for its own pages alone."""
    return settings.model_copy(
        update={
            "host": settings.operator_host,
            "port": settings.operator_port,
            "public_url": settings.operator_public_url,
            "allowed_origins": [],
        }
    )


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raises InvalidInput for settings that would not be safe."""
    server_settings = served_settings(settings)
    server_settings.require_own_secret()
    uvicorn.Server(server_config(traced(create_app(settings), server_settings), server_settings)).run()


def main() -> None:
    """Serve from RECOLLECT_* variables."""
    settings = read_settings()
    configure_logging(settings)
    warn_of_unknown_settings()
    shutdown = configure_tracing(settings, "recollect-operator")
    try:
        serve(settings)
    except RecollectError as error:
        sys.exit(f"recollect: {error}")
    finally:
        shutdown()
