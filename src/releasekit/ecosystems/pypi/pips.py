"""Which pip there is to fill build environments with, where there is no uv."""

from __future__ import annotations

import importlib.util
import site
import sys
from importlib import metadata

from packaging.version import InvalidVersion, Version

# The first that installs into another environment.
# https://pip.pypa.io/en/stable/news/#v22-3 (the `--python` option)
_FIRST_FOR_OTHERS = Version("22.3")


def python_with_pip() -> str:
    """A Python whose pip can install into any environment: our own, or the one that our own
    environment was made from; empty where neither has one.
    """
    if importlib.util.find_spec("pip"):
        return sys.executable
    base = str(getattr(sys, "_base_executable", ""))
    places = site.getsitepackages([sys.base_prefix])
    pip = next(iter(metadata.distributions(name="pip", path=places)), None)
    try:
        fits = pip is not None and Version(pip.version) >= _FIRST_FOR_OTHERS
    except InvalidVersion:
        return ""
    return base if fits else ""
