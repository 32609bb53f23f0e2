from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.go import GoOptions, discover, gomod
from releasekit.ecosystems.go.discover import Module, find_modules
from releasekit.errors import ConfigError, PlanError

if TYPE_CHECKING:
    from pathlib import Path

ONE = GoOptions(version="1.0.0")


def write(root: Path, **texts: str) -> Path:
    """Files by their path, `__` for a slash and `_` for a dot."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root.resolve()


def found(root: Path, options: GoOptions = ONE) -> dict[str, Module]:
    return find_modules(root, options)


def test_nested_modules_are_found_where_go_looks(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        go_mod="module a.b/m\nrequire a.b/m/x v0.1.0 // indirect\nrequire o.p/q v1.0.0\n",
        x__go_mod="module a.b/m/x\n",
        x__testdata__go_mod="module a.b/t\n",
        vendor__go_mod="module a.b/v\n",
        other__go_mod="module a.b/o\n",
    )
    for name in ("_hidden", ".hidden", "node_modules"):
        (root / name).mkdir()
        (root / name / "go.mod").write_text(f"module a.b/{name}\n")
    (root / "other" / ".git").mkdir()
    by_path = found(root)
    assert by_path.keys() == {"a.b/m", "a.b/m/x"}
    packages = {package.id.name: package for package in discover.make_packages(by_path)}
    assert [str(it.on) for it in packages["a.b/m"].dependencies] == ["go:a.b/m/x"]
    assert packages["a.b/m/x"].manifest == root / "x" / "go.mod"
    assert found(root, GoOptions(version="1.0.0", exclude=("x", "y/*"))).keys() == {"a.b/m"}


def test_what_modules_of_a_cycle_require_of_each_other_gives_way(tmp_path: Path) -> None:
    """R7: what they require of others, and others of them, orders the release as ever."""
    root = write(
        tmp_path,
        go_mod="module a.b/m\nrequire (\n\ta.b/m/x v0.1.0 // indirect\n\ta.b/m/y v0.1.0\n)\n",
        x__go_mod="module a.b/m/x\nrequire (\n\ta.b/m v0.1.0\n\ta.b/m/y v0.1.0 // indirect\n)\n",
        y__go_mod="module a.b/m/y\n",
        z__go_mod="module a.b/m/z\nrequire a.b/m v0.1.0\n",
    )
    edges = {
        (package.id.name, need.on.name): (str(need.kind), need.soft)
        for package in discover.make_packages(found(root))
        for need in package.dependencies
    }
    assert edges == {
        ("a.b/m", "a.b/m/x"): ("indirect", True),
        ("a.b/m", "a.b/m/y"): ("runtime", False),
        ("a.b/m/x", "a.b/m"): ("runtime", True),
        ("a.b/m/x", "a.b/m/y"): ("indirect", False),
        ("a.b/m/z", "a.b/m"): ("runtime", False),
    }


def test_a_broken_go_mod_stops_a_release_unless_it_is_a_fixture(tmp_path: Path) -> None:
    """R66"""
    root = write(
        tmp_path,
        go_mod="module a.b/m\n",
        tests__fixtures__bad__go_mod="not one\n",
        tests__fixtures__good__go_mod="module a.b/m/tests/fixtures/good\n",
    )
    assert found(root).keys() == {"a.b/m", "a.b/m/tests/fixtures/good"}
    write(root, tests__bad__go_mod="not one\n")
    with pytest.raises(ConfigError, match=r"tests/bad/go\.mod: has no module") as caught:
        found(root)
    assert "[go] exclude = ['tests/bad']" in caught.value.hint
    assert found(root, GoOptions(version="1.0.0", exclude=("tests/bad",)))


def test_a_module_of_test_data_counts_once_another_one_requires_it(tmp_path: Path) -> None:
    """Such as go.opentelemetry.io/collector/pdata/testdata; the others are what a test reads."""
    root = write(
        tmp_path,
        go_mod="module a.b/m\nrequire (\n\ta.b/m/testdata v0.1.0\n\ta.b/far v1.0.0\n)\n",
        testdata__go_mod="module a.b/m/testdata\nrequire a.b/m/testdata/deep v0.1.0\n",
        testdata__deep__go_mod="module a.b/m/testdata/deep\n",
        testdata__far__go_mod="module a.b/far\n",
        testdata__broken__go_mod="not one\n",
        testdata__unasked__go_mod="module a.b/m/testdata/unasked\n",
        testdata__again__go_mod="module a.b/m\n",
    )
    assert found(root).keys() == {"a.b/m", "a.b/m/testdata", "a.b/m/testdata/deep"}
    assert found(root, GoOptions(version="1.0.0", exclude=("testdata",))).keys() == {"a.b/m"}


def test_a_go_work_says_what_belongs_together(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        go_work="use ./x\nuse (\n\t./y\n)\n",
        x__go_mod="module a.b/x\n",
        y__go_mod="module a.b/y\n",
        z__go_mod="module a.b/z\n",
    )
    assert found(root).keys() == {"a.b/x", "a.b/y"}


@pytest.mark.parametrize(
    ("use", "message"), [("../x", "leads out of the workspace"), ("./gone", "there is no go.mod")]
)
def test_a_go_work_that_leads_nowhere_is_refused(tmp_path: Path, use: str, message: str) -> None:
    """R36"""
    with pytest.raises(ConfigError, match=message):
        find_modules(write(tmp_path, go_work=f"use {use}\n"), ONE)


def test_two_modules_of_one_path_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, x__go_mod="module a.b/x\n", y__go_mod="module a.b/x\n")
    with pytest.raises(ConfigError, match=r"both named 'a\.b/x'"):
        find_modules(root, ONE)


def test_a_go_work_lists_no_two_modules_of_one_path(tmp_path: Path) -> None:
    """R66: go refuses it, whether or not the two are published."""
    mods = {"x__go_mod": "module a.b/x\n", "y__go_mod": "module a.b/x\n"}
    root = write(tmp_path, go_work="use (\n\t./x\n\t./y\n)\n", **mods)
    with pytest.raises(ConfigError, match=r"both named 'a\.b/x'"):
        find_modules(root, GoOptions(private=("x", "y")))


def test_searching_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(discover, "MAX_DIRECTORIES", 1)
    with pytest.raises(ConfigError, match="more than 1 directories"):
        find_modules(write(tmp_path, x__y__go_mod="module a.b/x\n"), ONE)


def test_versions_come_from_the_nearest_place(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        VERSION="1.2.3\n",
        go_mod="module a.b/m\n",
        x__go_mod="module a.b/m/x\n",
        x__VERSION='package x\n\n// Version of it.\nconst Version = "v0.4.0"\n',
        y__z__go_mod="module a.b/m/y/z\n",
        w__go_mod="module a.b/m/w/v2\n",
        u__go_mod="module a.b/m/u\n",
    )
    options = GoOptions(version_file="VERSION", versions={"w": "2.0.0-rc.1", "a.b/m/u": "v1.9.0"})
    assert {path: module.version for path, module in found(root, options).items()} == {
        "a.b/m": "v1.2.3",
        "a.b/m/x": "v0.4.0",
        "a.b/m/y/z": "v1.2.3",
        "a.b/m/w/v2": "v2.0.0-rc.1",
        "a.b/m/u": "v1.9.0",
    }


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2.3-rc.1\n", "v1.2.3-rc.1"),
        ('{"name": "x", "version": "1.0.0"}', "1.0.0"),
        ("[project]\nversion = '0.1.0'\n", "0.1.0"),
        ("const Version = `v3.0.0`\n", "v3.0.0"),
    ],
)
def test_a_version_file_may_be_of_many_kinds(tmp_path: Path, text: str, version: str) -> None:
    path = tmp_path / "VERSION"
    path.write_text(text)
    assert discover.read_version(path) == version


@pytest.mark.parametrize("text", [f'version = "1.1.{"1" * 200_000}', f"v1.2.3-{'1.' * 200_000}"])
def test_no_version_file_takes_long(tmp_path: Path, text: str) -> None:
    """R51"""
    path = tmp_path / "VERSION"
    path.write_text(text)
    with pytest.raises(ConfigError, match="holds no version"):
        discover.read_version(path)


def test_a_version_file_without_a_version_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, VERSION="soon\n", go_mod="module a.b/m\n")
    with pytest.raises(ConfigError, match="VERSION holds no version"):
        find_modules(root, GoOptions(version_file="VERSION"))


@pytest.mark.parametrize(
    ("module", "options", "reason"),
    [
        ("a.b/m", GoOptions(), "its version is unknown"),
        ("a.b/m", GoOptions(version_file="VERSION"), "its version is unknown"),
        ("a.b/m", GoOptions(version="1.0.0", private=(".",)), "private names it"),
        ("a.b/m", GoOptions(version="1.0.0", private=("a.b/*",)), "private names it"),
        ("example", ONE, "no dot"),
    ],
)
def test_what_is_never_published_says_why(
    tmp_path: Path, module: str, options: GoOptions, reason: str
) -> None:
    (only,) = find_modules(write(tmp_path, go_mod=f"module {module}\n"), options).values()
    assert reason in only.unpublishable
    assert only.version == ""


def test_one_cause_is_told_once(tmp_path: Path) -> None:
    """R60: of a hundred modules without a version, in one line."""
    root = write(tmp_path, go_mod="module a.b/m\n", c__go_mod="module a.b/m/c\n")
    (first, second) = find_modules(root, GoOptions()).values()
    assert first.unpublishable == second.unpublishable != ""


@pytest.mark.parametrize("version", ["2.0.0", "nonsense", "1.0"])
def test_a_version_that_does_not_fit_is_refused(tmp_path: Path, version: str) -> None:
    root = write(tmp_path, go_mod="module a.b/m\n")
    with pytest.raises(ConfigError, match=r"go.mod: .*write"):
        find_modules(root, GoOptions(version=version))


def test_a_version_of_no_module_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, go_mod="module a.b/m\n")
    with pytest.raises(ConfigError, match="'xx', which is not a module here"):
        find_modules(root, GoOptions(versions={"xx": "1.0.0"}))


def replacing(tmp_path: Path, line: str) -> tuple[Module, dict[str, Module]]:
    root = write(
        tmp_path,
        x__go_mod=f"module a.b/x\n\nrequire a.b/y v0.0.0\n\nreplace {line}\n",
        y__go_mod="module a.b/y\n",
    )
    by_path = found(root)
    return by_path["a.b/x"], by_path


@pytest.mark.parametrize("line", ["a.b/y => ../y", "a.b/y v0.0.0 => ../y/"])
def test_a_replacement_that_says_where_a_neighbour_is_does_no_harm(
    tmp_path: Path, line: str
) -> None:
    module, by_path = replacing(tmp_path, line)
    assert [it.path for it in discover.find_local_replaces(module, by_path)] == ["a.b/y"]
    discover.check_module(module.mod, {"a.b/y": "v1.0.0"}, by_path)


ZERO = "v0.0.0-00010101000000-000000000000"


@pytest.mark.parametrize("version", ["v0.0.0", ZERO])
@pytest.mark.parametrize(
    "texts",
    [
        {"x__go_mod": "replace a.b/y => ../y\n"},
        {"x__go_mod": "replace a.b/y {version} => ../y\n"},
        {"x__go_mod": "replace a.b/y => ../y\n", "go_work": "use ./x\n"},
        {"x__go_mod": "replace a.b/y {version} => ../y/\n", "go_work": "use ./x\n"},
        {"x__go_mod": "", "go_work": "use ./x\nreplace a.b/y => ./y\n"},
        {"x__go_mod": "", "go_work": "use ./x\nreplace (\n\ta.b/y {version} => ./y\n)\n"},
    ],
)
def test_what_only_a_replacement_ties_is_seen_and_pinned(
    tmp_path: Path, texts: dict[str, str], version: str
) -> None:
    """R24: a placeholder is nothing that anybody could require."""
    start = f"module a.b/x\n\nrequire a.b/y {version}\n"
    written = {name: text.replace("{version}", version) for name, text in texts.items()}
    written["x__go_mod"] = start + written["x__go_mod"]
    root = write(tmp_path, **written, y__go_mod="module a.b/y\n")
    by_path = found(root)
    (edge,) = (need for it in discover.make_packages(by_path) for need in it.dependencies)
    assert (edge.on.name, edge.requirement) == ("a.b/y", version)
    module = by_path["a.b/x"]
    planned = {"a.b/x": "v1.0.0", "a.b/y": "v1.0.0"}
    discover.check_module(module.mod, planned, by_path)
    local = discover.find_local_replaces(module, by_path)
    made = gomod.edit_mod(module.mod, planned, needed=["a.b/y"], local=local)
    assert made.rstrip() == "module a.b/x\n\nrequire a.b/y v1.0.0"


@pytest.mark.parametrize(
    ("required", "line", "directory"),
    [
        ("v1.0.0", "a.b/y => ./y", "y"),  # published from elsewhere, or by another run
        ("v0.0.0", "a.b/z => ./y", "y"),  # of another module
        ("v0.0.0", "a.b/y => ./fork", "fork"),  # not where Go looks for it
        ("v0.0.0", "a.b/y => ../y", "y"),  # not of this workspace
        ("v0.0.0", "a.b/y => ./left-out/y", "left-out/y"),
        ("v0.0.0", "a.b/y => ./gone", "y"),
        ("v0.0.0", "a.b/y => a.b/w v1.0.0", "y"),
    ],
)
def test_other_replacements_of_a_go_work_make_no_module(
    tmp_path: Path, required: str, line: str, directory: str
) -> None:
    root = write(
        tmp_path / "root",
        go_work=f"use ./x\nreplace {line}\n",
        x__go_mod=f"module a.b/x\n\nrequire a.b/y {required}\n",
    )
    for place in (tmp_path / "root" / directory, tmp_path / "y"):
        place.mkdir(parents=True)
        (place / "go.mod").write_text("module a.b/y\n")
    assert found(root, GoOptions(version="1.0.0", exclude=("left-out/*",))).keys() == {"a.b/x"}


@pytest.mark.parametrize(
    ("path", "version"), [("o.p/y", ZERO), ("o.p/y/v2", "v2.0.0-00010101000000-000000000000")]
)
def test_a_placeholder_for_what_is_not_released_is_refused(
    tmp_path: Path, path: str, version: str
) -> None:
    """R24: nobody could install what requires it."""
    root = write(tmp_path, x__go_mod=f"module a.b/x\nrequire {path} {version}\n")
    by_path = found(root)
    module = by_path["a.b/x"]
    with pytest.raises(PlanError, match=f"requires {path} {version}, a placeholder") as caught:
        discover.check_module(module.mod, {"a.b/x": "v1.0.0"}, by_path)
    assert f"go get {path}@" in caught.value.hint


@pytest.mark.parametrize("line", ["a.b/y => ../z", "a.b/y => f.g/y v1.0.0", "o.p/q => ../fork"])
def test_a_replacement_nobody_else_has_is_refused_with_the_fix(tmp_path: Path, line: str) -> None:
    module, by_path = replacing(tmp_path, line)
    with pytest.raises(PlanError, match=r"which users of a\.b/x would not get") as caught:
        discover.check_module(module.mod, {}, by_path)
    assert f"go mod edit -dropreplace={line.split(maxsplit=1)[0]}" in caught.value.hint


@pytest.mark.parametrize(("go", "complete"), [("1.17", True), ("1.21rc2", True), ("1.16", False)])
def test_a_replacement_of_what_is_not_required_goes_without_a_word(
    tmp_path: Path, go: str, complete: bool
) -> None:
    """From go 1.17 on, go.mod lists all that packages need: nothing differs for anybody."""
    text = f"module a.b/x\n\ngo {go}\n\nreplace o.p/q => ../gone\n"
    by_path = found(write(tmp_path, x__go_mod=text))
    module = by_path["a.b/x"]
    if complete:
        assert [it.path for it in discover.find_local_replaces(module, by_path)] == ["o.p/q"]
    else:
        with pytest.raises(PlanError, match=r"which users of a\.b/x would not get"):
            discover.find_local_replaces(module, by_path)


@pytest.mark.parametrize("line", ["o.p/q => f.g/q v1.0.0", "o.p/q v1.1.0 => o.p/q v1.0.0"])
def test_a_replacement_by_another_module_is_its_authors_business(tmp_path: Path, line: str) -> None:
    """R63: so the plan says it, and publishes."""
    module, by_path = replacing(tmp_path, line)
    assert discover.find_local_replaces(module, by_path) == []
    assert discover.describe_replaced([module, by_path["a.b/y"]]) == (
        "go: users do not get the replacements of these modules, and `go install` refuses them: "
        "a.b/x (o.p/q)"
    )


@pytest.mark.parametrize("table", [{}, {"version-file": "VERSION", "versions": {".": "1.0.0"}}])
def test_a_table_is_read(table: dict[str, object]) -> None:
    assert GoOptions.from_table(table).remote == "origin"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"version-file": "../V"}, 'version-file is "../V"'),
        ({"version-file": "/V"}, 'version-file is "/V"'),
        ({"remote": "--upload-pack=x"}, "remote is"),
        ({"remote": "https://x"}, "remote is"),
        ({"versions": {"a": 1}}, "versions is"),
        ({"versions": "1"}, "versions is"),
        ({"proxy": "no"}, "proxy is"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GoOptions.from_table(table)


def test_a_file_that_cannot_be_read_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        gomod.read_text(tmp_path / "none")
    path = tmp_path / "go.mod"
    path.write_bytes(b"module \xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        gomod.read_text(path)
    monkeypatch.setattr(gomod, "MAX_BYTES", 3)
    with pytest.raises(ConfigError, match="larger than 3 bytes"):
        gomod.read_text(path)


def test_discovery_starts_no_process(tmp_path: Path) -> None:
    assert asyncio.run(asyncio.to_thread(find_modules, tmp_path, ONE)) == {}
