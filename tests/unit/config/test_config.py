from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED, extra_edge
from releasekit.cli.command_line import parse_command_line
from releasekit.cli.commands import COMMANDS
from releasekit.cli.commands.publish import PublishInputs
from releasekit.config.config import Config, cpu_count, load
from releasekit.config.inputs import Declared
from releasekit.config.values import Directory, Dist
from releasekit.ecosystems import ECOSYSTEMS, npm, pypi
from releasekit.ecosystems.folders import table
from releasekit.errors import ConfigError
from sixth import bundle

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "work space"
    path.mkdir()
    return path


def config(root: Path, *flags: str, file: str = "", command: str = "publish") -> Config:
    """What `releasekit COMMAND "work space" FLAGS` comes to, started beside the workspace."""
    if file:
        (root / "releasekit.toml").write_text(file, encoding="utf-8")
    return load(
        parse_command_line([command, root.name, *flags], {}, DECLARED), root.parent, DECLARED
    )


def refusal(root: Path, *flags: str, file: str = "", command: str = "publish") -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config(root, *flags, file=file, command=command)
    assert "\n" not in str(caught.value)
    return caught.value


def test_defaults(root: Path) -> None:
    found = config(root)
    assert found.root == root
    assert found.mode == "publish"
    assert found.registries == {}
    assert found.state_directory == root / ".releasekit"
    assert found.own(PublishInputs) == PublishInputs()
    assert (found.concurrency, found.max_retries, found.task_timeout) == (5, 3, 600)
    assert found.build_concurrency == cpu_count() >= 1
    assert found.deadline is None


@pytest.mark.parametrize("mode", ["version", "preview", "release-pr"])
def test_what_is_decided_by_hand_is_shown_before(root: Path, mode: str) -> None:
    """A workflow gives all its steps one variable."""
    given = {"RELEASEKIT_SET": "core=2.0.0", "RELEASEKIT_SNAPSHOT": "pr-97"}
    found = load(parse_command_line([mode, root.name], given, DECLARED), root.parent, DECLARED)
    assert (found.set, found.snapshot) == (("core=2.0.0",), "pr-97")


def test_a_flag_beats_the_file_which_beats_the_default(root: Path) -> None:
    found = config(
        root, "--concurrency=9", file="concurrency = 2\nmax-retries = 7\nbuild-concurrency = 3"
    )
    assert (found.concurrency, found.max_retries, found.build_concurrency) == (9, 7, 3)


def test_a_value_of_the_file_is_checked_like_any_other(root: Path) -> None:
    error = refusal(root, file="gate = 'visable'")
    assert 'releasekit.toml: gate = "visable" is not known; write visible or' in str(error)


def test_a_value_that_a_flag_overrules_may_be_wrong(root: Path) -> None:
    assert config(root, "--gate=accepted", file="gate = 'visable'").gate == "accepted"


def test_tables_reach_their_ecosystems(root: Path) -> None:
    found = config(root, file="[pypi]\nexclude = 1\n[dependencies]\n'pypi:a' = ['pypi:b']")
    assert found.ecosystem_tables == {"pypi": {"exclude": 1}}
    assert found.extra_edges == (extra_edge("pypi:a", "pypi:b"),)


def test_wrong_shards_are_told_before_the_plan_that_needs_them(root: Path) -> None:
    found = refusal(root, file="shards = 'pip=2'", command="check")
    assert str(found).startswith("releasekit.toml: shards: 'pip' is not an ecosystem")


def test_inputs_of_an_ecosystem_come_in_its_own_class(root: Path) -> None:
    found = config(root, "--npm-access=public", file="npm-tag = 'next'")
    assert found.own(npm.NpmInputs) == npm.NpmInputs(tag="next", access="public")
    assert found.own(pypi.PyPIInputs) == pypi.PyPIInputs(username="__token__", index="")


def test_a_path_of_an_ecosystem_belongs_to_whoever_wrote_it(root: Path) -> None:
    declared = Declared.of(COMMANDS, table(["sixth.bundle"]))

    def notes(*flags: str) -> str:
        inputs = parse_command_line(["publish", root.name, *flags], {}, declared)
        return load(inputs, root.parent, declared).own(bundle.Inputs).notes

    assert notes() == ""
    (root / "releasekit.toml").write_text("bundle-notes = 'NEWS'")
    assert notes() == f"{root}/NEWS"
    assert notes("--bundle-notes=NEWS") == f"{root.parent}/NEWS"


def test_an_ecosystem_counts_once(root: Path) -> None:
    assert config(root, "--ecosystem=pypi,pypi").ecosystem == ("pypi",)


@pytest.mark.parametrize(("name", "what"), [("nowhere", "does not exist"), ("file", "is a file")])
def test_the_root_has_to_be_a_directory(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=f"ROOT: .*{name} {what}"):
        load(parse_command_line(["plan", name], {}, DECLARED), tmp_path, DECLARED)


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (["plan", "pypi:acme"], "If that is the name of a package, write `--packages pypi:acme`."),
        (["plan", "@acme/ui"], "If that is the name of a package, write `--packages @acme/ui`."),
        (["plan", "/nowhere"], ""),
        (["report", "--working-directory=acme"], ""),
    ],
)
def test_a_package_in_the_place_of_the_root_is_told_the_flag(
    tmp_path: Path, command: list[str], hint: str
) -> None:
    """R40"""
    with pytest.raises(ConfigError) as caught:
        load(parse_command_line(command, {}, DECLARED), tmp_path, DECLARED)
    assert caught.value.hint == hint


def test_a_loop_of_symlinks_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="ROOT"):
        load(parse_command_line(["plan", "loop"], {}, DECLARED), tmp_path, DECLARED)


def test_another_configuration_file(root: Path) -> None:
    (root.parent / "other.toml").write_text("concurrency = 4")
    assert config(root, "--config-file=other.toml", file="concurrency = 3").concurrency == 4
    assert "--config-file: " in str(refusal(root, "--config-file=none.toml"))


def test_a_configuration_file_outside_has_to_be_named(root: Path) -> None:
    """R36"""
    (root.parent / "outside.toml").touch()
    (root / "releasekit.toml").symlink_to("../outside.toml")
    assert "leads out of the workspace" in str(refusal(root))
    assert config(root, f"--config-file={root.name}/releasekit.toml").root == root


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_a_configuration_that_is_no_file_is_not_passed_over(
    root: Path, make: Callable[[Path], None]
) -> None:
    """R40"""
    make(root / "releasekit.toml")
    assert "is no file; write one, or remove what is there" in str(refusal(root))


def test_a_configuration_file_with_too_long_a_name(root: Path) -> None:
    """R40"""
    assert "File name too long; write less" in str(refusal(root, f"--config-file={'p' * 300}"))


def test_the_results_directory_of_several_jobs_is_no_file(root: Path) -> None:
    """R40: who never looks where the others are would wait for all of `wait`."""
    (root.parent / "file").touch()
    for given in ("file", "file/below"):
        told = str(refusal(root, f"--results-directory={given}"))
        assert told.startswith(f"--results-directory: {root.parent / 'file'} is a file")
        assert told.endswith("; write the path of a directory")
    flags = "--results-directory=shared/later"
    assert config(root, flags).results_directory == root.parent / "shared/later"
    assert config(root).results_directory is None


def test_paths_belong_to_whoever_wrote_them(root: Path) -> None:
    found = config(root, file="registry = 'dir:registry'\nstate-directory = 'state'")
    assert found.registries == {name: Directory(root / "registry" / name) for name in ECOSYSTEMS}
    assert found.state_directory == root / "state"
    flags = ("--registry=dir:registry", "--state-directory=state", "--plan-file=plan.json")
    found = config(root, *flags, "--results-file=r.json")
    directory = root.parent / "registry"
    assert found.registries == {name: Directory(directory / name) for name in ECOSYSTEMS}
    assert found.state_directory == root.parent / "state"
    own = found.own(PublishInputs)
    assert own.plan_file == root.parent / "plan.json"
    assert own.results_file == root.parent / "r.json"


@pytest.mark.parametrize("flag", ["state-directory", "build-sandbox-paths"])
def test_a_link_in_the_checkout_leads_a_flag_nowhere(root: Path, flag: str) -> None:
    """R53: what comes with the sources does not say where a place is that a user has named."""
    (root.parent / "elsewhere").mkdir()
    (root / "linked").symlink_to("../elsewhere")
    for path in ("linked", "linked/below"):
        (root / path).mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match="linked is a symbolic link in the checkout"):
            config(root, f"--{flag}={root.name}/{path}")


@pytest.mark.parametrize(
    ("flags", "file", "expected"),
    [
        ((), "pypi-registry = 'https://a.example/legacy/'", "https://a.example/legacy/"),
        (("--pypi-registry=dir:x",), "registry = 'dir:y'", "dir:{cwd}/x"),
        (("--pypi-registry=dir:x", "--registry=dir:y"), "", "dir:{cwd}/x"),
        # Whoever gives --registry for one run wants nothing to go anywhere else.
        (("--registry=dir:x",), "pypi-registry = 'https://a.example/'", "dir:{cwd}/x/pypi"),
        ((), "registry = 'dir:y'\npypi-registry = 'dir:x'", "dir:{cwd}/work space/x"),
        (("--pypi-registry=http://127.0.0.1:9/",), "", "http://127.0.0.1:9/"),
    ],
)
def test_which_registry_wins(root: Path, flags: tuple[str, ...], file: str, expected: str) -> None:
    found = config(root, *flags, file=file).registries
    assert str(found["pypi"]) == expected.format(cwd=root.parent)


@pytest.mark.parametrize(
    ("flag", "file", "only_in"),
    [
        ("", "https://a.example/legacy/", "releasekit.toml: pypi-registry"),
        ("", "http://127.0.0.1:9/", "releasekit.toml: pypi-registry"),
        ("https://a.example/legacy/", "https://b.example/", ""),
        ("https://a.example/legacy/", "", ""),
        # What everybody's packages go to needs no name, however it is written; nor less.
        ("", "", ""),
        ("", "https://UPLOAD.pypi.org:443/legacy", ""),
        ("", "https://test.pypi.org/legacy/", "releasekit.toml: pypi-registry"),
        ("", "https://upload.pypi.org:8443/legacy/", "releasekit.toml: pypi-registry"),
        ("", "https://upload.pypi.org.evil.example/", "releasekit.toml: pypi-registry"),
    ],
)
def test_who_names_a_registry(root: Path, flag: str, file: str, only_in: str) -> None:
    """R37"""
    flags = [f"--pypi-registry={flag}"] if flag else []
    found = config(root, *flags, file=f"pypi-registry = '{file}'" if file else "")
    assert found.registry_url("pypi", default="https://upload.pypi.org/legacy/").only_in == only_in


@pytest.mark.parametrize(
    ("flags", "index"),
    [
        (("--pypi-registry=https://a.example/", "--pypi-index=https://b.example/"), "https://b."),
        # The file's index belongs to the file's registry.
        (("--pypi-registry=https://a.example/",), ""),
        (("--registry=dir:x",), ""),
        ((), "https://c."),
    ],
)
def test_which_index_belongs_to_it(root: Path, flags: tuple[str, ...], index: str) -> None:
    file = "pypi-registry = 'https://c.example/up/'\npypi-index = 'https://c.example/simple/'"
    found = config(root, *flags, file=file).own(pypi.PyPIInputs).index
    assert found.startswith(index)
    assert bool(found) == bool(index)


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--pypi-registry=http://pypi.example/", "--pypi-registry = http://pypi.example/: must be"),
        ("--pypi-registry=https://me:hunter2@pypi.example/", "a URL with credentials in it"),
        ("--pypi-index=http://pypi.example/simple/", "--pypi-index = http://pypi.example/simple/"),
        ("--index-url=http://pypi.example/simple/", "--index-url = http://pypi.example/simple/"),
        ("--find-links=http://pypi.example/wheels/", "--find-links = http://pypi.example/wheels/"),
        ("--find-links=nowhere", "nowhere does not exist"),
        ("--registry=https://me:hunter2@a.example/", 'registry = "a.example/" is not a dir'),
        ("--pypi-registry=https://a.example/?t=hunter2", "has a query or a fragment"),
        ("--pypi-index=dir:x", "--pypi-index: a directory is its own index"),
        ("--uv-path=bin/uv", "bin/uv is not a file; write the path of uv"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(root: Path, flag: str, says: str) -> None:
    """R34, R37"""
    error = refusal(root, flag)
    assert says in str(error)
    assert "hunter2" not in str(error) + error.hint


def test_where_build_requirements_come_from(root: Path) -> None:
    (root.parent / "wheels").mkdir()
    (root.parent / "uv").touch()
    flags = ("--index-url=https://a.example/simple/", "--find-links=wheels", "--uv-path=./uv")
    found = config(root, *flags, "--find-links=https://b.example/wheels/")
    assert found.index_url == "https://a.example/simple/"
    assert found.find_links == (f"{root.parent}/wheels", "https://b.example/wheels/")
    assert found.uv_path == f"{root.parent}/uv"
    assert config(root, "--uv-path=uv2").uv_path == "uv2"


def test_files_from_elsewhere_lie_in_directories_that_are_there(root: Path) -> None:
    """Those of a flag below the caller's directory, those of the file below the root."""
    for name in ("ours", "wheels"):
        (root.parent / name).mkdir()
        (root / name).mkdir()
    given = config(root, "--dist=ours", "--dist=wheels", file='dist = "nowhere"').dist
    assert given == tuple(Dist(root.parent / name, "--dist") for name in ("ours", "wheels"))
    written = config(root, file='dist = ["ours", "wheels", "ours"]').dist
    assert [(place.path, place.owner) for place in written] == [
        (root / "ours", ""),
        (root / "wheels", ""),
    ]
    table = '[dist]\n"pypi" = "wheels"\n"npm:@acme/a" = ["ours", "wheels"]'
    assert config(root, file=table).dist == (
        Dist(root / "wheels", 'releasekit.toml: [dist] "pypi"', "pypi"),
        Dist(root / "ours", 'releasekit.toml: [dist] "npm:@acme/a"', "npm:@acme/a"),
        Dist(root / "wheels", 'releasekit.toml: [dist] "npm:@acme/a"', "npm:@acme/a"),
    )
    assert [place.owner for place in config(root, "--dist=ours", file=table).dist] == [""]


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ('dist = "nowhere"', "releasekit.toml: dist: {root}/nowhere does not exist"),
        ('[dist]\npypi = "nowhere"', 'releasekit.toml: [dist] "pypi": {root}/nowhere does not'),
        ("[dist]\npypi = 1", 'releasekit.toml: [dist] "pypi" is not a list of strings'),
        ('[dist]\nrubygems = "x"', "neither an ecosystem nor a package; write one of pypi, npm"),
        ('[dist]\n"pypi:" = "x"', "neither an ecosystem nor a package"),
        ('dist = ".releasekit/dist"', "is in the state directory, which is written anew"),
    ],
)
def test_a_directory_of_files_that_cannot_be_used_is_refused(
    root: Path, file: str, says: str
) -> None:
    (root / ".releasekit" / "dist").mkdir(parents=True)
    assert says.format(root=root) in str(refusal(root, file=file))


def test_only_what_plans_looks_for_files_from_elsewhere(root: Path) -> None:
    assert config(root, file='dist = "nowhere"', command="report").dist == ()


@pytest.mark.parametrize("directory", [".", "..", "/"])
def test_the_state_never_holds_the_workspace(root: Path, directory: str) -> None:
    """R25: what is in the state directory is ignored in git, all of it."""
    assert "holds the workspace" in str(refusal(root, f"--state-directory={root}/{directory}"))


def test_the_file_keeps_the_state_inside_the_workspace(root: Path) -> None:
    """R36"""
    assert "is outside the workspace" in str(refusal(root, file="state-directory = '../state'"))
    (root / "releasekit.toml").unlink()
    (root / ".releasekit").symlink_to(root.parent)
    assert "holds the workspace" in str(refusal(root))
    (root / ".releasekit").unlink()
    (root.parent / "elsewhere").mkdir()
    (root / ".releasekit").symlink_to("../elsewhere")
    assert "is outside the workspace" in str(refusal(root))


def test_the_state_is_no_file(root: Path) -> None:
    (root / ".releasekit").touch()
    assert "is a file; write the path of a directory" in str(refusal(root))


def test_a_registry_is_no_file(root: Path) -> None:
    (root / "file").touch()
    told = str(refusal(root, f"--registry=dir:{root}/file/below"))
    assert told.startswith(f"--registry: {root}/file is a file, and ")
    assert told.endswith("; write the path of a directory")


def test_cpus_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cpu_count() == 1


def test_builds_may_write_to_further_places_that_are_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R50: as a flag or an input says; no file of the repository may."""
    monkeypatch.setenv("HOME", str(root.parent / "home"))
    (root.parent / "home" / "keys").mkdir(parents=True)
    (root.parent / "models").mkdir()
    flags = ("--build-sandbox-paths=models", "--build-sandbox-paths=~/keys")
    found = config(root, "--build-sandbox=required", *flags)
    assert found.build_sandbox == "required"
    assert found.build_sandbox_paths == (root.parent / "models", root.parent / "home" / "keys")
    assert config(root).build_sandbox == "auto"
    for line in ('build-sandbox = "off"', 'build-sandbox-paths = ["/"]'):
        assert "give it as a flag or an input" in str(refusal(root, file=line))
        (root / "releasekit.toml").unlink()


def test_hosts_without_encryption_are_named_by_whoever_runs_it(root: Path) -> None:
    """R37: no file of the repository names one."""
    found = config(root, "--insecure-hosts=Packages.lan", "--npm-registry=http://packages.lan:81/")
    assert found.insecure_hosts == ("packages.lan",)
    refused = str(refusal(root, "--insecure-hosts=http://packages.lan/"))
    assert "--insecure-hosts: 'http://packages.lan/' is not a host" in refused
    told = str(refusal(root, file='insecure-hosts = ["packages.lan"]'))
    assert "give it as a flag or an input" in told


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--build-sandbox=on", '= "on" is not known'),
        ("--build-sandbox-paths=nowhere", "nowhere does not exist; write the path of a file or a"),
        (
            "--build-sandbox-paths=~nobody-of-this-name/x",
            "names no home directory; write the whole",
        ),
    ],
)
def test_a_sandbox_that_cannot_be_is_refused(root: Path, flag: str, says: str) -> None:
    """R50"""
    assert says in str(refusal(root, flag))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--pypi-registry=https://npm.pkg.github.com/acme", "npm.pkg.github.com takes .* of npm"),
        ("--pypi-registry=https://registry.npmjs.org/", "registry.npmjs.org takes .* of npm"),
        ("--npm-registry=https://maven.pkg.github.com/acme/a", "takes packages of maven, not of"),
        ("--npm-registry=https://upload.pypi.org/legacy/", "takes packages of pypi, not of npm"),
        ("--cargo-registry=https://nuget.pkg.github.com/acme", "takes packages of nuget, not of"),
    ],
)
def test_a_registry_of_another_ecosystem_is_refused(root: Path, given: str, why: str) -> None:
    """R68: its server would get the token."""
    with pytest.raises(ConfigError, match=why):
        config(root, given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--npm-registry=https://pypi.org/simple/", "pypi.org shows packages of pypi, not of npm"),
        ("--pypi-registry=https://www.npmjs.com/acme", "shows packages of npm, not of pypi"),
    ],
)
def test_a_page_of_another_ecosystem_is_no_registry_of_its_own(
    root: Path, given: str, why: str
) -> None:
    """R68: no setting takes it, so none is named."""
    refused = refusal(root, given)
    assert why in str(refused)
    assert refused.hint.startswith("Write the address of a registry of ")


@pytest.mark.parametrize(
    ("option", "addresses", "instead"),
    [
        (
            "pypi-registry",
            [
                "https://pypi.org",
                "https://pypi.org/simple/",
                "https://pypi.org/project/acme/",
                "https://pypi.org/legacy/",
                "https://PyPI.org/simple",
                "https://upload.pypi.org/",
                "https://files.pythonhosted.org/packages/",
            ],
            "https://upload.pypi.org/legacy/",
        ),
        (
            "pypi-registry",
            ["https://test.pypi.org", "https://test.pypi.org/simple/"],
            "https://test.pypi.org/legacy/",
        ),
        (
            "npm-registry",
            ["https://www.npmjs.com/package/acme", "https://npmjs.com/", "https://www.npmjs.org/"],
            "https://registry.npmjs.org/",
        ),
        (
            "cargo-registry",
            [
                "https://crates.io/crates/acme",
                "sparse+https://crates.io/crates/",
                "https://static.crates.io/crates/",
            ],
            "https://index.crates.io/",
        ),
        (
            "go-proxy",
            ["https://pkg.go.dev/acme.example/acme", "https://sum.golang.org"],
            "https://proxy.golang.org/",
        ),
        (
            "maven-registry",
            [
                "https://repo1.maven.org/maven2",
                "https://repo.maven.apache.org/maven2/",
                "https://central.sonatype.com/artifact/com.acme/kit",
                "https://mvnrepository.com/artifact/com.acme/kit",
            ],
            "https://central.sonatype.com",
        ),
    ],
)
def test_an_address_for_reading_is_refused_with_the_one_that_takes_packages(
    root: Path, option: str, addresses: list[str], instead: str
) -> None:
    """R68: an upload there would fail after the builds, or not at all."""
    for address in addresses:
        refused = refusal(root, f"--{option}={address}")
        assert "takes no packages at this address" in str(refused), address
        assert refused.hint.startswith(f"Write {instead}"), address
        assert refused.hint.endswith("out: that is its default.") == ("test." not in instead)


@pytest.mark.parametrize(
    "given",
    [
        "--npm-registry=https://npm.pkg.github.com",
        "--pypi-registry=https://a.example/simple/",
        "--pypi-registry=https://upload.pypi.org/legacy",
        "--pypi-registry=https://test.pypi.org/legacy/",
        "--cargo-registry=https://crates.io/",
        "--cargo-registry=sparse+https://index.crates.io/",
        "--cargo-registry=https://staging.crates.io",
        "--maven-registry=https://central.sonatype.com/",
        "--maven-registry=https://central.sonatype.com/repository/maven-snapshots/",
        "--go-proxy=https://proxy.golang.org",
    ],
)
def test_a_registry_of_its_own_ecosystem_is_taken(root: Path, given: str) -> None:
    config(root, given)
