from __future__ import annotations

import re
import tomllib
from textwrap import dedent
from typing import TYPE_CHECKING, Any, cast

import pytest

import fakes
from releasekit.ecosystems.pypi import PyPIOptions, discover, manifest, roots
from releasekit.ecosystems.pypi.discover import resolve_sources
from releasekit.ecosystems.pypi.manifest import BuildSystem, PyProject
from releasekit.ecosystems.pypi.target import PyPIWorkspace
from releasekit.errors import ConfigError, Cycle, PlanError
from releasekit.fields import replace
from releasekit.model import Action
from releasekit.plan.order import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from packaging.requirements import Requirement

    from releasekit.config.values import PinMode
    from releasekit.model import Package

HATCHLING = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'


def project(name: str, *lines: str, version: str = "1.0") -> str:
    return "\n".join([HATCHLING, "[project]", f'name = "{name}"', f'version = "{version}"', *lines])


def write(root: Path, files: Mapping[str, str]) -> Path:
    for directory, text in files.items():
        path = root / directory / "pyproject.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root.resolve()


def found(root: Path, **options: tuple[str, ...]) -> dict[str, Package]:
    projects = discover.read_projects(root, PyPIOptions(**options))  # type: ignore[arg-type]
    return {it.id.name: it for it in discover.make_packages(*projects)}


def edges(package: Package) -> list[tuple[str, str, str]]:
    return [(it.on.name, it.kind.value, it.requirement) for it in package.dependencies]


def read(text: str, tmp_path: Path) -> PyProject:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    return manifest.parse_project(manifest.read_pyproject(path), path)


def test_a_workspace_with_root_package_nested_members_and_both_layouts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            ".": project("Acme")
            + '\n[tool.uv.workspace]\nmembers = ["libs/*", "libs/group/*"]\nexclude = ["libs/old"]',
            "libs/core": project("acme_core"),
            "libs/group": project("acme.group", 'dependencies = ["Acme-Core"]'),
            "libs/group/leaf": project("acme-leaf") + "\n[tool.uv.sources]\nx = {path = '../x'}",
            "libs/old": project("acme-old"),
            "elsewhere": project("acme-elsewhere"),
        },
    )
    (root / "libs" / "core" / "src").mkdir()
    packages = found(root)
    assert sorted(packages) == ["acme", "acme-core", "acme-group", "acme-leaf"]
    assert packages["acme"].directory == root
    assert packages["acme-leaf"].manifest == root / "libs/group/leaf/pyproject.toml"
    assert edges(packages["acme-group"]) == [("acme-core", "runtime", "Acme-Core")]


@pytest.mark.parametrize(
    ("own", "shared"),
    [
        ("", ""),
        ("acme-core = {workspace = true}", ""),
        ("Acme_Core = [{path = '../core', editable = true}]", ""),
        ("", "acme-core = {workspace = true}"),
    ],
)
def test_a_requirement_that_excludes_the_workspaces_version_leads_out_of_it(
    tmp_path: Path, own: str, shared: str
) -> None:
    """R48: uv locks, syncs and builds it, even with a source in the workspace."""
    needs = '"acme-core>=2", "acme-core[x]>=1; extra == \'a\'"'
    root = write(
        tmp_path,
        {
            ".": "[tool.uv.workspace]\nmembers = ['*']\n[tool.uv.sources]\n" + shared,
            "core": project("acme-core"),
            "web": project("web", f"dependencies = [{needs}]") + f"\n[tool.uv.sources]\n{own}",
        },
    )
    projects, _ = discover.read_projects(root, PyPIOptions())
    web = discover.with_elsewhere(projects["web"], projects)
    assert [need.text for need in web.elsewhere] == ["acme-core>=2"]
    assert len([need for need in web.requirements if need.name == "acme-core"]) == 1


@pytest.mark.parametrize("pins", ["auto", "exact", "none"])
def test_a_plan_says_what_pins_add(tmp_path: Path, pins: PinMode) -> None:
    """R24: where nobody has asked for them."""
    root = write(
        tmp_path,
        {
            ".": '[tool.uv.workspace]\nmembers = ["*"]\n',
            "core": project("core", version="1.2"),
            "app": project(
                "app",
                'dependencies = ["core", "web>=1", "httpx"]',
                'optional-dependencies.all = ["app", "core", "web"]',
            ),
            "web": project("web", 'dependencies = ["core"]'),
        },
    )
    projects, twins = discover.read_projects(root, PyPIOptions())
    packages = tuple(discover.make_packages(projects, twins))
    nothing = cast("Any", None)  # is built
    workspace = PyPIWorkspace(
        packages=packages, projects=projects, pins=pins, builder=nothing, wheels=nothing
    )
    made = fakes.plan(*packages, actions={"web": Action.KEEP})
    told = workspace.describe_pins(made.packages)
    assert told.partition(";")[0] == (
        "pinned in what is built: core==1.2 in app, web==1.0 in app" if pins == "auto" else ""
    )


def workspace_of(root: Path, pins: PinMode, **computed: str) -> PyPIWorkspace:
    """With what the build backend tells of a project: the lines of its METADATA."""
    projects, twins = discover.read_projects(root, PyPIOptions())
    projects |= {
        name: manifest.with_computed_fields(projects[name], text) for name, text in computed.items()
    }
    nothing = cast("Any", None)  # is built
    return PyPIWorkspace(
        packages=tuple(discover.make_packages(projects, twins)),
        projects=projects,
        pins=pins,
        builder=nothing,
        wheels=nothing,
    )


@pytest.mark.parametrize(
    ("lines", "computed", "anywhere", "on_pypi"),
    [
        ('dependencies = ["core @ {root:uri}/../core"]', "", "project.dependencies holds", "holds"),
        ('dependencies = ["core @ file:///srv/core"]', "", "project.dependencies holds", "holds"),
        ('dependencies = ["x @ git+https://x.y/z"]', "", "", "which pypi.org refuses"),
        ('dependencies = ["x @ {env:X}"]', "", "", "which pypi.org refuses"),
        (
            'optional-dependencies.all = ["x @ https://x.y/z"]',
            "",
            "",
            "optional-dependencies holds",
        ),
        (
            'dynamic = ["dependencies"]',
            "core @ file:///srv/core",
            "provides as dependencies",
            "provides",
        ),
        ('dependencies = ["core>=1", "x"]', "", "", ""),
    ],
)
def test_a_requirement_that_users_cannot_get_stops_the_plan(
    tmp_path: Path, lines: str, computed: str, anywhere: str, on_pypi: str
) -> None:
    """R63: whether the manifest has it or the build backend tells it; by file and key."""
    members = {"core": project("core", version="1.2"), "app": project("app", lines)}
    root = write(tmp_path, {".": '[tool.uv.workspace]\nmembers = ["*"]\n', **members})
    told = {"app": f"Version: 1.0\nRequires-Dist: {computed}\n"} if computed else {}
    workspace = workspace_of(root, "auto", **told)
    (app, _) = workspace.packages
    if "core" in (lines + computed):
        assert [need.on.name for need in app.dependencies] == ["core"]
    plan = fakes.plan(*workspace.packages)
    for is_pypi, says in ((False, anywhere), (True, on_pypi)):
        if not says:
            workspace.refuse_unpublishable(plan.packages, on_pypi=is_pypi)
            continue
        with pytest.raises(PlanError, match=says) as caught:
            workspace.refuse_unpublishable(plan.packages, on_pypi=is_pypi)
        assert str(caught.value).startswith(f"{app.manifest}: ")
        if "core" in (lines + computed):
            assert "'core>=1.2'" in caught.value.hint
    kept = fakes.plan(*workspace.packages, actions={"app": Action.KEEP})
    workspace.refuse_unpublishable(kept.packages, on_pypi=True)


@pytest.mark.parametrize(
    ("needs", "refused"),
    [("core", True), ("core>=1", True), ("core==1.2", False), ("core>=2", False), ("x", False)],
)
def test_what_the_build_backend_tells_is_not_pinned(
    tmp_path: Path, needs: str, *, refused: bool
) -> None:
    """R63: `exact` pins all or says which it cannot; `auto` says what it leaves."""
    root = write(
        tmp_path,
        {
            ".": '[tool.uv.workspace]\nmembers = ["*"]\n',
            "core": project("core", version="1.2"),
            "app": project("app", 'dynamic = ["dependencies"]'),
        },
    )
    told = f"Version: 1.0\nRequires-Dist: {needs}\n"
    exact = workspace_of(root, "exact", app=told)
    if refused:
        with pytest.raises(PlanError, match=r"cannot write core==1\.2 there"):
            exact.refuse_unpublishable(fakes.plan(*exact.packages).packages, on_pypi=False)
    auto = workspace_of(root, "auto", app=told)
    auto.refuse_unpublishable(fakes.plan(*auto.packages).packages, on_pypi=False)
    said = auto.describe_pins(fakes.plan(*auto.packages).packages)
    assert ("not pinned" in said and "core in app" in said) is (needs == "core")


@pytest.mark.parametrize(
    ("core", "left_out"),
    [("2.1.dev3+g1a2b3c", True), ("2.1.dev3", True), ("2.0+d20260101", True), ("2.0rc1", False)],
)
def test_what_is_between_two_tags_is_of_another_release(
    tmp_path: Path, core: str, left_out: bool
) -> None:
    """R48: with a tag for each package, all but one are; whoever needs them takes the last one."""
    computed = {
        "core": project("acme-core").replace('version = "1.0"', 'dynamic = ["version"]'),
        "web": project("web", 'dependencies = ["acme-core>=1"]'),
        "free": project("free", 'dependencies = ["acme-core"]'),
    }
    root = write(tmp_path, {".": "[tool.uv.workspace]\nmembers = ['*']\n", **computed})
    found, _ = discover.read_projects(root, PyPIOptions())
    found = {**found, "acme-core": replace(found["acme-core"], version=core)}
    named = {
        each.name: each for each in discover.mark_between_tags([*found.values()], lambda _: True)
    }
    assert bool(named["acme-core"].unpublishable) is left_out
    assert not named["web"].unpublishable
    web = discover.with_elsewhere(named["web"], named)
    assert bool(web.elsewhere) is left_out
    free = discover.with_elsewhere(named["free"], named)
    (told,) = [each for each in discover.make_packages({"free": free}) if each.id.name == "free"]
    # Whatever version they get is one that it asks for.
    assert [(need.on.name, need.requirement) for need in told.elsewhere] == (
        [("acme-core", "")] if left_out else []
    )
    alone = [found["acme-core"]]
    assert discover.mark_between_tags(alone, lambda _: True) == alone


@pytest.mark.parametrize(
    ("run", "is_published"),
    [({"core"}, True), ({"core", "example"}, False), ({"example"}, False), (set(), False)],
)
def test_what_a_run_leaves_out_keeps_no_nightly_back(
    tmp_path: Path, run: set[str], is_published: bool
) -> None:
    """R48: an example with a version of its own is no release that others have to wait for."""
    computed = read(project("core"), tmp_path)
    core = replace(computed, version="2.1.dev3", dynamic=frozenset({"version"}))
    example = read(project("example"), tmp_path)
    told, _ = discover.mark_between_tags([core, example], lambda each: each.name in run)
    assert (not told.unpublishable) is is_published


def test_what_an_example_asks_for_is_no_error(tmp_path: Path) -> None:
    """Neither a requirement that is none nor a circle of builds."""
    private = 'classifiers = ["Private :: Do Not Upload"]'
    odd = 'dependencies = ["core at ../core", "core"]'
    root = write(
        tmp_path,
        {
            "core": project("core"),
            "a": project("a", private, odd).replace('"hatchling"', '"b"', 1),
            "b": project("b", private).replace('"hatchling"', '"a"', 1),
        },
    )
    projects, _ = discover.read_projects(root, PyPIOptions(packages=("*",)))
    discover.check_build_order(projects)
    assert [need.text for need in projects["a"].requirements if need.name == "core"] == ["core"]


def test_a_plain_repository(tmp_path: Path) -> None:
    root = write(tmp_path, {".": project("solo", version="v1.0.0-RC1"), "sub": project("sub")})
    packages = found(root)
    assert [(str(it.id), it.version) for it in packages.values()] == [("pypi:solo", "1.0.0rc1")]


def test_packages_without_a_workspace_are_named_in_the_options(tmp_path: Path) -> None:
    root = write(tmp_path, {"a": project("a"), "b": project("b"), "c": project("c")})
    assert list(found(root, packages=("*",), exclude=("c",))) == ["a", "b"]
    assert found(root) == {}


def test_options_exclude_members_too_and_unmanaged_projects_are_left_out(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            ".": '[tool.uv.workspace]\nmembers = ["*"]',
            "a": project("a"),
            "b": project("b"),
            "c": project("c") + "\n[tool.uv]\nmanaged = false",
        },
    )
    assert list(found(root, exclude=("b",))) == ["a"]


def test_edges_come_from_dependencies_extras_and_build_requirements_only(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "app": """
                [build-system]
                requires = ["hatchling", "plugin"]
                [project]
                name = "app"
                version = "1"
                dependencies = ["core>=1", "Core[fast] ; os_name == 'nt'", "httpx"]
                [project.optional-dependencies]
                all = ["app[x]"]
                x = ["extra-only @ file:///there", "private"]
                [dependency-groups]
                dev = ["testing"]
            """,
            "core": project("core"),
            "plugin": project("plugin", 'dependencies = ["plugin-base", "app"]'),
            "plugin-base": project("plugin-base"),
            "extra-only": project("extra-only"),
            "private": project("private", 'classifiers = ["Private :: Do Not Upload"]'),
            # A cycle, but only through a development group.
            "testing": project("testing", 'dependencies = ["app", "private"]'),
        },
    )
    packages = found(root, packages=("*",))
    assert edges(packages["app"]) == [
        ("core", "runtime", "core>=1"),
        ("core", "runtime", "Core[fast] ; os_name == 'nt'"),
        ("extra-only", "optional", "extra-only @ file:///there"),
        ("private", "optional", "private"),
        ("plugin", "build", "plugin"),
        ("plugin-base", "build", ""),
    ]
    # A runtime dependency on what is never published stays: the plan refuses it.
    assert ("private", "runtime", "private") in edges(packages["testing"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (project("a"), ""),
        (
            project("a", 'classifiers = ["Topic :: X", "Private :: Do Not Upload"]'),
            "its classifier 'Private :: Do Not Upload' says so",
        ),
        (project("a") + "\n[tool.uv]\npackage = false", "tool.uv.package is false"),
        (
            project("a").replace("hatchling.build", "poetry.core.masonry.api")
            + "\n[tool.poetry]\npackage-mode = false",
            "tool.poetry.package-mode is false",
        ),
        # Only Poetry heeds that.
        (project("a") + "\n[tool.poetry]\npackage-mode = false", ""),
        (
            '[project]\nname = "a"\nversion = "1"',
            "it has no [build-system], so uv does not treat it as a package",
        ),
        ('[project]\nname = "a"\nversion = "1"\n[tool.uv]\npackage = true', ""),
        # Not even the version has to be known of what is never published.
        ('[project]\nname = "a"\n[tool.uv]\npackage = false', "tool.uv.package is false"),
    ],
)
def test_what_is_never_published_and_why(tmp_path: Path, text: str, reason: str) -> None:
    assert read(text, tmp_path).unpublishable == reason


APPLICATION = project("app") + "\n[tool.uv]\npackage = false\n"


@pytest.mark.parametrize("text", [APPLICATION, '[project]\nname = "app"\nversion = "1"\n'])
def test_an_application_is_published_where_somebody_says_so(tmp_path: Path, text: str) -> None:
    """R56: `uv build` in its directory builds it; nobody publishes it by a wildcard."""
    root = write(tmp_path, {"tools/app": text})
    for options in ({"packages": ("tools/*",)}, {"workspaces": ("tools/app",)}):
        reason = found(root, **options)["app"].unpublishable
        assert reason.endswith('; `packages = ["tools/app"]` below [pypi] publishes it')
    for packages in [("tools/app",), ("./tools/app/",), ("tools/*", "tools/app")]:
        assert not found(root, packages=packages)["app"].unpublishable
    brought, _ = discover.read_projects(root, PyPIOptions(packages=("tools/*",)), {"app"})
    assert not brought["app"].unpublishable
    (root / "pyproject.toml").write_text(text)
    (root / "tools/app/pyproject.toml").unlink()
    assert found(root)["app"].unpublishable.endswith('`packages = ["."]` below [pypi] publishes it')
    assert not found(root, packages=(".",))["app"].unpublishable


def test_nobody_takes_in_what_its_registry_or_backend_refuses(tmp_path: Path) -> None:
    classified = project("app", 'classifiers = ["Private :: Do Not Upload"]')
    root = write(tmp_path, {"app": classified + "\n[tool.uv]\npackage = false"})
    reason = "its classifier 'Private :: Do Not Upload' says so"
    assert found(root, packages=("app",))["app"].unpublishable == reason


def test_build_systems_and_their_defaults(tmp_path: Path) -> None:
    assert read('[project]\nname = "a"\nversion = "1"', tmp_path).build_system == BuildSystem(
        requires=("setuptools>=40.8.0",), backend="setuptools.build_meta:__legacy__"
    )
    text = """
        build-system = {requires = ["flit_core"], build-backend = "b", backend-path = ["."]}
        project = {name = "a", version = "1"}
    """
    assert read(text, tmp_path).build_system == BuildSystem(
        requires=("flit_core",), backend="b", backend_path=(".",)
    )


@pytest.mark.parametrize(
    ("hatch", "is_inert"),
    [
        ("", True),
        ("version.path = 'a.py'\nbuild.targets.wheel.packages = ['src/a']", True),
        ("build.hooks.custom = {}", False),
        ("build.targets.wheel.hooks.vcs.version-file = 'a.py'", False),
        ("metadata.hooks.custom = {}", False),
        ("version = { source = 'code', path = 'a.py' }", False),
    ],
)
def test_a_project_with_hooks_or_a_computed_version_runs_code(
    tmp_path: Path, hatch: str, *, is_inert: bool
) -> None:
    text = HATCHLING + f"[project]\nname = 'a'\nversion = '1'\n[tool.hatch]\n{hatch}\n"
    assert read(text, tmp_path).is_inert == is_inert
    in_tree = text.replace("[build-system]", "[build-system]\nbackend-path = ['.']")
    assert not read(in_tree, tmp_path).is_inert
    assert not read(text.replace("hatchling.build", "other.build"), tmp_path).is_inert


@pytest.mark.parametrize("value", ["{\n b = 1,\n}", "{ b = 1, }", '"\\e"', '"\\x41"', "10:30"])
def test_a_project_in_toml_1_1_is_read_where_pip_would(tmp_path: Path, value: str) -> None:
    """R66: pip takes Python's own parser."""
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.x]\na = {value}\n")
    try:
        tomllib.loads(path.read_text())
    except ValueError:
        with pytest.raises(ConfigError, match=r"is TOML 1\.1, which pip .* cannot read") as caught:
            manifest.read_pyproject(path)
        assert "TOML 1.0" in caught.value.hint
    else:
        assert manifest.read_pyproject(path)
    assert manifest.read_uv_settings(path)


BAD = [
    ("[project", "is not valid TOML"),
    ("x = '\udcff'", "line 1 is not UTF-8"),
    ("x = " + "[" * 20_000, "is not valid TOML"),
    ("# " + "x" * manifest.MAX_BYTES, "larger than 1048576 bytes"),
    ("project = 1", "project is 1, not a table"),
    ("[project]\nversion = '1'", "project.name is missing"),
    ("[project]\nname = 1", "project.name is missing"),
    ("[project]\nname = '-a'", "project.name is '-a'"),
    (project("a", version="one"), "project.version is 'one'"),
    (HATCHLING + "[project]\nname = 'a'", "project.version is missing"),
    (HATCHLING + "[project]\nname = 'a'\nversion = 1", "project.version is 1"),
    (project("a", "dynamic = 'version'"), "project.dynamic is 'version'"),
    (project("a", "dependencies = [1]"), r"project.dependencies is \[1\]"),
    (project("a", "dependencies = ['a b']"), "project.dependencies holds 'a b': "),
    (project("a", "optional-dependencies = []"), r"project.optional-dependencies is \[\]"),
    (project("a", "optional-dependencies.x = ['!']"), "optional-dependencies.x holds '!'"),
    (project("a", "classifiers = 'x'"), "project.classifiers is 'x'"),
    (project("a") + "\n[tool]\nuv = 1", "tool.uv is 1, not a table"),
    ("[build-system]\n[project]\nname = 'a'\nversion = '1'", "build-system.requires is missing"),
    (
        "[build-system]\nrequires = []\nbuild-backend = 1\n[project]\nname = 'a'\nversion = '1'",
        "build-system.build-backend is 1",
    ),
    ("[tool.x]", r"has no \[project\] table"),
    *(
        (project("a") + f"\n[tool.uv]\n{line}", words)
        for line, words in (
            ("build-constraint-dependencies = 1", "tool.uv.build-constraint-dependencies is 1"),
            ("build-constraint-dependencies = ['a b']", "build-constraint-dependencies has 'a b'"),
            ("build-constraint-dependencies = [{ hashes = [] }]", "dependencies has {'hashes'"),
            (
                "build-constraint-dependencies = [{ requirement = 'a', hashes = ['sha256:g'] }]",
                "has {'requirement': 'a', 'hashes'",
            ),
            ("exclude-newer = 2026-11-01", "tool.uv.exclude-newer is 2026-11-01"),
            ("exclude-newer-package = []", r"exclude-newer-package is \[\], not a table"),
        )
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_one_line_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    """R40"""
    path = tmp_path / "a" / "pyproject.toml"
    path.parent.mkdir()
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigError, match=message) as caught:
        found(tmp_path.resolve(), packages=("a",))
    assert str(caught.value).startswith(str(path.resolve()))
    assert "\n" not in str(caught.value)


def test_limits_stand_where_uv_looks_for_them(tmp_path: Path) -> None:
    """Of a member in its workspace alone, of any other in the nearest directory; and what a uv.toml
    does not say, a pyproject.toml beside it does not say either.
    """
    limits = '[tool.uv]\nbuild-constraint-dependencies = ["{}"]\n'
    root = write(
        tmp_path,
        {
            ".": limits.format("top") + "workspace.members = ['m/*']",
            "m/a": project("m-a") + "\n" + limits.format("own"),
            "m/b": project("m-b"),
            "other/a": project("other-a") + "\n" + limits.format("Own_1; os_name == 'posix'"),
            "other/b": project("other-b"),
            "third": project("third") + "\n" + limits.format("own"),
        },
    )
    (root / "m" / "b" / "uv.toml").write_text("exclude-newer = '2020-01-01'")
    (root / "third" / "uv.toml").write_text("exclude-newer-package = { x = '1 day', y = false }")
    read, _ = discover.read_projects(root, PyPIOptions(packages=("other/*", "third")))
    assert {name: each.limits.constraints for name, each in read.items()} == {
        "m-a": ("top",),
        "m-b": ("top",),
        "other-a": ('Own_1; os_name == "posix"',),
        "other-b": ("top",),
        "third": (),
    }
    assert read["third"].limits.newest == (
        "--exclude-newer-package=x=1 day",
        "--exclude-newer-package=y=false",
    )
    assert read["third"].limits.place == str(root / "third" / "uv.toml")


INDEXES = """
[tool.uv]
no-index = false
find-links = ["wheels", "https://example.org/wheels"]
[[tool.uv.index]]
name = "corp"
url = "https://corp.example.org/simple"
authenticate = "always"
[[tool.uv.index]]
name = "torch"
url = "https://torch.example.org"
explicit = true
[[tool.uv.index]]
name = "base"
url = "mirror"
default = true
explicit = true
"""


@pytest.mark.parametrize("has_index", [False, True])
def test_build_requirements_come_from_the_indexes_of_uv(tmp_path: Path, has_index: bool) -> None:
    """R63: from another index, a package of the same name would be another one. An explicit index
    is for nothing without a source, but as the default one it takes the place of PyPI; an input is
    stronger. What is relative is so to the file that says it.
    """
    root = write(tmp_path, {".": project("a") + INDEXES})
    read, _ = discover.read_projects(root, PyPIOptions(), has_index=has_index)
    limits = read["a"].limits
    if has_index:
        assert limits == manifest.UNLIMITED
        return
    corp = {"name": "corp", "url": "https://corp.example.org/simple", "authenticate": "always"}
    base = {"name": "base", "url": f"{root}/mirror", "default": True, "explicit": True}
    assert tomllib.loads(limits.indexes) == {
        "no-index": False,
        "find-links": [f"{root}/wheels", "https://example.org/wheels"],
        "index": [corp, base],
    }
    assert limits.place == str(root / "pyproject.toml")


def test_an_index_of_sources_alone_asks_for_no_uv(tmp_path: Path) -> None:
    table = '[[tool.uv.index]]\nname = "t"\nurl = "https://example.org"\nexplicit = true\n'
    read, _ = discover.read_projects(
        write(tmp_path, {".": project("a") + "\n" + table}), PyPIOptions()
    )
    assert read["a"].limits == manifest.UNLIMITED


def test_uv_settings_of_a_backend_are_its_settings(tmp_path: Path) -> None:
    """R63"""
    table = '[tool.uv]\nconfig-settings = { a = "1", b = ["2", "3"] }\n'
    root = write(tmp_path, {".": table + "workspace.members = ['m']", "m": project("m")})
    read, _ = discover.read_projects(root, PyPIOptions())
    assert read["m"].config_settings == {"a": "1", "b": ["2", "3"]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("index = [{ name = 'x' }]", 'tool.uv.index is [{ name = "x" }]'),
        ("index = 'https://example.org'", 'tool.uv.index is "https://example.org"'),
        ("config-settings = { a = 1 }", "tool.uv.config-settings.a is 1"),
        ("config-settings = { a = ['x', 1] }", 'tool.uv.config-settings.a is ["x", 1]'),
    ],
)
def test_a_setting_of_uv_that_cannot_be_read_is_named(
    tmp_path: Path, table: str, message: str
) -> None:
    """R66"""
    root = write(tmp_path, {".": project("a") + f"\n[tool.uv]\n{table}"})
    with pytest.raises(ConfigError, match=re.escape(f"{root}/pyproject.toml: {message}")):
        discover.read_projects(root, PyPIOptions())


BUILT_WITH_B = """
[build-system]
requires = ["hatchling", "B [x] >= 1"]
[project]
name = "a"
version = "1"
"""


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("uv.no-build-isolation = true", "tool.uv.no-build-isolation is true"),
        ("uv.no-build-isolation-package = ['A']", "tool.uv.no-build-isolation-package is"),
        ("uv.extra-build-dependencies = { A = ['six'] }", "tool.uv.extra-build-dependencies is"),
        ("uv.sources.b = { index = 'corp' }", 'tool.uv.sources.b is { index = "corp" }'),
        ("uv.sources.B = { path = '../b' }", 'tool.uv.sources.b is { path = "../b" }'),
        ("uv.sources.b = [{ git = 'https://e.org/b', marker = 'x' }]", "sources.b is { git ="),
        ("uv.sources.m = { path = 'm' }", ""),
        ("uv.sources.m = { workspace = true }", ""),
        ("uv.sources.m = { index = 'corp' }", ""),  # no build requires it
        ("uv.sources.b = { index = 'corp', extra = 'x' }", ""),
        ("uv.sources.b = { index = 'corp', group = 'x' }", ""),
        ("uv.no-build-isolation = false", ""),
        ("uv.no-build-isolation-package = ['other']", ""),
        ("uv.extra-build-dependencies = { a = [], other = ['six'] }", ""),
    ],
)
def test_a_setting_that_changes_what_a_build_needs_is_not_passed_over(
    tmp_path: Path, tables: str, said: str
) -> None:
    """R63, R68: `uv build` would build with other packages."""
    text = f"{BUILT_WITH_B}[tool]\n{tables}\nuv.workspace.members = ['m']"
    root = write(tmp_path / "root", {".": text, "m": project("m")})
    (root.parent / "b").mkdir(exist_ok=True)
    read, _ = discover.read_projects(root, PyPIOptions())
    read = discover.resolve_sources(read, root, PyPIOptions())
    unread = read["a"].find_unread(read["a"].build_system.requires)
    assert said in (unread.what if unread else "")
    assert (unread is not None) is bool(said)


def test_a_plan_refuses_to_build_what_needs_such_a_setting(tmp_path: Path) -> None:
    """R63: also of a package that another one needs to be built, and nothing that is kept."""
    user = BUILT_WITH_B.replace("B [x] >= 1", "tool")
    root = write(tmp_path, {".": user + "[tool.uv.workspace]\nmembers = ['t']"})
    write(root, {"t": project("tool")})
    (root / "uv.toml").write_text("no-build-isolation-package = ['tool']")
    workspace = workspace_of(root, "auto")
    plan = fakes.plan(*workspace.packages, actions={"tool": Action.KEEP})
    with pytest.raises(PlanError, match=r"uv\.toml: no-build-isolation-package is \[\"tool\"\]"):
        workspace.refuse_unpublishable(plan.packages, on_pypi=False)
    kept = fakes.plan(*workspace.packages, actions=dict.fromkeys(("a", "tool"), Action.KEEP))
    workspace.refuse_unpublishable(kept.packages, on_pypi=False)


@pytest.mark.parametrize(
    ("tables", "settings", "said"),
    [
        ("tool.distutils.egg_info.tag-build = '.post0'", "", 'egg_info.tag-build is ".post0"'),
        ("tool.distutils.egg-info.tag_date = true", "", "egg-info.tag_date is true"),
        ("", "[egg_info]\ntag_build = %d.dev\n", 'setup.cfg: egg_info.tag_build is "%d.dev"'),
        ("", "[egg_info]\ntag-date = 1\n", 'setup.cfg: egg_info.tag-date is "1"'),
        ("", "[egg_info]\ntag_build =\ntag_date = 0\n", ""),  # as each sdist has it
        ("", "[egg_info\n", ""),  # the backend says what it cannot read
        ("tool.distutils.egg_info.tag-build = ''\ntool.distutils.x = 1", "", ""),
        ("build-system.build-backend = 'hatchling.build'", "[egg_info]\ntag_build = a1\n", ""),
        ("project.dynamic = ['version']", "[egg_info]\ntag_build = a1\n", ""),
    ],
)
def test_what_setuptools_adds_to_a_version_is_not_passed_over(
    tmp_path: Path, tables: str, settings: str, said: str
) -> None:
    """R63: the plan has one version, and the build would make another. A dynamic version has it."""
    version = "" if "dynamic" in tables else "project.version = '1'\n"
    root = write(tmp_path, {".": f"project.name = 'a'\n{version}{tables}\n"})
    if "build-system" in tables:
        path = root / "pyproject.toml"
        path.write_text(path.read_text() + "build-system.requires = ['hatchling']\n")
    (root / "setup.cfg").write_text(settings)
    read, _ = discover.read_projects(root, PyPIOptions())
    unread = read["a"].find_unread([])
    assert (said in unread.what and "setuptools adds" in unread.what) if unread else not said


@pytest.mark.parametrize("of", ["m", "n"])
def test_sources_of_a_workspace_hold_for_what_its_members_are_built_with(
    tmp_path: Path, of: str
) -> None:
    """R63: also for what a hook asks for. A member of its own source is built here."""
    top = "[tool.uv]\nworkspace.members = ['m', 'n']\nsources.n = { index = 'corp' }"
    own = "\n[tool.uv.sources]\nn = { workspace = true }" if of == "n" else ""
    root = write(tmp_path, {".": top, "m": project("m") + own, "n": project("n")})
    read, _ = discover.read_projects(root, PyPIOptions())
    unread = discover.resolve_sources(read, root, PyPIOptions())["m"].find_unread(
        ["setuptools", "N>1"]
    )
    assert (unread is None) is (of == "n")


def test_the_number_of_requirements_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    monkeypatch.setattr(manifest, "MAX_REQUIREMENTS", 1)
    parsed: list[str] = []
    parse = manifest.parse_requirement

    def counted(text: str, *, path: Path, where: str) -> Requirement:
        parsed.append(text)
        return parse(text, path=path, where=where)

    monkeypatch.setattr(manifest, "parse_requirement", counted)
    with pytest.raises(ConfigError, match="more than 1 requirements"):
        read(project("a", "dependencies = ['b', 'c', 'd', 'e']"), tmp_path)
    assert parsed == ["b", "c"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"{tmp_path}: cannot be read \(Is a directory\)"):
        manifest.read_pyproject(tmp_path)


def test_two_packages_of_one_name_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, {"a": project("Acme.Core"), "b": project("acme-core")})
    with pytest.raises(ConfigError, match="are both named 'acme-core'"):
        found(root, packages=("*",))


def test_an_extra_that_leads_back_to_its_package_orders_nothing(tmp_path: Path) -> None:
    """A framework whose extras name its plugins, which need the framework (R7)."""
    root = write(
        tmp_path,
        {
            "agents": """
                [build-system]
                requires = ["hatchling"]
                [project]
                name = "agents"
                version = "1"
                dependencies = ["protocol"]
                [project.optional-dependencies]
                images = ["imaging"]
                nosy_speech = ["plugin-speech", "agents[images]"]
                all = ["agents[Nosy.Speech]", "plugin-far"]
            """,
            "protocol": project("protocol"),
            "imaging": project("imaging"),
            # The way back through the extra above is none: that one is given up.
            "plugin-speech": project(
                "plugin-speech",
                'dependencies = ["agents>=1"]',
                "[project.optional-dependencies]",
                'near = ["plugin-near"]',
            ),
            "plugin-near": project("plugin-near", 'dependencies = ["agents"]'),
            "plugin-far": project("plugin-far", 'dependencies = ["plugin-speech"]'),
            # What this needs at run time stands in an extra of something else.
            "app": project("app", 'dependencies = ["agents[all]>=1"]'),
            "lone": project("lone", "[project.optional-dependencies]", 'x = ["other[y]"]'),
            "other": project("other", "[project.optional-dependencies]", 'y = ["lone"]'),
        },
    )
    packages = fakes.ordered(found(root, packages=("*",)))
    assert edges(packages["agents"]) == [
        ("protocol", "runtime", "protocol"),
        ("imaging", "optional", "imaging"),
    ]
    assert edges(packages["plugin-speech"]) == [
        ("agents", "runtime", "agents>=1"),
        ("plugin-near", "optional", "plugin-near"),
    ]
    assert edges(packages["plugin-far"]) == [("plugin-speech", "runtime", "plugin-speech")]
    assert edges(packages["app"]) == [
        ("agents", "runtime", "agents[all]>=1"),
        ("imaging", "runtime", ""),
        ("plugin-far", "runtime", ""),
        ("plugin-speech", "runtime", ""),
    ]
    # Of two extras that need each other, the one of the first package by name counts.
    assert edges(packages["lone"]) == [("other", "optional", "other[y]")]
    assert edges(packages["other"]) == []


def test_a_circle_of_what_is_needed_stays_for_the_plan_to_refuse(tmp_path: Path) -> None:
    """R7"""
    root = write(
        tmp_path,
        {
            "a": project("a", 'dependencies = ["b[x]"]'),
            "b": project("b", "[project.optional-dependencies]", 'x = ["c"]'),
            "c": project("c", 'dependencies = ["a"]'),
        },
    )
    packages = found(root, packages=("*",))
    assert edges(packages["a"]) == [("b", "runtime", "b[x]"), ("c", "runtime", "")]
    assert edges(packages["b"]) == [("c", "optional", "c")]
    assert edges(packages["c"]) == [("a", "runtime", "a")]
    packages = fakes.ordered(packages)
    assert edges(packages["b"]) == []
    with pytest.raises(Cycle, match=r"pypi:a needs pypi:c \(runtime\); pypi:c needs pypi:a"):
        in_order([*packages.values()])


def test_extras_of_a_build_requirement_are_built_first(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "app": """
                [build-system]
                requires = ["plugin[fast]"]
                [project]
                name = "app"
                version = "1"
            """,
            "plugin": project("plugin", "[project.optional-dependencies]", 'fast = ["engine"]'),
            "engine": project("engine"),
        },
    )
    assert edges(found(root, packages=("*",))["app"]) == [
        ("plugin", "build", "plugin[fast]"),
        ("engine", "build", ""),
    ]


def test_a_manifest_that_is_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """R36"""
    outside = write(tmp_path / "outside", {".": project("a")})
    root = tmp_path / "root"
    root.mkdir()
    (root / "pyproject.toml").symlink_to(outside / "pyproject.toml")
    with pytest.raises(ConfigError, match="leads out of the workspace"):
        found(root.resolve())


def test_build_requirements_that_form_a_cycle_are_refused(tmp_path: Path) -> None:
    """R7"""
    root = write(
        tmp_path,
        {
            name: f"""
                [build-system]
                requires = ["{needs}"]
                [project]
                name = "{name}"
                version = "1"
            """
            for name, needs in {"a": "b", "b": "c", "c": "a"}.items()
        },
    )
    by_name, _ = discover.read_projects(root, PyPIOptions(packages=("*",)))
    with pytest.raises(PlanError, match=r"build-system.requires form a cycle: (\w) -> .* -> \1"):
        discover.check_build_order(by_name)


METADATA = """\
Metadata-Version: 2.4
Name: a
Version: 1.2.0
Requires-Dist: core>=1
Requires-Dist: web; extra == "all"

Requires-Dist: not-a-header
"""


@pytest.mark.parametrize(
    ("dynamic", "requirements"),
    [
        (["version"], []),
        (["version", "dependencies"], [("runtime", "core>=1")]),
        (["version", "optional-dependencies"], [("optional", 'web; extra == "all"')]),
    ],
)
def test_dynamic_fields_come_from_the_metadata_of_the_wheel(
    tmp_path: Path, dynamic: list[str], requirements: list[tuple[str, str]]
) -> None:
    text = f"[project]\nname = 'a'\ndynamic = {dynamic}\n[tool.uv]\npackage = true"
    computed = manifest.with_computed_fields(read(text, tmp_path), METADATA)
    assert computed.version == "1.2.0"
    assert [(it.kind.value, it.text) for it in computed.requirements] == requirements
    assert all(
        it.under == ({"all"} if "extra" in it.text else set()) for it in computed.requirements
    )


def test_a_static_version_stays_and_a_computed_one_has_to_be_one(tmp_path: Path) -> None:
    static = read(project("a", 'dynamic = ["dependencies"]'), tmp_path)
    assert manifest.with_computed_fields(static, METADATA).version == "1.0"
    dynamic = read(f'{HATCHLING}[project]\nname = "a"\ndynamic = ["version"]', tmp_path)
    with pytest.raises(ConfigError, match=r"project\.version is ''"):
        manifest.with_computed_fields(dynamic, "Name: a\n\n")


def workspace(*lines: str) -> str:
    return "\n".join(["[tool.uv.workspace]", *lines])


def test_several_workspaces_are_one_release(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "py": workspace('members = ["*"]', 'exclude = ["old"]'),
            "py/a": project("a"),
            "py/b": project("b"),
            "py/old": project("old"),
            "more": project("more", 'dependencies = ["a"]'),
            "elsewhere": project("elsewhere"),
        },
    )
    packages = found(root, workspaces=("py", "more"), exclude=("py/b",))
    assert list(packages) == ["a", "more"]
    assert edges(packages["more"]) == [("a", "runtime", "a")]
    with pytest.raises(ConfigError, match=r"pypi\.workspaces: 'no' has no pyproject\.toml"):
        found(root, workspaces=("no",))


@pytest.mark.parametrize(
    ("directory", "standing"),
    [("a", "member"), ("a/b", ""), ("old", "excluded"), ("old/b", "excluded"), ("../x", "")],
)
def test_what_a_root_says_of_a_directory(tmp_path: Path, directory: str, standing: str) -> None:
    root = write(tmp_path, {".": workspace('members = ["*"]', 'exclude = ["old*"]')})
    membership = roots.workspace_at(root)
    assert membership is not None
    assert membership((root / directory).resolve()) == standing


def test_what_may_leave_the_repository(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "a": project("a"),
            "b": project("b", 'classifiers = ["Private :: x"]'),
            "c": "[tool.poetry]",
            "d": project("d") + "\n[tool.uv]\nmanaged = false",
        },
    )
    assert [name for name in "abcd" if roots.publishable_at(root / name)] == ["a"]
    assert roots.workspace_at(root / "a") is roots.workspace_at(root) is None


@pytest.mark.parametrize(
    ("table", "is_named"),
    [('name = "Acme_Core"\nversion = "1.0"', True), ("package-mode = false", False), ("", False)],
)
def test_what_poetry_alone_understands_is_named(tmp_path: Path, table: str, is_named: bool) -> None:
    """R56: with what to write."""
    root = write(tmp_path, {".": f"[tool.poetry]\n{table}", "web": project("web")})
    assert roots.publishable_at(root) is is_named
    packages = found(root, packages=("web",))
    assert ("acme-core" in packages) is is_named
    if is_named:
        assert "[tool.poetry] and no [project]" in packages["acme-core"].unpublishable
    assert not packages["web"].unpublishable


def test_what_is_named_for_publishing_is_not_passed_by(tmp_path: Path) -> None:
    """R66"""
    root = write(tmp_path, {"web": project("web"), "old": '[tool.poetry]\nname = "old"'})
    with pytest.raises(ConfigError, match=r"packages names 'old', but .* \[tool\.poetry\]"):
        found(root, packages=("old", "web"))
    assert found(root, packages=("*",))["old"].unpublishable


def refused_source(root: Path, **options: tuple[str, ...]) -> str:
    given = PyPIOptions(**options)  # type: ignore[arg-type]
    try:
        resolve_sources(discover.read_projects(root, given)[0], root, given)
    except ConfigError as error:
        return str(error)
    return ""


NEEDS_B = project("a", 'dependencies = ["B>=1"]')
FROM_WORKSPACE = "[tool.uv.sources]\nb = { workspace = true }\n"


@pytest.mark.parametrize(
    ("top", "own", "words"),
    [
        ("", FROM_WORKSPACE, "libs/a/pyproject.toml: tool.uv.sources.b is { workspace = true }"),
        (FROM_WORKSPACE, "", "pyproject.toml: tool.uv.sources.b is { workspace = true }"),
        (FROM_WORKSPACE, '[tool.uv.sources]\nb = { index = "x" }', ""),
        ("", "[tool.uv.sources]\nc = { workspace = true }", ""),
        ("", '[tool.uv.sources]\nb = [{ path = "../no" }]', "b is { path = '../no' }"),
        ('[tool.uv.sources]\nb = { path = "libs" }', "", ""),
    ],
)
def test_a_source_that_leads_nowhere_is_refused(
    tmp_path: Path, top: str, own: str, words: str
) -> None:
    """As uv refuses it, which reads those of the root for every member too."""
    members = workspace('members = ["libs/*"]')
    root = write(tmp_path, {".": f"{members}\n{top}", "libs/a": f"{NEEDS_B}\n{own}"})
    said = refused_source(root)
    assert words in said
    assert bool(said) is bool(words)


def test_the_sources_of_a_workspace_around_another_are_not_its_own(tmp_path: Path) -> None:
    """As for uv, which knows one root for each member."""
    nowhere = "[tool.uv.sources]\nb = { path = 'no' }"
    root = write(
        tmp_path,
        {
            ".": f"{project('top')}\n{nowhere}",
            "sub": workspace('members = ["*"]'),
            "sub/a": NEEDS_B,
        },
    )
    assert refused_source(root, workspaces=("sub",)) == ""


def test_a_source_that_is_left_out_of_the_release_is_one(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            ".": workspace('members = ["libs/*"]') + f"\n{FROM_WORKSPACE}",
            "libs/a": NEEDS_B,
            "libs/b": project("b"),
        },
    )
    assert refused_source(root) == refused_source(root, exclude=("libs/b",)) == ""


def test_of_two_of_one_name_the_published_one_counts(tmp_path: Path) -> None:
    """But for those in whose workspace only the private one is."""
    private = project("core", 'classifiers = ["Private :: x"]')
    root = write(
        tmp_path,
        {
            "py": workspace('members = ["*"]'),
            "py/core": project("core"),
            "py/web": project("web", 'dependencies = ["core"]'),
            "docs": workspace('members = ["*"]'),
            "docs/core": private,
            "docs/theme": project("theme", 'dependencies = ["core"]'),
        },
    )
    packages = found(root, workspaces=("docs", "py"))
    assert packages["core"].directory == root / "py/core"
    reasons = {name: [edge.private for edge in packages[name].dependencies] for name in packages}
    assert reasons == {
        "core": [], "web": [""], "theme": ["its classifier 'Private :: x' says so"]
    }  # fmt: skip
