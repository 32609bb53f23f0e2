from __future__ import annotations

import asyncio

import pytest

from releasekit.ecosystems.go.remote import explain
from releasekit.ecosystems.go.shared import Shared
from releasekit.errors import CommandFailed, Denied, PackageError, Rejected, Transient


@pytest.mark.parametrize(
    ("log", "kind", "ambiguous", "says"),
    [
        (
            "fatal: Authentication failed for 'https://me:secret@host/x'",
            Denied,
            False,
            "https://***@host/x",
        ),
        ("git@host: Permission denied (publickey).", Denied, False, "publickey"),
        ("remote: Permission to a/b.git denied to bot.", Denied, False, "denied to bot"),
        ("fatal: unable to access: The requested URL returned error: 403", Denied, False, "403"),
        ("fatal: unable to access: The requested URL returned error: 429", Transient, False, "429"),
        ("fatal: unable to access: The requested URL returned error: 503", Transient, True, "503"),
        ("fatal: the remote end hung up unexpectedly", Transient, True, "hung up"),
        ("ssh: connect to host h port 22: Connection refused", Transient, False, "refused"),
        ("fatal: unable to access: Could not resolve host: h", Transient, False, "resolve"),
        ("! 1:refs/tags/v1 [rejected] (already exists)", Transient, True, "already exists"),
        ("fatal: 'origin' does not appear to be a git repository", Rejected, False, "appear"),
        (
            "remote: \nremote: only robots\n! 1:refs/tags/v1 [remote rejected] (hook declined)",
            Rejected,
            False,
            "only robots; [remote rejected] (hook declined)",
        ),
        ("", Rejected, False, "`git push` ended with 1"),
    ],
)
def test_what_git_says_is_told_apart(
    log: str, kind: type[PackageError], ambiguous: bool, says: str
) -> None:
    """R12, R34"""
    failed = CommandFailed("`git push` ended with 1", log=tuple(log.splitlines()))
    error = explain(failed, "go:a.b/c v1.0.0", writing=True)
    assert type(error) is kind
    assert str(error).startswith("go:a.b/c v1.0.0: ")
    assert says in str(error)
    assert "secret" not in str(error)
    if isinstance(error, Transient):
        assert error.ambiguous is ambiguous
        reading = explain(failed, "x", writing=False)
        assert isinstance(reading, Transient)
        assert not reading.ambiguous


def test_one_call_answers_everybody_who_had_asked_before() -> None:
    calls = 0

    async def call() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        return calls

    async def main() -> None:
        shared = Shared(call)
        assert await asyncio.gather(*(shared.get() for _ in range(5))) == [1] * 5
        assert await shared.get() == 2

    asyncio.run(main())


def test_an_error_is_shared_too_and_not_kept() -> None:
    calls = 0

    async def call() -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Transient("down")
        return calls

    async def main() -> None:
        shared = Shared(call)
        answers = await asyncio.gather(*(shared.get() for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [Transient] * 3
        assert await shared.get() == 2

    asyncio.run(main())
