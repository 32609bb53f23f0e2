"""What builds plant for the process that runs outside of their sandbox: links, pipes, files without
an end and files of 50 GB, where it reads or writes by a path.

All victims lie in `canary`, which no build can write. A package of Python does the harm, as it is
built, as it is planned (a version that its backend computes) or as a process that it leaves behind.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from effort import SEARCHING
from hostile.builds import TOOLS
from hostile.case import HARM, Case, Content, Fifo, Link, Sparse, cases
from hostile.workspaces_of import CARGO, commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# More than any memory here, and more than can be read in the time of a run.
HUGE: Final = 50 * 1024**3
# What a plain run takes is a tenth of it.
DEADLINE: Final = ("--deadline", "15s")
_ENDS: Final = frozenset({0, 1, 2, 3, 130})
# Written by what does the harm, so that no case passes because nothing was ever run.
_RAN: Final = f"{{root}}/{HARM}"
UV: Final = str(Path(sys.executable).with_name("uv"))
# Each puts something in the place of the file `place`; one step, so that nobody sees it half done.
_TRICKS: Final = f"""\
def swap(place, make):
    made = place.with_name(place.name + ".made")
    made.unlink(missing_ok=True)
    make(made)
    os.replace(made, place)

def a_fifo(place):
    swap(place, os.mkfifo)

def a_sparse_file(place):
    def make(made):
        with made.open("wb") as file:
            file.truncate({HUGE})
    swap(place, make)

def a_link_without_end(place):
    swap(place, lambda made: made.symlink_to("/dev/zero"))

def a_link_outside(place):
    swap(place, lambda made: made.symlink_to("{{root}}/canary/precious"))

def left_behind(work):
    if os.fork():
        return
    try:
        work()
    finally:
        os._exit(0)

def each_until(ready):
    while os.path.isdir("{{root}}/w"):
        if found := ready():
            return found

"""
# What each leaves there.
_CONTENTS: Final[Mapping[str, Content]] = {
    "a_fifo": Fifo(),
    "a_sparse_file": Sparse(HUGE),
    "a_link_without_end": Link("/dev/zero"),
    "a_link_outside": Link("{root}/canary/precious"),
}
TRICKS: Final = (*_CONTENTS,)


def _some(at: int) -> tuple[str, ...]:
    """One trick at each place, another one at the next; all at each in a long search."""
    return TRICKS if SEARCHING else (TRICKS[at % len(TRICKS)],)


_AT_CORE: Final = 'Path("{root}/w/packages/core/pyproject.toml")'


def project(name: str, *, needs: str = "[]", requires: str = "[]", dynamic: bool = False) -> str:
    """A pyproject.toml whose backend is `backend.py` beside it; the two are lists, as in TOML."""
    version = 'dynamic = ["version"]' if dynamic else 'version = "1.0.0"'
    sources = "".join(
        f"{each} = {{ workspace = true }}\n"
        for each in ("core", "evil")
        if f'"{each}"' in needs + requires
    )
    return (
        f'[project]\nname = "{name}"\n{version}\ndependencies = {needs}\n\n[build-system]\n'
        f'requires = {requires}\nbuild-backend = "backend"\nbackend-path = ["."]\n\n'
        f"[tool.uv.sources]\n{sources}"
    )


def _package(name: str, code: str = "", **of: Any) -> dict[str, Content]:
    backend = TOOLS.replace("evil.py", "backend.py") + _TRICKS + code
    return {
        f"w/packages/{name}/pyproject.toml": project(name, **of),
        f"w/packages/{name}/backend.py": backend,
    }


def _case(name: str, files: Mapping[str, Content], *argv: str, **more: Any) -> Case:
    usual: dict[str, Any] = {
        "never_says": ("is not a flag",),
        "codes": _ENDS,
        "may_write": ("registry", "w"),
        "sandboxed": True,
    }
    return Case(
        name=name,
        files={"w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n', **files},
        argv=(
            *(argv or ("publish", "--registry", "dir:{root}/registry")),
            *("--uv-path", UV, "--build-sandbox", "required", *DEADLINE),
        ),
        **{**usual, **more},
    )


def _hook(name: str, body: str, then: str = "") -> str:
    body = f"Path('{_RAN}').touch()\n{body.strip()}"
    lines = "\n".join(f"    {line}" for line in [*body.split("\n"), then] if line.strip())
    return f"def {name}(directory=None, *_):\n{lines}\n"


def _building(body: str) -> str:
    """Done once the sdist is there, as a backend reads its own manifest for it."""
    return _hook("build_sdist", f"name = sdist(directory)\n{body.strip()}", "return name")


def _planning(body: str) -> str:
    """Done as the backend is asked for its version, before there is a plan."""
    told = (
        'place = Path(directory, f"{STEM}.dist-info")\nplace.mkdir()\n'
        'Path(place, "METADATA").write_text(ABOUT)\nreturn place.name'
    )
    return _hook("prepare_metadata_for_build_wheel", f"{body.strip()}\n{told}")


_LINE: Final = "victim @ file:///nowhere/victim-1-py3-none-any.whl"
# The digest of the lines is the name of the file that has them.
_KEY: Final = hashlib.sha256(_LINE.encode()).hexdigest()[:16]
_ASKED: Final = f"""\
LINES, KEY, SCRATCH = [{_LINE!r}], {_KEY!r}, Path(sys.prefix).parent

"""


def _requirements() -> Iterator[Case]:
    """Build requirements are written down outside of the sandbox, under a name that is foretold."""
    plants: Mapping[str, str] = {
        "a link in the place of the requirements": (
            "for place in {SCRATCH, *Path('{root}/tmp').glob('releasekit-*')}:\n"
            "    Path(place, f'environment-{KEY}.txt').symlink_to('{root}/canary/precious')"
        ),
        "a pipe in the place of the requirements": (
            "for place in {SCRATCH, *Path('{root}/tmp').glob('releasekit-*')}:\n"
            "    os.mkfifo(Path(place, f'environment-{KEY}.txt'))"
        ),
        "a link in the place of the scratch directory": (
            "SCRATCH.rename('{root}/tmp/aside')\nSCRATCH.symlink_to('{root}/canary/inside')"
        ),
    }
    # What the last one would write to, and remove.
    known = f"canary/inside/environment-{_KEY}.txt"
    for name, plant in plants.items():
        asks = _hook("get_requires_for_build_sdist", plant, "return LINES")
        yield _case(name, {**_package("core", _ASKED + asks), known: "precious"})


def _wheels() -> Iterator[Case]:
    """`app` needs the wheel of `core` for its build, and `evil` is built in between."""
    wheel = 'Path("{root}/w/.releasekit/dist/pypi/core/1.0.0/core-1.0.0-py3-none-any.whl")'
    for trick in _some(0):
        evil = _building(f"{trick}({wheel})")
        yield _case(
            f"a wheel that another build needs as {trick}",
            {
                **_package("core"),
                **_package("evil", evil, needs='["core"]', requires='["core"]'),
                **_package("app", needs='["core", "evil"]', requires='["core", "evil"]'),
            },
        )


def _manifests() -> Iterator[Case]:
    """Manifests are read again after the build, after the plan, and where they were pinned."""
    for trick in _some(3):
        own = _building(f"{trick}({_AT_CORE})")
        yield _case(f"the manifest of a built package as {trick}", _package("core", own))
        at_app = _AT_CORE.replace("core", "app")
        app = _package("app", _building(f"{trick}({at_app})"), needs='["core"]')
        yield _case(
            f"a pinned manifest as {trick}",
            {**_package("core"), **app},
            *("publish", "--registry", "dir:{root}/registry", "--pin", "exact"),
        )
        computed = _planning(f"{trick}({at_app})")
        files = {**_package("core", computed, dynamic=True), **_package("app")}
        yield _case(
            f"a manifest as {trick}, made by a backend that is asked for its version",
            files,
            *("plan", "--registry", "dir:{root}/registry"),
        )


def _built() -> Iterator[Case]:
    """What a build hands over is a file, and too large to be read in the time of a run."""
    sized = f"with Path(directory, NAMED).open('r+b') as file:\n    file.truncate({HUGE})"
    for kind, named, made in (
        ("wheel", "WHEEL", "wheel"),
        ("sdist", "f'{STEM}.tar.gz'", "sdist"),
    ):
        code = f"NAMED = {named}\n" + _hook(
            f"build_{made}", f"{made}(directory)\n{sized}", "return NAMED"
        )
        yield _case(f"a sparse {kind} of 50 GB", _package("core", code))


CRATE: Final[Mapping[str, Content]] = {
    "w/Cargo.toml": CARGO,
    "w/src/lib.rs": "",
    "w/Cargo.lock": 'version = 4\n\n[[package]]\nname = "acme"\nversion = "0.9.0"\n',
}
_LOCK: Final = 'Path("{root}/w/Cargo.lock")'


def _crates() -> Iterator[Case]:
    """Cargo.lock is read before cargo packages, and restored after it."""
    for at, command in enumerate(("plan", "publish")):
        for what in _some(at):
            yield _case(
                f"{command}: Cargo.lock is {what}",
                {**CRATE, "w/Cargo.lock": _CONTENTS[what], "w/pyproject.toml": None},
                *(command, "--registry", "dir:{root}/registry", "--ecosystem", "cargo"),
            )
    for trick in _some(2):
        yield _case(
            f"a Cargo.lock as {trick}, made as the plan was",
            {**CRATE, **_package("core", _planning(f"{trick}({_LOCK})"), dynamic=True)},
        )
    # As it is compiled, in the middle of cargo's own call.
    script = (
        "fn main() {\n"
        f'    std::fs::write("{_RAN}", "").unwrap();\n'
        '    let lock = "{root}/w/Cargo.lock";\n'
        "    let _ = std::fs::remove_file(lock);\n"
        '    std::os::unix::fs::symlink("{root}/canary/precious", lock).unwrap();\n}\n'
    )
    yield _case(
        "a Cargo.lock as a link outside, made while cargo packages",
        {
            **CRATE,
            "w/build.rs": script,
            "w/pyproject.toml": None,
        },
        *("publish", "--registry", "dir:{root}/registry", "--ecosystem", "cargo"),
    )


POM: Final = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>com.example</groupId><artifactId>acme</artifactId><version>1.0.0</version></project>"
)
VERSIONS: Final = "<versions><version>1.0.0</version></versions>"
# Its parts are many, so that whoever swaps one has time, and each has a file of that name.
_PARTS: Final = {
    f"w/parts/d{part}/f{number}": "x" for part in range(12) for number in range(250)
} | {f"w/parts/d{part}/precious": "overwritten" for part in range(12)}
_STAND_IN: Final = "#!/bin/sh\nexit 1\n"


def _executable(*names: str) -> Callable[[Path], None]:
    def prepare(root: Path) -> None:
        for name in names:
            (root / name).chmod(0o755)

    return prepare


def _reactors() -> Iterator[Case]:
    """The sources of a reactor are copied to where a build can write, before mvn starts."""
    swapping = """\
def swapped():
    copies = Path("{root}/w/.releasekit/work/maven")
    each_until(lambda: [*copies.glob("*/sources/parts")])
    while parts := [*copies.glob("*/sources/parts/d*")]:
        for number, part in enumerate(parts):
            try:
                if not part.is_symlink():
                    part.rename(f"{root}/tmp/{part.name}-{os.getpid()}")
                    part.symlink_to("{root}/canary")
            except OSError:
                pass
left_behind(swapped)"""
    yield _case(
        "a directory of a reactor's copy as a link outside",
        {
            **_package("core", _planning(swapping), dynamic=True),
            "w/pom.xml": POM,
            "w/mvnw": _STAND_IN,
            "w/releasekit.toml": '[maven]\ncommand = "./mvnw"\n',
            **_PARTS,
        },
        prepare=_executable("w/mvnw"),
    )
    # The reactor's own program deploys what it likes.
    staged = '"$1"/com/example/acme/1.0.0'
    where = (
        'for each in "$@"; do case "$each" in -DaltDeploymentRepository=*) '
        'set -- "${each##*file://}";; esac; done\n'
        f"mkdir -p {staged}\n"
    )
    listed = f"<metadata><versioning>{VERSIONS}</versioning></metadata>"
    pom = f"echo '{POM}' >{staged}/acme-1.0.0.pom\n"
    table = f"echo '{listed}' >\"$1\"/com/example/acme/maven-metadata.xml\n"
    made: Mapping[str, str] = {
        "a jar of 50 GB": f"{pom}{table}truncate -s {HUGE} {staged}/acme-1.0.0.jar\n",
        "a POM of 50 GB": f"{table}truncate -s {HUGE} {staged}/acme-1.0.0.pom\n",
        "metadata of 50 GB": (
            f'{pom}truncate -s {HUGE} "$1"/com/example/acme/maven-metadata.xml\nexit 1\n'
        ),
        "a pipe as POM": f"{table}mkfifo {staged}/acme-1.0.0.pom\n",
        "a pipe as jar": f"{pom}{table}mkfifo {staged}/acme-1.0.0.jar\n",
        "a pipe as metadata": f'{pom}mkfifo "$1"/com/example/acme/maven-metadata.xml\nexit 1\n',
        "a link as directory": (f"{table}rmdir {staged}\nln -s {{root}}/canary/inside {staged}\n"),
    }
    for name, script in made.items():
        yield _case(
            f"deployed: {name}",
            {
                "w/pyproject.toml": None,
                "w/pom.xml": POM,
                "w/mvnw": f"#!/bin/sh\ntouch {_RAN}\n{where}{script}",
                "w/releasekit.toml": '[maven]\ncommand = "./mvnw"\n',
                "canary/inside/acme-1.0.0.pom": POM,
            },
            prepare=_executable("w/mvnw"),
        )


def _packed() -> Iterator[Case]:
    """A script of npm's that runs once the tarball is there."""
    found = "find {root}/w/.releasekit/dist -name '*.tgz'"
    bomb = f"head -c {2 * 1024**3} /dev/zero | gzip -1"
    scripts: Mapping[str, str] = {
        "sparse, of 50 GB": f"for it in $({found}); do truncate -s {HUGE} $it; done",
        "a pipe": f"for it in $({found}); do rm $it; mkfifo $it; done",
        "a link without end": f"for it in $({found}); do ln -sf /dev/zero $it; done",
        "a bomb": f"for it in $({found}); do {bomb} >$it; done",
    }
    for what, script in scripts.items():
        postpack = f"touch {_RAN}; {script}"
        document = {"name": "@acme/a", "version": "1.0.0", "scripts": {"postpack": postpack}}
        yield _case(
            f"a packed tarball is {what}",
            {
                "w/pyproject.toml": None,
                "w/package.json": json.dumps({"private": True, "workspaces": ["js/*"]}),
                "w/js/a/package.json": json.dumps(document),
            },
        )


def _modules() -> Iterator[Case]:
    """`git archive` writes into a directory that a build can write, and what it wrote is read."""
    # Whoever reads the pipe lets git write, and nobody else read.
    piping = """\
import select

def fresh(known, top=Path("{root}/tmp")):
    found = {*top.glob("releasekit-*"), *top.glob("releasekit-*/releasekit-*")} - known
    known |= found
    return found

def piped():
    known, readers = set(), []
    fresh(known)
    while os.path.isdir("{root}/w"):
        for place in fresh(known):
            try:
                os.mkfifo(place / "tree.tar")
                readers.append(os.open(place / "tree.tar", os.O_RDONLY | os.O_NONBLOCK))
            except OSError:
                pass
        for reader in select.select(readers, [], [], 0)[0]:
            if not os.read(reader, 65536):
                readers.remove(reader)
                os.close(reader)
left_behind(piped)"""
    writing = """\
def fresh(known, top=Path("{root}/tmp")):
    found = {*top.glob("releasekit-*"), *top.glob("releasekit-*/releasekit-*")} - known
    known |= found
    return found

def written():
    known = set()
    fresh(known)
    while os.path.isdir("{root}/w"):
        for place in fresh(known):
            for name in ("info/attributes", "objects/info/alternates", "config", "HEAD"):
                try:
                    (place / name).symlink_to("{root}/canary/precious")
                except OSError:
                    pass
left_behind(written)"""
    for name, work in (
        ("the archive of a module's sources as a pipe", piping),
        ("the files of a repository for git as links", writing),
    ):
        yield _case(
            name,
            {
                **_package("core", _planning(work), dynamic=True),
                "w/a/go.mod": "module github.com/acme/mono/a\n\ngo 1.22\n",
                "w/a/a.go": "package a\n",
                "w/releasekit.toml": '[go]\nversion = "v1.0.0"\nverify = false\n',
            },
            prepare=commit,
        )


def _logs() -> Iterator[Case]:
    """A build says its words into a pipe that lies where other builds can write."""
    planting = """\
def planted():
    done = set()
    while True:
        fresh = {*Path("{root}/tmp").glob("releasekit-log-*")} - done
        for place in fresh:
            done.add(place)
            try:
                swap(place / "log", lambda made: made.symlink_to("{root}/canary/precious"))
            except OSError:
                pass
        if not os.path.isdir("{root}/w"):
            return
left_behind(planted)"""
    yield _case(
        "the pipes of other builds as links outside",
        {
            **_package("core", _planning(planting), dynamic=True),
            **_package("app", needs='["core"]'),
            **_package("evil", needs='["core"]'),
        },
    )


def _first_run() -> Iterator[Case]:
    """Files that an earlier build left where this run looks for its own."""
    places = (
        *("w/.releasekit/journal.jsonl", "w/.releasekit/results.json"),
        *("w/.releasekit/backup/pypi/0000000000000000.json", "w/.releasekit/lock.pypi"),
        *("w/.git/config", "w/.git/HEAD", "w/.npmrc", "w/.cargo/config.toml"),
        *("w/.mvn/maven.config", "w/.mvn/settings.xml", "w/uv.toml", "w/pip.conf"),
        *("w/packages/core/.pyproject.toml.releasekit", "w/packages/core/CHANGELOG.md"),
    )
    for at, place in enumerate(places):
        for what in _some(at):
            command = ("plan", "publish")[(at // 2 + TRICKS.index(what)) % 2]
            yield _case(
                f"{command}: {place.removeprefix('w/')} is {what}",
                {**_package("core"), place: _CONTENTS[what]},
                *(command, "--registry", "dir:{root}/registry"),
            )


CASES: Final = cases(
    *(_requirements, _wheels, _manifests, _built, _crates, _reactors, _packed, _modules, _logs),
    _first_run,
)
