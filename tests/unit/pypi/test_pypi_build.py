"""Builds with a backend of the source tree itself, so that nothing is fetched from anywhere."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import re
import shutil
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import distributions
import fakes
from integration.tools import require_tool
from processes import PATIENCE_S, ended, wait_until
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.pypi import PyPIOptions, environment
from releasekit.ecosystems.pypi.environment import Installer, Requirements
from releasekit.ecosystems.pypi.manifest import BuildLimits
from releasekit.ecosystems.pypi.target import PyPI, PythonFiles
from releasekit.ecosystems.shared import artifacts
from releasekit.ecosystems.shared.jsonlines import Conversation
from releasekit.errors import BuildFailed, ConfigError
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.report.view import READ_ITS_LOG
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from releasekit.ecosystems.pypi.target import PyPIWorkspace
    from releasekit.model import Artifact

BACKEND = """\
import io, os, sys, tarfile, time, zipfile
from pathlib import Path

NAME, VERSION = "{name}", "{version}"

def _meta():
    return f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n".encode()

def build_sdist(directory, config_settings=None):
    print("sdist of", NAME, "settings", config_settings)
    {sdist}
    top = f"{{NAME.replace('-', '_')}}-{{VERSION}}"
    with tarfile.open(Path(directory, f"{{top}}.tar.gz"), "w:gz") as archive:
        for path in sorted(Path().rglob("*.*")):
            if path.is_file() and ".building" not in str(path):
                archive.add(path, f"{{top}}/{{path}}")
    return f"{{top}}.tar.gz"

def build_wheel(directory, config_settings=None, metadata_directory=None):
    print("wheel of", NAME, "in", Path.cwd().name)
    {wheel}
    top = f"{{NAME.replace('-', '_')}}-{{VERSION}}"
    with zipfile.ZipFile(Path(directory, f"{{top}}-py3-none-any.whl"), "w") as archive:
        archive.writestr(f"{{NAME.replace('-', '_')}}.py", f"VERSION = {{VERSION!r}}")
        archive.writestr(f"{{top}}.dist-info/METADATA", _meta())
        archive.writestr(f"{{top}}.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{{top}}.dist-info/RECORD", "")
    return f"{{top}}-py3-none-any.whl"

{more}
"""
MANIFEST = """\
[build-system]
requires = {requires}
build-backend = "{backend}"
backend-path = ["."]
[project]
name = "{name}"
{version}
"""


def write(root: Path, name: str, **changes: str) -> None:
    parts = {
        "name": name,
        "version": "1.0",
        "sdist": "",
        "wheel": "",
        "more": "",
        "requires": "[]",
        "backend": "backend",
        **changes,
    }
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "backend.py").write_text(BACKEND.format(**parts))
    version = changes.get("declared", f'version = "{parts["version"]}"')
    (directory / "pyproject.toml").write_text(MANIFEST.format(**{**parts, "version": version}))


class Workspace:
    """What was found in a directory whose subdirectories are packages."""

    def __init__(self, root: Path, ecosystem: PyPI, found: PyPIWorkspace) -> None:
        self.ecosystem = ecosystem
        self.root = root
        self.state = root.parent / "state"
        self.found = found
        self.packages = {package.id.name: package for package in found.packages}

    async def build(self, name: str) -> tuple[Artifact, ...] | BuildFailed:
        (batch,) = self.found.batches([self.packages[name]])
        into = partial(built_directory, state_directory=self.state)
        (result,) = (await self.found.build(batch, into)).values()
        return result

    async def built(self, name: str) -> tuple[Artifact, ...]:
        result = await self.build(name)
        if isinstance(result, BuildFailed):
            raise result
        return result

    async def failed(self, name: str) -> BuildFailed:
        result = await self.build(name)
        assert isinstance(result, BuildFailed)
        return result

    def log(self, name: str, kind: str = "build") -> str:
        return (self.state / "logs" / "run" / f"{kind}-pypi-{name}.log").read_text()


@asynccontextmanager
async def opened(
    root: Path,
    options: PyPIOptions | None,
    mode: str = "publish",
    /,
    uv: str = "",
    **environment: str,
) -> AsyncIterator[Workspace]:
    config = fakes.config(
        root,
        mode=mode,
        state_directory=root.parent / "state",
        uv_path=uv or str(require_tool("uv")),
        index_url="http://127.0.0.1:9/simple/",
    )
    given = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment}
    temporary = root.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    given["RUNNER_TEMP"] = str(temporary)
    async with Processes(
        environment=given, secrets=["canary"], variables=fakes.TOOL_VARIABLES
    ) as processes:
        services = fakes.services(config, processes, processes.redact)
        async with PyPI(config, options or PyPIOptions(packages=("*",)), services) as pypi:
            yield Workspace(root, pypi, await pypi.discover(root))
    assert not list(temporary.iterdir())


def running(
    root: Path,
    body: Callable[[Workspace], Awaitable[None]],
    options: PyPIOptions | None = None,
    **environment: str,
) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), opened(root, options, **environment) as workspace:
            await body(workspace)

    asyncio.run(main())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "workspace"


def test_sdist_and_wheel_of_the_sdist_with_their_digests(root: Path) -> None:
    write(root, "acme-a")

    async def body(workspace: Workspace) -> None:
        stale = workspace.state / "dist" / "pypi" / "acme-a" / "1.0" / "acme_a-1.0-py2-none-any.whl"
        stale.parent.mkdir(parents=True)
        stale.touch()
        artifacts = await workspace.built("acme-a")
        assert [it.filename for it in artifacts] == [
            "acme_a-1.0.tar.gz",
            "acme_a-1.0-py3-none-any.whl",
        ]
        for artifact in artifacts:
            data = artifact.path.read_bytes()
            assert artifact.path.parent == stale.parent
            assert artifact.size == len(data)
            assert artifact.digests == {
                "sha256": hashlib.sha256(data).hexdigest(),
                "blake2b_256": hashlib.blake2b(data, digest_size=32).hexdigest(),
            }
        assert sorted(path.name for path in stale.parent.iterdir()) == sorted(
            it.filename for it in artifacts
        )
        assert workspace.log("acme-a").splitlines() == [
            "sdist of acme-a settings {'--fast': 'yes'}",
            "wheel of acme-a in acme_a-1.0",
        ]

    running(root, body, PyPIOptions(packages=("*",), config_settings={"--fast": "yes"}))


def test_backends_of_one_name_do_not_meet_in_the_shared_environment(root: Path) -> None:
    names = ["a", "b", "c"]
    for name in names:
        write(root, name, more=f"assert sys.path[0].endswith({name!r}) or '-1.0' in sys.path[0]")

    async def body(workspace: Workspace) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(workspace.built(name))
        assert len(list((root.parent / "tmp").glob("*/environment-*"))) == 1
        # Nothing is left in the tree.
        assert sorted(it.name for it in (root / "a").iterdir()) == ["backend.py", "pyproject.toml"]

    running(root, body)


def test_a_failed_build_shows_its_last_lines_and_the_log(root: Path) -> None:
    write(root, "bad", sdist="print(*range(100), sep='\\n'); raise ValueError('no ' + 'canary')")
    write(root, "odd", wheel="sys.exit('nope')")
    write(root, "good")

    async def body(workspace: Workspace) -> None:
        error = await workspace.failed("bad")
        said = (
            "pypi:bad: its sdist could not be built: "
            "its build failed with exit code 1: ValueError: no ***"
        )
        assert str(error) == said
        assert len(error.log) == 40
        assert error.log[-1] == "ValueError: no ***"  # R34
        place = workspace.state / "logs" / "run" / "build-pypi-bad.log"
        assert error.hint == f"{READ_ITS_LOG} The whole output is in {place}."
        assert workspace.log("bad").endswith("ValueError: no ***\n")  # R50
        error = await workspace.failed("odd")
        assert "its wheel could not be built" in str(error)
        assert error.log[-1] == "SystemExit: nope"
        assert len(await workspace.built("good")) == 2
        assert not list((workspace.state / "dist").rglob(".*"))

    running(root, body)


def test_a_build_that_is_killed_or_takes_its_worker_along(root: Path) -> None:
    write(root, "killed", wheel="os.kill(os.getpid(), 9)")
    orphan = f"Path({str(root.parent)!r}, 'pid').write_text(str(os.getpid()))"
    write(root, "killer", wheel=f"{orphan}; os.kill(os.getppid(), 9); time.sleep(60)")
    write(root, "good")

    async def body(workspace: Workspace) -> None:
        assert "its build was killed by SIGKILL" in str(await workspace.failed("killed"))
        assert "its build worker ended" in str(await workspace.failed("killer"))
        assert len(await workspace.built("good")) == 2
        assert ended(int((root.parent / "pid").read_text()))

    running(root, body)


def test_a_cancelled_build_is_killed_and_no_other_with_it(root: Path) -> None:
    """R29"""
    gate, ready = root.parent / "gate", root.parent / "ready"
    wait = (
        f"open({str(ready)!r}, 'w').write(f'{{NAME}} {{os.getpid()}}\\n')\n"
        f"    os.read(os.open({str(gate)!r}, os.O_RDONLY), 1)"
    )
    for name in ("first", "second"):
        write(root, name, wheel=wait)
    for fifo in (gate, ready):
        os.mkfifo(fifo)
    # Open at both ends, so that neither side waits for the other to open its own.
    gate_fd, ready_fd = (os.open(fifo, os.O_RDWR | os.O_NONBLOCK) for fifo in (gate, ready))

    async def body(workspace: Workspace) -> None:
        said: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        loop.add_reader(ready_fd, lambda: said.put_nowait(os.read(ready_fd, 1000)))
        builds = {
            name: asyncio.ensure_future(workspace.built(name)) for name in ("first", "second")
        }
        pids: dict[str, int] = {}
        while len(pids) < 2:
            for line in (await said.get()).decode().splitlines():
                name, pid = line.split()
                pids[name] = int(pid)
        loop.remove_reader(ready_fd)
        builds["first"].cancel()
        with pytest.raises(asyncio.CancelledError):
            await builds["first"]
        assert ended(pids["first"])
        os.write(gate_fd, b"!")
        assert len(await builds["second"]) == 2

    try:
        running(root, body)
    finally:
        os.close(gate_fd)
        os.close(ready_fd)


def test_what_was_built_has_to_be_what_was_planned(root: Path) -> None:
    for name, change in {"version": "VERSION = '2.0'", "name": "NAME = 'other'"}.items():
        write(root, name, more=change)
    write(root, "file", more="build_sdist = lambda *_: 'what.tar.gz'")
    write(root, "files", more="def build_wheel(d, *_): return 'x.whl'")

    async def body(workspace: Workspace) -> None:
        messages = {name: str(await workspace.failed(name)) for name in workspace.packages}
        assert "made version-2.0.tar.gz, but version 1.0 was planned" in messages["version"]
        assert "made other-1.0.tar.gz, but name 1.0 was planned" in messages["name"]
        assert "could not be built" in messages["file"]
        assert "'x.whl' is not the name of a wheel" in messages["files"]

    running(root, body)


async def brought(workspace: Workspace, name: str, *files: Path) -> tuple[str, ...]:
    """What a package has once these files of it were brought, and `into` holds."""
    package = workspace.packages[name]
    given = tuple(artifacts.digested(path, "sha256") for path in files)
    into = built_directory(package, state_directory=workspace.state)
    results = await PythonFiles(workspace.found).complete(
        [replace(package, prebuilt=given)], lambda _: into
    )
    (result,) = results.values()
    if isinstance(result, BuildFailed):
        raise result
    names = tuple(artifact.filename for artifact in result)
    assert sorted(names) == sorted(path.name for path in into.iterdir())
    for path in files:
        assert (into / path.name).read_bytes() == path.read_bytes()
    return names


def test_what_was_brought_is_completed_by_what_is_missing(root: Path) -> None:
    """Beside wheels only the sdist is built; beside an sdist the wheel, and of that one."""
    write(root, "a")
    write(root, "whole", sdist="raise SystemExit('not asked for')")

    async def body(workspace: Workspace) -> None:
        sdist, wheel = (artifact.path for artifact in await workspace.built("a"))
        elsewhere = root.parent / "elsewhere"
        elsewhere.mkdir()
        mac = elsewhere / "a-1.0-cp312-cp312-macosx_11_0_arm64.whl"
        shutil.copy(wheel, mac)
        assert await brought(workspace, "a", mac) == ("a-1.0.tar.gz", mac.name)
        assert "wheel of a" not in workspace.log("a")
        other = elsewhere / sdist.name
        other.write_bytes(gzip.compress(gzip.decompress(sdist.read_bytes()), mtime=1))
        assert await brought(workspace, "a", other) == (sdist.name, wheel.name)
        assert "sdist of a" not in workspace.log("a")
        names = await brought(workspace, "whole", other, mac)
        assert names == (other.name, mac.name)

    running(root, body)


def test_a_brought_file_that_has_changed_fails_its_package(root: Path) -> None:
    """R17"""
    write(root, "a")

    async def body(workspace: Workspace) -> None:
        wheel = distributions.wheel(root.parent, distributions.package("a", "1.0"))
        given = (replace(wheel, digests={"sha256": "00"}),)
        package = replace(workspace.packages["a"], prebuilt=given)
        sdist = distributions.sdist(root.parent, distributions.package("a", "1.0"))
        whole = replace(package, prebuilt=(replace(sdist, digests={"sha256": "00"}), *given))
        for each in (package, whole):
            files = PythonFiles(workspace.found)
            (result,) = (await files.complete([each], lambda _: root.parent / "into")).values()
            assert "is not what it was when it was planned" in str(result)

    running(root, body)


SLOW_UV = """\
#!/bin/sh
trap 'mkdir -p "$(pwd)/late"; exit 1' INT TERM
touch "$0.began"
while :; do sleep 0.02; done
"""


def test_what_is_made_early_has_ended_before_its_directory_is_removed(root: Path) -> None:
    """Where nothing is built after all, nothing of it may be left."""
    write(root, "a")
    uv = root.parent / "uv"
    uv.write_text(SLOW_UV)
    uv.chmod(0o755)

    async def main() -> None:
        async with opened(root, None, uv=str(uv)):
            await asyncio.to_thread(wait_until, uv.with_name("uv.began").exists)

    asyncio.run(main())  # `opened` looks for what is left


def test_a_worker_has_rehearsed_before_anything_is_built(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the plan is made: nobody asks for a build here."""
    write(root, "a")
    answered: list[object] = []

    async def main() -> None:
        rehearsed = asyncio.Event()
        ask = Conversation.ask

        async def recorded(
            self: Conversation, question: Mapping[str, object], **options: bool
        ) -> dict[str, Any]:
            answer = await ask(self, question, **options)
            answered.append(question["operation"])
            rehearsed.set()
            return answer

        monkeypatch.setattr(Conversation, "ask", recorded)
        async with asyncio.timeout(PATIENCE_S), opened(root, None):
            await rehearsed.wait()

    asyncio.run(main())
    assert answered == ["rehearse"]


@pytest.mark.parametrize(
    ("place", "is_inert"), [("pyproject.toml", False), ("hatch.toml", False), ("notes.txt", True)]
)
def test_hooks_get_a_process_of_their_own(root: Path, place: str, *, is_inert: bool) -> None:
    write(root, "a", backend="hatchling.build")
    path = root / "a" / "pyproject.toml"
    path.write_text(path.read_text().replace('backend-path = ["."]', ""))
    with (root / "a" / place).open("a") as file:
        file.write("\n[tool.hatch.build.hooks.custom]\n")

    async def body(workspace: Workspace) -> None:
        builder = await workspace.found.builder()
        project = workspace.found.projects["a"]
        assert builder._make_request("sdist", project, into=root)["inert"] is is_inert

    running(root, body)


def test_builds_install_no_wheel_of_another_machine(root: Path) -> None:
    """One that fits is taken, whoever built it; where none does, one is built."""
    write(root, "plugin")
    write(root, "user", requires='["plugin"]', wheel="import plugin; print('saw', plugin.VERSION)")

    async def body(workspace: Workspace) -> None:
        sdist = (await workspace.built("plugin"))[0].path
        elsewhere = root.parent / "elsewhere"
        elsewhere.mkdir()
        foreign = elsewhere / "plugin-1.0-cp27-cp27mu-win32.whl"
        foreign.write_bytes(b"no archive")
        again = elsewhere / sdist.name
        shutil.copy(sdist, again)
        await brought(workspace, "plugin", foreign, again)
        await workspace.built("user")
        assert "saw 1.0" in workspace.log("user")

    running(root, body)


def test_an_sdist_of_another_name_is_refused(root: Path) -> None:
    more = """\
real = build_sdist
def build_sdist(directory, settings=None):
    return Path(directory, real(directory)).rename(Path(directory, "a-1.tgz")).name
"""
    write(root, "a", more=more)

    async def body(workspace: Workspace) -> None:
        message = str(await workspace.failed("a"))
        assert "'a-1.tgz' is not the name of a source distribution" in message

    running(root, body)


def test_in_repo_build_requirements_come_from_what_was_built(root: Path) -> None:
    write(root, "plugin", version="1.5")
    write(
        root,
        "plugin-user",
        requires='["Plugin[fast]>=1"]',
        wheel="import plugin; print(plugin.VERSION)",
    )

    async def body(workspace: Workspace) -> None:
        # Built for the environment only, where it is not built before: it is on its registry.
        await workspace.built("plugin-user")
        assert workspace.log("plugin-user").endswith("1.5\n")
        assert not (workspace.state / "dist" / "pypi" / "plugin").exists()
        write(
            root, "plugin", version="1.5", more="def _meta(): return b'Name: plugin\\nVersion: 1.5'"
        )
        await workspace.built("plugin")
        await workspace.built("plugin-user")
        assert len(list((root.parent / "tmp").glob("*/environment-*"))) == 3

    running(root, body)

    async def again(workspace: Workspace) -> None:
        (workspace.root / "plugin" / "backend.py").unlink()
        await workspace.built("plugin-user")  # from the files of the earlier run

    running(root, again)


def test_workspaces_with_packages_of_one_name_have_their_own_wheels(root: Path) -> None:
    """Discovery builds what a metadata hook needs; a later one keeps its own apart."""
    declared, elsewhere = 'dynamic = ["version"]', root.parent / "elsewhere"
    for where, version in ((root, "1.0"), (elsewhere, "2.0")):
        write(where, "plugin", version=version, more=f"VERSION = '{version}'")
        hook = f"import plugin; assert plugin.VERSION == '{version}'"
        write(where, "user", declared=declared, requires='["plugin"]', wheel=hook)

    async def body(workspace: Workspace) -> None:
        later = await workspace.ecosystem.discover(elsewhere)
        assert {package.version for package in later.packages} == {"2.0", "1.0"}
        assert workspace.packages["plugin"].version == "1.0"
        await workspace.built("user")

    running(root, body)


def test_an_in_repo_build_requirement_that_cannot_be_built_fails_what_needs_it(root: Path) -> None:
    write(root, "plugin", sdist="raise SystemExit(1)")
    write(root, "user", requires='["plugin"]')

    async def body(workspace: Workspace) -> None:
        assert "pypi:plugin: its sdist could not be built" in str(await workspace.failed("user"))

    running(root, body)


def test_dynamic_versions_come_from_the_metadata_hook(root: Path) -> None:
    declared = 'dynamic = ["version"]'
    hook = """\
def prepare_metadata_for_build_wheel(directory, settings=None):
    top = Path(directory, "x.dist-info")
    top.mkdir()
    (top / "METADATA").write_bytes(_meta())
    return top.name
"""
    write(root, "hook", version="2.1", declared=declared, more=hook)
    write(root, "wheel", version="2.2", declared=declared)  # its backend has no such hook
    write(root, "plugin", version="2.3", declared=declared)
    write(
        root, "user", version="2.4", declared=declared, requires='["plugin"]', wheel="import plugin"
    )
    write(
        root,
        "private",
        declared=declared + '\nclassifiers = ["Private :: Do Not Upload"]',
        wheel="raise SystemExit(1)",
    )

    async def body(workspace: Workspace) -> None:
        assert {name: it.version for name, it in workspace.packages.items()} == {
            "hook": "2.1",
            "plugin": "2.3",
            "private": "",
            "user": "2.4",
            "wheel": "2.2",
        }
        assert not (workspace.state / "dist").exists()
        assert len(await workspace.built("user")) == 2
        write(root, "wheel", version="2.3", declared=declared)
        assert "but wheel 2.2 was planned" in str(await workspace.failed("wheel"))

    running(root, body)


async def nothing(workspace: Workspace) -> None:
    """More than to look what there is."""


def test_a_metadata_hook_that_fails_ends_discovery_with_its_last_lines(root: Path) -> None:
    write(root, "a", declared='dynamic = ["version"]', wheel="raise ValueError('no tags')")

    with pytest.raises(BuildFailed, match="pypi:a: its metadata could not be built") as caught:
        running(root, nothing)
    assert caught.value.log[-1] == "ValueError: no tags"


def test_a_computed_version_that_is_none_ends_discovery_with_one_error(root: Path) -> None:
    write(root, "a", version="one", declared='dynamic = ["version"]')
    with pytest.raises(ConfigError, match=r"project\.version is 'one'"):
        running(root, nothing)


def test_computed_metadata_has_the_limits_of_that_in_files(root: Path) -> None:
    """R40: it is read by the event loop."""
    much = "def _meta(): return b'Version: 1.0\\n' + b'Requires-Dist: a\\n' * 100_000"
    write(root, "a", declared='dynamic = ["version"]', more=much)
    with pytest.raises(BuildFailed, match=r"^pypi:a: its METADATA has too long a Requires-Dist$"):
        running(root, nothing)


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_what_a_backend_asks_for_is_installed_before_it_goes_on(root: Path, kind: str) -> None:
    write(root, "extra", version="1.0")
    wheel = root.parent / "wheels"

    async def prepare(workspace: Workspace) -> None:
        (_, artifact) = await workspace.built("extra")
        artifact.path.rename(wheel)

    wheel = root.parent / "extra-1.0-py3-none-any.whl"
    running(root, prepare)
    shutil.rmtree(root / "extra")
    hook = f"def get_requires_for_build_{kind}(settings=None): return ['extra @ {wheel.as_uri()}']"
    write(root, "a", more=hook, wheel="import extra")
    write(
        root,
        "greedy",
        more=hook.replace("return [", "return [f'x{time.time_ns()}; os_name == \"no\"', "),
    )
    write(root, "bad", more=hook.replace("return [", "return ['a b', "))
    write(root, "much", more=hook.replace("return [", "return ['x' * 40_000, "))

    async def body(workspace: Workspace) -> None:
        if kind == "sdist":
            write(root, "a", more=hook, sdist="import extra")
        await workspace.built("a")
        assert "needs ever more build requirements" in str(await workspace.failed("greedy"))
        assert "asks for 'a b'" in str(await workspace.failed("bad"))
        assert re.search(
            "pypi:much: its .*build backend asks for have more than 32768 characters",
            str(await workspace.failed("much")),
        )

    running(root, body)


def test_requirements_that_cannot_be_installed_are_tried_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(root, name, requires='["no-such-package-here"]')

    async def body(workspace: Workspace) -> None:
        first = await workspace.failed("a")
        assert "the build requirements no-such-package-here cannot be installed" in str(first)
        assert first.log
        monkeypatch.setattr(environment.Environments, "_make", None)
        second = await workspace.failed("b")
        assert str(second) == str(first).replace("pypi:a", "pypi:b")
        assert second.log == first.log

    running(root, body, UV_OFFLINE="1")


def test_no_secret_reaches_a_build(root: Path) -> None:
    """R34"""
    write(root, "a", sdist="print(sorted(os.environ.items()))")
    names = ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "RELEASEKIT_PYPI_TOKEN", "UV_PUBLISH_TOKEN", "OTHER")
    secrets = dict.fromkeys(names, "hidden-value")

    async def body(workspace: Workspace) -> None:
        await workspace.built("a")
        log = workspace.log("a")
        assert "canary" not in log
        assert "('CFLAGS', '-O2')" in log
        assert "('ASKED_FOR', 'yes')" in log
        assert "VIRTUAL_ENV" in log

    options = PyPIOptions(packages=("*",), pass_env=("ASKED_FOR", "RELEASEKIT_PYPI_TOKEN"))
    running(root, body, options, CFLAGS="-O2", ASKED_FOR="yes", **secrets)


@pytest.mark.parametrize(
    ("given", "expected"), [({}, "1700000000"), ({"SOURCE_DATE_EPOCH": "1600000007"}, "1600000007")]
)
def test_builds_know_the_time_of_the_last_commit(
    root: Path, given: dict[str, str], expected: str
) -> None:
    write(root, "a", sdist="print('epoch', os.environ.get('SOURCE_DATE_EPOCH'))")
    _commit(root)

    async def body(workspace: Workspace) -> None:
        await workspace.built("a")
        assert f"epoch {expected}\n" in workspace.log("a")

    running(root, body, None, **given)


def test_without_a_commit_the_backend_decides_about_times(root: Path) -> None:
    write(root, "a", sdist="print('epoch', os.environ.get('SOURCE_DATE_EPOCH'))")

    async def body(workspace: Workspace) -> None:
        await workspace.built("a")
        assert "epoch None\n" in workspace.log("a")

    running(root, body, GIT_CEILING_DIRECTORIES=str(root.parent))


@pytest.mark.parametrize("backend_path", ["..", "elsewhere"])
def test_a_backend_has_to_come_from_its_own_tree(root: Path, backend_path: str) -> None:
    """R36"""
    write(root, "a", backend="json")
    manifest = root / "a" / "pyproject.toml"
    manifest.write_text(manifest.read_text().replace('["."]', f'["{backend_path}"]'))

    async def body(workspace: Workspace) -> None:
        error = await workspace.failed("a")
        assert "backend-path" in error.log[-1]

    running(root, body)


def test_a_backend_may_be_an_attribute_of_a_module(root: Path) -> None:
    more = """\
class Outer:
    class inner:
        build_sdist = build_sdist
        build_wheel = build_wheel
"""
    write(root, "a", backend="backend:Outer.inner", more=more)

    async def body(workspace: Workspace) -> None:
        assert len(await workspace.built("a")) == 2

    running(root, body)


def test_what_setuptools_leaves_in_the_tree_is_removed(root: Path) -> None:
    """R25"""
    litter = (
        "[os.makedirs(d, exist_ok=True) for d in ('a.egg-info', 'src/b.egg-info', 'build/lib')]"
    )
    write(root, "a", sdist=litter)
    kept = root / "a" / "kept.egg-info"
    kept.mkdir(parents=True, exist_ok=True)

    async def body(workspace: Workspace) -> None:
        await workspace.built("a")
        names = sorted(it.relative_to(root / "a").as_posix() for it in (root / "a").rglob("*"))
        assert names == ["backend.py", "kept.egg-info", "pyproject.toml", "src"]

    running(root, body)


def test_an_sdist_with_a_path_that_leads_out_is_not_unpacked(root: Path) -> None:
    more = """\
real = build_sdist
def build_sdist(directory, settings=None):
    name = real(directory)
    with tarfile.open(Path(directory, name), "w:gz") as archive:
        archive.add("backend.py", "../../evil.py")
    return name
"""
    write(root, "a", more=more)

    async def body(workspace: Workspace) -> None:
        # tarfile's own words, and ours where Python is too old to have any.
        said = (await workspace.failed("a")).log[-1]
        assert "OutsideDestinationError" in said or "is not a file inside the sdist" in said

    running(root, body)


def test_a_build_does_not_parse_its_manifest_again(root: Path) -> None:
    """`release/sources.py` refuses to upload what was built from another one than planned."""
    write(root, "a")

    async def body(workspace: Workspace) -> None:
        (root / "a" / "pyproject.toml").write_text("[")
        assert not isinstance(await workspace.build("a"), BuildFailed)

    running(root, body)


def test_pins_follow_the_mode_of_the_run(root: Path) -> None:
    write(root, "a")
    manifest = '[project]\nname = "a"\ndependencies = ["b"]\n'

    async def body(workspace: Workspace) -> None:
        pinned = workspace.found.pin(manifest, {"b": "1.0"})
        assert pinned == manifest.replace('"b"', '"b==1.0"')
        assert workspace.found.pin(manifest, {"b": "1.0"}) is pinned, "not parsed again"
        assert workspace.found.pin(manifest, {"b": "2.0"}) == pinned.replace("1.0", "2.0")

    running(root, body)


def test_a_worker_that_cannot_start_fails_the_package(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "a")
    monkeypatch.setattr(environment, "_python", lambda directory: directory / "no" / "python")

    async def body(workspace: Workspace) -> None:
        error = await workspace.failed("a")
        assert "cannot be started" in str(error)
        assert error.log == ()

    running(root, body)


@pytest.mark.parametrize(
    ("installer", "with_pip", "create", "install"),
    [
        (
            Installer(uv="/bin/uv"),
            "",
            "/bin/uv venv --no-project --clear --python PYTHON /e",
            "/bin/uv pip install --python /e/bin/python --requirements -",
        ),
        (
            Installer(),
            "BASE",
            "PYTHON -I -m venv --clear --without-pip /e",
            "BASE -I -m pip --python /e/bin/python install --requirement /dev/stdin",
        ),
        (
            Installer(),
            "",
            "PYTHON -I -m venv --clear /e",
            "/e/bin/python -I -m pip install --requirement /dev/stdin",
        ),
    ],
)
def test_environments_are_made_by_uv_or_else_by_venv_and_pip(
    monkeypatch: pytest.MonkeyPatch, installer: Installer, with_pip: str, create: str, install: str
) -> None:
    monkeypatch.setattr(environment, "find_python_with_pip", lambda: with_pip)
    monkeypatch.setattr(sys, "executable", "PYTHON")
    commands = installer.commands(Path("/e"))
    assert [" ".join(argv) for argv in commands] == [create, install]


def test_index_settings_stand_in_the_requirements_file_not_on_a_command_line() -> None:
    """R34"""
    installer = Installer(index_url="https://u:p@example.org/simple", find_links=("/wheels",))
    wheel = Path("/b c/plugin-1-py3-none-any.whl")
    texts = [
        "Hatchling >= 1.27",
        "hatchling>=1.27 ; python_version > '3'",
        "tomli ; python_version < '3'",
        "Plugin[b, a]>=1",
        "plugin[c]",
    ]
    wanted = Requirements.parse(texts, {"plugin": wheel})
    assert installer.requirements(wanted).splitlines() == [
        "--index-url https://u:p@example.org/simple",
        "--find-links /wheels",
        "hatchling>=1.27",
        "plugin[a,b,c] @ file:///b%20c/plugin-1-py3-none-any.whl",
    ]
    assert "u:p" not in str(installer.commands(Path("/e")))


def test_environments_differ_by_their_limits() -> None:
    keys = {
        Requirements.parse(["a"], {}, limits).key()
        for limits in (
            BuildLimits(),
            BuildLimits(constraints=("a<2",)),
            BuildLimits(newest=("--exclude-newer=1 day",)),
            BuildLimits(indexes="no-index = true"),
            BuildLimits(place="other/uv.toml"),
        )
    }
    assert len(keys) == 4


def test_no_build_passes_over_a_setting_that_changes_what_it_needs(root: Path) -> None:
    """R63: also where no plan has refused it, as for a version that a backend computes."""
    write(root, "acme-a")
    path = root / "acme-a" / "pyproject.toml"
    path.write_text(path.read_text() + "\n[tool.uv]\nno-build-isolation = true\n")

    async def body(workspace: Workspace) -> None:
        assert "tool.uv.no-build-isolation is true, but" in str(await workspace.failed("acme-a"))

    running(root, body)


def test_most_packages_find_their_environment_made(root: Path) -> None:
    """While the plan is made: once, and not by the requirements of the odd one out."""
    for name in ("acme-a", "acme-b"):
        write(root, name)
    write(root, "acme-odd", requires='["no-such-package-here"]')

    async def body(workspace: Workspace) -> None:
        def made() -> list[Path]:
            return list((root.parent / "tmp").rglob("environment-*/bin/python"))

        await asyncio.to_thread(wait_until, lambda: bool(made()))
        for name in ("acme-a", "acme-b"):
            await workspace.built(name)
        assert len(made()) == 1

    running(root, body)


def test_what_cannot_be_made_early_fails_no_plan(root: Path) -> None:
    """R36: a marker that compares what cannot be compared, and too much of all."""
    write(root, "acme-a", requires="""["foo; os_name ~= 'x'"]""")
    write(root, "acme-b", requires=str([f"{'x' * 1_000}{number}" for number in range(40)]))

    async def body(workspace: Workspace) -> None:
        said = str(await workspace.failed("acme-a"))
        assert "the build backend asks for \"foo; os_name ~= 'x'\"" in said
        said = str(await workspace.failed("acme-b"))
        assert "build-system.requires and what the build backend asks for have more than" in said

    running(root, body, PyPIOptions(packages=("acme-*",)))


def test_a_plan_alone_makes_no_environment(root: Path) -> None:
    write(root, "acme-a")

    async def main() -> None:
        before = asyncio.all_tasks()
        async with opened(root, None, "plan") as workspace:
            assert [package.id.name for package in workspace.found.packages] == ["acme-a"]
            keepers = asyncio.all_tasks() - before
            assert not [task for task in keepers if "_made_early" in repr(task)]

    asyncio.run(main())


def test_the_target_is_the_ecosystem_and_its_registry(tmp_path: Path) -> None:
    config = fakes.config(tmp_path, ecosystem_tables={"pypi": {"packages": "a"}})
    with pytest.raises(ConfigError, match='packages is "a"'):
        discovery(ECOSYSTEMS["pypi"], config, fakes.services(config, None))


def _commit(root: Path) -> None:
    import subprocess  # noqa: PLC0415

    when = {"GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_AUTHOR_DATE": "1700000000 +0000"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for argv in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *argv], cwd=root, check=True, env={**os.environ, **when})


@pytest.mark.parametrize(
    "text", ["foo; os_name ~= 'x'", "a; " + "(" * 5_000, "\0", "x" * 30_000 + ";"]
)
def test_what_packaging_cannot_read_is_no_requirement(text: str) -> None:
    with pytest.raises(BuildFailed, match="the build backend asks for") as raised:
        Requirements.parse([text], {})
    assert len(str(raised.value)) < 2_000
