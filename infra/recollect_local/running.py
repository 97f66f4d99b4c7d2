"""The stack that runs on this machine: its addresses and keys, and how operators' commands reach its database.

Only the user who runs the stack, and root, can read its data folder and connect to its sockets.
"""

from urllib.parse import urlsplit

import msgspec

from recollect.errors import InvalidInput
from recollect.settings import LOOPBACK, Settings
from recollect_local.address import Endpoint
from recollect_local.data_folder import DataFolder
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey


def running_endpoint(folder: DataFolder) -> Endpoint | None:
    """The connection data of the stack that runs on this folder; None where none runs."""
    try:
        return msgspec.json.decode(folder.published_file.read_bytes(), type=Endpoint)
    except (OSError, msgspec.MsgspecError):
        return None


def require_endpoint(folder: DataFolder) -> Endpoint:
    """The same; raises InvalidInput where none runs."""
    endpoint = running_endpoint(folder)
    if endpoint is None:
        raise InvalidInput(
            f"Recollect does not run on {folder.path}. Start it with `recollect local`; if it runs with --data-dir, "
            "give that here, too."
        )
    return endpoint


def settings_of_running(settings: Settings) -> Settings | None:
    """These settings with the servers and the secret of the stack on this machine, where they name no others.

    None where none runs, or none with a database of its own although the settings name none. Links name the machine
    `localhost`: browsers offer passkeys there, and at no address that is a number.
    """
    folder, configured = DataFolder(settings.data_dir), settings.model_fields_set
    endpoint, postgres = running_endpoint(folder), LocalPostgres(folder.path)
    secret = settings.key_secret if "key_secret" in configured else folder.stored_secret()
    if endpoint is None or secret is None:
        return None
    update: dict[str, object] = {"key_secret": secret}
    update["public_url"] = settings.public_url or _named(endpoint.management_url)
    if "redis_url" not in configured:
        update["redis_url"] = LocalValkey(folder.path).url
    if "database_url" not in configured:
        if not postgres.has_started:
            return None
        update |= {"database_url": postgres.url("recollect_app"), "owner_database_url": postgres.url()}
    return settings.model_copy(update=update)


def _named(url: str) -> str:
    """The origin of an address, with the name of this machine instead of its number."""
    parts = urlsplit(url)
    host = "localhost" if parts.hostname in LOOPBACK else parts.netloc.rpartition(":")[0]
    return f"{parts.scheme}://{host}:{parts.port}"
