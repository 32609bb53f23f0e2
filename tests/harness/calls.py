"""Functions of the program that do something else first, in a process of the tests."""

from __future__ import annotations

import importlib
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def call_first(where: str, first: Callable[[], object]) -> None:
    """Have the function "module:Class.name" call `first`, in the thread that calls it."""
    module, _, path = where.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    kept: Callable[..., object] = getattr(owner, name)

    @wraps(kept)
    def calling(*arguments: object, **named: object) -> object:
        first()
        return kept(*arguments, **named)

    static = isinstance(vars(owner).get(name), (staticmethod, classmethod))
    setattr(owner, name, staticmethod(calling) if static else calling)
