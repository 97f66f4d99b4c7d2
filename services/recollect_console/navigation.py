"""The sidebar: pages in the order in which it lists them."""

from dataclasses import dataclass

from recollect.caller import Scope

MEMORY, ORGANISATION = "memory", "organisation"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the sidebar: the first part of its address, its label and icon, and the scope that it needs.

    `also`: other pages that belong to it.
    """

    page: str
    label: str
    icon: str
    section: str = MEMORY
    scope: Scope = Scope.MEMORY_READ
    also: tuple[str, ...] = ()


ENTRIES = (
    Entry("ask", "Ask", "message-circle-question-mark"),
    Entry("memory", "Memory", "list", also=("node",)),
    Entry("graph", "Graph", "waypoints"),
    Entry("care", "Care", "sparkles"),
    Entry("timeline", "Timeline", "history"),
    Entry("connect", "Connect", "plug", ORGANISATION),
    Entry("erasure", "Erasure", "shield", ORGANISATION, Scope.TENANT_ADMIN),
    Entry("jobs", "Jobs", "list-checks", ORGANISATION),
    Entry("transfer", "Import and export", "arrow-right-left", ORGANISATION),
    Entry("people", "People", "users", ORGANISATION, Scope.TENANT_ADMIN),
    Entry("usage", "Usage", "chart-column", ORGANISATION),
    Entry("audit", "Audit log", "scroll-text", ORGANISATION, Scope.TENANT_ADMIN),
    Entry("webhooks", "Webhooks", "webhook", ORGANISATION, Scope.TENANT_ADMIN),
    Entry("settings", "Settings", "settings", ORGANISATION),
)

SEARCH_PAGE, SEARCH_FIELD, SEARCH_LABEL = "memory", "prefix", "Find a name"
"""Where the search field of the top bar leads."""
