"""The known findings of the official conformance suite about Recollect, with the reason why each is right.

A finding is `scenario: check` for a check that did not succeed: failed, warned, or was skipped. Scenarios without an
entry succeed as a whole. SCENARIOS has the numbers of scenarios. The suite also needs tools that Recollect does not
have: these are the examples in tests/support/example_catalogue.py, which are mounted beside ours.
"""

TASKS = "io.modelcontextprotocol/tasks"
"""The extension, which the suite tests in addition to the revisions."""

TASK_SCENARIOS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-status-notifications",
    "tasks-wire-fields",
)
"""The scenarios of the suite about tasks, which it runs only by their names."""

SCENARIOS = {"2025-11-25": 33, "2026-07-28": 40, TASKS: len(TASK_SCENARIOS)}
"""The number of server scenarios for each revision: with fewer, the suite has broken off."""

NO_LOGGING = "MCP logging is not offered (no capability), and deprecated by 2026-07-28"
NO_SUBSCRIBE = "subscribes at a revision that tells by a standing stream of a session; Recollect has no sessions"
NO_TRIGGER = "calls a tool of the example server that changes its lists; those of Recollect do not change by a call"
NO_SERVER_REQUESTS = (
    "needs a request sent by the server, which waits for its answer in a session; Recollect keeps none. At 2026-07-28 "
    "a server asks back in its answer, and that holds"
)
NO_QUESTION_WITHIN = "asks within a task; Recollect asks before it makes one, and that holds (tasks-mrtr-composition)"
NOT_TRIED = "the suite does not try them yet; tests/integration/gateway/test_tasks.py does"
STATELESS = "wants a session or a stream to resume; Recollect is stateless, so that any replica serves any request"

EXPECTED: dict[str, dict[str, str]] = {
    "2025-11-25": {
        "elicitation-sep1034-defaults: elicitation-sep1034-general": NO_SERVER_REQUESTS,
        "elicitation-sep1330-enums: elicitation-sep1330-general": NO_SERVER_REQUESTS,
        "logging-set-level: logging-set-level": NO_LOGGING,
        "resources-subscribe: resources-subscribe": NO_SUBSCRIBE,
        "resources-unsubscribe: resources-unsubscribe": NO_SUBSCRIBE,
        "server-session-lifecycle: nothing was checked": STATELESS,
        "server-sse-multiple-streams: server-sse-multiple-streams-session": STATELESS,
        "server-sse-polling: server-sse-polling-session": STATELESS,
        "tools-call-elicitation: tools-call-elicitation": NO_SERVER_REQUESTS,
        "tools-call-sampling: tools-call-sampling": NO_SERVER_REQUESTS,
        "tools-call-with-logging: tools-call-with-logging": NO_LOGGING,
    },
    "2026-07-28": {
        "server-stateless: sep-2575-server-sends-prompts-list-changed-on-subscription": NO_TRIGGER,
        "server-stateless: sep-2575-server-sends-tools-list-changed-on-subscription": NO_TRIGGER,
    },
    TASKS: {
        "tasks-mrtr-input: sep-2663-tasks-get-status-input-required": NO_QUESTION_WITHIN,
        "tasks-mrtr-input: tasks-mrtr-partial-fulfillment": NO_QUESTION_WITHIN,
        "tasks-mrtr-input: tasks-mrtr-tasks-update-resumes": NO_QUESTION_WITHIN,
        "tasks-status-notifications: tasks-status-notifications": NOT_TRIED,
    },
}
"""For each revision: finding -> the reason why it is right. The test demands that entries without a finding go."""

AUTHORIZATION_SCENARIOS = {"authorization-server-metadata-endpoint", "authorization-code-grant"}
"""The scenarios of the suite for authorization servers."""

AUTHORIZATION: dict[str, str] = {}
"""The known findings of these scenarios: none."""
