"""Every input there is with values that mean harm, and releasekit.toml and arguments that do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from hostile.case import SECRETS, Case, Content, Fifo, Folder, Link, Sparse, cases
from hostile.manifests import HUGE, REFUSED, SAID
from hostile.workspaces_of import BUILT, NPM, PUBLISH, PYPI
from releasekit.cli.commands import COMMANDS
from releasekit.config.inputs import Declared
from releasekit.ecosystems import ECOSYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DECLARED: Final = Declared.of(COMMANDS, ECOSYSTEMS)
PLAN: Final = ("plan",)
_DIR: Final = {"RELEASEKIT_REGISTRY": "dir:{root}/registry"}

# By kind of input; each is refused, or does no harm.
_OF_ALL: Final = {
    "command": "x\n::error::INJECTED\r::error::INJECTED\x1b]0;owned\x07",
    "long": "x" * 100_000,
    "invalid bytes": os.fsdecode(b"\xff\xfe\x80"),
}
_OF_KIND: Final[Mapping[str, Mapping[str, str]]] = {
    "text": {},
    "path": {
        "environment": "/proc/self/environ",
        "traversal": "../canary/inside",
        "component of 300": "p" * 300,
    },
    "int": {"huge": HUGE, "negative": "-1", "other digits": "\u0663"},
    "duration": {"huge": f"{HUGE}h", "negative": "-1s", "infinite": "inf"},
    "registry": {
        "userinfo": "https://me:hunter2@example.invalid/",
        "plain": "http://example.invalid/",
        "file": "file:///proc/self/environ",
    },
    "names": {"many": ",".join(f"n{n}" for n in range(2000)), "braces": "{a,b}" * 24},
    "lines": {"many": "\n".join(f"n{n}" for n in range(2000)), "fifo": "{root}/fifo"},
    "choice": {"huge": HUGE},
    "bool": {"other": "ja"},
    "index": {"userinfo": "https://me:hunter2@example.invalid/"},
    "named-registry": {"userinfo": "sparse+https://me:hunter2@example.invalid/"},
}
# Kinds that never have a use for these.
_STRICT: Final = frozenset({"int", "duration", "choice", "bool", "registry", "index"})


def _inputs() -> Iterator[Case]:
    for name, declaration in DECLARED.inputs.items():
        for what, value in {**_OF_ALL, **_OF_KIND[declaration.kind]}.items():
            strict = declaration.kind in _STRICT or what in {"command", "long"}
            yield Case(
                name=f"{name}: {what}",
                files={**PYPI, "fifo": Fifo()},
                argv=("plan",) if declaration.variable != "RELEASEKIT_MODE" else (),
                environment={**_DIR, declaration.variable: value},
                codes=REFUSED if strict else SAID,
                never_says=("hunter2",),
                # What a user names outside of the workspace is for the run to write.
                may_write=("canary/inside",) if name == "state-directory" else (),
            )


def _secrets() -> Iterator[Case]:
    values = {
        "command": "tok::error::INJECTED%0A::error::INJECTED",
        "long": "hunter2" * 20_000,
        "invalid bytes": os.fsdecode(b"hunter2\xff\xfe"),
    }
    for name, declaration in DECLARED.secrets.items():
        for what, value in values.items():
            yield Case(
                name=f"{name}: {what}",
                files=PYPI,
                environment={declaration.variable: value},
                codes=frozenset({2}) if what == "invalid bytes" else SAID,
                says=(f"{declaration.variable} is not UTF-8",) if what == "invalid bytes" else (),
                never_says=("hunter2",),
            )
        yield Case(
            name=f"{name}: as an argument",
            files=PYPI,
            argv=("plan", f"--{name}", SECRETS["GITHUB_TOKEN"]),
            says=(declaration.variable,),
        )
        yield Case(
            name=f"{name}: as an argument after an equals sign",
            files=PYPI,
            argv=("plan", f"--{name}={SECRETS['GITHUB_TOKEN']}"),
            says=(declaration.variable,),
        )
        yield Case(
            name=f"{name}: in releasekit.toml",
            files={**PYPI, "w/releasekit.toml": f"{name} = '{SECRETS['GITHUB_TOKEN']}'\n"},
            environment={"GITHUB_TOKEN": "another-one-than-that"},
            never_says=("ghs_16C7",),
        )


def _arguments() -> Iterator[Case]:
    token = SECRETS["GITHUB_TOKEN"]
    argvs: Mapping[str, tuple[str, ...]] = {
        "a surplus one": ("plan", ".", token),
        "two surplus ones": ("plan", token, token),
        "a command that is a token": (token,),
        "an unknown flag": ("plan", f"--tokne={token}"),
        "an unknown flag and a value": ("plan", "--tokne", token),
        "a flag that is a token": ("plan", f"--{token}"),
        "a short one": ("plan", f"-t{token}"),
        "a bool with a value": ("plan", f"--strict={token}"),
        "a bool of another command": ("plan", f"--fix={token}"),
        "a number that is a token": ("plan", "--concurrency", token),
        "a registry that is a token": ("plan", "--registry", token),
        "an empty one": ("plan", ""),
        "a lone dash": ("plan", "-"),
        "two dashes": ("plan", "--", "--registry", "x"),
        "a file of arguments": ("plan", "@../canary/precious"),
        "ESC": ("plan", "\x1b[2J"),
        "a command for the runner": ("\n::error::INJECTED",),
        "a flag for the runner": ("plan", "--x\n::error::INJECTED"),
        "a choice for the runner": ("plan", "--gate", "\n::error::INJECTED"),
        "invalid bytes": ("plan", os.fsdecode(b"\xff\xfe")),
        "a flag of invalid bytes": ("plan", os.fsdecode(b"--\xff\xfe")),
        "a long one": ("plan", "x" * 100_000),
        "a long flag": ("plan", "--" + "x" * 100_000),
        "10,000 of them": ("plan", *["x"] * 10_000),
        "a root that is a fifo": ("plan", "{root}/fifo"),
        "a root that is a file": ("plan", "{root}/canary/precious"),
        "a root that is not there": ("plan", "{root}/w/../nowhere"),
        "a root of 5,000 characters": ("plan", "d/" * 2500),
        "a root with a component of 300": ("plan", "d" * 300),
        "the system as root": ("plan", "/proc/self/fd"),
    }
    for name, argv in argvs.items():
        codes = SAID if name in {"an empty one", "the system as root"} else frozenset({2})
        yield Case(
            name=f"argument: {name}",
            files={**PYPI, "fifo": Fifo()},
            argv=argv,
            # An empty one is as good as none, like an input that a workflow leaves empty.
            environment=_DIR,
            codes=codes,
        )


def _config_files() -> Iterator[Case]:
    texts: Mapping[str, Content] = {
        "a huge integer": f"concurrency = {HUGE}\n",
        "a huge float": "concurrency = 1e999\n",
        "not a number": "task-timeout = nan\n",
        "a dotted key of 100,000": lambda: b".".join([b"a"] * 100_000) + b" = 1\n",
        "lists 100,000 deep": lambda: b"packages = " + b"[" * 100_000,
        "tables 5,000 deep": "x = " + "{ a = " * 5000 + "1" + " }" * 5000,
        "a million lines": lambda: b"\n" * 1_000_000,
        "2 MB": lambda: b"#" * 2_000_000,
        "NUL": b"strict = true\0\n",
        "UTF-16": "strict = true\n".encode("utf-16"),
        "invalid UTF-8": b'packages = ["\xff"]\n',
        "a fifo": Fifo(),
        "a directory": Folder(),
        "a link out": Link("{root}/canary/precious"),
        "a link to nothing": Link("nowhere"),
        "a link to the environment": Link("/proc/self/environ"),
        "a loop": Link("releasekit.toml"),
        "ten sparse gigabytes": Sparse(10 * 1024**3),
        "an unknown key with ESC": '"\x1b[2J" = 1\n'.replace("\x1b", "\\u001b"),
        "an unknown key for the runner": '"x\\n::error::INJECTED" = 1\n',
        "an unknown key of 100,000": f"{'k' * 100_000} = 1\n",
        "a table in place of an input": "[concurrency]\nx = 1\n",
        "a list in place of an input": "concurrency = [1]\n",
        "an input in place of a table": "pypi = 1\n",
        "a list in place of a table": "[[pypi]]\nx = 1\n",
        "dependencies in a ring": (
            '[dependencies]\n"pypi:acme-a" = ["pypi:acme-b"]\n"pypi:acme-b" = ["pypi:acme-a"]\n'
        ),
        "a dependency on itself": '[dependencies]\n"pypi:acme-a" = ["pypi:acme-a"]\n',
        "50,000 dependencies": "[dependencies]\n"
        '"pypi:acme-a" = [' + ", ".join(f'"pypi:x{n}"' for n in range(20_000)) + "]\n",
        "a dependency with ESC": '[dependencies]\n"pypi:\\u001b[2J" = []\n',
        "dist outside": '[dist]\n"pypi" = "../canary"\n',
        "dist that is a fifo": 'dist = "../fifo"\n',
        "dist that is the system": 'dist = "/proc/self"\n',
        "a state directory outside": 'state-directory = "../canary/inside"\n',
        "a registry over the canary": 'registry = "dir:../canary"\n',
        "a registry with a password": 'registry = "https://me:hunter2@example.invalid/"\n',
        "a level that is none": '[warnings]\n"*" = 1\n',
        "levels that are a list": "warnings = [1]\n",
        "10,000 packages": "packages = [" + ", ".join(["'x'"] * 10_000) + "]\n",
    }
    for name, content in texts.items():
        benign = {"a million lines", "a state directory outside", "a registry over the canary"}
        benign.add("a registry with a password")  # another one is given
        yield Case(
            name=f"releasekit.toml: {name}",
            files={**PYPI, "fifo": Fifo(), "w/releasekit.toml": content},
            argv=PLAN,
            environment=_DIR,
            codes=SAID if name in benign else REFUSED,
            never_says=("hunter2",),
        )
    options = {
        "a huge integer": HUGE,
        "a list of lists": "[[1]]",
        "text for the runner": '"\\n::error::INJECTED"',
    }
    for ecosystem, declaration in ECOSYSTEMS.items():
        for key in sorted(declaration.option_keys):
            for what, value in options.items():
                yield Case(
                    name=f"releasekit.toml: [{ecosystem}] {key} is {what}",
                    files={**PYPI, **NPM, "w/releasekit.toml": f"[{ecosystem}]\n{key} = {value}\n"},
                    codes=SAID,
                )


def _files_written() -> Iterator[Case]:
    """`plan-file` and `results-file` where something is."""
    places: Mapping[str, tuple[str, Mapping[str, Content]]] = {
        "a manifest": ("package.json", {}),
        "a manifest of a member": ("packages/a/package.json", {}),
        "the configuration": ("releasekit.toml", {"w/releasekit.toml": "strict = false\n"}),
        "a fifo": ("{root}/fifo", {"fifo": Fifo()}),
        "a directory": ("{root}/canary/inside", {}),
        "a link out": ("out.json", {"w/out.json": Link("../canary/precious")}),
        "a link to nothing": ("out.json", {"w/out.json": Link("../canary/new")}),
        "a directory that is a link": ("out/x.json", {"w/out": Link("../canary")}),
        "below a file": ("package.json/x.json", {}),
        "the journal": (".releasekit/journal.jsonl", {}),
        "a component of 300": ("p" * 300, {}),
        "git's own": (".git/config", {"w/.git/config": "[core]\n"}),
        "a lock": (".releasekit/lock.npm", {}),
    }
    for what, (path, files) in places.items():
        for flag, argv in (("--plan-file", ("plan", *PUBLISH[1:])), ("--results-file", PUBLISH)):
            yield Case(
                name=f"{flag.strip('-')}: {what}",
                files={**BUILT, **files},
                argv=(*argv, flag, path),
                codes=REFUSED,
                says=(flag.strip("-"),),
            )


CASES: Final = cases(_inputs, _secrets, _arguments, _config_files, _files_written)
