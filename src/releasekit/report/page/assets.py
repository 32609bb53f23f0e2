"""The style and the scripts of the page, and the policy that lets a browser run no others.

vendor/vendor.json says where each file in vendor/ is from.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_VENDORED: Final = ("dagre.min.js", "panzoom.min.js")
# In the order in which one needs another.
_OWN: Final = ("page.js", "details.js", "filters.js", "layout.js", "graph.js", "timeline.js")


@cache
def style() -> str:
    return (_HERE / "page.css").read_text(encoding="utf-8")


@cache
def scripts() -> tuple[str, ...]:
    """Each vendored script alone, then ours as one."""
    theirs = [(_HERE / "vendor" / name).read_text(encoding="utf-8") for name in _VENDORED]
    ours = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in _OWN)
    return (*theirs, f'"use strict";\n(() => {{\n{ours}}})();\n')


def policy() -> str:
    """Of the page: nothing is fetched, nothing sent, and no script or style runs but these.

    https://www.w3.org/TR/CSP3/#framework-directive-source-list
    """
    run = " ".join(map(_source, scripts()))
    return (
        f"default-src 'none'; script-src {run}; style-src {_source(style())}; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
