"""`recollect plans …`: the limits of what tenants may store and request."""

from typing import Any, Literal
from urllib.parse import quote

from cyclopts import App

from recollect.accounts.plans.model import LIMITS
from recollect_cli.operator_api import with_operator_api
from recollect_cli.tables import show

app = App(name="plans", help="List, make and change plans: what tenants may have and ask for.")

Limit = int | Literal["none"] | None


@app.command(name="list")
def list_plans() -> None:
    """Every plan, by name; none is no limit."""
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
    """Make a plan, or change the limits that are named; in force with the next call of each tenant that has it.

    Each limit is a number, or none, which takes it away. A limit that is not named stays; a new plan has none.

    Parameters
    ----------
    name
        The plan's: a-z 0-9 -
    graphs
        Graphs of a tenant.
    nodes_per_graph
        Entities, facts and placeholders of one graph.
    observations
        Observations of a tenant, in all its graphs.
    stored_bytes
        Bytes of text of a tenant, history included.
    embeddings_per_day
        Passages of a tenant that are given vectors from one midnight UTC to the next.
    requests_per_minute
        Requests of a tenant.
    key_requests_per_minute
        Requests of one key.
    concurrent_calls
        Calls of a tenant that are under way at the same time.
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
    rows = [
        (plan["name"], *("none" if plan[limit] is None else str(plan[limit]) for limit in LIMITS)) for plan in plans
    ]
    show(("name", *LIMITS), rows)
