"""R40: a go.mod is parsed within bounds."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.go import gomod, paths
from releasekit.errors import ConfigError

MOD = "module example.com/a\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (MOD + "(" * 200, "go.mod:2: has more than 100 words in one line"),
        (MOD + "/*" * 40_000, "go.mod:2: has a line of more than 65536 characters"),
        (MOD + "x y\n" * 20_001, "go.mod: has more than 20000 directives"),
        (MOD + "require (\n" + "\ta.b/c v1.0.0\n" * 20_001 + ")\n", "more than 20000 directives"),
        (MOD + "replace a.b/c => ./\0\n", "go.mod: holds a NUL character"),
    ],
)
def test_more_than_anybody_writes_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        gomod.parse_mod(text, "go.mod")


def test_a_major_of_thousands_of_digits_does_not_fit() -> None:
    assert "does not belong" in paths.trouble_with_version(f"gopkg.in/a.v{'9' * 5000}", "v1.0.0")
    assert not paths.trouble_with_version("gopkg.in/a.v3", "v3.1.0")
