"""Which licenses crates.io takes: it reads them with another parser than PyPI."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.cargo.spdx import explain_wrong


@pytest.mark.parametrize(
    "expression",
    [
        *("MIT", " MIT ", "MIT OR Apache-2.0", "MIT/Apache-2.0", "MIT and (0BSD or Apache-2.0)"),
        *("GPL-3.0", "GPL-3.0+", "GPL-2.0-only+", "Apache-2.0+", "((MIT))", "WordNet"),
        *("Apache-2.0 WITH LLVM-exception", "GPL-2.0+ WITH Classpath-exception-2.0 OR MIT"),
        *("LicenseRef-own", "DocumentRef-a:LicenseRef-b", "MIT WITH AdditionRef-c"),
    ],
)
def test_an_expression_is_taken(expression: str) -> None:
    """R63"""
    assert not explain_wrong(expression)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("apache-2.0", "'apache-2.0' is not a license that it knows; it knows 'Apache-2.0'"),
        ("MIT AND foobar", "'foobar' is not a license that it knows"),
        ("MIT, Apache-2.0", "', Apache-2.0' begins with a character that an SPDX"),
        ("MIT +", "'+' begins with a character that an SPDX"),
        ("GPL-3.0-or-later+", "GPL-3.0-or-later has no later versions"),
        *(
            (each, "joined by AND, OR or WITH, and each parenthesis")
            for each in (
                *("", "MIT Apache-2.0", "MIT OR", "(MIT", "MIT)", "()", ")MIT(", "+", "MIT++"),
                *(
                    "LicenseRef-own+",
                    "LLVM-exception",
                    "MIT WITH Apache-2.0",
                    "(MIT) WITH LLVM-exception",
                ),
            )
        ),
    ],
)
def test_what_is_wrong_is_said(expression: str, says: str) -> None:
    """R63"""
    assert says in explain_wrong(expression)


def test_a_long_one_takes_no_longer_for_each_letter() -> None:
    """R67: a manifest may hold a megabyte."""
    deep = 20_000
    assert not explain_wrong("(" * deep + "MIT" + ")" * deep)
    assert len(explain_wrong("," * deep)) < 200
