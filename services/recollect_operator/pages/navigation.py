"""The sidebar of the operators' pages, in its order."""

from dataclasses import dataclass

ROOT = "/operator"


@dataclass(frozen=True, slots=True)
class SidebarEntry:
    """A page: the first part of its address below ROOT, its label and its icon."""

    page: str
    label: str
    icon: str


ENTRIES = (
    SidebarEntry("tenants", "Tenants", "users"),
    SidebarEntry("plans", "Plans", "layers"),
    SidebarEntry("cells", "Cells and moves", "database"),
    SidebarEntry("health", "Health", "hourglass"),
    SidebarEntry("log", "Log", "scroll-text"),
)
