from __future__ import annotations

import gc

import pytest

from releasekit.graph import gc_paused


@gc_paused()
def build(*, fails: bool) -> bool:
    if fails:
        raise KeyError
    return gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        assert not build(fails=False)
        assert gc.isenabled() is enabled
        with pytest.raises(KeyError):
            build(fails=True)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
