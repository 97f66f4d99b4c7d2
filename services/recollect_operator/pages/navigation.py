"""The sidebar of the operators' pages, in its order."""

from dataclasses import dataclass

ROOT = "/operator"


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page: the first part of its address below ROOT, its label and its icon."""

    page: str
    label: str
    icon: str


ENTRIES = (
    NavigationEntry("tenants", "Tenants", "users"),
    NavigationEntry("plans", "Plans", "layers"),
    NavigationEntry("cells", "Cells and moves", "database"),
    NavigationEntry("health", "Backlog and health", "hourglass"),
    NavigationEntry("log", "Log", "scroll-text"),
)
