"""Runs inside a build environment, with the standard library alone, and calls PEP 517 hooks.

One worker serves every package that is built in its environment: a request is a line of JSON on
stdin, its answer a line on the stdout it was started with. Each request runs in a forked child,
so that no build changes directory, modules or state of another, and yet finds the build backend
imported: the worker imports what the first builds import. Asked to `rehearse`, it imports
hatchling before them. `inert` requests run no code of their source tree, and share a child: most
of what such a build takes otherwise are the pages that a new process copies.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import sys
import sysconfig
import tarfile
import tempfile
import traceback
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# The hooks of these backends keep no state between calls, so that sdist and wheel can share a
# process; it saves a third of the time. Others get a process for each hook, as in pip and build.
REENTRANT = frozenset({"hatchling.build", "uv_build", "flit_core.buildapi"})

# The smallest project, which needs no plugins.
REHEARSAL = '[project]\nname = "rehearsal"\nversion = "1"\n'

Request = dict[str, Any]
Answer = dict[str, Any]


class WorkerServer:
    """The builds under way, and the pipes of requests and answers."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._builds: dict[int, Build] = {}
        self._idle: list[Build] = []

    def serve(self) -> None:
        """Serve until the requests end, or the reader of the answers is gone. Builds end then: they
        would hold the lock of a killed run. What they left in the tree is removed.
        """
        try:
            self._converse()
        except ConnectionError:
            pass
        finally:
            self.kill()
            for build in (*self._builds.values(), *self._idle):
                build.end()

    def _converse(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ)
            buffer = b""
            while True:
                for key, _ in selector.select():
                    if key.fd == self._requests:
                        chunk = os.read(self._requests, 65536)
                        if not chunk:
                            return
                        *lines, buffer = (buffer + chunk).split(b"\n")
                        for line in lines:
                            self._take(json.loads(line), selector)
                    elif not self._builds[key.fd].read():
                        selector.unregister(key.fd)
                        build = self._builds.pop(key.fd)
                        self._send(build.answer())
                        if build.serves_on:
                            self._idle.append(build)

    def kill(self, number: int | None = None) -> None:
        """One build, or all."""
        for build in (*self._builds.values(), *(self._idle if number is None else ())):
            if number in {None, build.id}:
                build.serves_on = False
                os.kill(build.pid, signal.SIGKILL)

    def _take(self, request: Request, selector: selectors.BaseSelector) -> None:
        if "cancel" in request:
            self.kill(request["cancel"])
            return
        if request["backend"] == "hatchling.build" and not request["backend_path"]:
            rehearse()
        if request["operation"] == "rehearse":
            self._send({"id": request["id"]})
            return
        if request["inert"] and self._idle:
            build = self._idle.pop()
        else:
            others = (*self._builds.values(), *self._idle)
            build = Build(close=[self._answers, *(each.requests for each in others)])
        build.take(request)
        self._builds[build.fd] = build
        selector.register(build.fd, selectors.EVENT_READ)

    def _send(self, answer: Answer) -> None:
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(self._answers, data) :]


class Build:
    """A process that serves one request, or one inert request after the other. It closes the
    worker's own descriptors, so that it ends with the worker.
    """

    def __init__(self, *, close: Iterable[int]) -> None:
        self.fd, answers = os.pipe()
        requests, self.requests = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:  # pragma: no cover - ends before coverage is saved
            for fd in (*close, self.requests, self.fd):
                os.close(fd)
            _child(requests, answers)
        os.close(answers)
        os.close(requests)

    def take(self, request: Request) -> None:
        self.id = request["id"]
        self.serves_on = bool(request["inert"])
        self._source = Path(request["source"])
        self._before = frozenset(_litter(self._source))
        self._received = b""
        data = json.dumps(request).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # its end tells how it ended
            while data:
                data = data[os.write(self.requests, data) :]

    def read(self) -> bool:
        """False at the end of the child's answer, which is a line: a process that the build left
        running may keep the pipe open.
        """
        chunk = os.read(self.fd, 65536)
        self._received += chunk
        return bool(chunk) and not chunk.endswith(b"\n")

    def end(self) -> int:
        """Its wait status, once it has ended; remove what it has left in the tree."""
        self.serves_on = False
        os.close(self.fd)
        os.close(self.requests)
        _, status = os.waitpid(self.pid, 0)
        self._tidy()
        return status

    def _tidy(self) -> None:
        for path in _litter(self._source):
            if path not in self._before:
                shutil.rmtree(path, ignore_errors=True)

    def answer(self) -> Answer:
        if self.serves_on and self._received.endswith(b"\n"):
            self._tidy()
            status = 0
        else:
            status = self.end()
        if self._received and status == 0:
            said = json.loads(self._received)
            _warm_up(said.pop("modules"))
            return {"id": self.id, **said}
        code = os.waitstatus_to_exitcode(status)
        how = (
            f"was killed by {_signal_name(-code)}" if code < 0 else f"failed with exit code {code}"
        )
        return {"id": self.id, "error": f"its build {how}"}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal; only two of them have names
        return f"signal {number}"


def _child(requests: int, answers: int) -> None:  # pragma: no cover - as above
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        environment = dict(os.environ)
        pipe = os.fdopen(answers, "wb")
        for line in os.fdopen(requests, encoding="utf-8"):
            request = json.loads(line)
            _print_to(request["log"])
            os.environ.update(request["environment"])
            before = set(sys.modules)
            answer = OPERATIONS[request["operation"]](request)
            answer["modules"] = _reusable(set(sys.modules) - before)
            sys.stdout.flush()
            sys.stderr.flush()
            if request["inert"]:
                os.environ.clear()
                os.environ.update(environment)
                # Whoever reads the log waits for its end.
                os.dup2(null, 1)
                os.dup2(null, 2)
            pipe.write(json.dumps(answer).encode() + b"\n")
            pipe.flush()
            if not request["inert"]:
                break
        status = 0
    except BaseException as error:  # noqa: BLE001 - the end of this process; setup.py may exit
        _show(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _print_to(place: str) -> None:  # pragma: no cover - as above
    # To open a pipe without a reader would block, with the locks of a dead run.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    log = os.open(place, flags, 0o644)
    os.set_blocking(log, True)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _show(error: BaseException) -> None:  # pragma: no cover - as above
    """Print its traceback, from the first frame of the build's code."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    traceback.print_exception(type(error), error, place)


def _reusable(names: set[str]) -> list[str]:
    """The modules of the environment or of Python, not of one source tree."""
    ours = tuple(
        path for path in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")) if path
    )
    return sorted(
        name
        for name in names
        if (spec := getattr(sys.modules.get(name), "__spec__", None)) is not None
        and spec.name == name
        and str(spec.origin).startswith(ours)
    )


def _warm_up(names: Sequence[str]) -> None:
    new = [name for name in names if name not in sys.modules]
    for name in new:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001, S112 - third-party code, and only an optimisation
            continue
    if new:
        # A collection in a child would copy every page it shares with this process.
        # https://docs.python.org/3/library/gc.html#gc.freeze
        gc.freeze()


def rehearse() -> None:
    """Build an empty project with hatchling, once: no build has to import it then, or compile the
    regular expressions that it uses. It runs no other code, and importing it has no side effects.
    """
    if "hatchling.build" in sys.modules:
        return
    here = Path.cwd()
    try:
        backend: Any = importlib.import_module("hatchling.build")
        with tempfile.TemporaryDirectory(dir=here) as project:
            os.chdir(project)
            Path("pyproject.toml").write_text(REHEARSAL)
            Path("rehearsal.py").touch()
            backend.build_sdist(project)
            backend.build_wheel(project)
    except Exception:  # noqa: BLE001 - only an optimisation: a build says what is wrong
        return
    finally:
        os.chdir(here)
    gc.freeze()


class Hooks:
    """The PEP 517 hooks of one source tree; the current directory is the tree.
    https://peps.python.org/pep-0517/#build-backend-interface
    """

    def __init__(self, request: Request, source: Path) -> None:
        os.chdir(source)
        self._settings = request["config_settings"]
        self._installed = set(request["installed"])
        in_tree = [(source / entry).resolve() for entry in request["backend_path"]]
        for entry in in_tree:
            if not entry.is_relative_to(source.resolve()):
                raise SystemExit(f"build-system.backend-path leads out of the source tree: {entry}")
        sys.path[:0] = map(str, in_tree)
        module, _, attributes = request["backend"].partition(":")
        backend: Any = importlib.import_module(module)
        if in_tree and not any(
            Path(backend.__file__).resolve().is_relative_to(entry) for entry in in_tree
        ):
            raise SystemExit(f"the build backend {module} does not come from its backend-path")
        for attribute in filter(None, attributes.split(".")):
            backend = getattr(backend, attribute)
        self._backend = backend
        self._hidden = request["hidden"] if module.split(".")[0] == "hatchling" else ()

    def missing(self, kind: str) -> list[str]:
        """What get_requires_for_build_{kind} asks for, if there is one, and is not installed."""
        hook: Callable[[Any], list[str]] | None
        hook = getattr(self._backend, f"get_requires_for_build_{kind}", None)
        return sorted(set(hook(self._settings)) - self._installed) if hook else []

    def build(self, kind: str, into: Path) -> Path:
        _hide(self._hidden)
        hook: Callable[[str, Any], str] = getattr(self._backend, f"build_{kind}")
        name = hook(str(into), self._settings)
        if not isinstance(name, str):
            raise SystemExit(f"the build backend named no file, but {type(name).__name__}")
        return into / name

    def metadata(self, into: Path) -> str:
        """The text of METADATA, from the wheel itself where the backend has no such hook."""
        hook: Callable[[str, Any], str] | None
        hook = getattr(self._backend, "prepare_metadata_for_build_wheel", None)
        if hook:
            text: str = (into / hook(str(into), self._settings) / "METADATA").read_text("utf-8")
            return text
        with zipfile.ZipFile(self.build("wheel", into)) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return str(wheel.read(name), "utf-8")


def sdist(request: Request) -> Answer:
    """An sdist of the tree, and its wheel where one process may build both, unless `alone`."""
    source, into = Path(request["source"]), Path(request["into"])
    hooks = Hooks(request, source)
    if missing := hooks.missing("sdist"):
        return {"requires": missing}
    built = hooks.build("sdist", into)
    reentrant = request["backend"] in REENTRANT and not request["backend_path"]
    if reentrant and not request.get("alone"):
        return {"sdist": built.name, **wheel({**request, "source": str(built)})}
    return {"sdist": built.name}


def wheel(request: Request) -> Answer:
    """A wheel of an sdist."""
    with tempfile.TemporaryDirectory(dir=request["scratch"]) as scratch:
        with tarfile.open(request["source"]) as archive:
            _extract(archive, Path(scratch).resolve())
        unpacked, *others = [*Path(scratch).iterdir(), None]
        if unpacked is None or len(others) != 1:
            raise SystemExit("the sdist does not hold one directory and nothing else")
        hooks = Hooks(request, unpacked)
        if missing := hooks.missing("wheel"):
            return {"requires": missing}
        return {"wheel": hooks.build("wheel", Path(request["into"])).name}


def _extract(archive: tarfile.TarFile, into: Path) -> None:
    # The filter refuses paths and links that lead out, devices, and odd permissions. It came with
    # Python 3.11.4: https://docs.python.org/3/library/tarfile.html#tarfile.data_filter
    if hasattr(tarfile, "data_filter"):
        archive.extractall(into, filter="data")
        return
    for member in archive:
        inside = (into / member.name).resolve().is_relative_to(into)
        if not inside or not (member.isreg() or member.isdir()):
            raise tarfile.ExtractError(f"{member.name} is not a file inside the sdist")
    archive.extractall(into)  # noqa: S202 (just checked)


def metadata(request: Request) -> Answer:
    """The METADATA of the wheel the tree would be built into now."""
    with tempfile.TemporaryDirectory(dir=request["scratch"]) as scratch:
        if not request["inert"]:
            _keep_egg_info(Path(scratch))
        hooks = Hooks(request, Path(request["source"]))
        if missing := hooks.missing("wheel"):
            return {"requires": missing}
        return {"metadata": hooks.metadata(Path(scratch))}


def _keep_egg_info(scratch: Path) -> None:
    """Let setuptools write its egg-info there, not over one in the tree that git may track, also
    where it is asked for requirements.
    https://setuptools.pypa.io/en/latest/deprecated/distutils/configfile.html
    """
    settings = scratch / "setup.cfg"
    settings.write_text(f"[egg_info]\negg_base = {scratch}\n", encoding="utf-8")
    os.environ.setdefault("DIST_EXTRA_CONFIG", str(settings))


OPERATIONS: dict[str, Callable[[Request], Answer]] = {
    "sdist": sdist,
    "wheel": wheel,
    "metadata": metadata,
}


def _litter(source: Path) -> Iterator[Path]:
    """The directories that setuptools makes in a source tree."""
    yield from source.glob("build")
    yield from source.glob("*.egg-info")
    for path in source.glob("*/*.egg-info"):
        if not path.with_name("pyproject.toml").exists():  # else it is another package's
            yield path


def _hide(names: Iterable[str]) -> None:
    """Keep our state directory out of hatchling's walk: hatchling reads only the root's .gitignore,
    not the one in there. https://hatch.pypa.io/latest/config/build/#file-selection
    """
    if names:
        config: Any = importlib.import_module("hatchling.builders.config")
        config.EXCLUDED_DIRECTORIES = config.EXCLUDED_DIRECTORIES | set(names)


def main() -> None:  # pragma: no cover - it moves the descriptors of the whole process
    # The output of a backend goes to its package's log, never between the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    # Otherwise its lines would come after the traceback.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    WorkerServer(0, answers).serve()


if __name__ == "__main__":  # pragma: no cover
    main()
