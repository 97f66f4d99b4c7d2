"""Use cases of language models: set a tenant's own, and choose the one that distils its conversations.

The model belongs to the tenant, as its graphs do, and gets what its conversations say. So only admins without an
allow-list of graphs may see or set it. A key is stored encrypted, never shown, and never kept for another address.
"""

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.crypto.encryption import Cipher
from recollect.distilling.language_models import store
from recollect.distilling.language_models.model import PURPOSE, ChosenModel, NewModel, StoredModel, key_binding
from recollect.errors import Conflict, ErrorCode
from recollect.outbound.chat_completions import LanguageModel
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings

OF_THE_TENANT = " and cannot use the language model, which belongs to the whole tenant"


async def get_model(tx: Transaction) -> StoredModel | None:
    """The tenant's own language model; None: it has none. Raises Forbidden under an allow-list."""
    tx.caller.require_unconfined(OF_THE_TENANT)
    return await store.find_model(tx)


async def set_model(tx: Transaction, new: NewModel, settings: Settings) -> StoredModel:
    """Set the tenant's own language model, in place of the one before and its key.

    Raises InvalidInput, Conflict where the operator allows no own models, Forbidden under an allow-list.
    """
    tx.caller.require_unconfined(OF_THE_TENANT)
    if not settings.distil_tenant_models:
        raise Conflict(
            "The operator of this service allows no language models of tenants (RECOLLECT_DISTIL_TENANT_MODELS).",
            code=ErrorCode.DISTILLING_OFF,
        )
    new.require_valid()
    api_key = None
    if new.api_key is not None:
        api_key = _cipher(settings).encrypt(new.api_key.encode(), bound_to=key_binding(tx.tenant_id))
    stored = await store.upsert_model(tx, new, api_key=api_key)
    await audit.record(tx, Action.MODEL_SET, named("tenant", tx.tenant_id))
    return stored


async def remove_model(tx: Transaction) -> bool:
    """Remove the tenant's own language model with its key; whether there was one. Raises Forbidden."""
    tx.caller.require_unconfined(OF_THE_TENANT)
    removed = await store.delete_model(tx)
    if removed:
        await audit.record(tx, Action.MODEL_REMOVED, named("tenant", tx.tenant_id))
    return removed


async def is_on(tx: Transaction, settings: Settings) -> bool:
    """Whether there is a language model for the tenant's conversations."""
    if settings.distil_url is not None:
        return True
    return settings.distil_tenant_models and await store.find_model(tx) is not None


async def require_on(tx: Transaction, settings: Settings) -> None:
    """Raise Conflict, with what to do, where there is no language model for the tenant's conversations."""
    if not await is_on(tx, settings):
        own = (
            "An admin of the tenant sets one (PUT /v1/language-model), or the"
            if settings.distil_tenant_models
            else "The"
        )
        raise Conflict(
            f"Distilling is off: there is no language model. {own} operator of this service does "
            "(RECOLLECT_DISTIL_URL).",
            code=ErrorCode.DISTILLING_OFF,
        )


async def choose_model(tx: Transaction, settings: Settings) -> ChosenModel | None:
    """The language model of the tenant's conversations: the tenant's own, else the operator's; None: there is none.

    Raises ValueError for a key that was encrypted under another RECOLLECT_KEY_SECRET.
    """
    own = await store.find_model(tx) if settings.distil_tenant_models else None
    if own is not None:
        key = own.api_key and _cipher(settings).decrypt(own.api_key, bound_to=key_binding(tx.tenant_id)).decode()
        return ChosenModel(LanguageModel(own.url, own.model, key or None), is_own=True)
    if settings.distil_url is None:
        return None
    secret = settings.distil_api_key
    key = secret.get_secret_value() if secret else None
    return ChosenModel(LanguageModel(settings.distil_url, settings.distil_model, key), is_own=False)


def _cipher(settings: Settings) -> Cipher:
    return Cipher.of(settings.pepper, purpose=PURPOSE)
