from __future__ import annotations

import pytest

from releasekit.ecosystems.npm.destination import is_same_registry

NPMJS = "https://registry.npmjs.org/"


@pytest.mark.parametrize("url", ["https://xn--/", "https://a:b", "https://[::1", "https://\ud800/"])
def test_what_is_no_address_is_no_registry(url: str) -> None:
    """R51: .npmrc, .yarnrc.yml and publishConfig hold any text."""
    assert not is_same_registry(url, NPMJS)
