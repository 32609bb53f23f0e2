"""What follows what is published, where the run ends before it or does not know whom to ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

import fakes
from releasekit.announce import post_release
from releasekit.announce.github import describe_pace
from releasekit.announce.post_release import PostRelease
from releasekit.announce.tags import Tagging
from releasekit.announced import Announcement, Status, Tag
from releasekit.config.tag_options import AnnounceOptions
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host.ci import CI
from releasekit.host.forges import ForgePlace, Pages
from releasekit.http.client import RetryPolicy
from releasekit.model import Action, Outcome, Plan, PlannedPackage, Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.announce.forge import Forge, ForgeRelease
    from releasekit.announce.releases import Assets
    from releasekit.git.commits import Commits
    from releasekit.git.remote import Remote, RemoteTag


class Slow:
    """A remote that nobody hears from."""

    def __init__(self, stopped: asyncio.Event) -> None:
        self.stopped = stopped
        self.asked = 0

    async def list_tags(self) -> Mapping[str, RemoteTag]:
        self.asked += 1
        self.stopped.set()
        await asyncio.Event().wait()
        return {}


NO_PAGES = Pages("github", "")


def followed(root: Path, *, before: bool = False, dry_run: bool = False) -> tuple[Slow, Result]:
    """One package, in a run that is stopped before its tags are pushed, or meanwhile."""

    async def main() -> tuple[Slow, Result]:
        stopped = asyncio.Event()
        remote = Slow(stopped)
        if before:
            stopped.set()
        package = fakes.package("core")
        planned = PlannedPackage(
            package=package,
            action=Action.PUBLISH,
            reason="",
            tag=Tag(name="core-v1", status=Status.WANTED),
            announcement=Announcement(tag="core-v1", status=Status.WANTED),
        )
        plan = Plan(packages=(planned,), private=(), commit="c", digest="")
        config = fakes.config(root, tag=True, announce=True, dry_run=dry_run)
        following = PostRelease(
            plan,
            Tagging(cast("Remote", remote), cast("Commits", None), config, NO_PAGES),
            cast("Forge", None),
            replace(fakes.services(config, None), retries=RetryPolicy(max_retries=0)),
            {},
        )
        outcome = Outcome.WOULD_PUBLISH if dry_run else Outcome.PUBLISHED
        (result,) = await following.run(
            [Result(package=package, outcome=outcome, reason="")],
            lambda: cast("Assets", None),
            stopped=stopped,
            say=lambda _: None,
        )
        return remote, result

    return asyncio.run(main())


@pytest.mark.parametrize("before", [True, False])
def test_a_run_that_is_stopped_owes_the_rest_and_waits_for_nobody(
    tmp_path: Path,
    before: bool,
) -> None:
    remote, result = followed(tmp_path, before=before)
    assert remote.asked == (not before)
    for each in (result.tag, result.announcement):
        assert each is not None
        assert each.status is Status.PENDING
        assert each.note == "the run was stopped before its turn"


@pytest.mark.parametrize(
    ("job", "way"),
    [
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request"},
            "write tag: ${{ !startsWith(github.event_name, 'pull_request') }}, and",
        ),
        (
            {"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": "merge_request_event"},
            "leave `tag` out of this job, and",
        ),
    ],
)
def test_a_job_of_a_pull_request_is_told_what_its_ci_takes(
    tmp_path: Path, job: dict[str, str], way: str
) -> None:
    config = fakes.config(tmp_path, tag=True, mode="publish")
    services = replace(fakes.services(config, None), ci=CI.of(job))
    with pytest.raises(ConfigError) as refused:
        asyncio.run(
            post_release.plan_post_release(fakes.plan(), config, {}, services, pages=NO_PAGES)
        )
    assert f"Release on the push that merges it; or {way} it is published" in refused.value.hint


def test_a_dry_run_only_says_what_would_follow(tmp_path: Path) -> None:
    remote, result = followed(tmp_path, dry_run=True)
    assert remote.asked == 0
    assert result.tag is not None
    assert result.tag.status is Status.WANTED


@pytest.mark.parametrize(
    ("releases", "assets", "lasts"),
    [
        (40, 0, ""),
        (41, 0, "about 1 min"),
        (20, 2, ""),
        (21, 2, "about 1 min"),
        (250, 0, "about 6 min"),
        (251, 0, "about 1 h 0 min"),
        (1001, 0, "about 4 h 0 min"),
    ],
)
def test_how_long_github_takes_for_all_releases_is_said(
    releases: int, assets: int, lasts: str
) -> None:
    """80 requests that create something in a minute, 500 in an hour."""
    note = describe_pace(releases, assets=assets)
    assert bool(note) is bool(lasts)
    assert not lasts or f"announcing {releases} releases takes {lasts}: " in note


class Empty:
    """A forge without releases."""

    draft_hint = ""

    async def releases(self) -> tuple[ForgeRelease, ...]:
        return ()


@pytest.mark.parametrize(
    ("environment", "said"),
    [({}, True), ({"GITHUB_API_URL": "https://ghe.example/api/v3"}, False)],
)
def test_a_plan_says_how_long_releases_take_on_github_com_alone(
    tmp_path: Path, environment: Mapping[str, str], said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub Enterprise Server has no such limits by default. A tag that packages share has one."""
    names = [*(f"v{number}" for number in range(41)), "v0"]
    made = fakes.plan(*(fakes.package(f"p{number}") for number in range(len(names))))
    tagged = tuple(
        replace(each, tag=Tag(name=name, status=Status.WANTED))
        for each, name in zip(made.packages, names, strict=True)
    )
    config = fakes.config(tmp_path, tag=True, announce=True, announcing=AnnounceOptions(assets=()))
    services = fakes.services(config, None)

    async def plan_tags(plan: Plan, *_: object, **__: object) -> tuple[Plan, Tagging]:
        tagging = Tagging(cast("Remote", None), cast("Commits", None), config, NO_PAGES)
        return replace(plan, packages=tagged), tagging

    async def choose_forge(*_: object) -> tuple[ForgePlace, Empty]:
        page, api = "github:https://github.com/acme/mono", environment.get("GITHUB_API_URL")
        place = ForgePlace.parse(page)
        return replace(place, api=api or place.api), Empty()

    monkeypatch.setattr(post_release, "plan_tags", plan_tags)
    monkeypatch.setattr(post_release, "_choose_forge", choose_forge)
    planned, _ = asyncio.run(
        post_release.plan_post_release(made, config, {}, services, pages=NO_PAGES)
    )
    assert [note.startswith("announcing 41 releases") for note in planned.notes] == [True] * said
