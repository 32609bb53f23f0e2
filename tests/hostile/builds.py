"""Builds that mean harm: an in-tree backend that does one wrong thing, and else builds plainly.

https://peps.python.org/pep-0517/#in-tree-build-backends
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from effort import SEARCHING
from hostile.case import SECRETS, Case

DONE: Final = frozenset({0})
FAILED: Final = frozenset({1})
_PROJECT: Final = """\
[project]
name = "{name}"
version = "1.0.0"
dependencies = {needs}

[build-system]
requires = []
build-backend = "evil"
backend-path = ["."]
"""
# What every harm may use. A wheel is made of a source distribution, so hooks know both places.
TOOLS: Final = """\
import io, os, sys, tarfile, time, tomllib, zipfile
from pathlib import Path

NAME = tomllib.loads(Path("pyproject.toml").read_text())["project"]["name"]
STEM = f"{NAME}-1.0.0"
WHEEL = f"{STEM}-py3-none-any.whl"
ABOUT = f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: 1.0.0\\n"
TAGS = "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"

def wheel(directory, more=(), about=ABOUT, name=WHEEL):
    files = ((f"{STEM}.dist-info/METADATA", about), (f"{STEM}.dist-info/WHEEL", TAGS))
    record = f"{STEM}.dist-info/RECORD"
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in (*files, *more):
            archive.writestr(zipfile.ZipInfo(entry), data, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo(record), "")
    return name

def sdist(directory, entries=(), about=ABOUT):
    name = f"{STEM}.tar.gz"
    with tarfile.open(Path(directory, name), "w:gz") as archive:
        for path in ("pyproject.toml", "evil.py"):
            add(archive, f"{STEM}/{path}", Path(path).read_bytes())
        add(archive, f"{STEM}/PKG-INFO", about.encode())
        for entry, data in entries:
            add(archive, entry, data)
    return name

def add(archive, name, data, **more):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, value in more.items():
        setattr(entry, key, value)
    archive.addfile(entry, io.BytesIO(data))

def build_sdist(directory, *_):
    return sdist(directory)

def build_wheel(directory, *_):
    return wheel(directory)

"""


@dataclass(frozen=True, kw_only=True)
class Harm:
    """`code` follows the tools above, with {root} for the case's directory."""

    name: str
    code: str
    codes: frozenset[int] = FAILED
    argv: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()


def _wheel(body: str) -> str:
    return f"def build_wheel(directory, *_):\n    {body.strip()}\n"


def _sdist(body: str) -> str:
    return f"def build_sdist(directory, *_):\n    {body.strip()}\n"


def _first(body: str) -> str:
    """Done at once by the hook that comes first; the build goes on as it should."""
    return _sdist(f"{body.strip()}\n    return sdist(directory)")


def _pieces(secret: str) -> str:
    """Python that says it, and does not have it in the sources."""
    return " + ".join(repr(secret[at : at + 5]) for at in range(0, len(secret), 5))


_ALL_SECRETS: Final = ", ".join(_pieces(secret) for secret in SECRETS.values())
_ANCESTORS: Final = """\
pid = os.getpid()
    while pid > 1:
        try:
            text = Path(f"/proc/{pid}/environ").read_bytes()
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        print(text)
    print(dict(os.environ))
"""
_HALVES: Final = f"""\
for each in ({_ALL_SECRETS},):
        os.write(1, each[:7].encode())
        time.sleep(0.02)
        os.write(1, each[7:].encode() + b"\\n")
"""
_COMMANDS: Final = """\
print("::error::INJECTED", "##[error]INJECTED", sep="\\n")
    print("x\\r::warning::INJECTED", "\\x1b[2J\\u202e\\u2028::error::INJECTED", sep="\\n")
"""
# In MB: more than a log keeps.
_MUCH: Final = 200 if SEARCHING else 70
_BOMB: Final = 3 * 10**8 if SEARCHING else 10**8
_ENTRIES: Final = 10**5 if SEARCHING else 10**4
_PRINTED: Final = (
    (f"{_MUCH}MB-of-lines", f"for _ in range({_MUCH} * 10**3): print('x' * 999)"),
    (f"a-line-of-{_MUCH}MB", f"for _ in range({_MUCH}): sys.stdout.write('x' * 10**6)"),
    ("secrets", f"print({_ALL_SECRETS}, sep='\\n', flush=True)\n    {_HALVES}    {_ANCESTORS}"),
    ("commands", f"{_COMMANDS}    print(flush=True); os.write(1, bytes(range(256)) * 1000)"),
)


def _harms() -> list[Harm]:
    printed = [Harm(name=f"prints-{name}", code=_first(b), codes=DONE) for name, b in _PRINTED]
    raised = "x\\n::error::INJECTED\\x1b[2J"
    return [
        *printed,
        Harm(name="raises-commands", code=_sdist(f"sys.exit('{raised}' * 9999)")),
        Harm(name="raises-secrets", code=_sdist(f"sys.exit(str([{_ALL_SECRETS}]))")),
        Harm(name="never-ends", code=_sdist("time.sleep(999)"), argv=("--task-timeout", "2s")),
        Harm(
            name="never-ends-and-is-deaf",
            code=_sdist(
                "import signal\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(999)"
            ),
            argv=("--task-timeout", "2s"),
        ),
        Harm(
            name="leaves-a-process-behind",
            code=_first("if not os.fork():\n        time.sleep(999)"),
            codes=DONE,
        ),
        Harm(name="ends-its-worker", code=_sdist("os._exit(0)")),
        Harm(name="kills-its-worker", code=_sdist("os.kill(os.getpid(), 9)")),
        Harm(
            name="writes-to-all-descriptors",
            code=_sdist(
                "for fd in range(3, 99):\n        try: os.write(fd, b'{\"x\": 1}\\n' * 99)\n"
                "        except OSError: pass\n    os._exit(3)"
            ),
        ),
        Harm(
            name="a-link-to-an-archive-as-wheel",
            code=_wheel(
                "where = Path('{root}/tmp')\n"
                "    Path(directory, WHEEL).symlink_to(where / wheel(where))"
            )
            + "    return WHEEL\n",
        ),
        Harm(
            name="a-fifo-as-wheel",
            code=_wheel("os.mkfifo(Path(directory, WHEEL))") + "    return WHEEL\n",
        ),
        Harm(
            name="a-directory-as-wheel",
            code=_wheel("Path(directory, WHEEL).mkdir()") + "    return WHEEL\n",
        ),
        Harm(name="nothing-as-wheel", code=_wheel("return WHEEL")),
        Harm(name="no-name", code=_wheel("return None")),
        Harm(name="a-name-of-1MB", code=_wheel("return 'x' * 10**6")),
        Harm(
            name="a-name-outside",
            code=_wheel("return '../../../../../../canary/precious'"),
        ),
        Harm(name="a-name-with-commands", code=_wheel(f"return '{raised}'")),
        Harm(
            name="a-wheel-of-another",
            code=_wheel("return wheel(directory, about=ABOUT.replace('core', 'other'))"),
        ),
        Harm(
            name="a-wheel-of-another-version",
            code=_wheel("return wheel(directory, about=ABOUT.replace('1.0.0', '6.6.6'))"),
        ),
        Harm(
            name="a-wheel-with-traversal",
            code=_wheel("return wheel(directory, [('../../../../../../canary/owned', 'x')])"),
            codes=frozenset({0, 1}),
        ),
        Harm(
            name=f"a-wheel-with-{_ENTRIES}-entries",
            code=_wheel(f"return wheel(directory, [(f'a/{{n}}', '') for n in range({_ENTRIES})])"),
            codes=frozenset({0, 1}),
        ),
        Harm(
            name="a-wheel-whose-metadata-is-a-bomb",
            code=_wheel(f"return wheel(directory, about=ABOUT + 'X: ' + 'x' * {_BOMB})"),
        ),
        Harm(
            name="an-sdist-with-traversal",
            code=_sdist("return sdist(directory, [('../../../../../../../canary/owned', b'x')])"),
        ),
        Harm(
            name="an-sdist-with-an-absolute-name",
            code=_sdist("return sdist(directory, [('{root}/canary/owned', b'x')])"),
        ),
        Harm(
            name="an-sdist-with-links",
            code=_sdist(
                "name = sdist(directory)\n"
                "    with tarfile.open(Path(directory, name), 'w:gz') as archive:\n"
                "        add(archive, 'core-1.0.0/a', b'', type=tarfile.SYMTYPE, "
                "linkname='{root}/canary')\n"
                "        add(archive, 'core-1.0.0/a/owned', b'x')\n    return name"
            ),
        ),
        Harm(
            name="an-sdist-that-is-a-bomb",
            code=_sdist(f"return sdist(directory, [('core-1.0.0/x', bytes({_BOMB}))])"),
            codes=frozenset({0, 1}),
        ),
        Harm(
            name="deletes-the-workspace",
            code=_first("import shutil; shutil.rmtree('{root}/w/packages/app')"),
            may_write=("w/packages/app",),
            codes=frozenset({1, 3}),
        ),
        Harm(
            name="changes-anothers-manifest",
            code=_first(
                "Path('{root}/w/packages/app/pyproject.toml').write_text('[project]\\nname=\"x\"')"
            ),
            may_write=("w/packages/app/pyproject.toml",),
            codes=frozenset({1, 3}),
            # While the other is pinned, what this has changed might be put back unseen.
            argv=("--build-concurrency", "1"),
        ),
    ]


def case_of(harm: Harm) -> Case:
    """`core` does the harm; `app` needs it, and is built plainly."""
    core = _PROJECT.format(name="core", needs="[]")
    app = _PROJECT.format(name="app", needs='["core"]')
    uv = Path(sys.executable).with_name("uv")
    return Case(
        name=harm.name,
        files={
            "w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
            "w/packages/core/pyproject.toml": core,
            "w/packages/core/evil.py": TOOLS + harm.code,
            "w/packages/app/pyproject.toml": app
            + "\n[tool.uv.sources]\ncore = { workspace = true }\n",
            "w/packages/app/evil.py": TOOLS,
        },
        argv=("publish", "--registry", "dir:{root}/registry", "--uv-path", str(uv), *harm.argv),
        codes=harm.codes,
        may_write=("registry", *harm.may_write),
    )


CASES: Final = [case_of(harm) for harm in _harms()]
