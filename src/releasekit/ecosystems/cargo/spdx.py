"""Whether a license is an SPDX expression, as crates.io reads one: `/` is OR, deprecated licenses
count, and letters have their case.

https://github.com/rust-lang/crates.io/blob/main/src/licenses.rs
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from releasekit.text.escape import clip

# Of what crates.io's parser knows, what `packaging` may not know yet.
# https://github.com/EmbarkStudios/spdx/blob/main/src/identifiers.rs
_LICENSES: Final = frozenset(
    """ALGLIB-Documentation Advanced-Cryptics-Dictionary BOLA-1.1 BSD-2-Clause-pos-unchanged
    BSD-3-Clause-OpenWebUI BSD-3-Clause-Tso BSD-Mark-Modifications BSD-Source-Code-no-disclaimer
    BSD-Source-alt-GPL BSD-ask-to-endorse Brian-Gladman-3-Clause-no-conversion Buddy Bugroff
    CAPEC-tou CC-BY-NC-3.0-IGO ESA-PL-permissive-2.4 ESA-PL-strong-copyleft-2.4
    ESA-PL-weak-copyleft-2.4 FDK-MPEG-H GFDL-1.1-invariants GFDL-1.1-no-invariants
    GFDL-1.2-invariants GFDL-1.2-no-invariants GFDL-1.3-invariants GFDL-1.3-no-invariants
    HPND-SMC HPND-sell-variant-critical-systems Hippocratic-3.0-core ISO-permission Informatica
    MIT-STK MMPL-1.0.1 MVT-1.1 NIST-PD-TNT NOASSERTION OSC-1.0 OSSP OpenMDW-1.0
    ParaType-Free-Font-1.3 SGMLUG-PM TekHVC UnRAR Vixie-Cron WTFNMFPL WordNet
    X11-no-permit-persons atc-game hyphen-bulgarian
    """.split()  # noqa: SIM905 # a line for each would be no clearer
)
_EXCEPTIONS: Final = frozenset(
    """Classpath-exception-2.0-short Google-Patent-WebM Simple-Library-Usage-exception
    Spelling-Provider-LGPL-exception kvirc-openssl-exception rsync-linking-exception
    sqlitestudio-OpenSSL-exception
    """.split()  # noqa: SIM905 # a line for each would be no clearer
)
# https://github.com/EmbarkStudios/spdx/blob/main/src/lexer.rs
_TERM: Final = re.compile(r"\s*(?:(?P<word>[-.:A-Za-z0-9]+)|(?P<mark>[()/])|(?P<plus>(?<!\s)\+))")
_REFERENCE: Final = r"(?:DocumentRef-[-.A-Za-z0-9]*:)?{}Ref-[-.A-Za-z0-9]*"
_LICENSE_REFERENCE: Final = re.compile(_REFERENCE.format("License"))
_ADDITION_REFERENCE: Final = re.compile(_REFERENCE.format("Addition"))
_OPERATORS: Final = {"AND": "o", "and": "o", "OR": "o", "or": "o", "WITH": "w", "with": "w"}
_GNU: Final = re.compile(r"(?P<base>(?:AGPL|GPL|LGPL|GFDL)-.+?)(?P<only>-only)?")
_MAX_SHOWN: Final = 60
_WANTED: Final = "names must be joined by AND, OR or WITH, and each parenthesis must be closed"


def explain_wrong(expression: str) -> str:
    """Empty where nothing is."""
    text, at, last = expression.strip(), 0, ""
    kinds: list[str] = []
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            rest = clip(repr(text[at:].strip()), _MAX_SHOWN)
            return f"{rest} begins with a character that an SPDX expression cannot contain"
        at = term.end()
        if term["plus"]:
            if (gnu := _GNU.fullmatch(last)) and not _is_license(f"{gnu['base']}-or-later"):
                return f"{last} has no later versions"
            kinds.append("+")
        elif term["mark"]:
            kinds.append("o" if term["mark"] == "/" else term["mark"])
        else:
            last = term["word"]
            kinds.append(_find_kind(last))
            if kinds[-1] == "?":
                return (
                    f"{clip(repr(last), _MAX_SHOWN)} is not a license that it knows{_suggest(last)}"
                )
    shape = re.sub(r"(?:l\+?|r)(?:we)?", "x", "".join(kinds))
    return "" if _is_balanced(shape) else _WANTED


def _is_balanced(shape: str) -> bool:
    """Whether licenses and operators take turns, as many parentheses close as open, and none does
    before that.
    """
    depth, wants_license = 0, True
    for kind in shape:
        if kind not in ("(x" if wants_license else ")o"):
            return False
        depth += (kind == "(") - (kind == ")")
        wants_license = kind in "(o"
        if depth < 0:
            return False
    return not depth and not wants_license


def _find_kind(word: str) -> str:
    if kind := _OPERATORS.get(word):
        return kind
    if _LICENSE_REFERENCE.fullmatch(word):
        return "r"
    if _is_license(word):
        return "l"
    if word in _EXCEPTIONS or _canonical(f"MIT WITH {word}") == f"MIT WITH {word}":
        return "e"
    return "e" if _ADDITION_REFERENCE.fullmatch(word) else "?"


def _is_license(word: str) -> bool:
    return word in _LICENSES or _canonical(word) == word


def _suggest(word: str) -> str:
    canonical = _canonical(word)
    return f"; it knows {canonical!r}" if canonical else ""


@cache
def _canonical(expression: str) -> str:
    """By `packaging`; empty where that does not know it."""
    try:
        return canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return ""
