"""The rules of the house, read off the source: who may import whom, start processes, and look at
the environment.
"""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from releasekit import ecosystems

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "releasekit"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

REPORT = (
    *("text", "links", "tagged", "marks", "markdown", "layers", "mermaid", "verdict", "record"),
    *(
        "tagged_rows",
        "outputs",
        "warnings",
        "waiting",
        "notices",
        "endings",
        "spent_words",
        "gantt",
        "remedy",
        "signed",
        "results_table",
        "plans",
        "summary",
        "spent_rows",
        "attested_rows",
        "results",
        "joined",
        "course",
        "glyphs",
        "tally",
        "grouped",
        "region",
        "live",
        "silence",
        "log",
        "progress",
        "traffic_line",
        "redacted",
        "review",
        "page",
    ),
)
HOST = (
    *("folder", "durable", "flock", "contents", "files", "outlet"),
    *("spellings", "scrub", "streams", "log_pipe", "launcher", "sandbox", "refusal"),
    *("git_settings", "process"),
    *("reexec", "command_files", "runner", "origin"),
)
STATE = (
    *(
        "directory",
        "lock_order",
        "seals",
        "history",
        "unsealed",
        "trace",
        "logfile",
        "compaction",
        "journal",
    ),
    *("locks", "pins", "run_logs", "lock_table", "doctor"),
)
CONFIG = (
    *(
        "values",
        "declaration",
        "tables",
        "after",
        "ecosystem",
        "selection",
        "verification",
        "inputs",
    ),
    *("declared", "levels", "file", "locations", "rows", "config", "choice"),
)
# Of each ecosystem; only the table lists them.
FOLDERS = tuple(folder.removeprefix("releasekit.ecosystems.") for folder in ecosystems.FOLDERS)
# The house: what stands at the top, in the order in which it may be imported. A group may import
# those above it and nothing further down; docs/architecture.md shows the same list.
HOUSE = (
    ("__init__",),
    ("problems",),
    ("errors",),
    ("spent",),
    ("attested",),
    ("announced",),
    ("model",),
    ("aio",),
    ("priority",),
    ("garbage",),
    ("graph",),
    ("text", "escape", "json_text", "output", "splice", "bounds", "toml_text", "cause", "commands"),
    (
        "scheduler",
        "task",
        "frontier",
        "patience",
        "attempts",
        "reasons",
        "result",
        "controls",
        "deadlines",
        "turns",
        "engine",
    ),
    ("host", *HOST),
    ("report", *REPORT),
    (
        *("http", "origins", "remedies", "traffic", "body", "pool", "circuit", "client"),
        "download",
        *("credentials", "identity", "github"),
    ),
    ("git", "objects", "remote", "commits", "versions"),
    ("notes", "versions", "names", "changelog", "body"),
    ("state", *STATE),
    ("config", *CONFIG),
    (
        *("provenance", "job", "statement", "document", "trust", "instance", "services"),
        *("claims", "certificate", "log", "bundle", "keys", "issued", "logged", "checking"),
        *("forms", "covered", "addresses", "beside", "signer", "release", "github", "conditions"),
    ),
    ("forge", "interface", "github", "announcing"),
    (
        "ecosystems",
        "interface",
        "approval",
        "directory",
        "folders",
        "shared",
        "dist_files",
        "prebuilt",
        *FOLDERS,
    ),
    (
        *("plan", "source", "above", "below", "decision", "order", "access", "staged"),
        *("make", "file", "shards", "changes", "tag_names", "tags"),
        *("warnings", "tools", "provenance"),
    ),
    (
        *("release", "life", "delivery", "sources", "timesheet", "waits", "events", "lag"),
        "polling",
        *("batches", "others", "foreign", "phases", "replay", "advice", "spending"),
        *("attesting", "tasks", "tagging", "announcing", "release"),
    ),
    ("approval", "workflow_run", "held", "compare", "review", "codes", "decide"),
    (
        *(
            "cli",
            "command_line",
            "interruption",
            "preload",
            "signing",
            "following",
            "session",
            "recorded",
        ),
        *("left_behind", "terminal", "telling", "publishing", "approve", "verify", "notes"),
        "commands",
    ),
    ("__main__",),
    ("start",),
)
ORDER = {group: number for number, (group, *_) in enumerate(HOUSE)}
MOST_AT_THE_TOP = 13


def imports(tree: ast.Module) -> set[str]:
    """Modules of ours that it needs to run; what only a type checker reads does not count."""
    found = set()
    for node in _running(tree):
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


def _running(node: ast.AST) -> list[ast.AST]:
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        found += [child, *_running(child)]
    return found


def group_of(module: str) -> str:
    return (module or "__init__").split(".")[0]


def test_everything_has_its_place() -> None:
    """The rooms of each group, the ecosystems' own modules left to them."""
    rooms: dict[str, set[str]] = {group: set() for group, *_ in HOUSE}
    for name in MODULES:
        group, *rest = (name or "__init__").split(".")
        rooms[group] |= set(rest[:1])
    assert rooms == {group: set(modules) for group, *modules in HOUSE}
    assert len(list(SOURCE.glob("*.py"))) <= MOST_AT_THE_TOP


def test_the_architecture_shows_the_same_house() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (tree,) = re.findall(r"```text\nsrc/releasekit/\n(.*?)```", text, re.DOTALL)
    shown = []
    for line in tree.splitlines():
        if line.startswith("  ") and line[2] != " ":
            name, *modules = line.split("  #")[0].split()
            shown.append((name.removesuffix("/").removesuffix(".py"), *modules))
        else:
            shown[-1] += tuple(line.split("  #")[0].split())
    house = [tuple(room for room in each if room not in FOLDERS) for each in HOUSE]
    assert shown == [each for each in house if each != ("__init__",)]


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_lead_up_only(module: str) -> None:
    own = group_of(module)
    below = {other for other in imports(TREES[module]) if ORDER[group_of(other)] > ORDER[own]}
    assert not below


@pytest.mark.parametrize("group", [group for group, *modules in HOUSE if modules])
def test_modules_of_a_group_import_in_one_direction(group: str) -> None:
    """In the order of the house; an ecosystem's own modules may stand in any, without a circle."""
    inside = {name for name in MODULES if name.startswith(f"{group}.")}
    needs = {name: imports(TREES[name]) & inside for name in inside}
    list(TopologicalSorter(needs).static_order())  # CycleError
    (rooms,) = (list(modules) for name, *modules in HOUSE if name == group)
    for name, others in needs.items():
        for other in others:
            assert rooms.index(other.split(".")[1]) <= rooms.index(name.split(".")[1])


def test_ecosystems_do_not_know_each_other() -> None:
    for module, tree in TREES.items():
        if not module.startswith("ecosystems."):
            continue
        own = module.split(".")[1]
        for other in imports(tree):
            if other.startswith("ecosystems."):
                shared = {"interface", "approval", "directory", "shared"}
                shared |= {"dist_files"} if own in {"prebuilt", "pypi"} else set()
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


# What follows a link, and waits for who writes to a pipe.
BY_PATH = {
    *("chmod", "hardlink_to", "mkdir", "open", "read_bytes", "read_text", "rename", "rmdir"),
    *("symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
# Whose methods of these names do neither: modules of ours, archives that are open, a browser.
HARMLESS = {
    *("durable", "files", "folder", "gomod", "stream", "Journal", "contents"),
    *("archive", "bundle", "gzip", "self._person"),
}
ALLOWED = {
    "cli.approve": {"place.mkdir"},  # in a directory of its own; nothing is built
    "host.command_files": {"os.open", "path.unlink"},  # the runner's, which no build can write
    "ecosystems.pypi.environment": {"tempfile.TemporaryFile"},  # it has no name
    "host.durable": {"path.chmod"},  # for Windows
    # Before any build, and where none can write.
    "host.sandbox": {"(place if is_directory else place.parent).mkdir", "place.touch"},
    "provenance.trust": {"resources.files(__package__).joinpath(PACKAGED).read_bytes"},  # our own
    "report.page.assets": {"(_HERE / name).read_text", "(_HERE / 'page.css').read_text"}
    | {"(_HERE / 'vendor' / name).read_text"},  # our own, loaded before any build
    "text.output": {"Path(os.devnull).open"},
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
