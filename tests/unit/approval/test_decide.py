from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import virtual_time
from approvals import FakeApproval, recorded
from releasekit.approval.decide import (
    SCAN_S,
    ApprovalPolicy,
    ApprovalResult,
    ApprovalRun,
    Codes,
    NoCode,
    reject,
)
from releasekit.approval.review import Examined, examine
from releasekit.errors import CircuitOpen, Denied, PackageError, Rejected, Transient
from releasekit.model import PackageId
from releasekit.scheduler.retries import Retry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# What each needs.
CHAIN: Mapping[str, Sequence[str]] = {"core": (), "api": ("core",), "web": ("api",)}


class Story:
    """A release that is approved once, or rejected; `said` is what was told meanwhile."""

    def __init__(
        self,
        needs: Mapping[str, Sequence[str]] = CHAIN,
        *,
        visible: bool = True,
        max_wait_s: float = 3600.0,
    ) -> None:
        self.results = {name: recorded(name) for name in needs}
        self.needs = {
            PackageId("npm", name): frozenset(PackageId("npm", need) for need in on)
            for name, on in needs.items()
        }
        self.registry = FakeApproval.holding(self.results.values())
        self.terms = ApprovalPolicy(
            visible=visible, max_wait_s=max_wait_s, retry=Retry(max_retries=2, base_delay_s=1.0)
        )
        self.said: list[str] = []
        self.took_s = 0.0
        self.error: NoCode | None = None

    def approved(self) -> dict[str, ApprovalResult]:
        return virtual_time.run(self._approve())

    def rejected(self) -> dict[str, ApprovalResult]:
        return virtual_time.run(self._reject())

    async def examined(self) -> dict[PackageId, Examined]:
        return {
            each.package.id: await examine(each, self.registry, Path())
            for each in self.results.values()
        }

    async def _approve(self) -> dict[str, ApprovalResult]:
        run = ApprovalRun(
            await self.examined(),
            self.needs,
            self.registry,
            Codes(self.registry, "", None),
            terms=self.terms,
            say=self.said.append,
            rng=random.Random(1),
        )
        try:
            await run.run()
        except NoCode as error:
            self.error = error
        self.took_s = asyncio.get_running_loop().time()
        return {name.name: ending for name, ending in run.endings.items()}

    async def _reject(self) -> dict[str, ApprovalResult]:
        codes = Codes(self.registry, "", None)
        endings: dict[str, ApprovalResult] = {}
        for name, each in (await self.examined()).items():
            endings[name.name] = await reject(each, self.registry, codes, max_retries=2)
        return endings


def states(endings: Mapping[str, ApprovalResult]) -> dict[str, str]:
    return {name: ending.state for name, ending in endings.items()}


def test_dependencies_go_first() -> None:
    """R1"""
    story = Story({"web": ("api",), "api": ("core",), "core": ()})
    assert states(story.approved()) == dict.fromkeys(["core", "api", "web"], "approved")
    assert story.registry.approvals == ["core", "api", "web"]


def test_a_dependent_waits_until_everybody_sees_what_it_needs() -> None:
    """R1: and nobody waits for what nothing needs."""
    story = Story()
    story.registry.scans = 5
    assert set(states(story.approved()).values()) == {"approved"}
    assert story.registry.asked == {"core": 6, "api": 6}
    assert story.said.count("npm:core: waiting until everybody sees it, for up to 1 h 0 min") == 1


def test_a_dependent_need_not_wait_for_that() -> None:
    story = Story(visible=False)
    story.registry.scans = 5
    assert set(states(story.approved()).values()) == {"approved"}
    assert story.registry.asked == {}


def test_what_does_not_become_visible_holds_back_what_needs_it() -> None:
    story = Story(max_wait_s=60.0)
    story.registry.scans = 1_000
    endings = story.approved()
    assert states(endings) == {"core": "approved", "api": "blocked", "web": "blocked"}
    assert endings["api"].reason == "needs npm:core, which is not visible yet"
    assert story.took_s <= 60.0


def test_a_registry_that_is_away_is_asked_again() -> None:
    story = Story()
    story.registry.unreachable = 3
    assert set(states(story.approved()).values()) == {"approved"}


def test_other_bytes_that_became_visible_are_a_failure() -> None:
    """R17"""
    story = Story()
    story.registry.forged = {"core"}
    assert states(story.approved()) == {"core": "failed", "api": "blocked", "web": "blocked"}


def test_what_is_refused_blocks_what_needs_it_and_nothing_else() -> None:
    """R6"""
    story = Story({**CHAIN, "other": ()})
    story.registry.data["api"] = b"forged"
    endings = story.approved()
    assert states(endings) == {
        "core": "approved",
        "api": "failed",
        "web": "blocked",
        "other": "approved",
    }
    assert "was built" in endings["api"].reason


def test_what_everybody_sees_needs_no_approval() -> None:
    """R19"""
    story = Story()
    del story.registry.held["core"]
    story.registry.visible = {"core"}
    assert states(story.approved()) == {"core": "published", "api": "approved", "web": "approved"}
    assert story.registry.approvals == ["api", "web"]


def test_what_is_gone_may_still_become_visible() -> None:
    """R16: this command may have approved it, and was killed then."""
    story = Story()
    del story.registry.held["core"]
    story.registry.visible = {"core"}
    story.registry.scans = 20
    assert states(story.approved()) == {"core": "published", "api": "approved", "web": "approved"}


def test_what_is_gone_for_good_was_rejected() -> None:
    story = Story({**CHAIN, "other": ()})
    del story.registry.held["core"]
    endings = story.approved()
    assert states(endings) == {
        "core": "failed",
        "api": "blocked",
        "web": "blocked",
        "other": "approved",
    }
    assert "it was rejected, or the registry has dropped it" in endings["core"].reason
    assert "bumps the version" in endings["core"].hint
    assert story.took_s <= SCAN_S
    assert any("core: it waits no more; watching for it" in line for line in story.said)


@pytest.mark.parametrize("lost", [True, False])
def test_an_answer_that_is_lost_is_asked_for(lost: bool) -> None:
    """R15"""
    story = Story()
    story.registry.trouble = [Transient("reset", ambiguous=True)]
    story.registry.lost = lost
    assert all(ending.is_out for ending in story.approved().values())
    assert story.registry.approvals == ["core", "api", "web"]


def test_trouble_that_lasts_is_no_failure() -> None:
    """R16"""
    story = Story({"core": ()})
    story.registry.trouble = [Transient("HTTP 503") for _ in range(9)]
    endings = story.approved()
    assert states(endings) == {"core": "unknown"}
    assert len(story.registry.sent) == 3


def test_an_open_circuit_is_waited_for_no_longer_than_other_trouble() -> None:
    """R12: the pauses double once for each attempt before."""
    took_s = []
    for kind in (Transient, CircuitOpen):
        story = Story({"core": ()})
        story.registry.trouble = [kind("down", retry_after=0.0) for _ in range(2)]
        assert states(story.approved()) == {"core": "approved"}
        took_s.append(story.took_s)
    assert took_s[0] == took_s[1] > 0


def test_who_may_not_approve_is_told_at_once() -> None:
    story = Story({"core": ()})
    story.registry.trouble = [Denied("HTTP 403", hint="ask an owner")]
    endings = story.approved()
    assert (endings["core"].state, endings["core"].hint) == ("failed", "ask an owner")
    assert len(story.registry.sent) == 1


def test_a_review_that_takes_its_time_is_waited_for() -> None:
    story = Story()
    story.registry.reviews = 4
    assert set(states(story.approved()).values()) == {"approved"}
    assert sum("still under review" in line for line in story.said) == 4


def test_a_review_is_not_waited_for_longer_than_asked() -> None:
    story = Story(max_wait_s=10.0)
    story.registry.reviews = 1_000
    endings = story.approved()
    assert states(endings) == {"core": "waiting", "api": "blocked", "web": "blocked"}
    assert "--max-wait" in endings["core"].hint
    assert story.took_s <= 10.0


def test_a_registry_that_wants_years_is_not_waited_for() -> None:
    """R15"""
    story = Story({"core": ()}, max_wait_s=60.0)
    story.registry.trouble = [Transient("HTTP 503", retry_after=1e9)]
    assert states(story.approved()) == {"core": "unknown"}
    assert story.took_s < 60.0


def test_who_may_not_see_what_is_public_holds_back_what_needs_it() -> None:
    """R15"""
    story = Story()
    story.registry.hidden = {"core": Denied("HTTP 403")}
    endings = story.approved()
    assert states(endings) == {"core": "approved", "api": "blocked", "web": "blocked"}
    assert endings["core"].reason == "approved, and not seen yet: HTTP 403"


def test_whoever_is_stopped_in_the_middle_is_not_told_that_nothing_was_done() -> None:
    """R15"""

    async def main() -> dict[str, ApprovalResult]:
        story = Story()
        begun = story.registry.stuck = asyncio.Event()
        run = ApprovalRun(
            await story.examined(),
            story.needs,
            story.registry,
            Codes(story.registry, "", None),
            terms=story.terms,
            say=story.said.append,
            rng=random.Random(1),
        )
        task = asyncio.create_task(run.run())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return {name.name: ending for name, ending in run.endings.items()}

    endings = virtual_time.run(main())
    assert states(endings) == {"core": "unknown"}


def test_without_a_code_nothing_more_is_tried() -> None:
    story = Story({**CHAIN, "other": (), "another": ()})
    story.registry.codes = {"123456"}
    endings = story.approved()
    assert story.error is not None
    assert states(endings) == {
        "core": "waiting",
        "api": "blocked",
        "web": "blocked",
        "other": "waiting",
        "another": "waiting",
    }
    assert story.registry.sent == [""]


def test_a_bug_ends_everything() -> None:
    story = Story()
    story.registry.trouble = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        story.approved()


def test_a_release_is_rejected_whole() -> None:
    story = Story()
    assert set(states(story.rejected()).values()) == {"rejected"}
    assert not story.registry.held
    assert set(states(story.rejected()).values()) == {"rejected"}


@pytest.mark.parametrize("error", [Denied("HTTP 403"), Rejected("it is of another package")])
def test_what_is_refused_is_neither_rejected_nor_said_to_be(error: PackageError) -> None:
    """R15"""
    story = Story({"core": ()})
    story.registry.refused = {"core": error}
    endings = story.rejected()
    assert endings["core"] == ApprovalResult(
        state="failed", reason=str(error), problem=error.problem
    )
    assert story.registry.sent == []


def test_a_rejection_of_which_nobody_tells_the_end_is_unknown() -> None:
    """R15"""
    story = Story({"core": ()})
    story.registry.trouble = [Transient("reset")]
    story.registry.mute_once_decided = True
    assert story.rejected()["core"].state == "unknown"


def test_what_is_published_cannot_be_rejected() -> None:
    story = Story({"core": ()})
    story.registry.held.clear()
    story.registry.visible = {"core"}
    assert "cannot be rejected" in story.rejected()["core"].reason


@pytest.mark.parametrize(
    ("trouble", "lost", "state", "sent"),
    [
        ([Transient("reset")], True, "rejected", 1),
        ([Transient("reset")], False, "rejected", 2),
        ([Transient("HTTP 503")] * 3, False, "failed", 3),
        ([Rejected("HTTP 409")], False, "failed", 1),
    ],
)
def test_a_rejection_that_fails(
    trouble: list[PackageError],
    lost: bool,
    state: str,
    sent: int,
) -> None:
    """R15"""
    story = Story({"core": ()})
    story.registry.trouble = [*trouble]
    story.registry.lost = lost
    assert story.rejected()["core"].state == state
    assert len(story.registry.sent) == sent
