"""The tools of toolset `admin`."""

from recollect.jobs.kinds import COMPACT_GRAPH, REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect_gateway.mcp_endpoint import confirmation
from recollect_gateway.mcp_endpoint.tool import LongWork, ToolSpec
from recollect_gateway.mcp_endpoint.tools.admin import compact, history, jobs, usage
from recollect_gateway.mcp_endpoint.tools.jobs import JobOut, succeeded_job

ADMIN: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="reindex",
        title="Reindex",
        description="Start a job that rebuilds the search index of a graph from its memories. Returns the job; if one "
        "is under way already, that one.",
        toolsets=frozenset({"admin"}),
        arguments=jobs.Reindex,
        result=JobOut,
        handler=jobs.reindex,
        work=LongWork(REINDEX_PASSAGES, succeeded_job),
        idempotent=True,
    ),
    ToolSpec(
        name="reembed",
        title="Reembed",
        description="Start a job that embeds a graph with another model. Searches use the old vectors until the new "
        "ones are complete; the old ones are kept, so that you can go back. Texts that the embedder refused are tried "
        "again.",
        toolsets=frozenset({"admin"}),
        arguments=jobs.Reembed,
        result=JobOut,
        handler=jobs.reembed,
        work=LongWork(REEMBED_PASSAGES, succeeded_job),
        idempotent=True,
    ),
    ToolSpec(
        name="list_jobs",
        title="List Jobs",
        description="List waiting, running and ended jobs, newest first.",
        toolsets=frozenset({"admin"}),
        arguments=jobs.ListJobs,
        result=jobs.Jobs,
        handler=jobs.list_jobs,
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        name="get_job",
        title="Get Job",
        description="Get a job's progress and result. It can wait for the job to end, and read the job's output piece "
        "by piece.",
        toolsets=frozenset({"organize", "admin"}),
        arguments=jobs.GetJob,
        result=JobOut,
        handler=jobs.get_job,
        read_only=True,
        large=True,
        idempotent=True,
    ),
    ToolSpec(
        name="cancel_job",
        title="Cancel Job",
        description="Cancel a job after its current step. What it has done stays. A job that has ended is left as it "
        "is.",
        toolsets=frozenset({"organize", "admin"}),
        arguments=jobs.CancelJob,
        result=JobOut,
        handler=jobs.cancel_job,
        idempotent=True,
    ),
    ToolSpec(
        name="compact",
        title="Compact",
        description="Permanently remove what was deleted or superseded longer ago than the retention, and report what "
        "was freed.",
        toolsets=frozenset({"memory", "admin"}),
        arguments=compact.Compact,
        result=compact.Compacted,
        handler=compact.compact,
        ask=confirmation.COMPACT,
        work=LongWork(COMPACT_GRAPH, compact.compacted),
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="recent_changes",
        title="Recent Changes",
        description="List the changes of a graph after a revision, oldest first, each with its operation, actor and "
        "ids.",
        toolsets=frozenset({"admin"}),
        arguments=history.RecentChanges,
        result=history.Changes,
        handler=history.recent_changes,
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        name="undo_changes",
        title="Undo Changes",
        description="Undo the changes after a revision, of one actor or of everybody, including merges. Not undone, "
        "but reported: what others changed later, names that are taken by now, what compaction removed, and the "
        "graph's configuration.",
        toolsets=frozenset({"admin"}),
        arguments=history.UndoChanges,
        result=history.Undone,
        handler=history.undo_changes,
        ask=confirmation.UNDO_CHANGES,
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="usage",
        title="Usage",
        description="Report how often the organisation called each tool and route, hourly or summed, with errors and "
        "embedded passages; what its graphs hold now; and what its plan leaves of each quota. The last seconds may be "
        "missing.",
        toolsets=frozenset({"admin"}),
        arguments=usage.Usage,
        result=usage.UsageReport,
        handler=usage.read_usage,
        read_only=True,
        idempotent=True,
    ),
)
