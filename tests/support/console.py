"""People at the console without a browser: signed in with a role, they open pages and send their forms."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx2

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.gateway import RunningGateway
from tests.support.people import browser, joined, sign_in

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "use", "wbr"})


@dataclass
class Form:
    """A form: its method, its address, and its fields as the page shows them, by name."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Element:
    """An element: its name, its attributes, and all text in it."""

    name: str
    attributes: dict[str, str]
    text: str = ""


class Page(HTMLParser):
    """A page as a browser reads it: its elements, its text and its forms."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.status, self.address, self.headers = response.status_code, str(response.url), response.headers
        self.elements: list[Element] = []
        self.forms: list[Form] = []
        self._said: list[str] = []
        self._open: list[Element] = []
        self._named: Element | None = None
        self.source = response.text
        self.feed(response.text)

    @property
    def text(self) -> str:
        """All text, in one line."""
        return " ".join("".join(self._said).split())

    def all(self, name: str, /, **attributes: str) -> list[Element]:
        """The elements of this name with these attributes (`class_` is `class`), in order."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.name == name and all(element.attributes.get(k) == v for k, v in wanted.items())
        ]

    def links(self) -> dict[str, str]:
        """The address of each link, by its text."""
        return {" ".join(e.text.split()): e.attributes["href"] for e in self.all("a") if "href" in e.attributes}

    def form(self, part: str) -> Form:
        """The form to whose address this part belongs; of several, one that is posted."""
        found = [form for form in sorted(self.forms, key=lambda form: form.method != "post") if part in form.action]
        assert found, f"no form for {part} in {[form.action for form in self.forms]}"
        return found[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag == "form":
            found = element.attributes
            self.forms.append(Form(found.get("method", "get"), found.get("action", ""), {}))
        elif self.forms and any(e.name == "form" for e in self._open):
            self._note_field(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().name != tag:
            pass

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        self._said.append(data)
        for element in self._open:
            element.text += data
        if self._open and self._open[-1].name == "textarea":
            name = self._open[-1].attributes.get("name", "")
            self.forms[-1].fields[name] = (self.forms[-1].fields.get(name, "") + data).removeprefix("\n")

    def _note_field(self, element: Element) -> None:
        found, fields = element.attributes, self.forms[-1].fields
        name = found.get("name")
        if element.name == "select":
            self._named = element
            fields[name or ""] = ""
        elif element.name == "option" and self._named is not None and "selected" in found:
            fields[self._named.attributes.get("name", "")] = found.get("value", "")
        elif (
            element.name == "input" and name and (found.get("type") not in ("checkbox", "radio") or "checked" in found)
        ):
            fields[name] = found.get("value", "")


@dataclass(frozen=True)
class PageReader:
    """A browser without scripts: it opens pages and sends their forms."""

    http: httpx2.AsyncClient

    async def open_address(self, address: str, *, status: int = 200, **query: Any) -> Page:
        response = await self.http.get(address, params=query or None)
        assert response.status_code == status, (address, response.status_code, response.text)
        return Page(response)

    async def send(self, page: Page, part: str, *, status: int = 200, **fields: str | list[str]) -> Page:
        """Send a form of a page with its fields, changed by these, and follow where it leads."""
        form = page.form(part)
        origin = {"Origin": str(self.http.base_url).rstrip("/")}
        response = await self.http.post(form.action or page.address, data=form.fields | fields, headers=origin)
        if response.status_code == 303:
            return await self.open_address(response.headers["location"], status=status)
        assert response.status_code == status, (form.action, response.status_code, response.text)
        return Page(response)


@dataclass(frozen=True)
class Visitor(PageReader):
    """A signed-in person at the console of one tenant."""

    tenant: str
    person: Person

    def path(self, page: str, *, graph: str = "default") -> str:
        return f"/app/{self.tenant}/{graph}/{page}"

    async def open(self, page: str, *, graph: str = "default", status: int = 200, **query: Any) -> Page:
        """Open a page of the console."""
        return await self.open_address(self.path(page, graph=graph), status=status, **query)

    async def part(self, page: str, target: str, **query: Any) -> Page:
        """The part of a page that htmx asks for."""
        headers = {"HX-Request": "true", "HX-Target": target}
        response = await self.http.get(self.path(page), params=query or None, headers=headers)
        assert response.status_code == 200, response.text
        return Page(response)


@asynccontextmanager
async def visiting(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller, role: Role = Role.OWNER
) -> AsyncIterator[Visitor]:
    """A new person with this role in the caller's tenant, signed in."""
    person = await joined(databases, caller, role, pepper=settings.pepper)
    async with browser(gateway) as http:
        answer = await sign_in(http, person.email)
        assert answer.status_code == 303, answer.text
        yield Visitor(http, caller.tenant, person)
