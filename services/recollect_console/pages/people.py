"""People: the members of the organisation, their roles, and how members are removed."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.members import service as members
from recollect.accounts.members.model import given_by
from recollect.caller import Role
from recollect.errors import InvalidInput, RecollectError
from recollect_console.access import ADMIN
from recollect_console.paging import PAGE, paging_of
from recollect_console.refusals import unchanged
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import IdCursor
from recollect_http.web.refusals import FormRefusal, mark_of, refusal_of
from recollect_http.web.rendering import go_to

DONE = {"role": "The role is changed. It applies at once.", "removed": "The person is no longer a member."}


class PeoplePages(Controller):
    """Members, for admins."""

    path = "/people"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit], cursor: IdCursor = None) -> Response[str]:
        """One page of the members."""
        return await _page(visit, after=cursor)

    @post("/{person_id:uuid}/role")
    async def change_role(self, visit: NamedDependency[Visit], person_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Give a member another role."""
        try:
            async with visit.changing_tenant() as tx:
                await members.get_member(tx, person_id)
                await members.change_role(tx, person_id, role_of(visit), check=unchanged(visit))
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        is_self = person_id == visit.session.person_id  # They may see less now.
        return go_to("/app") if is_self else visit.go("people", done="role")

    @get("/{person_id:uuid}/remove")
    async def ask_to_remove(self, visit: NamedDependency[Visit], person_id: FromPath[UUID]) -> Response[str]:
        """What ends with a membership."""
        return await _question(visit, person_id)

    @post("/{person_id:uuid}/remove")
    async def remove(self, visit: NamedDependency[Visit], person_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Remove a member."""
        try:
            async with visit.changing_tenant() as tx:
                await members.remove_member(tx, person_id, check=unchanged(visit))
        except RecollectError as error:
            return await _question(visit, person_id, refusal_of(error))
        return go_to("/app") if person_id == visit.session.person_id else visit.go("people", done="removed")


def role_of(visit: Visit) -> Role:
    """The role that was chosen in a form. Raises InvalidInput."""
    try:
        return Role(visit.value("role"))
    except ValueError:
        raise InvalidInput("Choose a role", path="role") from None


def roles_to_give(visit: Visit) -> list[tuple[str, str]]:
    """The roles that the visitor may give, highest first, as options."""
    return [(role.value, role.value) for role in Role if role in given_by(visit.membership.role)]


async def _page(visit: Visit, refusal: FormRefusal | None = None, *, after: UUID | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        found = await members.list_members(tx, after=after, limit=PAGE + 1)
    shown = found[:PAGE]
    context: dict[str, Any] = {
        "members": [(member, mark_of(member)) for member in shown],
        "roles": roles_to_give(visit),
        "paging": paging_of(visit, shown[-1].person_id if len(found) > PAGE else None),
        "fault": refusal.text if refusal else "",
    }
    return render(visit, "people/list.html", status=refusal.status if refusal else 200, done=DONE, **context)


async def _question(visit: Visit, person_id: UUID, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        member = await members.get_member(tx, person_id)
    return render(
        visit,
        "people/remove.html",
        status=refusal.status if refusal else 200,
        member=member,
        seen=mark_of(member),
        is_self=person_id == visit.session.person_id,
        fault=refusal.text if refusal else "",
    )
