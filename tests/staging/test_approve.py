"""`releasekit approve` and `reject`, as programs, against npm's double."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from effort import SEARCHING
from harness.http_server import HangUp
from harness.killing import Killing
from harness.npm.documents import Answer, error
from harness.npm.registry import serving
from staging.held_release import LEVELS, NAMES, VERSION, held_release, name_of, needs_of, tarball

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.npm.documents import Release, Request
    from harness.npm.registry import Registry
    from staging.held_release import HeldRelease

CHAIN = [name_of(level, 0) for level in range(LEVELS)]


def staged(registry: Registry, name: str) -> Release:
    return next(release for release in registry.npm.staged.values() if release.name == name)


def versions(names: list[str]) -> list[str]:
    return [f"{name}@{VERSION}" for name in names]


def assert_in_order(approvals: list[str]) -> None:
    """Each once, and nothing before what it needs."""
    assert len(approvals) == len(set(approvals))
    names = [approval.rpartition("@")[0] for approval in approvals]
    for place, name in enumerate(names):
        assert not set(needs_of(name)) & set(names[place:])


def outcome_of(output: str, name: str) -> str:
    found = re.findall(rf"^npm:{re.escape(name)}  +{VERSION}  +(\w+)", output, re.MULTILINE)
    return str(found[-1])


def test_a_release_is_approved_in_order_with_one_code(registry: Registry, tmp_path: Path) -> None:
    """R1"""
    release = held_release(tmp_path, registry.npm)
    ran = release.run()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(registry.npm.approvals) == sorted(versions(NAMES))
    assert_in_order(registry.npm.approvals)
    assert {each.request.headers["npm-otp"] for each in registry.seen("POST")} == {"123456"}
    assert "pypi:acme waits for this elsewhere" in ran.stdout
    again = release.run()
    assert again.returncode == 0
    assert len(registry.seen("POST")) == len(NAMES)


def test_nothing_happens_where_nobody_can_be_asked(registry: Registry, tmp_path: Path) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    ran = subprocess.run(
        release.command(),
        env=release.environment(),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "4 packages of commit 1234567890a… wait for approval" in ran.stdout
    assert "no terminal to ask whether to approve 4 packages" in ran.stderr
    assert not registry.npm.approvals


def test_killed_around_every_approval_each_is_approved_once(
    registry: Registry, tmp_path: Path
) -> None:
    """R14, R19: twenty packages in four levels, a start killed before and after each approval, and
    in each test run those of some.
    """
    release = held_release(tmp_path, registry.npm)
    killing = Killing(release.start, tmp_path)
    fatal = {staged(registry, name).id for name in (NAMES if SEARCHING else NAMES[::8])}

    def may_die(moment: str, request: Request) -> None:
        if request.method == "POST" and any(each in request.target for each in fatal):
            killing.die_once(moment, request.target)

    registry.tell(may_die)
    killing.finish(most=2 * len(fatal) + 1)
    assert killing.runs == 2 * len(fatal) + 1
    assert sorted(registry.npm.approvals) == sorted(versions(NAMES))
    assert_in_order(registry.npm.approvals)


def test_killed_at_any_request_it_goes_on(tmp_path: Path) -> None:
    """R19: at each request of four packages that need each other, and then run again; in each test
    run at some.
    """
    number = 1
    while True:
        with serving() as registry:
            release = held_release(tmp_path / str(number), registry.npm, CHAIN)
            killing = Killing(release.start, release.directory)

            def may_die(
                moment: str, request: Request, last: int = number, killing: Killing = killing
            ) -> None:
                if (moment, request.number) == ("before", last):
                    killing.die(moment, request.target)

            registry.tell(may_die)
            if killing.run() == 0:
                break
            registry.before = lambda _: None
            ran = release.run()
            assert ran.returncode == 0, (number, ran.stdout)
            assert registry.npm.approvals == versions(CHAIN)
        number += 1 if SEARCHING else 8
    assert number > 4 * len(CHAIN)


def test_a_lost_answer_is_asked_for(registry: Registry, tmp_path: Path) -> None:
    """R15"""
    release = held_release(tmp_path, registry.npm, CHAIN)
    lost: list[str] = []

    def after(request: Request, answer: Answer) -> Answer:
        if request.method == "POST" and request.target not in lost:
            lost.append(request.target)
            raise HangUp
        return answer

    registry.after = after
    ran = release.run()
    assert ran.returncode == 0, ran.stdout
    assert registry.npm.approvals == versions(CHAIN)
    assert len(registry.seen("POST")) == len(CHAIN)


def test_a_forged_tarball_is_never_approved(registry: Registry, tmp_path: Path) -> None:
    """R17"""
    release = held_release(tmp_path, registry.npm)
    victim = staged(registry, name_of(1, 2))
    ours = victim.tarball
    victim.tarball = tarball(victim.name, VERSION, scripts={"postinstall": "node evil.js"})
    ran = release.run()
    assert ran.returncode == 1
    dependents = {n for n in NAMES if victim.name in needs_of(n)}
    dependents |= {n for n in NAMES if dependents & set(needs_of(n))}
    left = versions([victim.name, *dependents])
    assert sorted(registry.npm.approvals) == sorted(set(versions(NAMES)) - set(left))
    assert f"({len(ours)} bytes) was built" in ran.stdout
    assert outcome_of(ran.stdout, victim.name) == "failed"
    assert {outcome_of(ran.stdout, name) for name in dependents} == {"blocked"}


def test_a_foreign_stage_under_our_version_is_not_approved(
    registry: Registry, tmp_path: Path
) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    ours = staged(registry, CHAIN[1])
    del registry.npm.staged[ours.id]
    registry.npm.stage(ours.tarball, actor="mallory")
    ran = release.run()
    assert ran.returncode == 1
    assert registry.npm.approvals == versions(CHAIN[:1])
    assert "staged by mallory" in ran.stdout


def test_a_second_maintainer_approves_by_hand(registry: Registry, tmp_path: Path) -> None:
    """Between the review and our own approval, too."""
    release = held_release(tmp_path, registry.npm, CHAIN)

    def before(request: Request) -> None:
        if request.method == "POST" and staged_now(registry, CHAIN[1]):
            registry.npm.approve(staged(registry, CHAIN[1]))

    registry.before = before
    registry.npm.approve(staged(registry, CHAIN[0]))
    ran = release.run()
    assert ran.returncode == 0, ran.stdout
    assert registry.npm.approvals == versions(CHAIN[2:])
    assert outcome_of(ran.stdout, CHAIN[0]) == "published"


def staged_now(registry: Registry, name: str) -> bool:
    return any(release.name == name for release in registry.npm.staged.values())


def test_other_bytes_that_somebody_published_are_a_conflict(
    registry: Registry, tmp_path: Path
) -> None:
    """R17"""
    release = held_release(tmp_path, registry.npm, CHAIN)
    ours = staged(registry, CHAIN[0])
    del registry.npm.staged[ours.id]
    registry.npm.publish(tarball(ours.name, VERSION, description="another one"))
    ran = release.run()
    assert ran.returncode == 1
    assert not registry.npm.approvals
    assert "Somebody else published this version" in ran.stdout


def test_what_was_rejected_in_the_middle_keeps_back_what_needs_it(
    registry: Registry, tmp_path: Path
) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    del registry.npm.staged[staged(registry, CHAIN[2]).id]
    ran = release.run("--max-wait", "0s")
    assert ran.returncode == 1
    assert registry.npm.approvals == versions(CHAIN[:2])
    assert outcome_of(ran.stdout, CHAIN[2]) == "failed"
    assert "it was rejected, or the registry has dropped it" in ran.stdout
    assert outcome_of(ran.stdout, CHAIN[3]) == "blocked"


def test_a_scan_that_takes_its_time_is_waited_for(registry: Registry, tmp_path: Path) -> None:
    """R1: before the approval, and after it; what nobody needs is not waited for."""
    registry.npm.scanning = True
    release = held_release(tmp_path, registry.npm, CHAIN)
    registry.npm.show()
    for each in registry.npm.staged.values():
        each.status = "validating"
    asked: list[str] = []

    def before(request: Request) -> None:
        if request.method == "POST" and len(registry.seen("POST")) == 1:
            registry.npm.review()
        if request.method == "GET" and request.target.endswith(f"/{VERSION}"):
            asked.append(request.target)
            if asked.count(request.target) > 1:
                registry.npm.show()

    registry.before = before
    ran = release.run()
    assert ran.returncode == 0, ran.stdout
    assert registry.npm.approvals == versions(CHAIN)
    assert "still under review" in ran.stdout
    assert len({*asked}) == len(CHAIN) - 1


def test_rejecting_takes_back_all_that_waits(registry: Registry, tmp_path: Path) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    ran = release.run(command="reject")
    assert ran.returncode == 0, ran.stdout
    assert registry.npm.rejections == versions(CHAIN[::-1])
    assert not registry.npm.staged
    assert not registry.npm.approvals


class Person:
    """Sits at the terminal of a process; `answers` maps what is asked to what they type."""

    def __init__(self, release: HeldRelease, *flags: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        given = {"TERM": "xterm", "COLUMNS": "80", **environment}
        self.process = subprocess.Popen(
            release.command("approve", *flags),
            env=release.environment(**given),
            cwd=release.directory,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.seen = ""

    def until(self, words: str) -> None:
        while words not in self.seen:
            data = os.read(self._ours, 4096)
            assert data, self.seen
            self.seen += data.decode(errors="replace")

    def types(self, text: str) -> None:
        self.seen = ""
        os.write(self._ours, f"{text}\n".encode())

    def leaves(self) -> int:
        with contextlib.suppress(OSError):  # the other end is gone
            while data := os.read(self._ours, 4096):
                self.seen += data.decode(errors="replace")
        os.close(self._ours)
        return self.process.wait()


def test_a_code_that_expires_in_the_middle_is_asked_for_again(
    registry: Registry, tmp_path: Path
) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)

    def after(request: Request, answer: Answer) -> Answer:
        if request.method == "POST" and len(registry.npm.approvals) == 2:
            registry.npm.accounts.codes = {"654321"}
        return answer

    registry.after = after
    registry.before = without_page(registry)
    person = Person(release)
    person.until("Approve 4 packages? [y/N]")
    person.types("y")
    person.until("One-time code:")
    assert registry.npm.approvals == versions(CHAIN[:2])
    person.types("654321")
    assert person.leaves() == 0, person.seen
    assert registry.npm.approvals == versions(CHAIN)


def without_page(registry: Registry) -> Callable[[Request], Answer | None]:
    """As a registry that has no page to sign in at."""

    def before(request: Request) -> Answer | None:
        good = request.headers.get("npm-otp") in registry.npm.accounts.codes
        if request.method != "POST" or good:
            return None
        refusal = error(401, "You must provide a one-time pass.")
        return Answer(401, refusal.body, (*refusal.headers, ("WWW-Authenticate", "OTP")))

    return before


def test_three_wrong_codes_end_it(registry: Registry, tmp_path: Path) -> None:
    registry.before = without_page(registry)
    release = held_release(tmp_path, registry.npm, CHAIN)
    person = Person(release, "--yes", RELEASEKIT_NPM_OTP="")
    for _ in range(3):
        person.until("One-time code:")
        person.types("000000")
    assert person.leaves() == 1
    assert "refused 3 codes in a row" in person.seen
    assert not registry.npm.approvals


def test_signing_in_on_the_web_takes_the_place_of_a_code(
    registry: Registry, tmp_path: Path
) -> None:
    registry.npm.accounts.agrees_after = 2
    registry.npm.accounts.retry_after_s = 0
    release = held_release(tmp_path, registry.npm, CHAIN)
    person = Person(release, "--yes", RELEASEKIT_NPM_OTP="")
    assert person.leaves() == 0, person.seen
    assert registry.npm.approvals == versions(CHAIN)
    assert len(registry.npm.accounts.logins) == 1
    assert f"{registry.npm.origin}/auth/cli/" in person.seen


def test_whoever_says_no_changes_nothing(registry: Registry, tmp_path: Path) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    person = Person(release)
    person.until("Approve 4 packages? [y/N]")
    person.types("")
    assert person.leaves() == 1
    assert not registry.npm.approvals
    assert len(registry.npm.staged) == len(CHAIN)


def test_stopped_by_the_keyboard_it_says_how_far_it_came(
    registry: Registry, tmp_path: Path
) -> None:
    """R28"""
    registry.npm.scanning = True
    release = held_release(tmp_path, registry.npm, CHAIN)
    registry.npm.show()
    person = Person(release, "--yes")
    person.until("waiting until everybody sees it")
    person.process.send_signal(signal.SIGINT)
    assert person.leaves() == 130, person.seen
    assert registry.npm.approvals == versions(CHAIN[:1])
    assert "not decided" in person.seen


def test_what_an_account_may_not_see_is_said_with_the_way_out(
    registry: Registry, tmp_path: Path
) -> None:
    release = held_release(tmp_path, registry.npm, CHAIN)
    environment = release.environment(RELEASEKIT_NPM_TOKEN="npm_nobodys")
    ran = release.run(environment=environment)
    assert ran.returncode == 1
    assert "npm login" in ran.stdout
    assert "npm_nobodys" not in ran.stdout + ran.stderr


def test_a_registry_that_only_a_file_names_sees_no_login_but_the_users_own(
    registry: Registry, tmp_path: Path
) -> None:
    """R37: the one that their .npmrc has for it."""
    work = tmp_path / "work"
    release = held_release(work, registry.npm, CHAIN)
    (work / "releasekit.toml").write_text(f"npm-registry = '{release.url}'\n")
    for home, login in ((work, "npm_session"), (tmp_path, "${MY_LOGIN}")):
        place = release.url.partition(":")[2]
        (home / ".npmrc").write_text(f"{place}:_authToken={login}\n")

    def approve(**variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "releasekit", "approve", str(release.results), "--yes"]
        environment = release.environment(**variables)
        return subprocess.run(
            command, env=environment, cwd=work, capture_output=True, text=True, check=False
        )

    # The second is a login of the checkout.
    for variables in ({}, {"RELEASEKIT_NPM_TOKEN": "", "HOME": str(work)}):
        ran = approve(**variables)
        assert ran.returncode == 2, ran.stdout + ran.stderr
        assert f"Add `npm-registry: {release.url}`" in ran.stderr
    assert registry.exchanges == []
    # All of this lies in /tmp, where builds that are confined can write.
    own = {"HOME": str(tmp_path), "MY_LOGIN": "npm_session"}
    ran = approve(RELEASEKIT_NPM_TOKEN="", RELEASEKIT_BUILD_SANDBOX="off", **own)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert registry.npm.approvals == versions(CHAIN)
