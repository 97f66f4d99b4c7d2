"""The keys of the demo tenant, as a data folder holds them; commands that only read the folder load no database."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoKeys:
    """The keys of the demo tenant: one for agents, which is pasted into clients, and one for administration."""

    agent: str | None = None
    admin: str | None = None
