"""Warnings about a worker's configuration, whose mistakes would otherwise only show as missing work."""

import structlog

from recollect.accounts.operator_keys import service as operator_keys
from recollect.errors import RecollectError
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings

log = structlog.get_logger(__name__)


def warn_of_missing_indexes(settings: Settings) -> None:
    """Log that no vector index is built where the worker has no connection of the tables' owner."""
    if settings.maintenance_database_url is None:
        setting = settings.display_name("maintenance_database_url")
        log.warning("no vector index will be built, and recall gets slower as graphs grow", missing=setting)


async def warn_of_other_secret(settings: Settings) -> None:
    """Log that no key is hashed with the configured secret although there are keys: gateways then refuse all of them.

    Only the connection of the tables' owner sees the keys of every tenant. Where it cannot be used, nothing is logged:
    the job that needs it reports that.
    """
    if settings.maintenance_database_url is None:
        return
    try:
        async with Operator.connect(settings.maintenance_database_url, settings) as operator:
            known, others = await operator_keys.count_hashed_keys(operator, pepper=settings.pepper)
    except RecollectError:
        return
    if others and not known:
        log.warning(
            "no valid API key is known to be hashed with RECOLLECT_KEY_SECRET: gateways may refuse all of them",
            keys=others,
            accepted_secrets=len(settings.accepted_key_secrets),
        )
