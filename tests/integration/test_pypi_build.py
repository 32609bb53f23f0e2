"""Real backends from the real index, with uv and without."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fakes
from effort import SEARCHING
from integration.tools import require_tool
from raising import raises
from releasekit.ecosystems.pypi import PyPIOptions
from releasekit.ecosystems.pypi.target import PyPI
from releasekit.errors import BuildFailed
from releasekit.host.process import Processes
from releasekit.model import DependencyKind, Package
from releasekit.problems import Problem
from releasekit.release.building import refuse_state
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from releasekit.ecosystems.pypi.target import PyPIWorkspace
    from releasekit.model import Artifact

EXAMPLE = Path(__file__).parents[2] / "examples" / "polyglot"


@asynccontextmanager
async def opened(root: Path, *, uv: bool = True) -> AsyncIterator[PyPIWorkspace]:
    environment = dict(os.environ)
    config = fakes.config(root, uv_path=str(require_tool("uv")) if uv else "")
    if not uv:
        environment["PATH"] = without_uv(environment["PATH"])
    async with (
        Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes,
        PyPI(config, PyPIOptions(), fakes.services(config, processes)) as ecosystem,
    ):
        yield await ecosystem.discover(root)


def without_uv(path: str) -> str:
    return os.pathsep.join(it for it in path.split(os.pathsep) if not Path(it, "uv").exists())


async def build_all(
    workspace: PyPIWorkspace, packages: Sequence[Package], state: Path
) -> dict[str, tuple[Artifact, ...]]:
    """In an order in which build requirements come first."""
    built: dict[str, tuple[Artifact, ...]] = {}
    waiting = [package for package in packages if not package.unpublishable]
    while waiting:
        package = next(
            it
            for it in waiting
            if all(
                needed.on.name in built
                for needed in it.dependencies
                if needed.kind is DependencyKind.BUILD
            )
        )
        waiting.remove(package)
        into = partial(built_directory, state_directory=state)
        result = (await workspace.build([package], into))[package.id]
        if isinstance(result, BuildFailed):
            raise result
        built[package.id.name] = result
    return built


def commit(root: Path) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for argv in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *argv], cwd=root, check=True)


def status(root: Path) -> str:
    argv = ["git", "status", "--porcelain", "--ignored"]
    return subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def polyglot(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "polyglot"
    ignored = shutil.ignore_patterns(".releasekit", "node_modules", "target", "build", "dist")
    shutil.copytree(EXAMPLE, root, ignore=ignored)
    commit(root)
    return root


# With pip, two of its packages are built where manifests are pinned.
@pytest.mark.parametrize("uv", [True, False] if SEARCHING else [True])
def test_the_example_is_built_and_can_be_installed(polyglot: Path, *, uv: bool) -> None:
    state = polyglot.parent / "state"

    async def main() -> dict[str, tuple[Artifact, ...]]:
        async with opened(polyglot, uv=uv) as workspace:
            return await build_all(workspace, workspace.packages, state)

    built = asyncio.run(main())
    assert {name: [it.filename for it in files] for name, files in built.items()} == {
        name: [f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"]
        for name, stem in {
            "acme-cli": "acme_cli-1.0.0",
            "acme-core": "acme_core-1.2.0",
            "acme-measure": "acme_measure-0.5.0",
            "acme-stamp": "acme_stamp-2.0.0",
            "acme-text": "acme_text-0.4.1",
            "acme-web": "acme_web-0.3.0",
        }.items()
    }
    # R25: the build leaves nothing in the tree but the state directory.
    assert status(polyglot) == "!! .releasekit/\n"
    environment = polyglot.parent / "installed"
    tool, python = str(require_tool("uv")), str(environment / "bin" / "python")
    subprocess.run([tool, "venv", "-q", "--python", sys.executable, str(environment)], check=True)
    links = [f"--find-links={files[0].path.parent}" for files in built.values()]
    argv = [tool, "pip", "install", "-q", "--no-index", "--python", python, *links, "acme-cli[all]"]
    subprocess.run(argv, check=True)
    said = subprocess.run([environment / "bin" / "acme"], check=True, capture_output=True)
    assert said.stdout == b"HELLO, WORLD! 1.0.0\n"


def test_hatchling_builds_the_same_bytes_again(polyglot: Path) -> None:
    """R18: nothing depends on it, but whoever lost the machine can build them again."""
    digests = []
    for number in range(2):

        async def main(state: Path) -> dict[str, str]:
            async with opened(polyglot) as workspace:
                names = {"acme-core", "acme-web"}
                wanted = [package for package in workspace.packages if package.id.name in names]
                built = await build_all(workspace, wanted, state)
                return {it.filename: it.sha256 for files in built.values() for it in files}

        digests.append(asyncio.run(main(polyglot.parent / f"state-{number}")))
    assert len(digests[0]) == 4
    assert digests[0] == digests[1]


def test_a_pinned_manifest_is_what_is_published(polyglot: Path) -> None:
    """Without uv, by an environment of pip's with another package of the workspace in it."""

    async def main() -> Artifact:
        async with opened(polyglot, uv=False) as workspace:
            packages = workspace.packages
            versions = {package.id.name: package.version for package in packages}
            for package in packages:
                text = package.manifest.read_text()
                package.manifest.write_text(workspace.pin(text, versions))
            wanted = [it for it in packages if it.id.name in {"acme-cli", "acme-stamp"}]
            built = await build_all(workspace, wanted, polyglot.parent / "state")
            return built["acme-cli"][0]

    with tarfile.open(asyncio.run(main()).path) as archive:
        member = archive.extractfile("acme_cli-1.0.0/pyproject.toml")
        assert member is not None
        manifest = tomllib.loads(member.read().decode())
    assert manifest["project"]["dependencies"] == [
        "acme-core==1.2.0",
        "acme-text[color]==0.4.1 ; python_version >= '3.11'",
    ]
    assert manifest["build-system"]["requires"] == ["hatchling>=1.27", "acme-stamp==2.0.0"]


HATCHLING = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
SETUPTOOLS = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def test_dynamic_versions_of_hatchling_and_setuptools(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    files = {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["*"]\n',
        "hatch/pyproject.toml": HATCHLING + '[project]\nname = "hatch-one"\ndynamic = ["version"]\n'
        '[tool.hatch.version]\npath = "src/hatch_one/__init__.py"\n',
        "hatch/src/hatch_one/__init__.py": '__version__ = "1.2"\n',
        "setup/pyproject.toml": SETUPTOOLS + '[project]\nname = "setup-one"\n'
        'dynamic = ["version", "dependencies"]\n[tool.setuptools.dynamic]\n'
        'version = {attr = "setup_one.VERSION"}\ndependencies = {file = "requirements.txt"}\n',
        "setup/requirements.txt": "hatch-one>=1\nhttpx\n",
        "setup/src/setup_one/__init__.py": "VERSION = (2, 0, 'rc1')\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    commit(root)

    async def main() -> None:
        async with opened(root) as workspace:
            packages = {package.id.name: package for package in workspace.packages}
            assert packages["hatch-one"].version == "1.2"
            assert packages["setup-one"].version == "2.0rc1"
            (edge,) = packages["setup-one"].dependencies
            assert (edge.on.name, edge.requirement) == ("hatch-one", "hatch-one>=1")
            await build_all(workspace, workspace.packages, tmp_path / "state")

    asyncio.run(main())
    assert status(root) == "!! .releasekit/\n"


@pytest.mark.parametrize("layout", [".", "src"])
def test_a_plan_leaves_a_tracked_egg_info_as_it_is(tmp_path: Path, layout: str) -> None:
    """R63: setuptools is asked for a version, and a plan changes nothing."""
    root = tmp_path.resolve() / "root"
    files = {
        "pyproject.toml": SETUPTOOLS + '[project]\nname = "one"\ndynamic = ["version"]\n'
        f'[tool.setuptools]\npackage-dir = {{"" = "{layout}"}}\npy-modules = ["one"]\n'
        '[tool.setuptools.dynamic]\nversion = {attr = "one.VERSION"}\n',
        f"{layout}/one.py": "VERSION = '1.5'\n",
        f"{layout}/one.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: one\nVersion: 1.4\n",
        f"{layout}/one.egg-info/SOURCES.txt": "one.py\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    commit(root)

    async def main() -> list[str]:
        async with opened(root) as workspace:
            return [package.version for package in workspace.packages]

    assert asyncio.run(main()) == ["1.5"]
    assert status(root) == "!! .releasekit/\n"


FROM_GIT = {
    "hatch-vcs": '[build-system]\nrequires = ["hatchling", "hatch-vcs"]\n'
    'build-backend = "hatchling.build"\n'
    '[tool.hatch.version]\nsource = "vcs"\nraw-options = {root = ".."}\n',
    "setuptools-scm": '[build-system]\nrequires = ["setuptools", "setuptools-scm>=9.2"]\n'
    'build-backend = "setuptools.build_meta"\n[tool.setuptools_scm]\nroot = ".."\n',
    "pdm": '[build-system]\nrequires = ["pdm-backend"]\nbuild-backend = "pdm.backend"\n'
    '[tool.pdm.version]\nsource = "scm"\n',
}


@pytest.mark.parametrize("backend", FROM_GIT.values(), ids=FROM_GIT.keys())
def test_a_version_from_git_stays_while_manifests_are_pinned(tmp_path: Path, backend: str) -> None:
    root = tmp_path.resolve() / "root"
    for name, needs in (("acme-a", '"acme-b"'), ("acme-b", "")):
        package = root / name / "src" / name.replace("-", "_")
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (root / name / "pyproject.toml").write_text(
            f'{backend}[project]\nname = "{name}"\ndynamic = ["version"]\n'
            f'requires-python = ">=3.11"\ndependencies = [{needs}]\n'
        )
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["acme-*"]\n')
    commit(root)
    subprocess.run(["git", "tag", "v1.0.0"], cwd=root, check=True)

    async def main() -> dict[str, tuple[Artifact, ...]]:
        async with opened(root) as workspace:
            assert {package.version for package in workspace.packages} == {"1.0.0"}
            manifest = root / "acme-a" / "pyproject.toml"
            manifest.write_text(workspace.pin(manifest.read_text(), {"acme-b": "1.0.0"}))
            return await build_all(workspace, workspace.packages, tmp_path / "state")

    built = asyncio.run(main())
    assert "acme-b==1.0.0" in (root / "acme-a" / "pyproject.toml").read_text()
    assert {name: files[0].filename for name, files in built.items()} == {
        "acme-a": "acme_a-1.0.0.tar.gz",
        "acme-b": "acme_b-1.0.0.tar.gz",
    }


@pytest.mark.parametrize("backend", [HATCHLING, SETUPTOOLS], ids=["hatchling", "setuptools"])
def test_the_state_directory_never_gets_into_an_sdist(tmp_path: Path, backend: str) -> None:
    """Hatchling is told to leave it out; what another backend packs is not published."""
    root = tmp_path.resolve() / "root"
    root.mkdir()
    (root / "pyproject.toml").write_text(backend + '[project]\nname = "all"\nversion = "1"\n')
    (root / "all").mkdir()
    (root / "all" / "__init__.py").touch()
    (root / "MANIFEST.in").write_text("graft .\n")
    (root / ".releasekit").mkdir()
    (root / ".releasekit" / "journal.jsonl").write_text("{}")

    async def main() -> tuple[Artifact, ...]:
        async with opened(root) as workspace:
            into = partial(built_directory, state_directory=root / ".releasekit")
            ((name, result),) = (await workspace.build(workspace.packages, into)).items()
            (package,) = (each for each in workspace.packages if each.id == name)
            assert not isinstance(result, BuildFailed)
            refuse_state(package, result, root / ".releasekit")
            return result

    if backend == HATCHLING:
        result = asyncio.run(main())
        with tarfile.open(result[0].path) as archive:
            names = archive.getnames()
        assert "all-1/all/__init__.py" in names
        assert not [name for name in names if ".releasekit" in name]
    else:
        with raises(Problem.STATE_IN_PACKAGE, match=r"all-1\.tar\.gz holds all-1/\.releasekit/"):
            asyncio.run(main())


HASH = "c407e1c6c17b574584a66ae60e8e9a01235ecb6dc61d01559bb936577aaf5846"
CONSTRAINT = '{{ requirement = "hatchling==1.26.3", hashes = ["sha256:{}"] }}'


def limited(root: Path, uv_table: str = "") -> None:
    package = root / "packages" / "acme-a"
    (package / "src" / "acme_a").mkdir(parents=True)
    (package / "src" / "acme_a" / "__init__.py").touch()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "acme-a"\nversion = "1"\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )
    (root / "pyproject.toml").write_text(
        f'[tool.uv]\n{uv_table}\n[tool.uv.workspace]\nmembers = ["packages/*"]\n'
    )


def generator(root: Path, *, uv: bool) -> str:
    async def main() -> Artifact:
        async with opened(root, uv=uv) as workspace:
            built = await build_all(workspace, workspace.packages, root.parent / "state")
        return built["acme-a"][-1]

    with zipfile.ZipFile(asyncio.run(main()).path) as wheel:
        text = wheel.read("acme_a-1.dist-info/WHEEL").decode()
    return next(line for line in text.splitlines() if line.startswith("Generator"))


# A hash comes with a constraint.
@pytest.mark.parametrize(
    "said",
    ["hash", "newer", "uv's variable", "pip's variable", *(["constraint"] if SEARCHING else [])],
)
def test_what_limits_uv_build_limits_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """As `uv build` takes it, and pip for those who have no uv."""
    root = tmp_path.resolve() / "w s"
    root.mkdir()
    constraint = '"hatchling<1.26.4"' if said == "constraint" else CONSTRAINT.format(HASH)
    table = f"build-constraint-dependencies = [{constraint}]"
    limited(root, table if said in {"constraint", "hash"} else "")
    if said == "newer":
        (root / "uv.toml").write_text('exclude-newer = "2024-11-13"\n')
    (root / "limits.txt").write_text("hatchling<1.26.4\n")
    monkeypatch.chdir(root)
    if "variable" in said:
        name = "UV_BUILD_CONSTRAINT" if said == "uv's variable" else "PIP_CONSTRAINT"
        monkeypatch.setenv(name, "limits.txt")
    assert generator(root, uv="pip" not in said) == "Generator: hatchling 1.26.3"


def test_a_backend_that_is_not_the_one_of_the_hash_is_refused(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "w"
    root.mkdir()
    limited(root, f"build-constraint-dependencies = [{CONSTRAINT.format('0' * 64)}]")
    with pytest.raises(BuildFailed, match="Hash mismatch"):
        generator(root, uv=True)


def test_where_uv_takes_packages_from_is_where_the_backend_comes_from(tmp_path: Path) -> None:
    """R63: of two indexes, a workspace says which one has the backend that it means."""
    root = tmp_path.resolve() / "w"
    root.mkdir()
    (root / "wheels").mkdir()
    limited(root, 'no-index = true\nfind-links = ["wheels"]')
    with pytest.raises(BuildFailed, match="was not found in the provided package loc") as caught:
        generator(root, uv=True)
    assert f"{root / 'pyproject.toml'} says where they come from" in caught.value.hint


def test_limits_that_only_uv_knows_are_not_passed_over(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "w"
    root.mkdir()
    limited(root, 'exclude-newer = "7 days"')
    with pytest.raises(BuildFailed, match=r"pyproject.toml limits what packages are built with"):
        generator(root, uv=False)
