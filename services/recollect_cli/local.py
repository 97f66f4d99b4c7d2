"""`recollect local`: everything on one machine."""

import sys
from pathlib import Path

from recollect_local.stack import LocalOptions, run_local


def local(
    *, host: str = "127.0.0.1", port: int = 8787, data_dir: Path | None = None, ready_file: Path | None = None
) -> None:
    """Start PostgreSQL, Valkey, gateway and worker here, and print what to paste into an MCP client.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 takes a free one.
    data_dir
        Where the data is kept across restarts; default: the user's data folder.
    ready_file
        Receives, once all is ready, JSON with mcp_url, management_url, api_key and tenant.
    """
    sys.exit(run_local(LocalOptions(data_dir=data_dir, host=host, port=port, ready_file=ready_file)))
