from __future__ import annotations

import httpx
import pytest

from releasekit.errors import CommandFailed, PackageError, Transient
from releasekit.git.remote import explain
from releasekit.http.answers import check, is_passing, remedy

# The server is up, and could not do it beside what others asked of it.
CONTENDED = 423


@pytest.mark.parametrize("status", range(400, 600))
def test_one_table_says_which_statuses_are_tried_again(status: int) -> None:
    """R12: requests and git pushes alike."""
    with pytest.raises(PackageError) as caught:
        check(httpx.Response(status), "acme 1.0")
    assert isinstance(caught.value, Transient) == (is_passing(status) or status == CONTENDED)
    log = (f"fatal: The requested URL returned error: {status}",)
    pushed = explain(
        CommandFailed("`git push` failed with exit code 128", log=log), "acme 1.0", writing=True
    )
    assert isinstance(pushed, Transient) == is_passing(status)
    assert caught.value.hint == remedy(status) != ""
