"""`recollect plans …`: the quotas and rate limits of tenants."""

from typing import Any, Literal
from urllib.parse import quote

from cyclopts import App

from recollect.accounts.plans.model import LIMITS
from recollect_cli.operator_api import with_operator_api
from recollect_cli.tables import Cell, show

app = App(name="plans", help="List, create and update plans: the quotas and rate limits of tenants.")

Limit = int | Literal["none"] | None


@app.command(name="list")
def list_plans() -> None:
    """List all plans, sorted by name. A limit of none means no limit."""
    _show(with_operator_api(lambda api: api.request("GET", "/plans"))["items"])


@app.command(name="set")
def set_plan(
    name: str,
    *,
    graphs: Limit = None,
    nodes_per_graph: Limit = None,
    observations: Limit = None,
    stored_bytes: Limit = None,
    embeddings_per_day: Limit = None,
    requests_per_minute: Limit = None,
    key_requests_per_minute: Limit = None,
    concurrent_calls: Limit = None,
) -> None:
    """Create or update a plan. Applies from the next call of each of its tenants on.

    A limit is a number, or none for no limit. Limits that are not given do not change; a new plan starts without any.

    Parameters
    ----------
    name
        Name of the plan: a-z, 0-9 and -
    graphs
        Maximum number of graphs of a tenant.
    nodes_per_graph
        Maximum number of entities, facts and placeholders of a graph.
    observations
        Maximum number of observations of a tenant, in all its graphs.
    stored_bytes
        Maximum number of bytes of text of a tenant, including history.
    embeddings_per_day
        Maximum number of passages of a tenant that are embedded per day (UTC).
    requests_per_minute
        Maximum number of requests of a tenant per minute.
    key_requests_per_minute
        Maximum number of requests of a key per minute.
    concurrent_calls
        Maximum number of calls of a tenant at the same time.
    """
    options = {
        "graphs": graphs,
        "nodes_per_graph": nodes_per_graph,
        "observations": observations,
        "stored_bytes": stored_bytes,
        "embeddings_per_day": embeddings_per_day,
        "requests_per_minute": requests_per_minute,
        "key_requests_per_minute": key_requests_per_minute,
        "concurrent_calls": concurrent_calls,
    }
    limits = {limit: None if value == "none" else value for limit, value in options.items() if value is not None}
    _show([with_operator_api(lambda api: api.request("PUT", f"/plans/{quote(name, safe='')}", limits))])


def _show(plans: list[dict[str, Any]]) -> None:
    rows: list[tuple[Cell, ...]] = [
        (plan["name"], *("none" if plan[limit] is None else int(plan[limit]) for limit in LIMITS)) for plan in plans
    ]
    show(("name", *LIMITS), rows)
