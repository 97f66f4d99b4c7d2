"""`recollect gateway` and `recollect worker`: the two processes of a deployment, each until it is told to stop."""


def gateway() -> None:
    """Serve MCP and the management API at RECOLLECT_HOST and RECOLLECT_PORT."""
    from recollect_gateway.__main__ import main

    main()


def worker(*, cell: str | None = None) -> None:
    """Embed what was remembered, do jobs, tell webhooks, and do what is regular.

    Parameters
    ----------
    cell
        For the tenants of this cell; default: RECOLLECT_CELL.
    """
    from recollect_workers.main import main

    main(cell=cell)
