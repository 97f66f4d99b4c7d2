"""The tools of toolset `admin`."""

from recollect.jobs.kinds import COMPACT_GRAPH, REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect_gateway.mcp_endpoint import confirmation
from recollect_gateway.mcp_endpoint.tool import LongWork, ToolSpec
from recollect_gateway.mcp_endpoint.toolsets.admin import compaction, history, jobs, usage
from recollect_gateway.mcp_endpoint.toolsets.jobs import JobOut, succeeded_job

ADMIN: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="reindex",
        title="Reindex",
        description="Start a job that makes the search index of a graph anew from what is remembered. Where one is "
        "under way, that one is answered.",
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
        description="Start a job that gives a graph vectors of another model. The old ones serve until the new ones "
        "are complete, and are kept for the way back. Texts that the embedder did not take are tried again.",
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
        description="List the jobs that wait, run or have ended, newest first.",
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
        description="Show how far a job is and what came of it. It can wait for the end, and read what the job "
        "left, piece by piece.",
        toolsets=frozenset({"organize", "admin"}),
        arguments=jobs.GetJob,
        result=JobOut,
        handler=jobs.get_job,
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        name="cancel_job",
        title="Cancel Job",
        description="End a job after the step in hand. What it has done stays; one that has ended is left as it is.",
        toolsets=frozenset({"organize", "admin"}),
        arguments=jobs.CancelJob,
        result=JobOut,
        handler=jobs.cancel_job,
        idempotent=True,
    ),
    ToolSpec(
        name="compact",
        title="Compact",
        description="Remove for good what was deleted or superseded longer ago than the retention, and tell what was "
        "freed.",
        toolsets=frozenset({"memory", "admin"}),
        arguments=compaction.Compact,
        result=compaction.Compacted,
        handler=compaction.compact,
        ask=confirmation.COMPACT,
        work=LongWork(COMPACT_GRAPH, compaction.compacted),
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="recent_changes",
        title="Recent Changes",
        description="List the changes of a graph after a revision, oldest first: which operation, by whom, what ids.",
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
        description="Bring back what was before the changes after a revision, of one actor or of everybody, merges "
        "included. What others changed later, whose name is taken, what compaction removed, and the graph's "
        "configuration is left alone and told.",
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
        description="Tell how often the organisation called each tool and route, hour by hour or in sums, with errors "
        "and the passages that were embedded; what its graphs hold now, and what its plan leaves of each quota. The "
        "last seconds may be missing.",
        toolsets=frozenset({"admin"}),
        arguments=usage.Usage,
        result=usage.UsageReport,
        handler=usage.read_usage,
        read_only=True,
        idempotent=True,
    ),
)
