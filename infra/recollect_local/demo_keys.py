"""The keys of the demo tenant, as a data folder holds them; commands that only read the folder load no database."""

from dataclasses import dataclass

from recollect.accounts.identity.model import kind_of


@dataclass(frozen=True, slots=True)
class DemoKeys:
    """The keys of the demo tenant: one for agents, which is pasted into clients, and one for administration."""

    agent: str | None = None
    admin: str | None = None

    @classmethod
    def stored(cls, api_key: str | None, admin_key: str | None) -> "DemoKeys":
        """The keys that a data folder holds. Until there were two, it held the one for administration as `api_key`."""
        if admin_key is None and kind_of(api_key or "") == "admin":
            return cls(admin=api_key)
        return cls(api_key, admin_key)
