"""Delete tenants whose owners asked for it, and erase tenants that were deleted, once their grace period is over."""

import structlog

from recollect.accounts.deletion_requests import service as deletion_requests
from recollect.accounts.deletions import service as deletions
from recollect.accounts.deletions.model import StepOutcome
from recollect.accounts.tenants import service as tenants
from recollect.errors import RecollectError
from recollect_workers.context import WorkerContext

log = structlog.get_logger(__name__)


async def delete_requested(context: WorkerContext) -> None:
    """Delete tenants whose owners asked for that a week ago; operators can restore them until they are erased."""
    for tenant_id in context.until_stopping(await deletion_requests.tenants_with_due_deletion(context.database)):
        try:
            erase_at = await deletion_requests.delete_requested_tenant(context.database, tenant_id)
        except RecollectError as error:
            log.warning("tenant deletion postponed", tenant=str(tenant_id), reason=str(error))
            continue
        if erase_at is not None:
            log.info("tenant deleted by request of its owner", tenant=str(tenant_id), erase_at=erase_at.isoformat())


async def erase(context: WorkerContext) -> None:
    """Erase step by step, one tenant after the other; a tenant that another worker is erasing waits for the next round.

    If a worker dies in a step, the steps before it are done, and the next worker goes on.
    """
    erased = 0
    for tenant_id in context.until_stopping(await deletions.tenants_to_erase(context.database)):
        outcome: StepOutcome | None = StepOutcome.MORE
        try:
            while outcome is StepOutcome.MORE and not context.stopping.is_set():
                async with context.database.system() as session:
                    outcome = await deletions.erase_step(session, tenant_id)
        except RecollectError as error:
            log.warning("tenant erasure postponed", tenant=str(tenant_id), reason=str(error))
            continue
        if outcome is StepOutcome.ERASED:
            erased += 1
            log.info("tenant erased", tenant=str(tenant_id))
    if erased:
        async with context.database.system() as session:
            if left_out := await tenants.forget_statistics(session):
                log.warning("statistics not renewed, may contain erased values", tables=left_out)
