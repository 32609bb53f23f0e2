"""The worker with this Python in the place of a build environment's."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from hatchling.builders import config, constants

from processes import PATIENCE_S, wait_until
from releasekit.ecosystems.pypi import worker
from releasekit.ecosystems.pypi.manifest import BuildSystem
from releasekit.ecosystems.pypi.worker import Request
from releasekit.ecosystems.shared.jsonlines import Conversation, conversation
from releasekit.errors import BuildFailed
from releasekit.host.process import Processes

HATCHLING = BuildSystem(requires=("hatchling",), backend="hatchling.build")
MANIFEST = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "a"
version = "1.0"
requires-python = ">=3.11"
[tool.hatch.build.targets.wheel]
bypass-selection = true
"""
BACKEND = """\
import os, tarfile
from pathlib import Path

def build_sdist(directory, settings=None):
    os.makedirs("a.egg-info")
    with tarfile.open(Path(directory, "a-1.0.tar.gz"), "w:gz") as archive:
        archive.add(".", "a-1.0")
    return "a-1.0.tar.gz"

def build_wheel(directory, settings=None):
    import zipfile, colorsys
    with zipfile.ZipFile(Path(directory, "a-1.0-py3-none-any.whl"), "w") as archive:
        archive.writestr("a-1.0.dist-info/METADATA", "Name: a")
    return "a-1.0-py3-none-any.whl"
"""


def talk(root: Path, body: Callable[[Conversation], Awaitable[None]]) -> None:
    argv = [sys.executable, "-I", "-B", "-X", "utf8", worker.__file__]

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), Processes(environment={}) as processes:
            talking = conversation("it ended", argv, processes=processes, cwd=root, env={})
            async with talking as child:
                await body(child)
            assert child.ended

    asyncio.run(main())


def line(asked: Request, number: int) -> str:
    return json.dumps({**asked, "id": number})


def request(
    root: Path,
    build_system: BuildSystem = HATCHLING,
    *,
    installed: tuple[str, ...] = (),
    hidden: Sequence[str] = (),
    inert: bool = False,
    **changes: object,
) -> Request:
    values = {
        "operation": "sdist",
        "source": root / "a",
        "into": root / "into",
        "scratch": root / "scratch",
        "log": root / "log",
        **changes,
    }
    return {
        **{name: str(value) for name, value in values.items()},
        "backend": build_system.backend,
        "backend_path": build_system.backend_path,
        "config_settings": {},
        "environment": {"SOURCE_DATE_EPOCH": "1700000000"},
        "installed": installed,
        "hidden": hidden,
        "inert": inert,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("a", "into", "scratch"):
        (root / name).mkdir()
    (root / "a" / "pyproject.toml").write_text(MANIFEST)
    (root / "a" / "module.py").touch()
    return root


def in_tree(root: Path, more: str = "", path: str = ".") -> BuildSystem:
    (root / "a" / "in_tree.py").write_text(BACKEND + more)
    return BuildSystem(requires=(), backend="in_tree", backend_path=(path,))


@pytest.fixture
def here(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Request], dict[str, object]]:
    """The operations in this process, whose state is restored afterwards."""
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setenv("DIST_EXTRA_CONFIG", os.devnull)
    monkeypatch.setattr(config, "EXCLUDED_DIRECTORIES", constants.EXCLUDED_DIRECTORIES)

    def perform(asked: Request) -> dict[str, object]:
        try:
            return worker.OPERATIONS[asked["operation"]](json.loads(line(asked, 0)))
        finally:
            sys.modules.pop("in_tree", None)

    return perform


Here = Callable[[Request], dict[str, object]]


@pytest.mark.parametrize("where", [".releasekit", "src/.releasekit"])
def test_hatchling_makes_both_files_in_one_process(root: Path, here: Here, where: str) -> None:
    (root / "a" / where).mkdir(parents=True)
    (root / "a" / where / "journal.jsonl").touch()
    assert here(request(root, hidden=[".releasekit"])) == {
        "sdist": "a-1.0.tar.gz",
        "wheel": "a-1.0-py3-none-any.whl",
    }
    with tarfile.open(root / "into" / "a-1.0.tar.gz") as archive:
        assert not [name for name in archive.getnames() if "journal" in name]


def test_a_backend_that_builds_itself_is_asked_what_it_needs_first(root: Path) -> None:
    """Hatchling's own repository: nothing it needs is there yet, and half of it cannot be imported.

    https://github.com/pypa/hatch/blob/master/backend/pyproject.toml
    """
    package = root / "a" / "hatchling"
    (package / "builders").mkdir(parents=True)
    for name in ("__init__.py", "builders/__init__.py"):
        (package / name).touch()
    (package / "builders" / "config.py").write_text("import not_there_yet\n")
    (package / "ouroboros.py").write_text(
        "def get_requires_for_build_sdist(settings=None): return ['pathspec']\n"
    )
    system = BuildSystem(requires=(), backend="hatchling.ouroboros", backend_path=(".",))

    async def main(child: Conversation) -> None:
        asked = request(root, system, hidden=[".releasekit"])
        assert (await child.ask(asked))["requires"] == ["pathspec"]

    talk(root, main)


def test_another_backend_gets_a_process_for_each_hook(root: Path, here: Here) -> None:
    backend = in_tree(root)
    assert here(request(root, backend)) == {"sdist": "a-1.0.tar.gz"}
    sdist = root / "into" / "a-1.0.tar.gz"
    assert here(request(root, backend, operation="wheel", source=sdist)) == {
        "wheel": "a-1.0-py3-none-any.whl"
    }
    assert here(request(root, backend, operation="metadata")) == {"metadata": "Name: a"}


@pytest.mark.parametrize("operation", ["sdist", "wheel", "metadata"])
def test_what_a_hook_asks_for_is_the_answer(root: Path, here: Here, operation: str) -> None:
    kind = "sdist" if operation == "sdist" else "wheel"
    more = f"def get_requires_for_build_{kind}(settings): return ['there', 'missing']"
    backend = in_tree(root, more)
    source = root / "a"
    if operation == "wheel":
        here(request(root, backend))
        source = root / "into" / "a-1.0.tar.gz"
    asked = request(root, backend, operation=operation, source=source, installed=("there",))
    assert here(asked) == {"requires": ["missing"]}


def test_the_metadata_hook(root: Path, here: Here) -> None:
    metadata = here(request(root, operation="metadata"))["metadata"]
    assert "Name: a\nVersion: 1.0\n" in str(metadata)


def test_a_backend_path_that_leads_out_is_refused(root: Path, here: Here) -> None:
    """R36"""
    with pytest.raises(SystemExit, match="backend-path leads out of the source tree: "):
        here(request(root, in_tree(root, path="..")))


def test_a_backend_from_elsewhere_is_refused_where_the_tree_names_a_path(
    root: Path, here: Here
) -> None:
    backend = BuildSystem(requires=(), backend="hatchling.build", backend_path=(".",))
    with pytest.raises(SystemExit, match="does not come from its backend-path"):
        here(request(root, backend))


def test_a_backend_may_be_an_attribute(root: Path, here: Here) -> None:
    in_tree(root, "class Outer: build_sdist = staticmethod(build_sdist)")
    backend = BuildSystem(requires=(), backend="in_tree:Outer", backend_path=(".",))
    assert here(request(root, backend)) == {"sdist": "a-1.0.tar.gz"}


CLIENT = """import json, sys
for line in json.loads(sys.argv[1]):
    print(line, flush=True)
answers = [json.loads(sys.stdin.readline()) for _ in range(int(sys.argv[2]))]
open(sys.argv[3], "w").write(json.dumps(answers))
"""


def served(root: Path, lines: list[str], answers: int) -> list[dict[str, object]]:
    """What a server in this process answers to these lines, by another process."""
    request_reader, request_writer = os.pipe()
    answer_reader, answer_writer = os.pipe()
    result = root / "answers.json"
    argv = [sys.executable, "-I", "-c", CLIENT, json.dumps(lines), str(answers), str(result)]
    with subprocess.Popen(argv, stdin=answer_reader, stdout=request_writer):
        os.close(request_writer)
        worker.WorkerServer(request_reader, answer_writer).serve()
        for fd in (answer_writer, answer_reader, request_reader):
            os.close(fd)
    return sorted(json.loads(result.read_text()), key=lambda it: str(it["id"]))


def test_the_server_answers_by_number_and_warms_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(worker, "_warm_up", imported.extend)
    backend = in_tree(root)
    # Each in a tree of its own: what one build removes, the other would trip over.
    (root / "b").mkdir()
    (root / "a" / "in_tree.py").rename(root / "b" / "in_tree.py")
    alone = request(root, backend, source=root / "b", into=root / "scratch")
    lines = [line(request(root), 1), line(alone, 2)]
    assert served(root, lines, 2) == [
        {"id": 1, "sdist": "a-1.0.tar.gz", "wheel": "a-1.0-py3-none-any.whl"},
        {"id": 2, "sdist": "a-1.0.tar.gz"},
    ]
    assert "in_tree" not in imported


def test_the_server_says_how_a_build_ended(root: Path) -> None:
    dying = in_tree(root, "\ndef build_sdist(*_): os.kill(os.getpid(), int(os.environ['SIGNAL']))")
    lines = [
        line({**request(root, dying), "environment": {"SIGNAL": "9"}}, 1),
        line({**request(root, dying), "environment": {"SIGNAL": "40"}}, 2),
        line(request(root, source=root / "nowhere"), 3),
    ]
    assert served(root, lines, 3) == [
        {"id": 1, "error": "its build was killed by SIGKILL"},
        {"id": 2, "error": "its build was killed by signal 40"},
        {"id": 3, "error": "its build failed with exit code 1"},
    ]


def test_what_a_build_leaves_in_the_tree_is_removed(root: Path) -> None:
    """R25: also of one that is cancelled, but nothing that was there before or is another's."""
    os.mkfifo(root / "fifo")
    backend = in_tree(
        root,
        f"""
def build_wheel(*_):
    for name in ("a.egg-info", "src/b.egg-info", "other/c.egg-info"):
        os.makedirs(name)
    raise SystemExit(open({str(root / "fifo")!r}).read())
""",
    )
    kept = root / "a" / "kept.egg-info"
    kept.mkdir()
    (root / "a" / "other").mkdir()
    (root / "a" / "other" / "pyproject.toml").touch()
    first, cancelled = request(root, backend), request(root, backend, operation="metadata")
    left = {"kept.egg-info", "in_tree.py", "module.py", "other", "pyproject.toml", "src"}

    async def body(child: Conversation) -> None:
        assert (await child.ask(first))["sdist"]
        assert {path.name for path in (root / "a").iterdir()} == left - {"src"}
        waiting = asyncio.ensure_future(child.ask(cancelled, cancellable=True))
        fifo = await asyncio.to_thread((root / "fifo").open, "w")  # as soon as it is read from
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        fifo.close()

    talk(root, body)
    assert {path.name for path in (root / "a").iterdir()} == left
    assert not list((root / "a" / "src").iterdir())
    assert (root / "a" / "other" / "c.egg-info").exists()


def test_a_build_can_be_cancelled_and_none_outlives_the_requests(root: Path) -> None:
    """R27 R29"""
    os.mkfifo(root / "fifo")
    waiting = in_tree(root, f"\ndef build_sdist(*_): open({str(root / 'fifo')!r}).read()")
    lines = [line(request(root, waiting), number) for number in (1, 2)]
    answers = served(root, [*lines, json.dumps({"cancel": 1})], 1)
    assert answers == [{"id": 1, "error": "its build was killed by SIGKILL"}]


@pytest.mark.parametrize("in_tree", [[], ["backend"]])
def test_a_rehearsal_imports_hatchling_and_leaves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, in_tree: list[str]
) -> None:
    """In the worker itself, from which builds are forked; never for a backend of the tree."""
    kept = {name: sys.modules[name] for name in sys.modules if name.startswith("hatchling")}
    for name in kept:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(gc, "freeze", list)
    monkeypatch.chdir(root / "scratch")
    question = {"operation": "rehearse", "backend": "hatchling.build", "backend_path": in_tree}
    assert served(root, [json.dumps({**question, "id": 1})], 1) == [{"id": 1}]
    imported = {name for name in sys.modules if name.startswith("hatchling")}
    # Those that nobody had imported before belong to the copies that are about to be replaced.
    for name in imported - kept.keys():
        del sys.modules[name]
    wanted = {"hatchling.build", "hatchling.builders.sdist", "hatchling.builders.wheel"}
    assert imported & wanted == (set() if in_tree else wanted)
    assert Path.cwd() == root / "scratch"
    assert not list(Path.cwd().iterdir())


def test_without_hatchling_a_rehearsal_does_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("hatchling")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(gc, "freeze", pytest.fail)
    monkeypatch.chdir(root / "scratch")
    worker.rehearse()
    assert not list(Path.cwd().iterdir())


def test_inert_builds_share_a_process_until_one_fails(root: Path) -> None:
    """Neither the variables nor the leftovers of one are there in the next."""
    seen = root / "seen"
    backend = in_tree(
        root,
        f"""
build = build_sdist
def build_sdist(directory, settings=None):
    with open({str(seen)!r}, "a") as file:
        print(os.getpid(), os.environ.get("FOR", ""), file=file)
    print("built", flush=True)
    return build(directory, settings) if os.environ.get("FOR") != "failing" else {{}}["failing"]
""",
    )
    inert = {**request(root, backend, inert=True), "environment": {}}

    async def body(child: Conversation) -> None:
        for asked in ({**inert, "environment": {"FOR": "first"}}, inert):
            assert (await child.ask(asked))["sdist"]
        with pytest.raises(BuildFailed, match="failed with exit code 1"):
            await child.ask({**inert, "environment": {"FOR": "failing"}})
        for asked in (inert, {**inert, "inert": False}, inert):
            assert (await child.ask(asked))["sdist"]

    talk(root, body)
    rows = [row.split(" ") for row in seen.read_text().splitlines()]
    order = [*dict.fromkeys(pid for pid, _ in rows)]
    assert [(order.index(pid), wanted) for pid, wanted in rows] == [
        (0, "first"), (0, ""), (0, "failing"), (1, ""), (2, ""), (1, ""),
    ]  # fmt: skip
    assert (root / "log").read_text().count("built\n") == 6


def test_an_inert_build_that_is_cancelled_ends_its_process(root: Path) -> None:
    """R29"""
    os.mkfifo(root / "fifo")
    more = f"\ndef build_wheel(*_): raise SystemExit(open({str(root / 'fifo')!r}).read())"
    inert = request(root, in_tree(root, more), inert=True)

    async def body(child: Conversation) -> None:
        assert (await child.ask(inert))["sdist"]
        asked = child.ask({**inert, "operation": "metadata"}, cancellable=True)
        waiting = asyncio.ensure_future(asked)
        fifo = await asyncio.to_thread((root / "fifo").open, "w")  # as soon as it is read from
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await child.ask(inert))["sdist"]
        fifo.close()

    talk(root, body)


def test_what_builds_import_is_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    worker._warm_up(["colorsys", "json", "no.such.module"])
    assert "colorsys" in sys.modules
    worker._warm_up([])
    worker._warm_up(["colorsys"])
    assert frozen == [True]
    assert worker._reusable({"colorsys", "__main__", "conftest", "builtins"}) == ["colorsys"]


def test_a_cancelled_request_is_killed_and_its_answer_dropped(root: Path) -> None:
    """R29"""
    os.mkfifo(root / "fifo")
    more = f"\ndef build_sdist(*_): open({str(root / 'fifo')!r}).read()"
    backend = in_tree(root, more)

    async def body(child: Conversation) -> None:
        cancelled = asyncio.ensure_future(child.ask(request(root, backend), cancellable=True))
        await child.ask(request(root))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert "sdist" in await child.ask(request(root))
        waiting = asyncio.ensure_future(child.ask(request(root, backend)))
        await child.ask(request(root))
        await child.aclose()
        with pytest.raises(BuildFailed, match="it ended"):
            await waiting

    talk(root, body)


def test_no_build_outlives_a_program_that_reads_no_answers(root: Path) -> None:
    """R25, R27: killed while one package is being built, just when another's build has ended."""
    wait = "\nimport time\nwhile not os.path.exists('../go'):\n    time.sleep(0.01)\n"
    quick = in_tree(root, wait)
    (root / "a" / "slow.py").write_text(
        "import os, time\n"
        "os.makedirs('slow.egg-info')\n"
        "open('../started', 'w').close()\n"
        "time.sleep(600)\n"
    )
    slow = BuildSystem(requires=(), backend="slow", backend_path=(".",))
    held, inherited = os.pipe()
    with subprocess.Popen(
        [sys.executable, worker.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[inherited],
        process_group=0,
        text=True,
    ) as process:
        os.close(inherited)
        assert process.stdin
        assert process.stdout
        for number, backend in enumerate([slow, quick]):
            process.stdin.write(line(request(root, backend), number) + "\n")
        process.stdin.flush()
        wait_until((root / "started").exists)
        process.stdout.close()
        (root / "go").touch()
        # Its answer finds no reader, before the requests come to their end.
        code = process.wait(PATIENCE_S)
    # A build that still ran would hold its end.
    ended, _, _ = select.select([held], [], [], PATIENCE_S)
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
    assert ended
    assert code == 0
    assert not (root / "a" / "slow.egg-info").exists()


def test_a_log_that_nobody_reads_any_more_ends_the_build(root: Path) -> None:
    """R14: a pipe of a run that was killed, whose locks the worker would hold for ever."""
    os.mkfifo(root / "pipe")

    async def body(child: Conversation) -> None:
        with pytest.raises(BuildFailed, match="its build failed with exit code 1"):
            await child.ask(request(root, in_tree(root), log=root / "pipe"))

    talk(root, body)
    assert not (root / "a" / "a.egg-info").exists()
