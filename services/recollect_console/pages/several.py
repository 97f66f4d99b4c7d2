"""Change several nodes of the memory list at once: what was chosen, what it would do, and doing it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from litestar import Controller, Response, post
from litestar.di import NamedDependency
from litestar.response import Redirect

from recollect.accounts.identity.pasted_secrets import refuse_secrets
from recollect.errors import InvalidInput
from recollect.memory.changing_several import MAX_CHOSEN, CommonPatch, SeveralChanged, change_several
from recollect.text.visible import NO_VISIBLE_CHARACTER, is_visible
from recollect_console.access import SEVERAL
from recollect_console.filters import several_of
from recollect_console.rendering import render
from recollect_console.visit import Visit

OPERATION = "revise"
CHOSEN = {SEVERAL: ("node",)}
FILTERS = ("kind", "tag", "status", "prefix", "author")
"""The filters of the list, which the forms carry on as `of_…`, so that one comes back to the same list."""

MAX_TAGS, MAX_TAG, MAX_REASON = 50, 128, 1_000
TITLES = {"tag": "Tag", "archive": "Archive", "forget": "Forget"}


class SeveralPages(Controller):
    """The two steps of a change of several nodes."""

    path = "/memory/several"

    @post("/try", opt=CHOSEN, status_code=200)
    async def try_change(self, visit: NamedDependency[Visit]) -> Response[str]:
        """What the change would do: it is done, and rolled back."""
        try:
            return await _tried(visit)
        except InvalidInput as error:
            return _page(visit, None, status=400, fault=error.message)

    @post("/", opt=CHOSEN, status_code=200)
    async def change(self, visit: NamedDependency[Visit]) -> Response[str] | Redirect:
        """Change the nodes. If one was changed since the page was loaded, nothing is written and the page says so."""
        try:
            async with visit.call(OPERATION).writing(visit.graph) as (tx, revision):
                outcome = await change_several(tx, revision, _chosen(visit), _patch(visit))
        except InvalidInput as error:
            return _page(visit, None, status=400, fault=error.message)
        if not outcome.is_whole:
            return await _tried(visit, status=409)
        return visit.go("memory", done=f"{visit.value('action')}-several", **_list_filters(visit))


async def _tried(visit: Visit, *, status: int = 200) -> Response[str]:
    async with visit.call(OPERATION).writing(visit.graph, commit=False) as (tx, revision):
        outcome = await change_several(tx, revision, _chosen(visit), _patch(visit), partly=True)
    return _page(visit, outcome, status=status)


def _page(visit: Visit, outcome: SeveralChanged | None, *, status: int = 200, fault: str = "") -> Response[str]:
    entered = {name: visit.value(name) for name in ("action", "tags", "reason")}
    carried: dict[str, Any] = {f"of_{name}": value for name, value in _list_filters(visit).items()}
    return render(
        visit,
        "memory/several.html",
        status=status,
        outcome=outcome,
        fault=fault,
        title=TITLES.get(entered["action"], "Change"),
        entered=entered,
        carried=carried,
        back=visit.address("memory", **_list_filters(visit)),
    )


def _list_filters(visit: Visit) -> Mapping[str, str]:
    return {name: value for name in FILTERS if (value := visit.value(f"of_{name}"))}


def _chosen(visit: Visit) -> dict[UUID, int]:
    """The nodes that were checked, with the version in which each was listed. Raises InvalidInput."""
    checked = visit.form.get("node", ())
    if not checked:
        raise InvalidInput("Choose at least one entity or fact in the list", path="node")
    if len(checked) > MAX_CHOSEN:
        raise InvalidInput(f"Choose {MAX_CHOSEN} at most", path="node")
    try:
        return {UUID(node): int(version) for node, _, version in (each.partition(":") for each in checked)}
    except ValueError:
        raise InvalidInput("Reload the list: it does not say which versions you have seen", path="node") from None


def _patch(visit: Visit) -> CommonPatch:
    """What the form asks for. Raises InvalidInput."""
    refuse_secrets(reason := visit.value("reason")[:MAX_REASON] or None, "reason")
    match visit.value("action"):
        case "forget":
            return CommonPatch(status="outdated", reason=reason)
        case "archive":
            return CommonPatch(status="archived", reason=reason)
        case "tag":
            return CommonPatch(tags=_tags(visit.value("tags")))
    raise InvalidInput(f"The action is one of {', '.join(TITLES)}", path="action")


def _tags(entered: str) -> tuple[str, ...]:
    tags = several_of(entered)
    if not tags:
        raise InvalidInput("Enter a tag, or several between commas", path="tags")
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags):
        raise InvalidInput(f"There may be {MAX_TAGS} tags of {MAX_TAG} characters each", path="tags")
    if not all(map(is_visible, tags)):
        raise InvalidInput(NO_VISIBLE_CHARACTER, path="tags")
    refuse_secrets(tags, "tags")
    return tuple(tags)
