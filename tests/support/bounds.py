"""Lower bounds, so that tests need a few rows instead of thousands."""

from typing import Any

import pytest


def lower(patch: pytest.MonkeyPatch, function: Any, **bounds: int) -> None:
    """Give keyword-only parameters of `function` another default."""
    defaults: dict[str, Any] = function.__kwdefaults__
    assert bounds.keys() <= defaults.keys()
    for name, bound in bounds.items():
        patch.setitem(defaults, name, bound)
