"""Environments that mean harm, or are merely poor; and the places where a run is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from effort import SEARCHING
from hostile.case import Case, Content, Fifo, Folder, Link, cases
from hostile.manifests import REFUSED, SAID
from hostile.workspaces_of import BUILT, CRATES, MAVEN, MEMBER, NPM, PNPM_WORKSPACE, PUBLISH, PYPI

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOBODY: Final = 65534
_OK: Final = frozenset({0})
_CACHES: Final = {
    "a HOME that is not there": ("nowhere",),
    "cargo with a wrapper": ("canary/x",),
}
_RUNNER: Final = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")


def _variables() -> Iterator[Case]:
    tables: Mapping[str, Mapping[str, str | None]] = {
        "no HOME": {"HOME": None},
        "an empty HOME": {"HOME": ""},
        "a HOME that is not there": {"HOME": "{root}/nowhere/at/all"},
        "a HOME that is a file": {"HOME": "{root}/canary/precious"},
        "a HOME that is no text": {"HOME": os.fsdecode(b"/tmp/\xff\xfe")},
        "a relative HOME": {"HOME": "../canary"},
        "no PATH": {"PATH": None},
        "an empty PATH": {"PATH": ""},
        "a PATH of the workspace": {"PATH": "."},
        "a PATH of 100,000": {"PATH": "/x:" * 33_000},
        "no TMPDIR": {"TMPDIR": None, "RUNNER_TEMP": None},
        "a TMPDIR that is not there": {"TMPDIR": "{root}/nowhere"},
        "a TMPDIR that is a file": {"TMPDIR": "{root}/canary/precious"},
        "no LANG": {"LANG": None},
        "LANG of nobody": {"LANG": "xx_YY.UTF-9", "LC_ALL": "tlh"},
        "values that are no text": {
            name: os.fsdecode(b"\xff\xfe\x80") for name in ("LANG", "EDITOR", "X", "GITHUB_SHA")
        },
        "names that are no text": {os.fsdecode(b"A\xff\xfe"): "x", "RELEASE\u2028KIT": "x"},
        "a megabyte": {f"FILLER_{n}": "x" * 100_000 for n in range(10)},
        "10,000 variables": {f"FILLER_{n}": str(n) for n in range(10_000)},
        "100,000 in a name": {"N" * 100_000: "x"},
        "an unknown input": {"RELEASEKIT_\x1b[2J": "x"},
        "an unknown input for the runner": {"RELEASEKIT_X\n::error::INJECTED": "x"},
        "an unknown input of 100,000": {f"RELEASEKIT_{'X' * 100_000}": "x"},
        "an unknown input that is no text": {os.fsdecode(b"RELEASEKIT_\xff"): "x"},
        "git of another place": {"GIT_DIR": "{root}/canary", "GIT_WORK_TREE": "{root}/canary"},
        "git that asks a command": {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "touch ../canary/owned",
        },
        "git with another program": {
            "GIT_SSH_COMMAND": "touch ../canary/owned",
            "GIT_ASKPASS": "touch",
        },
        "Python of the workspace": {"PYTHONPATH": "{root}/w/evil", "PYTHONSTARTUP": "x"},
        "Node with a file to load": {"NODE_OPTIONS": "--require ../canary/precious"},
        "Java with an agent": {"JAVA_TOOL_OPTIONS": "-javaagent:/nowhere.jar"},
        "cargo with a wrapper": {"RUSTC_WRAPPER": "/nowhere", "CARGO_HOME": "{root}/canary/x"},
        "a loader with a library": {"LD_LIBRARY_PATH": "{root}/canary"},
        "certificates that are none": {"SSL_CERT_FILE": "{root}/canary/precious"},
        "certificates in a directory of none": {"SSL_CERT_DIR": "{root}/nowhere"},
        "certificates of requests that are none": {"REQUESTS_CA_BUNDLE": "{root}/nowhere"},
        "a terminal of 0 columns": {"COLUMNS": "0", "LINES": "-1"},
        "a terminal of 1e9 columns": {"COLUMNS": "999999999", "TERM": "\x1b[2J"},
        "a runner that says yes": {"GITHUB_ACTIONS": "yes"},
        "debugging": {"RUNNER_DEBUG": "1", "ACTIONS_STEP_DEBUG": "true"},
    }
    for name, variables in tables.items():
        refused = name.startswith(("an unknown input",))
        yield Case(
            name=name,
            files={**PYPI, **NPM, "w/evil/json.py": "raise SystemExit('owned')\n"},
            environment=variables,
            codes=frozenset({2}) if refused else SAID,
            never_says=("owned",),
            # Tools keep their caches there, and would make the directories themselves.
            may_write=_CACHES.get(name, ()),
            # Where the temporary files go without one is the system's affair.
            executed=name in {"Python of the workspace", "no LANG", "LANG of nobody"},
        )


def _proxies() -> Iterator[Case]:
    addresses = {
        "userinfo": "http://me:hunter2@127.0.0.1:9",
        "an encoded password": "http://me:hunter2%40x@127.0.0.1:9",
        "no host": "http://me:hunter2@",
        "another scheme": "gopher://me:hunter2@127.0.0.1:9",
        "a port of 99999": "http://me:hunter2@127.0.0.1:99999",
        "a port that is none": "http://me:hunter2@127.0.0.1:x",
        "a line for the runner": "http://me:hunter2@x\n::error::INJECTED",
        "SOCKS": "socks5://me:hunter2@127.0.0.1:9",
        "100,000 characters": "http://me:hunter2@" + "x" * 100_000,
        "no text": os.fsdecode(b"http://me:hunter2@\xff\xfe"),
        "an address of brackets": "http://me:hunter2@[::1",
    }
    names = ("HTTPS_PROXY", "http_proxy", "ALL_PROXY")
    for at, (what, address) in enumerate(addresses.items()):
        yield Case(
            name=f"a proxy with {what}",
            files=PYPI,
            argv=(
                *("plan", "--pypi-registry", "https://pypi.invalid/"),
                *("--max-retries", "0", "--task-timeout", "20s"),
            ),
            environment={names[at % 3]: address, "NO_PROXY": None},
            # A plan goes on where the registry is out of reach.
            codes=frozenset({0, 1, 2, 3}),
            never_says=("hunter2",),
        )


def _streams() -> Iterator[Case]:
    commands = ("plan", "check", "report")
    for at, closed in enumerate(((1,), (2,), (0,), (0, 1, 2))):
        # Each is closed before it is known which command this is.
        for command in commands if SEARCHING or at == 3 else commands[at : at + 1]:
            yield Case(
                name=f"{command} with descriptors {closed} closed",
                files=PYPI,
                argv=(command,) if command == "report" else (command, "--registry", "dir:r"),
                closed=closed,
                executed=True,
                codes=SAID if command == "report" else _OK,
                silent=2 in closed,
            )
    for at, name in enumerate(_RUNNER):
        places: Mapping[str, Content] = {
            "a fifo": Fifo(),
            "a directory": Folder(),
            "a link to nothing": Link("{root}/nowhere/x"),
            "a link to itself": Link("{root}/place"),
        }
        # What is said of one of them is said of the other.
        for what in places if SEARCHING else [*places][at::2]:
            yield Case(
                name=f"{name} is {what}",
                files={**PYPI, "place": places[what]},
                environment={name: "{root}/place"},
                codes=_OK,
                says=("warning.*(is not set|is not written): ",),
            )
        yield Case(
            name=f"{name} is not there",
            files=PYPI,
            environment={name: "{root}/nowhere/file"},
            codes=SAID,
        )


def _places() -> Iterator[Case]:
    for command in (("plan",), ("publish",), ("check",), ("report",), ("plan", ".")):
        yield Case(
            name=f"{' '.join(command)} in a directory that is gone",
            files={"gone": Folder()},
            argv=command,
            cwd="gone",
            cwd_gone=True,
            may_write=("gone",),
            says=("current directory",),
            codes=frozenset({2}),
        )
    yield Case(
        name="started as -I -m in a directory that is gone",
        files={"gone": Folder()},
        argv=("plan",),
        cwd="gone",
        cwd_gone=True,
        may_write=("gone",),
        executed=True,
        codes=frozenset({2}),
    )
    yield Case(
        name="a workspace below 60 directories",
        files={f"w/{'d/' * 60}{name[2:]}": text for name, text in PYPI.items()},
        cwd=f"w/{'d/' * 60}",
        may_write=(f"w/{'d/' * 59}d/.releasekit",),
        codes=SAID,
    )
    yield Case(
        name="a workspace through a link",
        files={**PYPI, "link": Link("w")},
        argv=("plan", "{root}/link", "--registry", "dir:{root}/registry"),
        codes=_OK,
    )
    yield Case(
        name="two workspaces in a ring of links",
        files={**PYPI, "w/packages/a/w": Link("../..")},
        codes=SAID,
    )
    yield Case(
        name="a backup of the workspace inside of it",
        files={**PYPI, "w/copy/pyproject.toml": PYPI["w/pyproject.toml"], "w/copy/x": MEMBER},
        codes=SAID,
    )


def _users() -> Iterator[Case]:
    """As nobody; these are the same as root's where we are not root."""
    workspaces = {"pypi": PYPI, "npm": NPM, "pnpm": PNPM_WORKSPACE, "cargo": CRATES, "maven": MAVEN}
    for ecosystem, files in workspaces.items():
        yield Case(name=f"nobody plans {ecosystem}", files=files, uid=NOBODY, codes=SAID)
    commands = {
        "publish": ("publish", "--registry", "dir:{root}/registry", "--dry-run"),
        "check": ("check", "--fix"),
        "report": ("report",),
        "plan": ("plan", "--registry", "dir:{root}/registry", "--plan-file", "plan.json"),
    }
    for what, argv in commands.items():
        yield Case(
            name=f"nobody, {what} in a workspace that cannot be written",
            files={**NPM, "w/packages/a/package.json": '{"name": "a"}'},
            argv=argv,
            uid=NOBODY,
            prepare=lambda root: (root / "w").chmod(0o555),
            codes=REFUSED | {0} if what == "check" else REFUSED,
        )
    unreadable = ("w/pyproject.toml", "w/packages/a/pyproject.toml", "w/releasekit.toml")
    for name in unreadable:
        yield Case(
            name=f"nobody, and {name} cannot be read",
            files={**PYPI, "w/releasekit.toml": ""},
            uid=NOBODY,
            prepare=lambda root, name=name: (root / name).chmod(0),  # type: ignore[misc]
            codes=REFUSED if os.geteuid() == 0 else SAID,
        )
    yield Case(
        name="nobody, and a member cannot be entered",
        files=PYPI,
        uid=NOBODY,
        prepare=lambda root: (root / "w/packages/a").chmod(0),
        codes=SAID,
    )
    yield Case(
        name="nobody, and the home cannot be written",
        files=PYPI,
        uid=NOBODY,
        prepare=lambda root: (root / "home").chmod(0o555),
        codes=_OK,
    )
    yield Case(
        name="nobody, and the configuration cannot be reached",
        files={**PYPI, "sealed/x.toml": ""},
        argv=("plan", "--config-file", "../sealed/x.toml"),
        uid=NOBODY,
        prepare=lambda root: (root / "sealed").chmod(0),
        codes=REFUSED if os.geteuid() == 0 else SAID,
        says=("--config-file",) if os.geteuid() == 0 else (),
    )
    keyless: Mapping[str, Mapping[str, str | None]] = {
        "no HOME": {"HOME": None},
        "a HOME that is a file": {"HOME": "{root}/canary/precious"},
        "a HOME that cannot be written": {},
    }
    for what, variables in keyless.items():
        yield Case(
            name=f"nobody publishes with {what}",
            files=BUILT,
            argv=PUBLISH,
            environment=variables,
            uid=NOBODY,
            prepare=lambda root: (root / "home").chmod(0o555),
            may_write=("registry",),
            codes=_OK,
            says=("sealed with a temporary key",) if os.geteuid() == 0 else (),
        )


CASES: Final = cases(_variables, _proxies, _streams, _places, _users)
