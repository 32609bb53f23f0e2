"""Releases with steps, killed at every moment from the first `check` to the last, and run again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

import distributions
from crash.forks import Forks, Order
from effort import SEARCHING
from hostile.worlds import tarball
from outside import make_outside
from processes import wait_until
from workspaces import git, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

STEPS: Final = ("image", "tap", "site")
NPM, PYPI = "npm:@acme/core", "pypi:acme-tool"
# What they wait for, by the names in the ledger; `site` comes behind the release.
NEEDS: Final = {"image": (NPM, PYPI), "tap": ("image",), "site": (NPM,)}
SETTINGS: Final = """\
dist = "dist"
[steps.image]
version = "pypi:acme-tool"
needs = ["npm:@acme/core", "pypi:acme-tool"]
check = "steps/step check {name} {version}"
publish = "steps/step publish {name} {version}"
[steps.tap]
version = "pypi:acme-tool"
needs = ["step:image"]
check = "steps/step check {name} {version}"
publish = "steps/step publish {name} {version}"
[steps.site]
version = "npm:@acme/core"
check = "steps/step check {name} {version}"
publish = "steps/step publish {name} {version}"
after = "release"
"""
# The service is a directory: `publish` appends to a ledger, and `check` looks there. Each moment of
# both is a line of `moments`. What `act` has for the n-th of a moment is done there, once: its run
# is killed by "die", and the command with it by "die end"; anything else is a line of shell, as is
# what `always` has for a command.
STEP: Final = """\
#!/bin/sh
what=$1 name=$2 version=$3 place=PLACE
at() {
    moment="$what $1 $name"
    echo "$moment" >>$place/moments
    nth=$(grep -cx "$moment" $place/moments)
    act="$place/act/$moment $nth"
    [ -e "$act" ] || return 0
    todo=$(cat "$act")
    read -r _ _ _ parent _ </proc/$$/stat
    case $todo in
        die*)
            [ $parent = $PPID ] || return 0  # killed already
            rm "$act"
            echo "$moment $nth" >>$place/killed
            kill -9 $PPID
            [ "$todo" != "die end" ] || exit 1 ;;
        *)
            rm "$act"
            eval "$todo" ;;
    esac
}
there() { grep -qx "$name $version" $place/ledger; }
at begin
[ ! -e "$place/always/$what $name" ] || . "$place/always/$what $name"
case $what in
    check)
        there && status=0 || status=10 ;;
    publish)
        for need in $(cat $place/needs/$name); do
            case $need in
                /*) [ -e "$need" ] ;;
                *) grep -q "^$need " $place/ledger ;;
            esac || echo "$name before $need" >>$place/early
        done
        echo "$name $version" >>$place/ledger
        at effect
        status=0 ;;
esac
at end
exit $status
"""

# Where a run is killed by itself: as a line is to go into the journal, as it is to be made durable,
# as a command is started, as its publication is looked for, and as a check has found it.
APPEND: Final = "releasekit.state.journal:LogFile.append"
SYNC: Final = "releasekit.state.journal:LogFile.sync"
RUN: Final = "releasekit.ecosystems.step.registry:StepRegistry._run"
INTENT: Final = "releasekit.state.journal:Journal.intent"
RETURNED: Final = "releasekit.release.polling:Lookups.poll_until_shown"
FOUND: Final = "releasekit.ecosystems.step.registry:published"


@dataclass
class Scene:
    """A workspace whose files are built, two registries in directories, and the service of the
    steps.
    """

    place: Path
    forks: Forks
    flags: tuple[str, ...] = ("--build-sandbox", "off")  # nothing is built
    window_s: float = 0.05
    runs: int = 0
    killed: list[str] = field(default_factory=list)

    @classmethod
    def make(cls, place: Path, forks: Forks) -> Scene:
        workspace = place / "workspace"
        for name in (
            "workspace/steps",
            "workspace/dist",
            "home",
            "runner",
            "act",
            "always",
            "needs",
        ):
            (place / name).mkdir(parents=True)
        for name in ("ledger", "moments", "killed"):
            (place / name).touch()
        files = {NPM: f"{place}/npm/@acme/core", PYPI: f"{place}/pypi/simple/acme-tool"}
        for name, needs in NEEDS.items():
            (place / "needs" / name).write_text("\n".join(files.get(on, on) for on in needs))
        document = {"name": "@acme/core", "version": "1.0.0"}
        write_json(workspace / "package.json", document)
        page = json.dumps(document).encode()
        packed = workspace / "dist/acme-core-1.0.0.tgz"
        packed.write_bytes(tarball({"package/package.json": page}))
        tool = distributions.package("acme-tool", "2.0.0")
        distributions.sdist(workspace / "dist", tool)
        distributions.wheel(workspace / "dist", tool)
        (workspace / "pyproject.toml").write_text(
            '[project]\nname = "acme-tool"\nversion = "2.0.0"\n'
            '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        )
        (workspace / "releasekit.toml").write_text(SETTINGS)
        (workspace / ".gitignore").write_text("dist/\n.releasekit/\n")
        step = workspace / "steps/step"
        step.write_text(STEP.replace("PLACE", str(place)))
        step.chmod(0o755)
        git(workspace, "init", "--quiet")
        git(workspace, "add", "--all")
        git(workspace, "commit", "--quiet", "--message", "Start")
        return cls(place, forks)

    def order(self, where: str = "", nth: int = 0, *, counted: Sequence[str] = ()) -> Order:
        self.runs += 1
        registries = (f"--{name}-registry=dir:{self.place}/{name}" for name in ("npm", "pypi"))
        argv = ("publish", str(self.place / "workspace"), *registries, *self.flags)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place / "home"),
            "RUNNER_TEMP": str(self.place / "runner"),
        }
        return Order(
            argv=argv,
            environment=environment,
            cwd=str(self.place),
            log=str(self.place / f"log-{self.runs}"),
            window_s=self.window_s,
            where=where,
            nth=nth,
            counted=tuple(counted),
            counts=str(self.place / "counts") if counted else "",
        )

    def run(self, where: str = "", nth: int = 0, *, counted: Sequence[str] = ()) -> int:
        """The status of one run, once nothing of it is left."""
        told = len(self.said("killed"))
        status = self.forks.run(self.order(where, nth, counted=counted))
        own = self.said("killed")[told:]
        if status == -signal.SIGKILL:
            self.killed += own or [f"{where} {nth}"]
        return status

    def do(self, moment: str, nth: int, todo: str) -> None:
        (self.place / "act" / f"{moment} {nth}").write_text(todo)

    def always(self, command: str, todo: str) -> None:
        (self.place / "always" / command).write_text(f"{todo}\n")

    def never(self, command: str) -> None:
        (self.place / "always" / command).unlink()

    def said(self, name: str) -> list[str]:
        path = self.place / name
        return path.read_text().splitlines() if path.exists() else []

    def said_in_line(self, name: str) -> list[str]:
        """Without what is about `site`, which waits for neither of the others."""
        return [line for line in self.said(name) if "site" not in line]

    @property
    def log(self) -> str:
        return (self.place / f"log-{self.runs}").read_text()

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        results = json.loads((self.place / "workspace/.releasekit/results.json").read_text())
        return {f"{row['ecosystem']}:{row['name']}": row for row in results["packages"]}

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: row["outcome"] for name, row in self.rows.items()}

    def run_killed(self, moment: str, nth: int, todo: str) -> bool:
        """Whether a run came so far, and was killed there."""
        if todo:
            self.do(moment, nth, todo)
            return self.run() == -signal.SIGKILL
        return self.run(moment, nth) == -signal.SIGKILL

    def assert_released(self) -> None:
        """Each once, in order, and told as it is."""
        assert sorted(self.said("ledger")) == ["image 2.0.0", "site 1.0.0", "tap 2.0.0"], (
            self.killed
        )
        assert self.said("early") == [], self.killed
        assert self.outcomes.keys() == {NPM, PYPI, *(f"step:{name}" for name in STEPS)}
        assert {*self.outcomes.values()} <= {"published", "already-published"}, self.outcomes

    def finish(self) -> None:
        """Run again, which has to end well."""
        assert self.run() == 0, (self.killed, self.log)
        self.assert_released()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@pytest.fixture
def scene(forks: Forks) -> Scene:
    return Scene.make(make_outside("steps") / "scene", forks)


# The moments of a step whose run nobody kills, by how often they come.
OF_COMMANDS: Final = {
    f"{moment} {step}": times
    for step in STEPS
    for moment, times in {
        "check begin": 3,
        "check end": 3,
        "publish begin": 1,
        "publish effect": 1,
        "publish end": 1,
    }.items()
}
# The least that a run comes to of the program's own.
OF_PROGRAM: Final = {APPEND: 40, SYNC: 5, RUN: 12, INTENT: 5, RETURNED: 5, FOUND: 3}
# A moment, which of them, and what is done; nothing for those of the program. A command whose run
# is killed goes on, or ends with it.
KILLS: Final = [
    *(
        (moment, nth + 1, todo)
        for moment, times in OF_COMMANDS.items()
        for nth in range(times)
        for todo in ("die", "die end")
        if todo == "die" or moment.split()[1] != "end"
    ),
    *((where, nth + 1, "") for where, times in OF_PROGRAM.items() for nth in range(times)),
]
# The rest of 200, in runs that are killed again as they recover. Usually a quarter of all is tried.
TWICE: Final = (201 - len(KILLS)) // 2
EACH: Final = 1 if SEARCHING else 4
CHUNKS: Final = 8 if SEARCHING else 2


def test_the_moments_are_all_there_are(scene: Scene) -> None:
    """And there are 200 kills at them."""
    assert scene.run(counted=tuple(OF_PROGRAM)) == 0, scene.log
    scene.assert_released()
    assert Counter(scene.said("moments")) == OF_COMMANDS
    for line in scene.said("counts"):
        where, times = line.split()
        assert OF_PROGRAM[where] <= int(times) <= OF_PROGRAM[where] * 1.5, line
    assert len(KILLS) + 2 * TWICE >= 200


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_killed_at_every_moment_each_step_is_published_once(forks: Forks, chunk: int) -> None:
    """R14, R15, R18, R22: between check, publish and check, and at each line of the journal; what
    was started then outlives its run, or ends with it.
    """
    place = make_outside("steps")
    for number, kill in enumerate(KILLS[::EACH][chunk::CHUNKS]):
        scene = Scene.make(place / f"{number}", forks)
        assert scene.run_killed(*kill), kill
        scene.finish()
        shutil.rmtree(scene.place)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_killed_again_as_it_recovers(forks: Forks, chunk: int) -> None:
    """R22"""
    place = make_outside("steps")
    for seed in range(TWICE)[::EACH][chunk::CHUNKS]:
        rng = random.Random(seed)
        scene = Scene.make(place / f"{seed}", forks)
        assert scene.run_killed(*rng.choice(KILLS)), seed
        # The first moments of the program come in every run.
        again = rng.choice([(APPEND, rng.randint(1, 3), ""), (RUN, rng.randint(1, 3), "")])
        assert scene.run_killed(*again), (seed, again)
        scene.finish()
        shutil.rmtree(scene.place)


def test_a_publish_that_outlives_its_run_keeps_the_next_one_out(scene: Scene) -> None:
    """R22: it holds the lock, so nothing is published beside it."""
    gate = scene.place / "gate"
    os.mkfifo(gate)
    scene.do("publish begin image", 1, f"kill -9 $PPID; : >{scene.place}/alone; read _ <{gate}")
    scene.forks.begin(scene.order())
    try:
        wait_until((scene.place / "alone").exists)
        at_gate = scene.said_in_line("moments")
        with Forks() as others:
            status = others.run(scene.order())
        assert scene.said_in_line("moments") == at_gate
    finally:
        gate.write_text("\n")
        first = scene.forks.end()
    assert first == -signal.SIGKILL
    assert status == 4, scene.log
    assert "a run of this workspace" in scene.log
    assert scene.said_in_line("ledger") == ["image 2.0.0"]
    scene.finish()
    assert scene.said("moments").count("publish begin image") == 1


def test_what_shows_late_after_a_kill_is_not_published_again(scene: Scene) -> None:
    """R19: an intent without an outcome is asked for before anything is published."""
    scene.window_s = 60.0
    scene.do("publish begin image", 1, "die end")
    assert scene.run() == -signal.SIGKILL
    asked = scene.said("moments").count("check begin image")
    # The next run asks as it plans, and then until it is there.
    scene.do("check begin image", asked + 4, f'echo "image 2.0.0" >>{scene.place}/ledger')
    scene.finish()
    assert scene.said("moments").count("publish begin image") == 1


def test_what_shows_late_after_a_publish_is_waited_for(scene: Scene) -> None:
    scene.always("publish image", "exit 0")
    scene.do("check begin image", 5, f'echo "image 2.0.0" >>{scene.place}/ledger')
    assert scene.run() == 0, scene.log
    scene.assert_released()


def blocked_by_image(scene: Scene, outcome: str) -> None:
    """What needs the image is blocked, and nothing else."""
    others = dict.fromkeys((NPM, PYPI, "step:site"), "published")
    assert scene.outcomes == {**others, "step:image": outcome, "step:tap": "blocked"}, scene.log
    assert not [each for each in scene.said("moments") if each.startswith("publish begin tap")]


def test_a_step_that_fails_blocks_what_needs_it_alone(scene: Scene) -> None:
    scene.do("publish begin image", 1, "echo no space left; exit 3")
    assert scene.run() == 1
    blocked_by_image(scene, "failed")
    row = scene.rows["step:image"]
    assert "no space left" in row["reason"]
    assert row["attempts"] == 1
    scene.finish()


def test_a_check_that_does_not_know_publishes_nothing(scene: Scene) -> None:
    """Neither before nor after."""
    scene.always("check image", "echo service is down; exit 3")
    for _ in range(2):
        assert scene.run() == 1
        assert scene.outcomes["step:image"] == "unknown", scene.log
        assert scene.outcomes["step:tap"] == "blocked"
        assert scene.outcomes["step:site"] in {"published", "already-published"}
        assert "service is down" in scene.rows["step:image"]["reason"]
    assert "publish begin image" not in scene.said("moments")
    scene.never("check image")
    scene.finish()


@pytest.mark.parametrize("ending", ["exit 0", "exit 1", "exit 75", "kill -9 $$"])
def test_a_check_that_does_not_know_afterwards_publishes_nothing_again(
    scene: Scene, ending: str
) -> None:
    scene.flags += ("--retry-base-delay", "0s")
    if ending == "exit 0":
        scene.flags += ("--task-timeout", "2s")
    scene.always("check image", f"[ ! -s {scene.place}/ledger ] || exit 3")
    scene.do("publish effect image", 1, ending)
    for _ in range(2):
        assert scene.run() == 1
        assert scene.outcomes["step:image"] == "unknown", scene.log
        assert scene.outcomes["step:tap"] == "blocked"
    assert scene.said("moments").count("publish begin image") == 1
    scene.never("check image")
    scene.finish()
    assert scene.said("moments").count("publish begin image") == 1


@pytest.mark.parametrize("ending", ["exit 1", "exit 75", "kill -9 $$"])
def test_a_publish_that_says_it_failed_and_did_not(scene: Scene, ending: str) -> None:
    scene.do("publish effect image", 1, ending)
    assert scene.run() == 0, scene.log
    scene.assert_released()
    assert scene.said("moments").count("publish begin image") == 1
    if ending != "exit 75":
        assert "RK-511" in scene.log


def test_exit_status_75_is_tried_again(scene: Scene) -> None:
    scene.flags += ("--retry-base-delay", "0s", "--max-retries", "3")
    for nth in (1, 2, 3):
        scene.do("publish begin image", nth, "exit 75")
    assert scene.run() == 0, scene.log
    scene.assert_released()
    assert scene.rows["step:image"]["attempts"] == 4


def test_exit_status_75_is_tried_no_more_than_max_retries(scene: Scene) -> None:
    scene.flags += ("--retry-base-delay", "0s", "--max-retries", "2")
    scene.always("publish image", "exit 75")
    assert scene.run() == 1
    blocked_by_image(scene, "failed")
    assert scene.said("moments").count("publish begin image") == 3
    scene.never("publish image")
    scene.finish()


@pytest.mark.parametrize("moment", ["begin", "effect"])
def test_a_publish_that_does_not_end(scene: Scene, moment: str) -> None:
    """Within `task-timeout`; whether it published is what `check` says then."""
    usual = scene.flags
    scene.flags += ("--task-timeout", "2s")
    os.mkfifo(scene.place / "gate")
    scene.do(f"publish {moment} image", 1, f"read _ <{scene.place}/gate")
    status = scene.run()
    if moment == "effect":
        assert status == 0, scene.log
        scene.assert_released()
        assert "RK-511" in scene.log
    else:
        assert status == 1
        blocked_by_image(scene, "failed")
        assert "2 s" in scene.rows["step:image"]["reason"]
    scene.flags = usual
    scene.finish()


@pytest.mark.parametrize("moment", ["begin", "effect"])
def test_a_run_that_is_cancelled_waits_for_publish(scene: Scene, moment: str) -> None:
    """R27, R28: what has begun is told as it ended, and nothing else begins."""
    scene.do(f"publish {moment} image", 1, "kill -INT $PPID")
    assert scene.run() == 130, scene.log
    assert scene.outcomes["step:image"] == "published", scene.log
    assert scene.outcomes["step:tap"] == "cancelled", scene.log
    assert scene.said_in_line("ledger") == ["image 2.0.0"]
    scene.finish()


@pytest.mark.parametrize("moment", ["begin", "effect"])
def test_a_publish_that_a_second_signal_ends(scene: Scene, moment: str) -> None:
    """R28: it is looked for once more."""
    os.mkfifo(scene.place / "gate")
    signals = "kill -INT $PPID; kill -TERM $PPID"
    scene.do(f"publish {moment} image", 1, f"{signals}; read _ <{scene.place}/gate")
    assert scene.run() == 130, scene.log
    expected = {"published"} if moment == "effect" else {"unknown", "cancelled", "failed"}
    assert scene.outcomes["step:image"] in expected, scene.log
    scene.finish()
