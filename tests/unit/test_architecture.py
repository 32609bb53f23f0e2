"""The rules of the house, read off the source: who may import whom, start processes, and look at
the environment.
"""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "releasekit"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

# The house: its rooms, in the order in which they may be imported. A room may import those above it
# and nothing further down; docs/architecture.md shows the same list.
HOUSE = (
    *("__init__", "problems", "errors", "fields", "spent", "attested", "announced", "model"),
    "decided",
    *("aio", "graph", "text", "scheduler", "host", "report", "http", "git"),
    *("state", "config", "provenance", "ecosystems", "plan", "release", "announce", "approval"),
    *("versions", "cli", "__main__", "start"),
)
ORDER = {room: number for number, room in enumerate(HOUSE)}


def imports(tree: ast.Module) -> set[str]:
    """Modules of ours that it names, for a type checker alone too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("releasekit"):
            module = (node.module or "").removeprefix("releasekit").lstrip(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".lstrip(".")
                found.add(inner if inner in MODULES else module or "__init__")
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("releasekit.")
                for alias in node.names
                if alias.name.startswith("releasekit.")
            }
    return found


def room_of(module: str) -> str:
    return (module or "__init__").split(".")[0]


def test_every_room_has_its_place() -> None:
    assert {room_of(module) for module in MODULES} == set(HOUSE)


def test_the_architecture_shows_the_same_house() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (tree,) = re.findall(r"```text\nsrc/releasekit/\n(.*?)```", text, re.DOTALL)
    shown = re.findall(r"^  (\w+)(?:/|\.py)? ", tree, re.MULTILINE)
    assert ["__init__", *shown] == list(HOUSE)


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_lead_up_only(module: str) -> None:
    own = ORDER[room_of(module)]
    below = {other for other in imports(TREES[module]) if ORDER[room_of(other)] > own}
    assert not below


@pytest.mark.parametrize("room", HOUSE)
def test_modules_of_a_room_import_in_no_circle(room: str) -> None:
    inside = {name for name in MODULES if room_of(name) == room}
    needs = {name: imports(TREES[name]) & inside - {name} for name in inside}
    list(TopologicalSorter(needs).static_order())  # CycleError


def test_ecosystems_do_not_know_each_other() -> None:
    for module, tree in TREES.items():
        if not module.startswith("ecosystems."):
            continue
        own = module.split(".")[1]
        for other in imports(tree):
            if other.startswith("ecosystems."):
                shared = {"interface", "preflight", "approval", "directory", "shared"}
                shared |= {"dist_files"} if own in {"maven", "prebuilt", "pypi"} else set()
                assert other.split(".")[1] in {own, *shared}, (module, other)


def names_used(tree: ast.Module) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


# A worker is a program of its own, inside the environment of a build.
# A launcher becomes the child that it was started for. Sources are copied within a build's rights.
PROGRAMS = {"ecosystems.maven.copy_sources", "ecosystems.pypi.worker", "host.launcher"}


@pytest.mark.parametrize("module", sorted(MODULES.keys() - PROGRAMS))
def test_only_process_starts_processes_and_only_main_reads_the_environment(module: str) -> None:
    """R39"""
    used = names_used(TREES[module])
    starts = {
        name
        for name in used
        if name.startswith(("subprocess.", "asyncio.create_subprocess", "os.exec", "os.spawn"))
        or name in {"os.system", "os.popen", "os.fork"}
    }
    assert not starts or module in {"host.process", "host.reexec"}
    environment = {"os.environ", "os.environb", "os.getenv", "os.putenv"}
    assert not used & environment or module in {"__main__", "host.reexec"}


def starts_of(tree: ast.Module) -> list[ast.Call]:
    """Where it starts a child."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and re.search(r"\b_?processes\.(run|start)$", ast.unparse(node.func))
    ]


def test_no_group_of_a_pattern_is_possessive() -> None:
    """R69: Python 3.11.0 to 3.11.4, which Debian 12 has, match more than `(?:...)*+` says, so that
    a mention got past its filter. `(?>(?:...)*)` means the same, and works there.
    https://github.com/python/cpython/issues/106052
    """
    found = [
        f"{module}:{node.lineno}"
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, (str, bytes))
        and re.search(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+", str(node.value))
    ]
    assert found == []


# What looks at a secret, or at what has one, and starts children as well.
HOLDERS = {"ecosystems.step.registry", "git.forge_repository", "git.settings"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_child_that_holds_a_secret_is_kept_from_what_builds_write(module: str) -> None:
    """R69: only `secrets` of `Processes.run` may hold one, and that sees to the program, the
    directory and the variables; a child without is a build, or might as well be one.
    """
    calls = starts_of(TREES[module])
    names = [{each.arg: ast.unparse(each.value) for each in call.keywords} for call in calls]
    holds = [each for each in names if "secrets" in each]
    assert bool(holds) is (module in HOLDERS)
    if module not in HOLDERS and calls:
        assert not re.search(r"\.reveal\(|\bcredentials\b", "".join(map(ast.unparse, calls)))
    for each in holds:
        assert not re.search(r"reveal|login|header|token", each.get("env", ""))
    # Who reveals a secret starts nothing with it, but hands it over as one of these.
    revealing = ".reveal()" in ast.unparse(TREES[module])
    assert not (revealing and calls) or module in HOLDERS


# What follows a link, and waits for who writes to a pipe.
BY_PATH = {
    *("chmod", "hardlink_to", "mkdir", "open", "read_bytes", "read_text", "rename", "rmdir"),
    *("symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
# Whose methods of these names do neither: modules of ours, archives that are open, a browser.
HARMLESS = {
    *("durable", "files", "folder", "gomod", "stream", "Journal"),
    *("archive", "bundle", "gzip", "self._person"),
}
ALLOWED = {
    "cli.approve": {"place.mkdir"},  # in a directory of its own; nothing is built
    # Of the kernel's /proc.
    "host.flock": {
        "(process / 'comm').read_text",
        "(process / 'fdinfo' / descriptor.name).read_text",
    },
    "host.runner": {"os.open", "path.unlink"},  # the runner's, which no build can write
    "ecosystems.pypi.environment": {"tempfile.TemporaryFile"},  # it has no name
    "git.settings": {"path.unlink"},  # as the next one
    # Before any build, and where none can write.
    "host.sandbox": {"(led if is_directory else led.parent).mkdir", "led.touch"},
    "report.page.assets": {"(_HERE / name).read_text", "(_HERE / 'page.css').read_text"}
    | {"(_HERE / 'vendor' / name).read_text"},  # our own, loaded before any build
    "text.output": {"open"},  # os.devnull
}


def calls_by_path(tree: ast.AST) -> set[str]:
    """How `tree` opens and changes files by their paths."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        owner, _, method = name.rpartition(".")
        is_open = bool(node.args) and ast.unparse(node.args[0]) == "descriptor"
        is_open |= any(each.arg == "fileobj" for each in node.keywords)
        if is_open or owner in HARMLESS:
            continue
        if name == "open" or (owner and method in BY_PATH):
            found.add(name)
        if owner in {"shutil", "tempfile"} and method not in {"which", "gettempdir", "copyfileobj"}:
            found.add(name)
    return found


@pytest.mark.parametrize("module", sorted(MODULES.keys() - PROGRAMS - {"host.folder"}))
def test_files_are_opened_beneath_directories(module: str) -> None:
    """R53: what a build may write is reached by `Folder` alone, which follows no link."""
    assert calls_by_path(TREES[module]) == ALLOWED.get(module, set())


def test_only_the_runner_module_speaks_to_the_runner() -> None:
    for module, tree in TREES.items():
        toolkit = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("actions_toolkit")
        ]
        assert not toolkit or module == "host.runner"


def test_no_module_is_named_after_nothing() -> None:
    for name in MODULES:
        assert not set(name.split(".")) & {"utils", "util", "helpers", "helper", "common", "misc"}


def test_no_two_classes_have_one_name() -> None:
    found: dict[str, set[str]] = {}
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).add(module)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
