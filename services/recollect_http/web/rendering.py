"""Templates of pages with the components that all of them share, and errors as sentences for people."""

from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from recollect.errors import ErrorCode, ErrorKind, RecollectError
from recollect.text.control_characters import in_one_direction
from recollect_http.access_log import note_code
from recollect_http.problems import CODES, STATUS, ungrouped
from recollect_http.requests import AnyRequest
from recollect_http.web.compiled_templates import CompiledTemplates
from recollect_http.web.styles import PACKAGE, asset_address

COMPONENTS = (
    *("button", "card", "chips", "copy", "dialog", "diff", "empty", "errors"),
    *("field", "icon", "select", "table", "tabs", "time", "toast"),
)
"""The files of templates/components, each with the macros of one component."""

log = structlog.get_logger(__name__)


def template_environment(
    *packages: str,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Environment:
    """The templates of these packages, the first first, and the components that all pages share.

    `filters` and `values`: further ones by name, for templates of these packages alone. All are compiled at once: a
    page that was opened first would hold the event loop for 50 ms. Options and filters, on which the result depends,
    are in this file.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        bytecode_cache=CompiledTemplates(made_by=Path(__file__).read_bytes()),
    )
    environment.globals["asset"] = lambda name: asset_address(PACKAGE, name)
    environment.globals |= values or {}
    environment.filters["in_one_direction"] = in_one_direction
    environment.filters["utc"] = lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    environment.filters["counted"] = lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}"
    environment.filters |= filters or {}
    environment.globals["ui"] = _components(environment)
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
    return environment


def error_text(request: AnyRequest, error: Exception) -> tuple[int, str]:
    """The status and the sentence of an error. Server errors are logged in full, and answered with one sentence."""
    error = ungrouped(error)
    match error:
        case RecollectError() if error.kind is not ErrorKind.INTERNAL:
            status, text = STATUS[error.kind], str(error)
        case HTTPException() if error.status_code < 500:
            status, text = error.status_code, error.detail
        case _:
            log.error("page failed", route=request.scope.get("path_template"), exc_info=error)
            status, text = 500, "Something went wrong on our side. Try again; if it happens again, tell an operator."
    code = error.code if isinstance(error, RecollectError) else CODES.get(status, ErrorCode.INVALID_INPUT)
    note_code(request.scope, str(ErrorCode.INTERNAL if status == 500 else code))
    return status, text


def go_to(address: str) -> Redirect:
    """Redirect to an address of this server by GET, after a form."""
    return Redirect(address, status_code=303)


def _components(environment: Environment) -> SimpleNamespace:
    """The macros of all components: `ui.button(…)`, also in a block that is rendered by itself."""
    modules = [environment.get_template(f"components/{name}.html").module for name in COMPONENTS]
    return SimpleNamespace(
        **{name: value for module in modules for name, value in vars(module).items() if name[:1] != "_"}
    )
