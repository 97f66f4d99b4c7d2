"""A tool is one module of the folder of its toolset: arguments, result, handler and specification stand together."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from recollect_gateway.mcp_endpoint import tools
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE

DEFINITIONS = [each for tool in CATALOGUE for each in (tool, *tool.dialects)]
FOLDER = Path(tools.__file__).parent


def _specifications(module: str) -> list[ToolSpec]:
    """The specifications that a module makes itself, in the order in which they stand in it."""
    path = FOLDER.joinpath(*module.split(".")).with_suffix(".py")
    made = re.findall(r"^([A-Z_]+) = (?:ToolSpec|facts_tool|organize_tool)\(", path.read_text(), re.MULTILINE)
    return [getattr(import_module(f"{tools.__name__}.{module}"), name) for name in made]


def test_a_tool_stands_in_the_module_of_its_handler(subtests: pytest.Subtests) -> None:
    for tool in DEFINITIONS:
        with subtests.test(tool.name, toolsets=sorted(tool.toolsets)):
            toolset, name = tool.handler.__module__.removeprefix(f"{tools.__name__}.").split(".")
            assert tool in _specifications(f"{toolset}.{name}")
            assert tool.arguments.__name__ in vars(sys.modules[tool.handler.__module__])
            assert tool.result.__name__ in vars(sys.modules[tool.handler.__module__])


def test_a_tool_stands_in_the_folder_of_a_toolset_that_has_it(subtests: pytest.Subtests) -> None:
    for tool in CATALOGUE:
        with subtests.test(tool.name):
            assert tool.handler.__module__.split(".")[3] in tool.toolsets
            specification = tool.name.upper()
            assert getattr(sys.modules[tool.handler.__module__], specification) is tool


def test_every_specification_is_in_the_catalogue() -> None:
    modules = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.glob("*/*.py") if path.stem != "__init__")
    made = [tool for path in modules for tool in _specifications(".".join(path.parts))]
    assert sorted(map(id, made)) == sorted(map(id, DEFINITIONS))
