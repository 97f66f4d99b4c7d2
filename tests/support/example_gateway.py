"""The gateway with the examples of the conformance suite mounted: `python -m tests.support.example_gateway`."""

import uvicorn

from recollect.settings import Settings
from recollect.telemetry.logs import configure_logging
from recollect_gateway.app import create_app
from recollect_http.server.uvicorn_server import allow_open_files, server_config
from tests.support.example_catalogue import with_examples

if __name__ == "__main__":
    chosen = Settings()
    configure_logging(chosen)
    allow_open_files(chosen)
    uvicorn.Server(server_config(create_app(chosen, catalogue=with_examples()), chosen)).run()
