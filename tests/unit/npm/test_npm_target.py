"""Builds, with a stand-in for node that does what each package's directory says."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import re
import shlex
import sys
import tarfile
import threading
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

import fakes
from javascript import Passing, write
from processes import IMPATIENT, wait_until
from releasekit.config.values import Dist
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.npm import NPMJS, NpmInputs, NpmOptions, tarball
from releasekit.ecosystems.npm.target import Npm
from releasekit.errors import BuildFailed, ConfigError, PlanError, ReleasekitError
from releasekit.host.process import PATIENCE, KillSchedule, Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Action, PlannedPackage
from releasekit.problems import Problem
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from releasekit.model import Artifact, PackageId

# A first line for the shell and for Python: the path of an interpreter may hold spaces.
NODE = """\
#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
import json, os, shutil, sys, tarfile, time
with open(sys.argv[0] + ".started", "a") as file:
    file.write("x")
for line in sys.stdin:
    request = json.loads(line)
    place = request["directory"]
    how = open(os.path.join(place, "how")).read()
    document = json.load(open(os.path.join(place, "package.json")))
    answer = {{"id": request["id"], "name": document["name"], "version": document["version"]}}
    if "events" in request:
        with open(os.path.join(place, "followed"), "a") as file:
            file.write(" ".join(request["events"]) + ";")
    if how == "once" and not os.path.exists(os.path.join(place, "died")):
        open(os.path.join(place, "died"), "w").close()
        os._exit(1)
    if how == "dies":
        os._exit(1)
    if how == "hangs":
        open(os.path.join(place, "hanging"), "w").close()
        time.sleep(600)
    if how in ("fails", "talks") and "log" not in request:
        print(json.dumps({{"id": request["id"], "takesLog": True}}), flush=True)
        continue
    if how == "talks":
        open(request["log"], "a").write("prepack says secret-canary\\n")
    if how == "fails":
        open(request["log"], "a").write("first\\nsecret-canary\\n")
        answer = {{"id": request["id"], "error": "prepack failed with exit code 7"}}
    if how == "renamed":
        answer["version"] = "9.9.9"
    if "into" not in request:
        print(json.dumps(answer), flush=True)
        continue
    if how == "contents":
        with tarfile.open(request["into"], "w:gz") as archive:
            archive.add(os.path.join(place, request["contents"]), "package")
        print(json.dumps(answer), flush=True)
        continue
    if how == "replaced":
        shutil.copy(os.path.join(place, "tarball"), request["into"])
        print(json.dumps(answer), flush=True)
        continue
    with open(request["into"], "w") as file:
        file.write(json.dumps({{**request, "into": "", "log": "", "id": 0}}))
    print(json.dumps(answer), flush=True)
"""

Built = dict[str, "tuple[Artifact, ...] | BuildFailed"]


def workspace(tmp_path: Path, **packages: str) -> Path:
    """Each package with what becomes of its build."""
    files: dict[str, object] = {"package.json": {"private": True, "workspaces": ["*"]}}
    for name, how in packages.items():
        files[f"{name}/package.json"] = {"name": f"@acme/{name}", "version": "1.0.0"}
        files[f"{name}/how"] = how
    return write(tmp_path / "workspace", files)


@asynccontextmanager
async def opened(
    root: Path,
    tools: tuple[str, ...] = ("node", "npm"),
    patience: KillSchedule = PATIENCE,
    table: Mapping[str, object] = MappingProxyType({}),
    **changes: object,
) -> AsyncIterator[Npm]:
    programs = root.parent / "bin"
    programs.mkdir(exist_ok=True)
    for name in tools:
        (programs / name).write_text(NODE.format(python=shlex.quote(sys.executable)))
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:/nowhere", "SHOWN": "x"}
    options = NpmOptions.from_table({key.replace("_", "-"): it for key, it in table.items()})
    config = fakes.config(root, **{"mode": "publish", **changes})
    async with Processes(
        environment=environment,
        secrets=["secret-canary"],
        variables=fakes.TOOL_VARIABLES,
        patience=patience,
    ) as processes:
        services = fakes.services(config, processes, processes.redact)
        async with Npm(config, options, services) as npm:
            yield npm


async def build_all(npm: Npm, root: Path) -> dict[PackageId, tuple[Artifact, ...] | BuildFailed]:
    workspace = await npm.discover(root)
    public = [package for package in workspace.packages if not package.unpublishable]
    into = partial(built_directory, state_directory=root / ".releasekit")
    batches = workspace.batches(public)
    answers = await asyncio.gather(*(workspace.build(batch, into) for batch in batches))
    return {name: result for answer in answers for name, result in answer.items()}


def built(root: Path, tools: tuple[str, ...] = ("node", "npm"), **table: object) -> Built:
    async def main() -> Built:
        async with opened(root, tools, table=table) as npm:
            results = await build_all(npm, root)
            return {package.name: result for package, result in results.items()}

    return asyncio.run(main())


def request(artifacts: object) -> Mapping[str, object]:
    assert isinstance(artifacts, tuple)
    found: Mapping[str, object] = json.loads(artifacts[0].path.read_text())
    return found


def failure(result: object) -> BuildFailed:
    assert isinstance(result, BuildFailed)
    return result


def test_one_process_packs_them_all(tmp_path: Path) -> None:
    root = workspace(tmp_path, a="works", b="works")
    results = built(root)
    for name in ("a", "b"):
        (artifact,) = results[f"@acme/{name}"]  # type: ignore[misc]
        data = artifact.path.read_bytes()
        into = root / ".releasekit" / "dist" / "npm" / "@acme" / name / "1.0.0"
        assert artifact.path == into / f"acme-{name}-1.0.0.tgz"
        assert artifact.digests == {
            name: hashlib.new(name, data).hexdigest() for name in ("sha256", "sha512", "sha1")
        }
        assert [path.name for path in into.parent.iterdir()] == ["1.0.0"]
    asked = request(results["@acme/a"])
    assert asked["workspaces"] == [str(root / "a")]
    assert asked["root"] == str(root)
    assert asked["ignoreScripts"] is False


def test_a_log_is_kept_of_what_has_something_to_say(tmp_path: Path) -> None:
    """R34, R47: of a package that runs no script there is none."""
    root = workspace(tmp_path, quiet="works", talkative="talks")
    assert all(isinstance(result, tuple) for result in built(root).values())
    (log,) = (root / ".releasekit" / "logs").rglob("*.log")
    assert log.name == "build-npm-@acme+talkative.log"
    assert log.read_text() == "prepack says ***\n"


def test_the_process_starts_while_the_plan_is_made(tmp_path: Path) -> None:
    """Once, and whether or not it can is told by the first build."""
    root = workspace(tmp_path, a="works", b="works")
    started = tmp_path / "bin" / "node.started"

    async def main() -> None:
        async with opened(root) as npm:
            await npm.discover(root)
            await asyncio.to_thread(wait_until, started.exists)
            results = await build_all(npm, root)
        assert all(isinstance(result, tuple) for result in results.values())
        assert started.read_text() == "x"

    asyncio.run(main())


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "plan"},
        {"ecosystem": ("pypi",)},
        {"dist": (Dist(path=Path("dist"), label="dist"),)},
        {},
    ],
    ids=["a plan alone", "only consulted", "built elsewhere", "nothing to publish"],
)
def test_nothing_to_pack_starts_no_process(tmp_path: Path, changes: dict[str, Any]) -> None:
    root = workspace(tmp_path, **({"a": "works"} if changes else {}))

    async def main() -> None:
        async with opened(root, **changes) as npm:
            before = asyncio.all_tasks()
            assert len((await npm.discover(root)).packages) == len(changes)
            assert asyncio.all_tasks() == before

    asyncio.run(main())


def test_a_process_that_cannot_start_yet_ends_nothing(tmp_path: Path) -> None:
    root = workspace(tmp_path, a="works")

    async def main() -> None:
        async with opened(root, ()) as npm:
            await npm.discover(root)
        async with opened(root) as npm:
            await npm.discover(root)  # and all is closed at once

    asyncio.run(main())


def test_scripts_are_left_out_on_request(tmp_path: Path) -> None:
    root = write(
        tmp_path / "w", {"package.json": {"name": "x", "version": "1.0.0"}, "how": "works"}
    )
    asked = request(built(root, ignore_scripts=True)["x"])
    assert asked["ignoreScripts"] is True


def pnpm(tmp_path: Path, needs: Mapping[str, str], config: Mapping[str, object]) -> Path:
    """A package of which pnpm packs `dist`, built before the run."""
    own = {"name": "web", "version": "1.0.0"}
    return write(
        tmp_path / "workspace",
        {
            "pnpm-workspace.yaml": "packages: [web, core]",
            "core/package.json": {"name": "core", "version": "1.2.0", "private": True},
            "web/package.json": {**own, "publishConfig": {"directory": "./dist/", **config}},
            "web/how": "contents",
            "web/dist/package.json": {**own, "devDependencies": needs, "main": "index.ts",
                                      "publishConfig": config},
            "web/dist/index.js": "module.exports = 7\n",
        },
    )  # fmt: skip


def test_a_directory_that_pnpm_packs_is_packed_and_its_manifest_pinned(tmp_path: Path) -> None:
    """R18, R24: in the tarball alone, and to the same bytes each time."""
    root = pnpm(tmp_path, {"core": "workspace:^"}, {"main": "index.js"})
    before = (root / "web/dist/package.json").read_bytes()
    (artifact,), (again,) = built(root)["web"], built(root)["web"]  # type: ignore[misc]
    assert again.sha256 == artifact.sha256
    with tarfile.open(artifact.path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        texts = {name: file.read() for name, file in files.items() if file is not None}
    assert texts.keys() == {"package/package.json", "package/index.js"}
    document = json.loads(texts["package/package.json"])
    assert document["devDependencies"] == {"core": "^1.2.0"}
    assert document["main"] == "index.js"
    assert texts["package/index.js"] == b"module.exports = 7\n"
    assert (root / "web/dist/package.json").read_bytes() == before
    assert artifact.sha256 == hashlib.sha256(artifact.path.read_bytes()).hexdigest()
    assert [path.name for path in artifact.path.parent.iterdir()] == ["web-1.0.0.tgz"]


def test_a_directory_that_needs_no_pin_is_kept_as_npm_packed_it(tmp_path: Path) -> None:
    root = pnpm(tmp_path, {"core": "^1.0.0"}, {})
    (artifact,) = built(root)["web"]  # type: ignore[misc]
    # The time of its writing is in it still, which no tarball has that was written again.
    assert artifact.path.read_bytes()[4:8] != bytes(4)


def test_a_directory_that_cannot_be_pinned_fails_its_package(tmp_path: Path) -> None:
    root = pnpm(tmp_path, {"gone": "workspace:^"}, {})
    assert "no package of this workspace is named 'gone'" in str(failure(built(root)["web"]))


def replaced(tmp_path: Path, data: bytes) -> Path:
    """A package whose scripts put this in the place of its tarball."""
    root = pnpm(tmp_path, {"core": "workspace:^"}, {})
    (root / "web/how").write_text("replaced")
    (root / "web/tarball").write_bytes(data)
    return root


def bomb() -> bytes:
    """It says that its second file has 9 GB, and begins with 1 MB of them."""
    stream = io.BytesIO()
    with gzip.open(stream, "wb") as packed:
        for name, size in (("package/package.json", 2), ("package/x", 9 << 30)):
            entry = tarfile.TarInfo(name)
            entry.size = size
            packed.write(entry.tobuf(tarfile.GNU_FORMAT) + b"{}".ljust(512))
        packed.write(bytes(1 << 20))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no tarball", "it is not a tarball of an npm package"),
        (bomb()[:60], "it is not a tarball of an npm package"),
        (gzip.compress(bytes(1024)), "there is no package/package.json in it"),
        (bomb(), "it unpacks to more than 8589934592 bytes"),
    ],
)
def test_a_tarball_that_scripts_replace_has_limits(tmp_path: Path, data: bytes, words: str) -> None:
    """R40"""
    assert words in str(failure(built(replaced(tmp_path, data))["web"]))


def test_a_tarball_is_pinned_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40: no deadline or signal would be heard meanwhile."""
    threads = []
    rewrite = tarball.rewrite_manifest

    def seen(path: Path, change: Callable[[str], str]) -> None:
        threads.append(threading.current_thread())
        rewrite(path, change)

    monkeypatch.setattr(tarball, "rewrite_manifest", seen)
    assert isinstance(built(pnpm(tmp_path, {"core": "workspace:^"}, {}))["web"], tuple)
    assert len(threads) == 1
    assert threading.main_thread() not in threads


def test_a_failure_is_one_packages_own(tmp_path: Path) -> None:
    """R6, R34"""
    root = workspace(tmp_path, a="fails", b="works", c="renamed")
    results = built(root)
    assert isinstance(results["@acme/b"], tuple)
    error = failure(results["@acme/a"])
    assert str(error) == "npm:@acme/a: it could not be packed: prepack failed with exit code 7"
    assert error.log == ("first", "***")
    log = root / ".releasekit" / "logs" / "run" / "build-npm-@acme+a.log"
    assert str(log) in error.hint
    assert log.read_text() == "first\n***\n"  # R50
    assert "its scripts made it @acme/c@9.9.9" in str(failure(results["@acme/c"]))


def test_a_process_that_dies_takes_nobody_with_it(tmp_path: Path) -> None:
    assert isinstance(built(workspace(tmp_path, a="once"))["@acme/a"], tuple)
    (tmp_path / "again").mkdir()
    error = failure(built(workspace(tmp_path / "again", a="dies"))["@acme/a"])
    assert "its packer ended" in str(error)
    assert error.log == ()


@pytest.mark.parametrize(("tools", "missing"), [((), "node"), (("node",), "npm")])
def test_what_to_install_is_said(tmp_path: Path, tools: tuple[str, ...], missing: str) -> None:
    error = failure(built(workspace(tmp_path, a="works"), tools)["@acme/a"])
    assert f"{missing} is not on PATH" in str(error)
    assert "install Node.js" in error.hint


SCRIPTS = {"postpublish": "x", "publish": "y", "prepack": "z"}


def follow(root: Path, **table: object) -> tuple[str, str, BuildFailed | None]:
    """What is due and what a plan says, before what follows is done, and how that ends."""

    async def main() -> tuple[str, str, BuildFailed | None]:
        async with opened(root, table=table) as npm:
            workspace = await npm.discover(root)
            (package,) = [each for each in workspace.packages if not each.unpublishable]
            step = PlannedPackage(package=package, action=Action.PUBLISH, reason="")
            kept = PlannedPackage(package=package, action=Action.KEEP, reason="")
            assert workspace.plan_notes([kept]) == ""
            said = workspace.due(package), workspace.plan_notes([step])
            try:
                await workspace.follow_up(package)
            except BuildFailed as error:
                return *said, error
            return *said, None

    return asyncio.run(main())


def scripted(tmp_path: Path, how: str, scripts: Mapping[str, str]) -> Path:
    root = workspace(tmp_path, a=how)
    write(root, {"a/package.json": {"name": "@acme/a", "version": "1.0.0", "scripts": scripts}})
    return root


def test_what_follows_a_publication_is_named_and_run_in_order(tmp_path: Path) -> None:
    root = scripted(tmp_path, "works", SCRIPTS)
    due, said, error = follow(root)
    assert due == "its publish and postpublish scripts"
    assert "scripts of @acme/a run once the registry shows the package" in said
    assert error is None
    assert (root / "a" / "followed").read_text() == "publish postpublish;"


@pytest.mark.parametrize(
    ("scripts", "table", "due"),
    [
        ({"postpublish": "x"}, {}, "its postpublish script"),
        ({"prepack": "x", "publish": ""}, {}, ""),
        (SCRIPTS, {"ignore_scripts": True}, ""),
    ],
)
def test_only_declared_scripts_are_due(
    tmp_path: Path, scripts: dict[str, str], table: dict[str, object], due: str
) -> None:
    found, said, _ = follow(scripted(tmp_path, "works", scripts), **table)
    assert found == due
    assert bool(said) is bool(due)


def test_a_script_that_fails_after_publication_shows_its_output(tmp_path: Path) -> None:
    """R34"""
    root = scripted(tmp_path, "fails", SCRIPTS)
    _, _, error = follow(root)
    assert error is not None
    assert str(error) == "but prepack failed with exit code 7"
    assert error.log == ("first", "***")
    assert str(root / ".releasekit" / "logs" / "run" / "publish-npm-@acme+a.log") in error.hint


def test_what_may_have_had_its_effect_is_not_run_again(tmp_path: Path) -> None:
    """A packer that ends takes a build up again, and no script of a published package."""
    root = scripted(tmp_path, "once", SCRIPTS)
    _, _, error = follow(root)
    assert "its packer ended" in str(error)
    assert (root / "a" / "followed").read_text() == "publish postpublish;"


def test_a_script_that_publishes_platforms_is_refused(tmp_path: Path) -> None:
    """As the template of napi-rs has it; all at once, with the three lines to change."""
    napi = {"prepublishOnly": "napi prepublish -t npm", "version": "napi version"}
    later = {"platforms": "napi prepublish -t npm --skip-optional-publish --no-gh-release"}
    scripts = {"a": napi, "b": later, "c": {"prepack": "tsc && napi pre-publish"}}
    files = {
        f"{name}/package.json": {"name": name, "version": "1.0.0", "scripts": each}
        for name, each in scripts.items()
    }
    root = write(tmp_path / "w", {"package.json": {"workspaces": ["*"]}, **files})

    async def ask(action: Action, **table: object) -> str:
        async with opened(root, table=table) as npm:
            workspace = await npm.discover(root)
            return workspace.plan_notes(
                [
                    PlannedPackage(package=package, action=action, reason="")
                    for package in workspace.packages
                ]
            )

    with pytest.raises(PlanError) as caught:
        asyncio.run(ask(Action.PUBLISH))
    assert f"{root}/a/package.json: the script prepublishOnly runs" in str(caught.value)
    assert [str(other).partition(":")[0] for other in caught.value.others] == [
        f"{root}/c/package.json"
    ]
    assert "`platforms` instead of `prepublishOnly`" in caught.value.hint
    assert 'packages = ["npm/*"]' in caught.value.hint
    assert asyncio.run(ask(Action.KEEP)) == ""
    assert asyncio.run(ask(Action.PUBLISH, **{"ignore-scripts": True})) == ""


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "names none of a-linux-x64-gnu, a-wasm32-wasi in its optionalDependencies"),
        ({"devDependencies": {"a-linux-x64-gnu": "1.0.0"}}, "names none of a-linux"),
        ({"optionalDependencies": {"a-linux-x64-gnu": "1.0.0"}}, ""),
        ({"napi": {"packageName": "b"}}, "names none of b-darwin-x64 in"),
        ({"napi": {"packageName": "@acme/c"}}, ""),
        ({"napi": None}, ""),
    ],
)
def test_a_napi_package_without_its_platforms_is_refused(
    tmp_path: Path, table: Mapping[str, object], says: str
) -> None:
    """A plan, which may come before they are written, says it."""
    packages: dict[str, Mapping[str, object]] = {
        "a": {"napi": {"binaryName": "a"}, **table},
        "a-linux-x64-gnu": {"os": ["linux"], "cpu": ["x64"]},
        "a-wasm32-wasi": {"cpu": ["wasm32"]},
        "a-tools": {},
        "b-darwin-x64": {"os": ["darwin"]},
    }
    files = {
        f"{name}/package.json": {"name": name, "version": "1.0.0", **more}
        for name, more in packages.items()
    }
    root = write(tmp_path / "w", {"package.json": {"workspaces": ["*"]}, **files})

    async def ask(action: Action, *, mode: str = "publish", dry_run: bool = False) -> str:
        async with opened(root, mode=mode, dry_run=dry_run) as npm:
            workspace = await npm.discover(root)
            return workspace.plan_notes(
                [
                    PlannedPackage(package=package, action=action, reason="")
                    for package in workspace.packages
                ]
            )

    for asked in (ask(Action.PUBLISH, mode="plan"), ask(Action.PUBLISH, dry_run=True)):
        note = asyncio.run(asked)
        assert says in note
        assert ("napi prepublish -t npm --skip-optional-publish" in note) is bool(says)
    assert asyncio.run(ask(Action.KEEP)) == ""
    if says:
        with pytest.raises(PlanError, match=says) as caught:
            asyncio.run(ask(Action.PUBLISH))
        assert caught.value.problem is Problem.PUBLISHES_ITSELF
    else:
        assert asyncio.run(ask(Action.PUBLISH)) == ""


def test_a_note_names_a_few_packages(tmp_path: Path) -> None:
    files = {
        f"p{n}/package.json": {"name": f"p{n}", "version": "1.0.0", "scripts": SCRIPTS}
        for n in range(7)
    }
    root = write(tmp_path / "w", {"package.json": {"workspaces": ["*"]}, **files})

    async def main() -> str:
        async with opened(root) as npm:
            workspace = await npm.discover(root)
            return workspace.plan_notes(
                [
                    PlannedPackage(package=package, action=Action.PUBLISH, reason="")
                    for package in workspace.packages
                ]
            )

    assert "scripts of p0, p1, p2, p3, p4 and 2 more run" in asyncio.run(main())


def test_a_cancelled_build_ends_its_process(tmp_path: Path) -> None:
    """R29"""
    root = workspace(tmp_path, a="hangs")

    async def main() -> None:
        async with opened(root, ("node", "npm"), IMPATIENT) as npm:
            build = asyncio.ensure_future(build_all(npm, root))
            await asyncio.to_thread(wait_until, (root / "a" / "hanging").exists)
            build.cancel()
            with pytest.raises(asyncio.CancelledError):
                await build
            (root / "a" / "how").write_text("works")
            (result,) = (await build_all(npm, root)).values()
            assert isinstance(result, tuple)

    asyncio.run(main())


def test_options_are_checked() -> None:
    wrong: list[dict[str, object]] = [
        {"packages": "x"}, {"packages": [7]}, {"ignore-scripts": 1}, {"directory-url": 7},
    ]  # fmt: skip
    for table in wrong:
        with pytest.raises(ConfigError, match=r"releasekit\.toml: \[npm\]"):
            NpmOptions.from_table(table)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"pnpm-workspace.yaml": "", ".pnpmfile.cjs": "hooks: { beforePacking (p) {} }"},
         r"\.pnpmfile\.cjs has a hook `beforePacking`"),
        ({".pnpmfile.cjs": "hooks: { beforePacking (p) {} }"}, ""),
        ({"pnpm-workspace.yaml": "", ".pnpmfile.mjs": "hooks: { readPackage (p) {} }"}, ""),
        ({"pnpm-workspace.yaml": "pnpmfile: [a.cjs, b.cjs]",
          "b.cjs": "hooks: { beforePacking (p) {} }"}, r"b\.cjs has a hook `beforePacking`"),
        ({"pnpm-workspace.yaml": "pnpmfile: ./b.mjs",
          "b.mjs": "hooks: { beforePacking (p) {} }"}, r"b\.mjs has a hook `beforePacking`"),
        ({"pnpm-workspace.yaml": "", ".npmrc": "pnpmfile=b.cjs",
          "b.cjs": "hooks: { beforePacking (p) {} }"}, r"b\.cjs has a hook `beforePacking`"),
        ({"lerna.json": {"command": {"publish": {"contents": "dist"}}}},
         r"lerna\.json: command\.publish\.contents is 'dist'"),
        ({"lerna.json": {"command": {"publish": {"contents": "."}}}}, ""),
        ({".npmrc": "tag=1.x"}, "the setting tag = '1.x' is not a dist-tag"),
        ({".npmrc": "ignore-scripts=true"}, "NOTE"),
    ],
)  # fmt: skip
def test_settings_that_would_publish_something_else_are_refused_or_named(
    tmp_path: Path, files: dict[str, object], says: str
) -> None:
    """R66"""
    manifest = {"name": "a", "version": "1.0.0", "scripts": SCRIPTS}
    root = write(tmp_path / "w", {"package.json": manifest, **files})

    async def ask(action: Action) -> str:
        async with opened(root) as npm:
            workspace = await npm.discover(root)
            (package,) = workspace.packages
            planned = [PlannedPackage(package=package, action=action, reason="")]
            return workspace.plan_notes(planned)

    assert asyncio.run(ask(Action.KEEP)) == ""
    if says == "NOTE":
        note = asyncio.run(ask(Action.PUBLISH))
        where = f"{root}/.npmrc: ignore-scripts"
        assert note == f"npm: the scripts of a do not run, as {where} is set"
    elif says:
        with pytest.raises((PlanError, ConfigError), match=says):
            asyncio.run(ask(Action.PUBLISH))
    else:
        assert "run once the registry shows" in asyncio.run(ask(Action.PUBLISH))


@pytest.mark.parametrize(
    ("files", "packs"),
    [({}, ""), ({"lerna.json": "{}"}, "dist"), ({"pnpm-lock.yaml": ""}, "dist")],
)
def test_the_directory_of_publish_config_is_packed_where_the_tool_does_so(
    tmp_path: Path, files: dict[str, object], packs: str
) -> None:
    """R64: npm and yarn do not; lerna 10 sends what is in it."""
    manifest = {"name": "a", "version": "1.0.0", "publishConfig": {"directory": "dist"}}
    root = write(tmp_path / "w", {"package.json": manifest, **files})

    async def main() -> Mapping[str, str]:
        async with opened(root) as npm:
            return (await npm.discover(root)).contents

    assert asyncio.run(main()) == {"a": packs}


async def noted(root: Path, **changes: object) -> str:
    """By npmjs.com, which knows none of them."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={}, request=request)

    values: dict[str, object] = {"registries": fakes.registries(npm=NPMJS), **changes}
    config = fakes.config(root, **values)
    async with http_client(transport=httpx.MockTransport(answer)) as http:
        token = snapshot({"RELEASEKIT_NPM_TOKEN": "npm_x"})
        credentials = Credentials(token, mask=lambda _: None)
        processes = cast("Processes", Passing())
        services = fakes.make_services(config, http, processes, credentials)
        found = await discovery(ECOSYSTEMS["npm"], config, services).discover(root)
        for package in found.workspace.packages:
            await found.registry.lookup(package)
        return found.plan_notes(
            [
                PlannedPackage(package=each, action=Action.PUBLISH, reason="")
                for each in found.workspace.packages
            ]
        )


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("Core", {}, "name is 'Core', which contains capital letters, and npmjs.com takes no new"),
        ("stream", {}, "name is 'stream', which is the name of a Node.js module"),
        ("-core", {}, "name is '-core'"),
        ("core~1", {}, "name is 'core~1', which contains `~`"),
        (
            "core",
            {"publishConfig": {"access": "restricted"}},
            "has no scope, and its access (`npm-access`",
        ),
        ("core", {"publishConfig": {"tag": "1.x"}}, "publishConfig.tag = '1.x' is not a dist-tag"),
        ("core", {"tag": "^2"}, "package.json: tag = '^2' is not a dist-tag"),
    ],
)
def test_what_npm_refuses_is_refused_by_the_plan(
    tmp_path: Path, name: str, table: dict[str, object], words: str
) -> None:
    """R63: before the first upload, by file and key."""
    document = {"name": name, "version": "1.0.0", **table}
    root = write(tmp_path, {"package.json": document})
    with pytest.raises(ReleasekitError, match=re.escape(words)) as caught:
        asyncio.run(noted(root))
    assert str(root / "package.json") in str(caught.value)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("@acme/_core", {}),
        ("@acme/stream", {}),
        ("core", {"publishConfig": {"access": "public", "tag": "next"}}),
        ("@acme/core", {"publishConfig": {"access": "restricted"}}),
    ],
)
def test_what_npm_takes_is_planned(tmp_path: Path, name: str, table: dict[str, object]) -> None:
    document = {"name": name, "version": "1.0.0", **table}
    assert asyncio.run(noted(write(tmp_path, {"package.json": document})))


def test_the_input_for_access_is_for_packages_with_a_scope(tmp_path: Path) -> None:
    """R63: without it, npm's default would make the package public."""
    root = write(tmp_path, {"package.json": {"name": "core", "version": "1.0.0"}})
    with pytest.raises(ReleasekitError, match=r"core has no scope, and its access \(`npm-access`"):
        asyncio.run(noted(root, ecosystem_inputs=[NpmInputs(access="restricted")]))


def test_the_input_for_the_tag_takes_the_place_of_one_that_is_none(tmp_path: Path) -> None:
    document = {"name": "core", "version": "1.0.0", "tag": "1.x"}
    root = write(tmp_path, {"package.json": document})
    assert asyncio.run(noted(root, ecosystem_inputs=[NpmInputs(tag="next")]))
