"""A release of five ecosystems, in which a process that a build leaves behind plants links, pipes,
files without an end, devices and swapped directories wherever it finds something to put them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hostile.builds import TOOLS
from hostile.case import Case
from hostile.planted import CRATE, HUGE, POM, UV, VERSIONS, project
from hostile.workspaces_of import commit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hostile.case import Content

# How many attacks one run sees at most, and where it says what they were.
AT_ONCE: Final = 40
SAID: Final = "tmp/attacks"
# What no build may change, by its place below the root. Nothing there is named by a manifest.
VICTIMS: Final[Mapping[str, Content]] = {
    "canary/.bashrc": "# nobody's but the user's\n",
    "canary/token": "of the next step\n",
    "canary/table.py": "CODE = 'of a module'\n",
    "home/.bashrc": "# nobody's but the user's\n",
    "home/.config/gh/hosts.yml": "oauth_token: kept\n",
}
# It only touches what lies below the case's own directory: of all else it may write, it is told
# nothing.
_ATTACKER: Final = f"""\
import errno, random, select, socket, stat

ROOT = Path("{{root}}")
OPEN = [ROOT / "w", ROOT / "tmp", ROOT / "home/.cache", ROOT / "home/.npm", ROOT / "home/.cargo"]
SAID = ROOT / "{SAID}"
VICTIMS = [ROOT / each for each in {sorted(VICTIMS)!r}]
CHANCE = random.Random({{seed}})

def places():
    found = []
    for top in OPEN:
        for directory, names, files in os.walk(top):
            # Of what git and the caches have there is much, and little of it is read again.
            names[:] = [each for each in names if each not in ("objects", "hooks", "site-packages")]
            found += [Path(directory, each) for each in (*names, *files)]
    return [each for each in found if each != SAID]

def link_to_a_file(place):
    place.symlink_to(CHANCE.choice(VICTIMS))

def link_to_a_directory(place):
    place.symlink_to(CHANCE.choice(VICTIMS).parent)

def link_without_end(place):
    place.symlink_to(CHANCE.choice(["/dev/zero", "/dev/full", "/dev/tty", str(place)]))

def link_to_nothing(place):
    place.symlink_to(ROOT / "canary" / "new")

def fifo(place):
    os.mkfifo(place)

def sparse(place):
    with place.open("wb") as file:
        file.truncate({HUGE})

def device(place):
    os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))

def endpoint(place):
    here = os.open(place.parent, os.O_RDONLY)
    try:
        socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{{{{here}}}}/{{{{place.name}}}}")
    finally:
        os.close(here)

def directory(place):
    place.mkdir()

def nothing(place):
    pass

MADE = [link_to_a_file, link_to_a_directory, link_without_end, link_to_nothing, fifo, sparse,
        device, endpoint, directory, nothing]

def attack(place, others):
    if CHANCE.random() < 0.15:
        other = CHANCE.choice(others)
        aside = place.with_name(f"{{{{place.name}}}}.aside")
        place.rename(aside)
        other.rename(place)
        aside.rename(other)
        return "swapped with " + str(other.relative_to(ROOT))
    make = CHANCE.choice(MADE)
    new = place.with_name(f"{{{{place.name}}}}.new")
    made = True
    try:
        make(new)
    except OSError as error:
        made = error.errno
    if os.path.lexists(place):
        place.rename(ROOT / "tmp" / f"taken-{{{{CHANCE.getrandbits(64):x}}}}")
    if os.path.lexists(new):
        new.rename(place)
    return f"{{{{make.__name__}}}} {{{{made}}}}"

def swarm():
    known, number = set(), 0
    with SAID.open("w", buffering=1) as said:
        while number < {AT_ONCE} and (ROOT / "w").is_dir():
            found = places()
            fresh = [each for each in found if each not in known and "taken-" not in each.name]
            if known and not fresh and CHANCE.random() < 0.98:
                select.select([], [], [], 0.002)
                continue
            # What has just come is what somebody is at work on; the rest is where it was read.
            some = fresh if fresh and known and CHANCE.random() < 0.9 else found
            known |= {{{{*found}}}}
            for place in CHANCE.sample(some, min(len(some), 2)):
                # Without a scratch directory or sources, all that goes on is over at once.
                of_sources = (ROOT / "w") in place.parents and ".releasekit" not in place.parts
                top = place.parent in (ROOT / "tmp", ROOT / "w/.releasekit")
                if (of_sources or top) and CHANCE.random() < 0.8:
                    continue
                try:
                    what = attack(place, found)
                except (OSError, ValueError) as error:
                    what = f"not done: {{{{error}}}}"
                print(place.relative_to(ROOT), what, file=said)
                number += 1

def left_behind():
    if os.fork():
        return
    try:
        swarm()
    finally:
        os._exit(0)

"""
_PLANNED: Final = """\
def prepare_metadata_for_build_wheel(directory, *_):
    left_behind()
    place = Path(directory, f"{STEM}.dist-info")
    place.mkdir()
    Path(place, "METADATA").write_text(ABOUT)
    return place.name
"""
_BUILT: Final = """\
def build_sdist(directory, *_):
    left_behind()
    return sdist(directory)
"""
DEPLOYING: Final = f"""\
#!/bin/sh
for each in "$@"; do case "$each" in
  -DaltDeploymentRepository=*) set -- "${{each##*file://}}/com/example/acme" ;;
esac; done
mkdir -p "$1/1.0.0"
echo '{POM}' >"$1/1.0.0/acme-1.0.0.pom"
echo jar >"$1/1.0.0/acme-1.0.0.jar"
echo '<metadata><versioning>{VERSIONS}</versioning></metadata>' >"$1/maven-metadata.xml"
"""


def _member(name: str, version: str, **needs: str) -> str:
    document: dict[str, Any] = {"name": f"@acme/{name}", "version": version, "license": "MIT"}
    return json.dumps({**document, "dependencies": {f"@acme/{k}": v for k, v in needs.items()}})


def swarmed(seed: int) -> Case:
    """The attacks of this seed, beginning in the plan or with the first build."""
    planned = seed % 4 == 0
    attacker = _ATTACKER.format(root="{root}", seed=seed)
    plain = TOOLS.replace("evil.py", "backend.py")
    return Case(
        name=f"swarm {seed}",
        files={
            "w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
            "w/packages/core/pyproject.toml": project("core", dynamic=planned),
            "w/packages/core/backend.py": plain + attacker + (_PLANNED if planned else _BUILT),
            "w/packages/app/pyproject.toml": project("app", needs='["core"]'),
            "w/packages/app/backend.py": plain,
            "w/packages/web/pyproject.toml": project("web", requires='["core"]'),
            "w/packages/web/backend.py": plain,
            "w/package.json": json.dumps({"private": True, "workspaces": ["js/*"]}),
            "w/js/a/package.json": _member("a", "1.0.0"),
            "w/js/b/package.json": _member("b", "1.0.0", a="^1.0.0"),
            **CRATE,
            "w/go/a/go.mod": "module github.com/acme/mono/go/a\n\ngo 1.22\n",
            "w/go/a/a.go": "package a\n",
            "w/pom.xml": POM,
            "w/mvnw": DEPLOYING,
            "w/releasekit.toml": '[cargo]\nverify = false\n[maven]\ncommand = "./mvnw"\n'
            '[go]\nversion = "v1.0.0"\nverify = false\n',
            **VICTIMS,
        },
        argv=(
            *("publish", "--registry", "dir:{root}/registry", "--uv-path", UV),
            *("--results-file", "{root}/out/results.json", "--retry-base-delay", "0s"),
            *("--build-sandbox", "required", "--deadline", "20s"),
        ),
        codes=frozenset({0, 1, 2, 3, 130}),
        may_write=("registry", "w", "out"),
        sandboxed=True,
        prepare=_ready,
        # Until the deadline, cargo and Maven's copy may read files without an end, at once.
        cpu_s=60.0,
    )


def _ready(root: Path) -> None:
    (root / "out").mkdir()
    (root / "w/mvnw").chmod(0o755)
    for cache in (".cache", ".npm", ".cargo/registry", ".cargo/git"):
        (root / "home" / cache).mkdir(parents=True, exist_ok=True)
    commit(root)
