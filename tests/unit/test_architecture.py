"""The rules of the house, read off the source: who may import whom, start processes, and look at
the environment.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "releasekit"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

# Every module below may import those on its own line and on the lines above it, nothing further
# down. Packages stand for all their modules.
LAYERS = (
    ("__init__", "model", "escape", "threads", "toml_text", "priority", "garbage", "backoff"),
    ("errors", "durable", "flock", "streams", "scrub", "values", "resources", "origins", "output"),
    ("workspace_files",),
    ("graph", "frontier", "controls", "declaration", "circuit", "deadlines", "run_inputs"),
    ("attempts", "run_result", "registry_inputs"),
    ("scheduler", "inputs", "history", "actions", "credentials", "process", "config_file"),
    ("compaction", "logfile", "places", "net", "command_line"),
    ("journal", "locks", "pins", "contents", "identity", "config", "source"),
    ("choice", "ecosystems.interface", "report", "doctor"),
    ("decision", "bundle", "ecosystems.directory", "live", "progress"),
    ("ecosystems", "plan", "life"),
    ("steps", "planfile"),
    ("publish",),
    ("interruption",),
    ("commands",),
    ("__main__",),
)


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


def layer(module: str) -> int:
    parts = (module or "__init__").split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for number, names in enumerate(LAYERS):
            if name in names:
                return number
    raise AssertionError(f"{module} has no place in LAYERS")


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_lead_up_only(module: str) -> None:
    below = {other for other in imports(TREES[module]) if layer(other) > layer(module)}
    assert not below


def test_ecosystems_do_not_know_each_other() -> None:
    for module, tree in TREES.items():
        if not module.startswith("ecosystems."):
            continue
        own = module.split(".")[1]
        for other in imports(tree):
            if other.startswith("ecosystems."):
                shared = {"interface", "directory", "tables"}
                assert other.split(".")[1] in {own, *shared}, (module, other)


def names_used(tree: ast.Module) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


# A worker is a program of its own, inside the environment of a build.
PROGRAMS = {"ecosystems.pypi.worker"}


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
    assert not starts or module == "process"
    assert not used & {"os.environ", "os.getenv", "os.putenv"} or module == "__main__"


def test_only_actions_speaks_to_the_runner() -> None:
    for module, tree in TREES.items():
        toolkit = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("actions_toolkit")
        ]
        assert not toolkit or module == "actions"


def test_no_module_is_longer_than_the_house_allows() -> None:
    long = {
        name: len(path.read_text().splitlines())
        for name, path in MODULES.items()
        if len(path.read_text().splitlines()) > 400
    }
    assert not long


def test_no_module_is_named_after_nothing() -> None:
    for name in MODULES:
        assert not set(name.split(".")) & {"utils", "util", "helpers", "helper", "common", "misc"}
