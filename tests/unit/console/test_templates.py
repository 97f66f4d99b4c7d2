"""Rules that hold for every template of ours: nothing in them needs an exception of the content security policy."""

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

import pytest

from recollect_console.rendering import templates as console_templates
from recollect_console.routes import ASSETS as CONSOLE_ASSETS
from recollect_gateway.web.pages import ASSETS as GATEWAY_ASSETS
from recollect_gateway.web.pages import compile_templates
from recollect_http.web.rendering import COMPONENTS
from recollect_http.web.styles import ASSETS, PACKAGE
from recollect_operator.pages.rendering import templates as operator_templates

PACKAGES = (PACKAGE, "recollect_gateway.web", "recollect_console", "recollect_operator.pages")
FORBIDDEN = {
    "an inline style": re.compile(r"\sstyle="),
    "an inline script": re.compile(r"<script(?![^>]*\ssrc=)|\son\w+="),
    "text that is not escaped": re.compile(r"\|\s*safe\b|autoescape false"),
    "a link of a script": re.compile(r"javascript:"),
    "an address elsewhere": re.compile(r"(?:src|href|action)=\"(?:https?:)?//"),
}


def sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".html"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


TEMPLATES = [pair for package in PACKAGES for pair in sources(files(package).joinpath("templates"))]


@pytest.mark.proves("security: console-policy")
def test_templates_hold_nothing_that_a_browser_would_refuse_or_run(subtests: pytest.Subtests) -> None:
    for name, source in TEMPLATES:
        with subtests.test(name):
            assert [what for what, form in FORBIDDEN.items() if form.search(source)] == []


def test_forms_that_are_posted_have_the_token(subtests: pytest.Subtests) -> None:
    for name, source in TEMPLATES:
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", source, re.DOTALL):
            with subtests.test(f"{name}: {form[:60]}"):
                assert re.search(r"ui\.token\(form_token\)|token\(form_token\)|name=\"form_token\"", form)


def test_icons_that_are_named_are_in_the_sprite() -> None:
    sprite = files(PACKAGE).joinpath("assets", "icons.svg").read_text(encoding="utf-8")
    there = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    named = {icon for _, source in TEMPLATES for icon in re.findall(r'icon\("([\w-]+)"|icon_name="([\w-]+)"', source)}
    assert {name for pair in named for name in pair if name} <= there
    assert "<script" not in sprite


def test_each_component_is_a_file_and_each_asset_is_there() -> None:
    folder = files(PACKAGE).joinpath("templates", "components")
    assert {entry.name for entry in folder.iterdir() if entry.is_file()} == {f"{name}.html" for name in COMPONENTS}
    shared, gateway = (PACKAGE, ASSETS), ("recollect_gateway.web", GATEWAY_ASSETS)
    for package, names in (shared, gateway, ("recollect_console", CONSOLE_ASSETS)):
        for name in names:
            assert files(package).joinpath("assets", *name.split("/")).is_file(), name


def test_libraries_come_with_their_licences() -> None:
    folder = files("recollect_console").joinpath("assets", "libraries")
    names = {entry.name for entry in folder.iterdir()}
    for script in (name for name in names if name.endswith(".js")):
        assert f"{script.removesuffix('.min.js')}.LICENSE.txt" in names
    assert "lucide.LICENSE.txt" in names


def test_every_template_compiles() -> None:
    compile_templates()
    for made in (console_templates(), operator_templates()):
        for name in made.list_templates(extensions=["html"]):
            made.get_template(name)
