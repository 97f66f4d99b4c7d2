"""What the official conformance suite is known to find against Recollect, and why each is as it should be.

A finding is `scenario: check` for a check that did not succeed: failed, warned, or was skipped. Scenarios not named
here hold whole, and SCENARIOS says how many the suite has. Most of these speak to an example server ("everything
server") whose test tools, prompts and resources no product has.
"""

SCENARIOS = {"2025-11-25": 33, "2026-07-28": 40}
"""How many server scenarios the suite has for a revision: fewer would be a suite that broke off."""

NO_TEST_TOOL = "calls a tool of the example server"
NO_TEST_RESOURCE = "reads a resource of the example server"
NO_PROMPTS = "gets a prompt of the example server, or lists prompts: Recollect has none yet and says so (no capability)"
NO_COMPLETION = "completes a prompt's argument: Recollect has no completion yet and says so (no capability)"
NO_LOGGING = "MCP logging is not offered (no capability) and is deprecated by 2026-07-28"
NO_SUBSCRIBE = "subscribes at a revision that tells by a standing stream of a session; Recollect has no sessions"
NO_TRIGGER = "calls a tool of the example server that changes its lists; those of Recollect do not change by a call"
NO_CUSTOM_HEADERS = "needs a tool with x-mcp-header arguments; no tool of ours has one"
NO_SERVER_REQUESTS = "needs an example tool that asks the client back; no tool of ours does"
STATELESS = "wants a session or a stream to resume; Recollect is stateless, so that any replica serves any request"

BOTH: dict[str, str] = {
    "completion-complete: completion-complete": NO_COMPLETION,
    "json-schema-2020-12: json-schema-2020-12-tool-found": NO_TEST_TOOL,
    "prompts-get-embedded-resource: prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-simple: prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args: prompts-get-with-args": NO_PROMPTS,
    "prompts-get-with-image: prompts-get-with-image": NO_PROMPTS,
    "prompts-list: prompts-list": NO_PROMPTS,
    "resources-read-binary: resources-read-binary": NO_TEST_RESOURCE,
    "resources-read-text: resources-read-text": NO_TEST_RESOURCE,
    "resources-templates-read: resources-templates-read": NO_TEST_RESOURCE,
    "tools-call-audio: tools-call-audio": NO_TEST_TOOL,
    "tools-call-embedded-resource: tools-call-embedded-resource": NO_TEST_TOOL,
    "tools-call-error: tools-call-error": NO_TEST_TOOL,
    "tools-call-image: tools-call-image": NO_TEST_TOOL,
    "tools-call-mixed-content: tools-call-mixed-content": NO_TEST_TOOL,
    "tools-call-simple-text: tools-call-simple-text": NO_TEST_TOOL,
    "tools-call-with-progress: tools-call-with-progress": NO_TEST_TOOL,
}

EXPECTED: dict[str, dict[str, str]] = {
    "2025-11-25": BOTH
    | {
        "elicitation-sep1034-defaults: elicitation-sep1034-general": NO_SERVER_REQUESTS,
        "elicitation-sep1330-enums: elicitation-sep1330-general": NO_SERVER_REQUESTS,
        "logging-set-level: logging-set-level": NO_LOGGING,
        "resources-subscribe: resources-subscribe": NO_SUBSCRIBE,
        "resources-unsubscribe: resources-unsubscribe": NO_SUBSCRIBE,
        "server-session-lifecycle: nothing was checked": STATELESS,
        "server-sse-multiple-streams: server-sse-multiple-streams-session": STATELESS,
        "server-sse-polling: server-sse-polling-session": STATELESS,
        "server-sse-polling: server-sse-priming-event": STATELESS,
        "server-sse-polling: server-sse-retry-field": STATELESS,
        "tools-call-elicitation: tools-call-elicitation": NO_SERVER_REQUESTS,
        "tools-call-sampling: tools-call-sampling": NO_SERVER_REQUESTS,
        "tools-call-with-logging: tools-call-with-logging": NO_LOGGING,
    },
    "2026-07-28": BOTH
    | {
        "caching: sep-2549-prompts-list-caching-hints": NO_PROMPTS,
        "http-custom-header-server-validation: sep-2243-server-decode-base64": NO_CUSTOM_HEADERS,
        "http-custom-header-server-validation: sep-2243-server-no-xmcp-tool": NO_CUSTOM_HEADERS,
        "http-custom-header-server-validation: sep-2243-server-reject-invalid-param-chars": NO_CUSTOM_HEADERS,
        "http-custom-header-server-validation: sep-2243-server-reject-param-mismatch": NO_CUSTOM_HEADERS,
        "http-custom-header-server-validation: sep-2243-server-validate-param-match": NO_CUSTOM_HEADERS,
        "input-required-result-basic-elicitation: sep-2322-elicitation-incomplete": NO_SERVER_REQUESTS,
        "input-required-result-basic-list-roots: sep-2322-list-roots-incomplete": NO_SERVER_REQUESTS,
        "input-required-result-basic-sampling: sep-2322-sampling-incomplete": NO_SERVER_REQUESTS,
        "input-required-result-capability-check: sep-2322-respect-client-capabilities": NO_SERVER_REQUESTS,
        "input-required-result-ignore-extra-params: sep-2322-ignore-unexpected-params": NO_SERVER_REQUESTS,
        "input-required-result-missing-input-response: sep-2322-missing-response-rerequests": NO_SERVER_REQUESTS,
        "input-required-result-multi-round: sep-2322-multi-round-r1": NO_SERVER_REQUESTS,
        "input-required-result-multiple-input-requests: sep-2322-multiple-inputs-incomplete": NO_SERVER_REQUESTS,
        "input-required-result-non-tool-request: sep-2322-non-tool-incomplete": NO_PROMPTS,
        "input-required-result-request-state: sep-2322-request-state-incomplete": NO_SERVER_REQUESTS,
        "input-required-result-result-type: sep-2322-result-type-included": NO_SERVER_REQUESTS,
        "input-required-result-tampered-state: sep-2322-reject-tampered-state": NO_SERVER_REQUESTS,
        "server-stateless: sep-2575-http-server-no-independent-requests-on-stream": NO_SERVER_REQUESTS,
        "server-stateless: sep-2575-missing-capability-http-400": NO_SERVER_REQUESTS,
        "server-stateless: sep-2575-server-no-log-without-loglevel": NO_LOGGING,
        "server-stateless: sep-2575-server-rejects-undeclared-capability": NO_SERVER_REQUESTS,
        "server-stateless: sep-2575-server-sends-prompts-list-changed-on-subscription": NO_TRIGGER,
        "server-stateless: sep-2575-server-sends-tools-list-changed-on-subscription": NO_TRIGGER,
    },
}
"""For each revision: finding -> why it is as it should be. Remove a line when its feature comes: the test will ask."""

WITHOUT_RESOURCES: dict[str, dict[str, str]] = {
    "2025-11-25": {},
    "2026-07-28": {
        "caching: sep-2549-resources-read-caching-hints": "the default toolset has no resource to read",
    },
}
"""What comes on top at an address that offers no resource."""

AUTHORIZATION_SCENARIOS = {"authorization-server-metadata-endpoint", "authorization-code-grant"}
"""The suite's scenarios of authorization servers."""

AUTHORIZATION: dict[str, str] = {}
"""The same of these: none is known."""
