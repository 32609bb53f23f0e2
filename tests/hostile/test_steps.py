"""Builds that want to change what a step runs, or to have its secret; output of a step that tells
its secret and commands the runner; and what a repository may say of steps.

A build of the same release runs twice here: in discovery, which asks its backend for the version,
and as it is built. By both times, everything that it can write is changed.
"""

from __future__ import annotations

import base64
import html
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest

from effort import SEARCHING
from hostile.case import Case, Fifo, Link, Sparse
from hostile.workspaces_of import NPM
from integration import spying
from integration.tools import (
    require_access_for_others,
    require_closed,
    require_landlock,
    require_tool,
)
from outside import make_outside
from processes import PATIENCE_S
from workspaces import ENTRYPOINT, Program, git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.case import Content
    from hostile.conftest import Judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

SETTINGS: Final = """\
[steps.image]
version = "pypi:demo"
check = "steps/check {name} {version}"
publish = "steps/publish {name} {version}"
secrets = ["DEPLOY_LOGIN"]
[steps.chart]
version = "pypi:demo"
needs = []
check = "steps/check {name} {version}"
publish = "steps/publish {name} {version}"
secrets = ["DEPLOY_LOGIN"]
"""
CHECK: Final = """\
#!/bin/sh
helper || exit 1
grep -qx "$1 $2" SERVICE/ledger && exit 0
exit 10
"""
PUBLISH: Final = """\
#!/bin/sh
helper || exit 1
env >SERVICE/environment
cat steps/data >SERVICE/data
WAIT
echo "$1 $2" >>SERVICE/ledger
"""
PYPROJECT: Final = """\
[project]
name = "demo"
dynamic = ["version"]

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND: Final = """\
import io, os, runpy, tarfile, zipfile
from pathlib import Path

METADATA = b"Metadata-Version: 2.1\\nName: demo\\nVersion: 1.2.3\\n"
WHEEL = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
FILES = {name: Path(name).read_bytes() for name in ("pyproject.toml", "backend.py")}

def harm(when):
    runpy.run_path(HARM, {"WHEN": when, "WORKSPACE": WORKSPACE})

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    harm("discovery")
    info = Path(directory, "demo-1.2.3.dist-info")
    info.mkdir()
    (info / "METADATA").write_bytes(METADATA)
    (info / "WHEEL").write_text(WHEEL)
    return info.name

def build_sdist(directory, config_settings=None):
    harm("build")
    with tarfile.open(Path(directory, "demo-1.2.3.tar.gz"), "w:gz") as archive:
        for name, data in {**FILES, "PKG-INFO": METADATA}.items():
            info = tarfile.TarInfo("demo-1.2.3/" + name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return "demo-1.2.3.tar.gz"

def build_wheel(directory, config_settings=None, metadata_directory=None):
    harm("build")
    with zipfile.ZipFile(Path(directory, "demo-1.2.3-py3-none-any.whl"), "w") as archive:
        archive.writestr("demo.py", "")
        archive.writestr("demo-1.2.3.dist-info/METADATA", METADATA)
        archive.writestr("demo-1.2.3.dist-info/WHEEL", WHEEL)
        archive.writestr("demo-1.2.3.dist-info/RECORD", "")
    return "demo-1.2.3-py3-none-any.whl"
"""
# What every harm can say. OWNED is a command that only a step can carry out: where it is run, a
# file appears that no build can make.
TOOLS: Final = """\
import contextlib, glob, os, shutil, subprocess
from pathlib import Path

OWNED = "#!/bin/sh\\ntouch SERVICE/owned\\nexit 0\\n"

def write(path, text, mode=0o755):
    with contextlib.suppress(OSError):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or path.exists():
            path.chmod(0o777)
            path.unlink()
        path.write_text(text)
        path.chmod(mode)

def git(*words):
    subprocess.run(["/usr/bin/env", "git", "-C", WORKSPACE, "-c", "user.name=x",
        "-c", "user.email=x@example.invalid", *words], check=False, stdin=subprocess.DEVNULL)

os.chdir(WORKSPACE)
with open("harmed", "a") as file:
    file.write(WHEN + "\\n")
"""
HARMS: Final = {
    "scripts of the checkout": """\
for name in ("steps/check", "steps/publish", "steps/data", "bin/helper"):
    write(name, OWNED)
text = Path("releasekit.toml").read_text()
write("releasekit.toml", text.replace("steps/", "evil/"), 0o644)
""",
    "programs on PATH": """\
for place in ("bin", os.environ.get("TMPDIR", "/tmp") + "/bin"):
    for name in ("helper", "sh", "grep", "env", "cat", "python3"):
        write(f"{place}/{name}", OWNED)
""",
    "settings of git": """\
write(".git/info/attributes", "* filter=evil export-subst ident\\nsteps/* export-ignore\\n")
write(".gitattributes", "* filter=evil\\nsteps/* export-ignore\\n")
for hook in ("post-checkout", "pre-push", "reference-transaction", "post-index-change"):
    write(f".git/hooks/{hook}", OWNED)
write("evil", OWNED)
with open(".git/config", "a") as file:
    file.write(f'''
[filter "evil"]
    smudge = {WORKSPACE}/evil
    clean = {WORKSPACE}/evil
    process = {WORKSPACE}/evil
[core]
    fsmonitor = {WORKSPACE}/evil
    attributesFile = {WORKSPACE}/.gitattributes
    alternateRefsCommand = {WORKSPACE}/evil
[tar "tar"]
    command = {WORKSPACE}/evil
[include]
    path = {WORKSPACE}/more
''')
""",
    "a replacement of the commit": """\
head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
for name in ("check", "publish"):
    write("steps/" + name, OWNED)
git("add", "steps")
tree = subprocess.run(["git", "write-tree"], capture_output=True, text=True).stdout.strip()
for old, new in (("HEAD^{tree}", tree), ("HEAD:steps", tree + ":steps"),
                 ("HEAD:steps/publish", ":steps/publish")):
    git("replace", "-f", old, new)
""",
    "branches": """\
for name in ("check", "publish"):
    write("steps/" + name, OWNED)
git("add", "steps")
git("commit", "--quiet", "--no-verify", "-m", "Evil")
""",
    "objects": """\
for path in glob.glob(".git/objects/??/*"):
    with contextlib.suppress(OSError):
        os.chmod(path, 0o777)
        os.unlink(path)
""",
    "whatever it finds where steps are": """\
for top in glob.glob("/var/tmp/releasekit-*") + glob.glob("RUNNER/*"):
    for folder, names, files in os.walk(top):
        if "/releasekit-tests-" in folder and not folder.startswith("RUNNER"):
            names[:] = []
            continue
        for name in (*names, *files):
            path = os.path.join(folder, name)
            if "/image" not in path and "/chart" not in path:
                continue
            for act in (
                lambda: open(path, "a").write(OWNED),
                lambda: os.truncate(path, 0),
                lambda: os.rename(path, path + "-moved"),
                lambda: os.unlink(path),
                lambda: os.rmdir(path),
                lambda: os.symlink("/tmp", path + "-link"),
                lambda: os.link(path, WORKSPACE + "/linked-" + name),
                lambda: os.mkdir(path + "/new"),
            ):
                with contextlib.suppress(OSError):
                    act()
                    with open(WORKSPACE + "/changed", "a") as file:
                        file.write(path + "\\n")
""",
    "a link in the place of the checkout's directory": """\
shutil.rmtree("steps", ignore_errors=True)
with contextlib.suppress(OSError):
    os.symlink("/tmp", "steps")
""",
}
# Where nothing is published, as the sources are at another commit.
REFUSED: Final = ("branches", "objects")
# All others at once; each of them by itself in a long search.
TOGETHER: Final = {
    "files, programs and git": "".join(HARMS[each] for each in HARMS if each not in REFUSED)
}
TRIED: Final = {**TOGETHER, **(HARMS if SEARCHING else {each: HARMS[each] for each in REFUSED})}
# It stays behind, and looks once more as the step runs. To be found are the secret itself, and what
# a step has written to its home.
SPY: Final = """\
import json

def look(found, where, read):
    with contextlib.suppress(OSError, ValueError):
        if SECRET.encode() in read():
            found.append(where)

def memory(pid):
    held = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            first, _, last = line.split()[0].partition("-")
            if "rw" in line.split()[1]:
                with contextlib.suppress(OSError, OverflowError):
                    memory.seek(int(first, 16))
                    held += memory.read(int(last, 16) - int(first, 16))
    return held

def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def look_everywhere(name):
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid == os.getpid() or pid == TESTS:
            continue
        look(found, f"{pid} environ", Path(f"/proc/{pid}/environ").read_bytes)
        look(found, f"{pid} cmdline", Path(f"/proc/{pid}/cmdline").read_bytes)
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                path = Path(f"/proc/{pid}/fd/{fd}")
                if path.is_file():
                    look(found, f"{pid} {path} {os.readlink(path)}", path.read_bytes)
    parent = os.getppid()
    while parent > 1 and parent != TESTS:
        look(found, f"{parent} mem", lambda: memory(parent))
        parent = parent_of(parent)
    for top in (PLACE, *glob.glob("/var/tmp/releasekit-*"), *glob.glob("/tmp/releasekit-*")):
        for folder, names, files in os.walk(top):
            if "releasekit-test" in folder and not folder.startswith(PLACE):
                names[:] = []
                continue
            for file in files:
                path = Path(folder, file)
                if path.is_file() and (file, path.parent.name) != ("environment", "service"):
                    look(found, str(path), path.read_bytes)
    Path("part").write_text(json.dumps(found))
    os.rename("part", name)

look_everywhere(f"found-{WHEN}.json")
if WHEN == "build" and not os.path.exists("spying") and not os.fork():
    Path("spying").touch()
    os.setsid()
    os.closerange(0, 100)
    while not os.path.exists("SERVICE/running"):
        os.sched_yield()
    look_everywhere("found-step.json")
    os._exit(0)
"""
# The step waits until the spy has looked.
WAITING: Final = """touch SERVICE/running
while [ ! -e WORKSPACE/found-step.json ]; do sleep 0.01; done
"""


@dataclass
class Place:
    """A job with a workspace, whose user is `uid`. Builds can write in `workspace`, `tmp` and a
    cache of the home, and nowhere else.
    """

    top: Path
    uid: int
    # In halves where a program writes it: its source is no find.
    secret: str

    @property
    def workspace(self) -> Path:
        return self.top / "workspace"

    @property
    def service(self) -> Path:
        return self.top / "service"

    def make(self, harm: str, *, wait: str = ":", settings: str = SETTINGS) -> None:
        names = ("workspace/steps", "workspace/bin", "service", "bin", "home", "tmp", "runner")
        for name in names:
            (self.top / name).mkdir(parents=True)
        (self.top / "harm.py").write_text(self._fill(TOOLS + harm))
        backend = BACKEND.replace("HARM", repr(str(self.top / "harm.py")))
        files = {
            "pyproject.toml": PYPROJECT,
            "backend.py": backend.replace(": WORKSPACE", f": {str(self.workspace)!r}"),
            "releasekit.toml": settings,
            "steps/check": CHECK,
            "steps/publish": PUBLISH.replace("WAIT", wait),
            "steps/data": "as committed: $Format:%H$ $Id$\r\n",
            "bin/helper": "#!/bin/sh\nexit 0\n",
        }
        for name, text in files.items():
            path = self.workspace / name
            path.write_bytes(self._fill(text).encode())
            path.chmod(0o755)
        (self.service / "ledger").touch()
        for name in ("helper",):
            (self.top / "bin" / name).write_text("#!/bin/sh\nexit 0\n")
            (self.top / "bin" / name).chmod(0o755)
        git(self.workspace, "init", "--quiet")
        self.commit()

    def commit(self) -> None:
        git(self.workspace, "-c", "safe.directory=*", "add", "--all")
        git(self.workspace, "-c", "safe.directory=*", "commit", "--quiet", "--message", "More")
        if self.uid != os.geteuid():
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def _fill(self, text: str) -> str:
        half = len(self.secret) // 2
        values = {
            "SERVICE": str(self.service),
            "RUNNER": str(self.top / "runner"),
            "PLACE": repr(str(self.top)),
            "TESTS": str(os.getpid()),
            "SECRET": f"({self.secret[:half]!r} + {self.secret[half:]!r})",
            "WORKSPACE/": f"{self.workspace}/",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    def run(self, *more: str) -> str:
        """What it says."""
        is_ours = self.uid == os.geteuid()
        home = self.top / "home"
        given = Program(home).full_environment
        if not is_ours:
            given["XDG_STATE_HOME"] = str(home / "state")
            given["PATH"] = os.defpath
            given["PYTHONPATH"] = str(Path(sys.prefix, "lib", spying._version(), "site-packages"))
            given["PYTHONDONTWRITEBYTECODE"] = "1"
        given["XDG_CACHE_HOME"] = str(home / "cache")
        open_places = (self.workspace / "bin", self.top / "tmp/bin", self.top / "bin")
        given["PATH"] = os.pathsep.join([*map(str, open_places), given["PATH"]])
        given |= {"TMPDIR": str(self.top / "tmp"), "RUNNER_TEMP": str(self.top / "runner")}
        given |= {"DEPLOY_LOGIN": self.secret, "GITHUB_ACTIONS": "true"}
        start = [str(ENTRYPOINT)]
        if not is_ours:
            start = [*spying._python_of_all(), str(ENTRYPOINT.with_name("src") / "__main__.py")]
        user: dict[str, Any] = {}
        if not is_ours:
            user = {"user": self.uid, "group": self.uid, "extra_groups": []}
        argv = ["publish", str(self.workspace), "--build-sandbox", "required"]
        argv += ["--pypi-registry", f"dir:{self.top}/registry", "--retry-base-delay", "0s"]
        done = subprocess.run(
            [*start, *argv, *more],
            cwd=self.top,
            env=given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            **user,
        )
        return f"{done.stdout}{done.stderr}"

    def said(self, path: str) -> str:
        found = self.top / path
        return found.read_text() if found.exists() else ""

    @property
    def outcomes(self) -> dict[str, str]:
        results = json.loads(self.said("workspace/.releasekit/results.json") or '{"packages": []}')
        return {row["name"]: row["outcome"] for row in results["packages"]}


@pytest.fixture(params=[*spying.users().values()], ids=[*spying.users()])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    require_landlock()
    require_closed()
    require_tool("git")
    if request.param != os.geteuid():
        require_access_for_others()
    outside = make_outside("steps")
    outside.chmod(0o711)  # for the other user
    yield Place(outside / "place", request.param, f"s3kr&t+/{token_hex(8)}")
    shutil.rmtree(outside)


@pytest.mark.parametrize("harm", TRIED)
def test_a_build_does_not_change_what_a_step_runs(place: Place, harm: str) -> None:
    """R50: neither in discovery nor later."""
    place.make(TRIED[harm])
    said = place.run()
    assert "discovery" in place.said("workspace/harmed"), said
    assert "build" in place.said("workspace/harmed"), said
    assert not (place.service / "owned").exists(), said
    assert place.said("workspace/changed") == ""
    done = dict(place.outcomes)
    if harm in REFUSED:
        assert done.pop("demo") == "failed", said
        assert {*done.values()} <= {"failed", "blocked"}, said
    else:
        assert done == dict.fromkeys(("demo", "image", "chart"), "published"), said
    published = [name for name in ("chart", "image") if done[name] == "published"]
    ledger = place.said("service/ledger").splitlines()
    assert sorted(ledger) == [f"{name} 1.2.3" for name in published]
    if published:
        data = (place.service / "data").read_bytes()
        assert data == b"as committed: $Format:%H$ $Id$\r\n"
        assert f"DEPLOY_LOGIN={place.secret}\n" in place.said("service/environment")


def test_a_build_finds_no_secret_of_a_step(place: Place) -> None:
    """R50: not in the environment, arguments, descriptors or memory of a process, nor in a file;
    neither in discovery, nor as it builds, nor while the step runs.
    """
    place.make(SPY, wait=WAITING)
    said = place.run()
    assert place.outcomes == dict.fromkeys(("demo", "image", "chart"), "published"), said
    assert f"DEPLOY_LOGIN={place.secret}\n" in place.said("service/environment")
    for when in ("discovery", "build", "step"):
        assert json.loads(place.said(f"workspace/found-{when}.json")) == [], when
    shown = [line for line in said.splitlines() if not line.startswith("::add-mask::")]
    assert place.secret not in str(shown)


# Each line of the output is one spelling of the secret.
TELLING: Final = """#!/usr/bin/env python3
import base64, html, json, os, sys
from urllib.parse import quote, quote_plus

secret = os.environ["DEPLOY_LOGIN"]
spelt = [
    secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret),
    html.escape(secret), repr(secret), base64.b64encode(secret.encode()).decode(),
    base64.b64encode(b"user:" + secret.encode()).decode(),
    base64.urlsafe_b64encode(b"x" + secret.encode()).decode(),
]
for stream in (sys.stdout, sys.stderr):
    for each in spelt:
        print("told", each, each, file=stream)
    for command in COMMANDS:
        print(command, file=stream)
        print("a\\r" + command, file=stream)
    print("error:", spelt[1], file=stream)
sys.exit(STATUS)
"""
COMMANDS: Final = (
    "::set-output name=result::forged",
    "::set-env name=A::forged",
    "::add-path::/forged",
    "::add-mask::e",
    "::stop-commands::forged",
    "::save-state name=a::forged",
    "::error::forged",
    "##[error]forged",
    "##[add-path]/forged",
)


def test_what_a_step_prints_tells_no_secret_and_commands_nobody(place: Place) -> None:
    """In its logs, in what is shown, in the summary, the outputs and the results."""
    place.make("", settings=SETTINGS.partition("[steps.chart]")[0])
    script = TELLING.replace("COMMANDS", repr(COMMANDS))
    for name, status in (("check", "10"), ("publish", "1")):
        path = place.workspace / "steps" / name
        path.write_text(script.replace("STATUS", status))
    place.commit()
    said = place.run("--task-timeout", "3s")
    assert place.outcomes == {"demo": "published", "image": "failed"}, said
    shown = [line for line in said.splitlines() if not line.startswith("::add-mask::")]
    secret = place.secret.encode()
    spelt = {
        place.secret,
        quote(place.secret),
        quote(place.secret, safe=""),
        json.dumps(place.secret)[1:-1],
        html.escape(place.secret),
        *(
            base64.b64encode(before + secret)[8 * bool(before) : -4].decode()
            for before in (b"", b"user:")
        ),
    }
    (place.top / "said").write_text("\n".join(shown))
    told = 0
    for path in (place.top / "said", *(place.workspace / ".releasekit").rglob("*")):
        if path.is_file():
            text = path.read_text(errors="replace")
            told += "told" in text
            for each in spelt:
                assert each not in text, path
    assert told >= 3
    own = {"::group::", "::endgroup::", "::error title=", "::warning title="}
    for line in shown:
        for part in line.replace("\r", "\n").splitlines():
            if part.lstrip().startswith(("::", "##[")):
                assert any(part.startswith(each) for each in own), part
                assert "title=forged" not in part


def says(
    name: str,
    table: str,
    *words: str,
    code: int = 2,
    more: dict[str, Content] | None = None,
) -> Any:
    """A repository whose releasekit.toml has this, and what a plan says of it."""
    files = {**NPM, "w/releasekit.toml": table, **(more or {})}
    case = Case(
        name=name,
        files=files,
        codes=frozenset({code}),
        says=words,
    )
    return pytest.param(case, id=name)


def step(name: str = "mcp", version: str = '"npm:@acme/a"', more: str = "") -> str:
    commands = 'check = "steps/check {version}"\npublish = "steps/publish {version}"\n'
    return f"[steps.{name}]\nversion = {version}\n{commands}{more}\n"


def own(match: str = "^version: (.+)$", path: str = "V") -> str:
    return step(version=f"{{ path = {json.dumps(path)}, match = {json.dumps(match)} }}")


def of_version(text: str | bytes) -> dict[str, Content]:
    return {"w/V": text}


OTHER: Final = r"\[steps\.mcp\]"
REPOSITORIES: Final = (
    says("a good one", step(), "step:mcp +1.0.0 +publish", code=0),
    *(
        says(f"the name {name!r}", step(json.dumps(name)), "is not the name of a step")
        for name in ("", "../up", "a/b", "A", "-a", "a" * 65, "a\u202eb", "a\x1b[31m", "$(id)", "é")
    ),
    *(
        says(f"the version {version!r}", own(), OTHER, "not a version", more=of_version(text))
        for version in (
            "1.0.0;id",
            "$(id)",
            "`id`",
            "../../up",
            "--help",
            "1.0\x1b[31m",
            "9" * 9999,
        )
        if (text := f"version: {version}\n")
    ),
    says(
        "a version of two lines",
        own(r"(?s)^version: (.+)end"),
        "not a version",
        more=of_version("version: 1.0.0\n::error::x\nend"),
    ),
    says(
        "a version that is no UTF-8", own(), "not a version", more=of_version(b"version: 1.\xff\n")
    ),
    says("a version in two places", own("(1)"), "fit in one place", more=of_version("1 1")),
    says("a version in no place", own("(2)"), "fit in one place", more=of_version("1 1")),
    says("no file of a version", own(), "w/V: cannot be read"),
    says("a file of a version that is a pipe", own(), "w/V: cannot be read", more={"w/V": Fifo()}),
    says(
        "a file of a version without an end",
        own(),
        "out of the workspace",
        more={"w/V": Link("/dev/zero")},
    ),
    says("a file of a version of 5 GB", own(), "V", more={"w/V": Sparse(5 << 30)}),
    says(
        "a file of a version of 10 MB",
        own(r"\Aversion: (.+)$"),
        "1.2.3",
        code=0,
        more=of_version(b"version: 1.2.3\n" + b"x" * 10_000_000),
    ),
    says("a file of a version elsewhere", own(path="../canary/precious"), "without"),
    says("a file of a version at the root", own(path="/etc/passwd"), "without"),
    says(
        "a link to a file elsewhere",
        own(),
        "out of the workspace",
        more={"w/V": Link("../canary/precious")},
    ),
    says(
        "a link to a directory elsewhere",
        step(more='directory = "d"'),
        "out of the workspace",
        more={"w/d": Link("../canary")},
    ),
    says("a directory of git", step(more='directory = ".git/hooks"'), "directory"),
    says(
        "steps that need one another",
        step("a", more='needs = ["step:b"]') + step("b", more='needs = ["step:a"]'),
        "step:a -> step:b",
        code=3,
    ),
    says(
        "steps with the version of one another",
        step("a", '"step:b"', "needs = []") + step("b", '"step:a"', "needs = []"),
        "no version of its own",
    ),
    says("a word that never ends", step().replace("steps/check", "'steps/check"), "No closing"),
    says("a NUL", step().replace("steps/check", "a\\u0000b"), "NUL"),
    says(
        "a value for a secret",
        step(more='secrets = ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"]'),
        "looks like a token",
    ),
    says(
        "a secret of the runner",
        step(more='secrets = ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]'),
        "not given to a step",
    ),
    says(
        "a secret of ReleaseKit",
        step(more='secrets = ["releasekit_npm_token"]'),
        "not given to a step",
    ),
    says("an unknown key", step(more='seccrets = ["A"]'), "did you mean 'secrets'"),
    says("a step that is no table", "[steps]\nmcp = 1\n", "steps.mcp is not a table"),
)


@pytest.mark.parametrize("case", REPOSITORIES)
def test_what_a_repository_says_of_steps(case: Case, judge: Judge) -> None:
    """R34, R35, R40, R52: it is refused for what it is, or shown as it is."""
    judge(case)
