"""/v1/graphs/{name}/distil and /distilled, /v1/language-model: facts that a language model finds in conversations."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from recollect.caller import Scope
from recollect.distilling.language_models import service as language_models
from recollect.distilling.language_models.model import MAX_API_KEY, MAX_MODEL, NewModel, StoredModel
from recollect.distilling.threads import service as threads
from recollect.outbound.http_client import MAX_URL_LENGTH, Outbound
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, mirrors, requires_admin
from recollect_gateway.management.memory.jobs import JobBody, job_body
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import delete, get, post, put

MAX_THREAD = 256
_OF_THREAD = "Name of the thread, as its conversation was stored"
_OF_URL = "Base address of an OpenAI-compatible server, which must begin with `https://`; `/chat/completions` is added"
_OF_MODEL = "Name of the model at its server"
OfThread = Annotated[
    str | None, QueryParameter(min_length=1, max_length=MAX_THREAD, description=f"{_OF_THREAD}; or give `job`")
]
OfJob = Annotated[UUID | None, QueryParameter(description="Id of the job that wrote the facts; or give `thread`")]


class DistilBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The conversation to distil."""

    thread: Annotated[str, Meta(min_length=1, max_length=MAX_THREAD, description=_OF_THREAD, examples=["support-1"])]
    only_new: Annotated[
        bool,
        Meta(
            description="Whether to read only turns that no job has read; otherwise all are read, and facts of earlier "
            "jobs that are not found again are deleted"
        ),
    ] = False


class RevokedFactsBody(Struct, frozen=True):
    """How many facts were forgotten."""

    facts: Annotated[int, Meta(description="Number of facts that were forgotten")]
    more: Annotated[bool, Meta(description="Whether others may be left, for which the request has to be repeated")]


class LanguageModelBody(Struct, frozen=True):
    """The language model of the tenant's conversations, without its key."""

    set_by: Annotated[
        Literal["tenant", "operator"] | None,
        Meta(
            description="Whose model it is: the tenant's own or the operator's; null: there is none, and no distilling"
        ),
    ]
    url: Annotated[str | None, Meta(description=f"{_OF_URL}; null: it is not the tenant's own")] = None
    model: Annotated[str | None, Meta(description=f"{_OF_MODEL}; null: it is not the tenant's own")] = None
    has_api_key: Annotated[bool, Meta(description="Whether a key of the tenant's own is sent to the model")] = False
    created_at: Annotated[
        datetime | None, Meta(description="Time at which it was set; null: it is not the tenant's own")
    ] = None
    created_by: Annotated[
        str | None, Meta(description="Subject that set it, such as `key:…`; null: it is not the tenant's own")
    ] = None


class SetLanguageModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A language model to set."""

    url: Annotated[
        str, Meta(min_length=1, max_length=MAX_URL_LENGTH, description=_OF_URL, examples=["https://api.openai.com/v1"])
    ]
    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL, description=_OF_MODEL, examples=["gpt-4o-mini"])]
    api_key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_API_KEY)] | None,
        Meta(description="Key that is sent as a bearer token, stored encrypted and never returned; null: none is sent"),
    ] = None


class DistillingController(Controller):
    """Distil conversations, and forget what was distilled."""

    path = "/graphs/{name:str}"
    tags = ("distilling",)

    @post(
        "/distil",
        response_description="The job that was started, or the one of this thread that was under way already.",
        summary="Start a distilling job",
        opt=mirrors("remember"),
        status_code=202,
        before_request=valid_body(DistilBody),
    )
    async def distil_thread(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        name: GraphInPath,
        data: JSONBody[DistilBody],
    ) -> JobBody:
        """Start a job that has a language model find facts in a conversation.

        The facts are stored in the thread of the conversation, with the source `distilled`, and the model, the job and
        the turns in their metadata. Known facts are not duplicated. The response is 409 `distilling_off` if there is no
        language model.
        """
        request.user.require(Scope.MEMORY_WRITE)
        async with db.transaction(request.user) as tx:
            return job_body(await threads.start(tx, name, data.thread, state.settings, only_new=data.only_new))

    @delete(
        "/distilled",
        response_description="How many facts were forgotten.",
        summary="Revoke distilled facts",
        opt=mirrors("forget"),
        status_code=200,
    )
    async def revoke_distilled(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        name: GraphInPath,
        thread: OfThread = None,
        job: OfJob = None,
    ) -> RevokedFactsBody:
        """Delete all facts that were distilled from a thread, or by a job, in one revision, which can be undone.

        The turns of the conversation stay. A job that is under way is cancelled.
        """
        request.user.require(Scope.MEMORY_WRITE)
        async with db.transaction(request.user) as tx:
            revoked = await threads.revoke(tx, name, state.settings, thread=thread, job_id=job)
        return RevokedFactsBody(revoked.facts, revoked.more)


class LanguageModelController(Controller):
    """Read, set and remove the tenant's language model."""

    path = "/language-model"
    tags = ("distilling",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="The language model, without its key.", summary="Get the language model")
    async def get_language_model(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State
    ) -> LanguageModelBody:
        """Return the language model that distils the tenant's conversations, without its key."""
        async with db.transaction(request.user, read_only=True) as tx:
            return _body(await language_models.get_model(tx), state.settings)

    @put(
        "/",
        response_description="The language model that was set, without its key.",
        summary="Set the language model",
        before_request=valid_body(SetLanguageModel),
    )
    async def set_language_model(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        data: JSONBody[SetLanguageModel],
    ) -> LanguageModelBody:
        """Set a language model of the tenant's own, in place of the operator's and of the one before, with its key.

        Conversations that are distilled from now on are sent to this address. It must be public.
        """
        outbound: Outbound = state.outbound
        outbound.require_address(data.url, path="url")
        async with db.transaction(request.user) as tx:
            stored = await language_models.set_model(tx, NewModel(data.url, data.model, data.api_key), state.settings)
        return _body(stored, state.settings)

    @delete(
        "/", response_description="The tenant has no language model of its own.", summary="Remove the language model"
    )
    async def remove_language_model(self, request: CallerRequest, db: NamedDependency[TenantDatabase]) -> None:
        """Remove the tenant's own language model with its key. Facts that it found stay."""
        async with db.transaction(request.user) as tx:
            await language_models.remove_model(tx)


def _body(own: StoredModel | None, settings: Settings) -> LanguageModelBody:
    if own is not None and settings.distil_tenant_models:
        return LanguageModelBody("tenant", own.url, own.model, own.api_key is not None, own.created_at, own.created_by)
    return LanguageModelBody("operator" if settings.distil_url is not None else None)
