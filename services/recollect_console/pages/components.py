"""/app/components: every component in every state, for who makes pages. It exists on this machine alone."""

from datetime import UTC, datetime

from litestar import Controller, Response, get

from recollect_console.diffs import diff_words
from recollect_console.rendering import answer
from recollect_http.requests import AnyRequest

BEFORE, AFTER = "Ada likes tea, and deploys on Fridays.", "Ada likes green tea, and never deploys on Fridays."


class ComponentsPages(Controller):
    """The components."""

    path = "/app/components"
    include_in_schema = False

    @get("/", sync_to_thread=False)
    def show(self, request: AnyRequest) -> Response[str]:
        """All of them, without a person."""
        context = {"diff": diff_words(BEFORE, AFTER), "at": datetime(2026, 11, 12, 14, 3, tzinfo=UTC)}
        return answer(request, "components.html", 200, context)
