"""Bodies, parameters and arguments: read with bounds, parsed and checked."""

from typing import Any

from litestar import Request

AnyRequest = Request[Any, Any, Any]
"""A request of anybody, identified or not."""
