"""The sidebar: pages in the order in which it lists them."""

from dataclasses import dataclass

from recollect.caller import Scope

MEMORY, ORGANISATION = "memory", "organisation"


@dataclass(frozen=True, slots=True)
class NavigationEntry:
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
    NavigationEntry("ask", "Ask", "message-circle-question-mark"),
    NavigationEntry("memory", "Memory", "list", also=("node",)),
    NavigationEntry("graph", "Graph", "waypoints"),
    NavigationEntry("care", "Care", "sparkles"),
    NavigationEntry("timeline", "Timeline", "history"),
    NavigationEntry("connect", "Connect", "plug", ORGANISATION),
    NavigationEntry("erasure", "Erasure", "shield", ORGANISATION, Scope.TENANT_ADMIN),
    NavigationEntry("jobs", "Jobs", "list-checks", ORGANISATION),
    NavigationEntry("transfer", "Import and export", "arrow-right-left", ORGANISATION),
    NavigationEntry("people", "People", "users", ORGANISATION, Scope.TENANT_ADMIN),
    NavigationEntry("usage", "Usage", "chart-column", ORGANISATION),
    NavigationEntry("audit", "Audit log", "scroll-text", ORGANISATION, Scope.TENANT_ADMIN),
    NavigationEntry("webhooks", "Webhooks", "webhook", ORGANISATION, Scope.TENANT_ADMIN),
    NavigationEntry("settings", "Settings", "settings", ORGANISATION),
)

SEARCH_PAGE, SEARCH_FIELD, SEARCH_LABEL = "memory", "prefix", "Find a name"
"""Where the search field of the top bar leads."""
