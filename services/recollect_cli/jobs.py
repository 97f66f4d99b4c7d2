"""`recollect jobs …`: list, show and cancel jobs."""

import sys
from urllib.parse import quote
from uuid import UUID

import msgspec
from cyclopts import App

from recollect.graph.graphs.model import graph_name
from recollect.jobs.model import Status
from recollect_cli.following import JobView, cancel_job, get_job, wait_for_job
from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.tables import AsJson, show_items, show_json, show_record

app = App(name="jobs", help="List, show and cancel jobs, such as imports and exports.")


@app.command(name="list")
def list_jobs(
    *,
    graph: str | None = None,
    kind: str | None = None,
    status: Status | None = None,
    limit: int = 50,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """List the newest jobs of the graphs that the key may use, newest first.

    Parameters
    ----------
    graph
        Only jobs of this graph.
    kind
        Only jobs of this kind, such as import_graph.
    status
        Only jobs with this status.
    limit
        Maximum number of jobs, 1 to 200.
    """
    parameters = {"graph": graph and graph_name(graph), "kind": kind, "status": status, "limit": str(limit)}
    query = "&".join(f"{name}={quote(value)}" for name, value in parameters.items() if value)
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", f"/jobs?{query}")
    show_items(
        answer,
        JobView,
        ("id", "kind", "graph", "status", "done", "created"),
        lambda job: (
            str(job.id),
            job.kind,
            job.graph or "-",
            job.status,
            _done(job),
            f"{job.created_at:%Y-%m-%d %H:%M}",
        ),
        json=json,
        empty="There are no such jobs.",
    )


@app.command
def show(job_id: UUID, *, wait: bool = False, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """Show the progress and the result of a job. Exits with 1 if the job failed.

    Parameters
    ----------
    job_id
        The job's id, as `recollect jobs list` shows it.
    wait
        Wait until the job ends, and show its progress meanwhile.
    """
    with connected(url, api_key) as gateway:
        if wait:
            wait_for_job(gateway, job_id, item="done", every=None)
        answer = get_job(gateway, job_id)
    _show_job(answer, json=json)
    if msgspec.json.decode(answer, type=JobView).status == "failed":
        sys.exit(1)


@app.command
def cancel(job_id: UUID, *, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """Cancel a job after its current step. Completed steps are kept; a job that has ended does not change.

    Parameters
    ----------
    job_id
        The job's id, as `recollect jobs list` shows it.
    """
    with connected(url, api_key) as gateway:
        answer = cancel_job(gateway, job_id)
    _show_job(answer, json=json)


def _show_job(answer: bytes, *, json: bool) -> None:
    if json:
        show_json(answer)
        return
    job = msgspec.json.decode(answer, type=JobView)
    fields = {
        "id": str(job.id),
        "kind": job.kind,
        "graph": job.graph or "-",
        "status": f"{job.status}, ends after its current step" if job.is_ending else job.status,
        "done": _done(job),
        "created": f"{job.created_at:%Y-%m-%d %H:%M:%S}",
        "finished": f"{job.finished_at:%Y-%m-%d %H:%M:%S}" if job.finished_at else "-",
        "result": " ".join(f"{name}={bytes(value).decode()}" for name, value in (job.result or {}).items()) or "-",
        "error": f"{job.error.code}: {job.error.message}" if job.error else "-",
        "output": f"{job.output_bytes} bytes at /v1/jobs/{job.id}/output" if job.output_bytes else "-",
    }
    show_record(fields)


def _done(job: JobView) -> str:
    return f"{job.done}" if job.total is None else f"{job.done}/{job.total}"
