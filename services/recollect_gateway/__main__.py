"""`python -m recollect_gateway`: serve from RECOLLECT_* variables."""

import uvicorn

from recollect.platform.telemetry import configure_logging, configure_tracing
from recollect.settings import Settings
from recollect_gateway.app import create_app


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = Settings()
    configure_logging(settings)
    shutdown = configure_tracing(settings, "recollect-gateway")
    try:
        uvicorn.run(
            create_app(settings),
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http="httptools",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
        )
    finally:
        shutdown()


if __name__ == "__main__":
    main()
