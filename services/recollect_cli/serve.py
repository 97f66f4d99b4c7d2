"""`recollect gateway` and `recollect worker`: the two processes of a deployment, each until it is stopped."""


def gateway() -> None:
    """Serve MCP and the management API at RECOLLECT_HOST and RECOLLECT_PORT."""
    from recollect_gateway.__main__ import main

    main()


def worker(*, cell: str | None = None) -> None:
    """Run a worker: embed memories, run jobs, send webhooks, and do scheduled work.

    Parameters
    ----------
    cell
        Cell whose tenants it serves. Default: RECOLLECT_CELL.
    """
    from recollect_workers.main import main

    main(cell=cell)
