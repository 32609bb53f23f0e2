"""Manifests that mean harm: whatever a file can be in place of every file that discovery reads, and
what only one format can say.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

from effort import SEARCHING
from hostile.case import Case, Content, Fifo, Folder, Link, Sparse, cases
from hostile.workspaces_of import (
    BACKEND,
    CARGO,
    CRATES,
    GO,
    GOMOD,
    IN_GIT,
    MANIFESTS,
    MAVEN,
    MEMBER,
    NPM,
    PACKAGE,
    PNPM,
    PNPM_WORKSPACE,
    POM,
    PYPI,
    PYPI_ROOT,
    PYPROJECT,
    commit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

# What a user can be told: nothing is wrong, the file is, or the plan is impossible.
SAID: Final = frozenset({0, 2, 3})
REFUSED: Final = frozenset({2, 3})
HUGE: Final = "9" * 5000
# A name that would act where it is printed, written or joined to a path.
EVIL: Final = {
    "traversal": "../../canary/precious",
    "absolute": "/tmp/hostile-absolute",
    "command": "x\n::error::INJECTED",
    "carriage return": "x\r::error::INJECTED\r",
    "escape": "\x1b]0;owned\x07\x1b[2J",
    "bidi": "\u202egro.live\u2066",
    "separator": "a\u2028::error::INJECTED",
    "long": "n" * 100_000,
    "empty": "",
    "blank": "   ",
    "markup": "<img src=x onerror=alert(1)>|`${{ secrets.X }}`",
    "option": "--upload-pack=touch${IFS}owned",
    "NUL": "a\0b",
    "newline": "a\nb",
}
# Enough of them where the same code looks at the text.
SOME: Final = {
    name: EVIL[name] for name in ("traversal", "command", "escape", "bidi", "long", "NUL")
}


def _case(
    name: str,
    manifest: str,
    content: Content,
    *,
    codes: frozenset[int] = SAID,
    prepare: Callable[[Path], None] | None = None,
) -> Case:
    return Case(
        name=f"{manifest.removeprefix('w/')}: {name}",
        files={**MANIFESTS[manifest], manifest: content},
        codes=codes,
        prepare=prepare or (commit if manifest in IN_GIT else None),
    )


# What a file can be, whatever should be in it: the content, and the codes that are right.
_ANY: Final[Mapping[str, tuple[Content, frozenset[int]]]] = {
    "empty": (b"", SAID),
    "NUL bytes": (b"\0" * 1000, REFUSED),
    "invalid UTF-8": (b'x = "\xff\xfe\xfa"\n', REFUSED),
    "UTF-16": ('name = "x"\n'.encode("utf-16"), REFUSED),
    "only a byte order mark": (b"\xef\xbb\xbf", SAID),
    "random bytes": (bytes(range(256)) * 100, REFUSED),
    "a fifo": (Fifo(), SAID),
    "a directory": (Folder(), SAID),
    "a link to itself": (Link("{root}/w/loop"), SAID),
    "a link to nothing": (Link("{root}/nowhere"), SAID),
    "a link out": (Link("{root}/canary/precious"), REFUSED),
    "a link to the environment": (Link("/proc/self/environ"), REFUSED),
    "ten sparse gigabytes": (Sparse(10 * 1024**3), REFUSED),
    "one line of 20 MB": (lambda: b"x" * 20_000_000, REFUSED),
    "a million lines": (lambda: b"#\n" * 1_000_000, SAID),
    "a million brackets": (lambda: b"[" * 1_000_000, REFUSED),
    "a million braces": (lambda: b"x = " + b"{a = " * 1_000_000, REFUSED),
    "a million tags": (lambda: b"<a>" * 1_000_000, REFUSED),
    "a command": (b"::error::INJECTED\n\r::error::INJECTED\n\x1b[2J", REFUSED),
}


# What is of another format is refused at its first character.
_ELSEWHERE: Final = {
    "a million brackets": ("a/go.mod", "go.work", "pom.xml"),
    "a million braces": ("a/go.mod", "package.json", "packages/a/package.json", "pom.xml"),
    "a million tags": ("Cargo.toml", "package.json", "packages/a/pyproject.toml", "go.work"),
}


def _any() -> Iterator[Case]:
    for manifest in MANIFESTS:
        for name, (content, codes) in _ANY.items():
            if not SEARCHING and manifest.removeprefix("w/") in _ELSEWHERE.get(name, ()):
                continue
            files = {"w/loop": Link("loop")} if "itself" in name else {}
            # git cannot commit some of these.
            case = _case(name, manifest, content, codes=codes, prepare=_repository(manifest))
            yield Case(
                name=case.name,
                files={**files, **case.files},
                codes=case.codes,
                prepare=case.prepare,
            )


def _repository(manifest: str) -> Callable[[Path], None] | None:
    """A repository that holds nothing yet: git would not take every file that is put there."""
    if manifest not in IN_GIT:
        return None

    def made(root: Path) -> None:
        marker = root / "w" / "committed"
        marker.mkdir()
        (marker / "x").touch()
        from workspaces import git  # noqa: PLC0415

        git(root / "w", "init", "--quiet")
        git(root / "w", "add", "committed")
        git(root / "w", "commit", "--quiet", "--message", "Start")

    return made


_WRONG_TOML: Final = {
    "a number": "1",
    "a huge number": HUGE,
    "a table": "{ x = 1 }",
    "a list": "[1, 2]",
    "a list of lists": "[[[]]]",
    "a date": "1979-05-27T07:32:00Z",
    "infinity": "inf",
    "a boolean": "true",
}
_TOML_KEYS: Final = {
    "w/pyproject.toml": (
        ("tool.uv.workspace", "members"),
        ("tool.uv.workspace", "exclude"),
        ("tool.uv", "sources"),
    ),
    "w/packages/a/pyproject.toml": (
        ("project", "name"),
        ("project", "version"),
        ("project", "dependencies"),
        ("project", "optional-dependencies"),
        ("project", "classifiers"),
        ("project", "dynamic"),
        ("build-system", "requires"),
        ("build-system", "build-backend"),
        ("build-system", "backend-path"),
    ),
    "w/Cargo.toml": (
        ("package", "name"),
        ("package", "version"),
        ("package", "publish"),
        ("", "dependencies"),
        ("workspace", "members"),
    ),
}
_WHOLE: Final = {
    "w/pyproject.toml": "",
    "w/packages/a/pyproject.toml": MEMBER,
    "w/Cargo.toml": CARGO,
}


def _wrong_types_of_toml() -> Iterator[Case]:
    for manifest, keys in _TOML_KEYS.items():
        for table, key in keys:
            for what in (
                _WRONG_TOML if SEARCHING else ("a huge number", "a table", "a list of lists")
            ):
                text = _with_key(_WHOLE[manifest], table, key, _WRONG_TOML[what])
                yield _case(f"{table}.{key} is {what}", manifest, text)


def _with_key(text: str, table: str, key: str, value: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(f"{key} = ")]
    setting = f"{key} = {value}"
    if not table:
        lines.insert(0, setting)
    elif f"[{table}]" in lines:
        lines.insert(lines.index(f"[{table}]") + 1, setting)
    else:
        lines += [f"[{table}]", setting]
    return "\n".join(lines) + "\n"


def _toml() -> Iterator[Case]:
    texts: Mapping[str, Content] = {
        "a dotted key of 100,000": lambda: b".".join([b"a"] * 100_000) + b" = 1\n",
        "2,000 keys of 50 dots": lambda: b"".join(
            b".".join([b"k%d" % n] + [b"a"] * 50) + b" = 1\n" for n in range(2_000)
        ),
        "a table of 100,000 dots": lambda: b"[" + b".".join([b"a"] * 100_000) + b"]\n",
        "lists 100,000 deep": lambda: b"x = " + b"[" * 100_000 + b"]" * 100_000,
        "lists 900 deep": "x = " + "[" * 900 + "]" * 900,
        "tables 5,000 deep": "x = " + "{ a = " * 5000 + "1" + " }" * 5000,
        "100,000 tables": lambda: b"".join(b"[t%d]\nx = 1\n" % n for n in range(100_000)),
        "100,000 tables of one list": lambda: b"[[t]]\nx = 1\n" * 100_000,
        "60,000 tables of six parts": lambda: b"".join(
            b"[%x.a.a.a.a.a]\n" % n for n in range(60_000)
        ),
        "a huge integer": f"x = {HUGE}\n",
        "a huge hexadecimal": f"x = 0x{'f' * 500_000}\n",
        "a huge float": f"x = 1e{HUGE}\n",
        "a surrogate": 'x = "\\ud800"\n',
        "a date that is none": "x = 2023-02-30\n",
        "one key twice": "x = 1\nx = 2\n",
        "a million quotes": lambda: b'x = "' + b'""' * 500_000,
        "an open string of 3 MB": lambda: b'x = """' + b"\\\n" * 1_500_000,
        "a comment with ESC": "# \x1b[2J\n",
    }
    for manifest, whole in _WHOLE.items():
        if manifest == "w/pyproject.toml" and not SEARCHING:
            continue  # read as that of a member is
        for name, text in texts.items():
            made = f"{text}{whole}" if isinstance(text, str) else text
            yield _case(name, manifest, made)


def _pypi() -> Iterator[Case]:
    member = "w/packages/a/pyproject.toml"

    def project(**keys: object) -> str:
        table = {"name": "acme-a", "version": "1.0", **keys}
        lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        return "[project]\n" + "\n".join(lines) + "\n" + BACKEND

    for name, text in EVIL.items():
        yield _case(f"name: {name}", member, project(name=text), codes=REFUSED)
    for name, text in SOME.items():
        yield _case(f"version: {name}", member, project(version=text), codes=REFUSED)
        yield _case(f"dependency: {name}", member, project(dependencies=[text]), codes=SAID)
    versions = {
        "huge": HUGE,
        "100,000 parts": ".".join(["1"] * 100_000),
        "100,000 zeros": "0" * 100_000 + "x",
        "a local part of 100,000": "1.0+" + "a." * 50_000 + "!",
        "an epoch": f"{HUGE}!1",
        "of other digits": "\u0661.\u0662",
    }
    for name, text in versions.items():
        yield _case(f"version: {name}", member, project(version=text), codes=SAID)
    requirements = {
        "100,000 extras": "acme-b[" + ",".join(["x"] * 100_000) + "]",
        "100,000 specifiers": "acme-b" + ",".join([">=1"] * 100_000),
        "a marker 10,000 deep": "acme-b; " + "(" * 10_000 + "python_version > '3'" + ")" * 10_000,
        "a marker of 10,000 ors": "acme-b; " + " or ".join(["python_version > '3'"] * 10_000),
        "a URL with a password": "acme-b @ https://u:p@example.invalid/x",
        "a file": "acme-b @ file:///etc/hostname",
        "100,000 blanks": "acme-b" + " " * 100_000 + "!",
        "a huge number": f"acme-b>={HUGE}",
    }
    for name, text in requirements.items():
        yield _case(f"dependency: {name}", member, project(dependencies=[text]), codes=SAID)
    many = [f"dep-{n}" for n in range(10_000)]
    yield _case("10,000 dependencies", member, project(dependencies=many), codes=SAID)
    yield _case(
        "a build backend outside",
        member,
        project().replace(
            'build-backend = "hatchling.build"',
            'build-backend = "canary"\nbackend-path = ["../../../canary"]',
        ),
        codes=SAID,
    )
    cycle = {
        f"w/packages/p{n}/pyproject.toml": (
            f'[project]\nname = "p{n}"\nversion = "1"\n'
            f'dependencies = ["p{(n + 1) % 40}"]\n{BACKEND}'
        )
        for n in range(40)
    }
    yield Case(
        name="pyproject.toml: a cycle of 40",
        files={"w/pyproject.toml": PYPI_ROOT, **cycle},
        codes=frozenset({3}),
        says=("pypi:p0",),
    )


_GLOBS: Final = {
    "braces": "{a,b}" * 24,
    "nested braces": "{" * 2000 + "a" + ",b}" * 2000,
    "a range": "{1..999999999}",
    "double stars": "/".join(["**"] * 40),
    "double stars and letters": "/".join(["**", "a*"] * 30),
    "stars": "*a" * 60,
    "an open class": "[!a",
    "a class backwards": "[z-a]*",
    "parent": "../*",
    "parent in the middle": "packages/../../canary/*",
    "absolute": "/proc/*",
    "the canary": "../canary/inside",
    "NUL": "packages/\0*",
    "a long one": "a/" * 50_000,
    "long stars": "*" * 100_000,
    "extglob": "+(a|aa|aaa)" * 20,
    "a command": "x\n::error::INJECTED",
    "ESC": "\x1b[2J*",
}


def _globs() -> Iterator[Case]:
    for name, glob in _GLOBS.items():
        quoted = json.dumps(glob, ensure_ascii=False).replace("\x1b", "\\u001b")
        listed = {
            "w/pyproject.toml": f"[tool.uv.workspace]\nmembers = [{quoted}]\n",
            "w/package.json": json.dumps({"private": True, "workspaces": [glob]}),
            "w/pnpm-workspace.yaml": f"packages:\n  - {quoted}\n",
            "w/Cargo.toml": f"[workspace]\nmembers = [{quoted}]\n",
        }
        for manifest, text in listed.items():
            # Both files of npm's are read to the same globs.
            if SEARCHING or manifest != "w/package.json":
                yield _case(f"members: {name}", manifest, text)
        config = f"[pypi]\npackages = [{quoted}]\n"
        yield Case(
            name=f"releasekit.toml: packages: {name}",
            files={**PYPI, "w/releasekit.toml": config},
            codes=SAID,
        )
    deep = {f"w/packages/{'d/' * n}x": "" for n in range(60)}
    for name in ("double stars", "double stars and letters"):
        text = f"[tool.uv.workspace]\nmembers = [{json.dumps(_GLOBS[name])}]\n"
        yield Case(
            name=f"pyproject.toml: members: {name} over a deep tree",
            files={**PYPI, **deep, "w/pyproject.toml": text},
            codes=SAID,
        )


def _npm() -> Iterator[Case]:
    member = "w/packages/a/package.json"

    def package(**keys: object) -> str:
        return json.dumps({**PACKAGE, **keys})

    for name, text in EVIL.items():
        yield _case(f"name: {name}", member, package(name=text), codes=REFUSED)
    for name, text in SOME.items():
        yield _case(f"scoped name: {name}", member, package(name=f"@acme/{text}"), codes=REFUSED)
        yield _case(f"version: {name}", member, package(version=text), codes=REFUSED)
        yield _case(f"dependency: {name}", member, package(dependencies={text: "*"}))
        yield _case(f"range: {name}", member, package(dependencies={"@acme/b": text}))
    wrong: Mapping[str, object] = {
        "null": None,
        "a number": 1,
        "a list": [[]],
        "a table": {"a": {}},
    }
    keys = ("name", "version", "dependencies", "private", "scripts", "files", "publishConfig")
    for key in (*keys, "bin", "exports", "bundledDependencies", "workspaces", "packageManager"):
        for what, value in wrong.items():
            yield _case(f"{key} is {what}", member, package(**{key: value}))
    texts: Mapping[str, Content] = {
        "a huge integer": package(x=0).replace('"x": 0', f'"x": {HUGE}'),
        "a huge version": package(version=f"{HUGE}.0.0"),
        "NaN": package(x=float("nan")),
        "a float of 1e999": package(x=0).replace('"x": 0', '"x": 1e999'),
        "100,000 deep": lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "lists 100,000 deep": lambda: b'{"files":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "a surrogate in the name": '{"name": "@acme/\\ud800", "version": "1.0.0"}',
        "a surrogate in the version": '{"name": "@acme/a", "version": "1.0.0-\\udfff"}',
        "a surrogate in a dependency": package(dependencies={"\ud800": "\udc00"}),
        "a surrogate in a script": package(scripts={"prepack": "\ud83d"}),
        "every key twice": '{"name": "a", "name": "@acme/b", "version": "1.0.0", "version": "2"}',
        "__proto__": package(dependencies={"__proto__": "1", "constructor": "*"}),
        "100,000 dependencies": lambda: json.dumps(
            {**PACKAGE, "dependencies": {f"d{n}": "*" for n in range(100_000)}}
        ).encode(),
        "a list": "[]",
        "a string": '"x"',
        "a number": "1",
        "a range of 100,000": package(dependencies={"@acme/b": " || ".join(["1"] * 30_000)}),
        "a file that is outside": package(files=["../../../canary/precious"]),
        "a script": package(scripts={"prepack": "touch ../../../canary/owned"}),
    }
    for what, content in texts.items():
        yield _case(what, member, content)


def _yaml() -> Iterator[Case]:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    texts: Mapping[str, Content] = {
        "aliases": f"{bomb}packages: *a11\n",
        "aliases in a catalog": f"{PNPM}{bomb}catalog: *a11\n",
        "an alias of itself": "packages: &a [*a]\n",
        "an anchor of itself": "packages: &a {a: *a}\n",
        "merges": "x: &x {a: 1}\n"
        + "".join(f"x{n}: &x{n} {{<<: [{', '.join(['*x'] * 100)}]}}\n" for n in range(2000)),
        "a tag of Python": "packages: !!python/object/apply:os.system ['touch ../canary/owned']\n",
        "a tag of a class": "packages: !!python/name:os.system\n",
        "a flow 2,000 deep": lambda: b"packages: " + b"[" * 2_000,
        "braces 20,000 deep": lambda: b"packages: " + b"{a: " * 20_000,
        "dashes 10,000 deep": lambda: b"- " * 10_000,
        "blocks 1,000 deep": "".join(" " * n + "a:\n" for n in range(1000)),
        "100,000 keys without a value": lambda: b"x: [" + b"?," * 100_000 + b"]\n",
        "100,000 lists": lambda: b"x: [" + b"[]," * 80_000 + b"]\n",
        "a huge integer": f"{PNPM}x: {HUGE}\n",
        "a huge sexagesimal": f"{PNPM}x: {'1:' * 50_000}1\n",
        "a date that is none": f"{PNPM}x: 2023-02-30\n",
        "100,000 patterns": lambda: b"packages:\n" + b"  - packages/*\n" * 100_000,
        "100,000 documents": lambda: b"---\na: 1\n" * 100_000,
        "two documents": f"{PNPM}---\n{PNPM}",
        "packages is null": "packages:\n",
        "packages is a number": "packages: 1\n",
        "packages is a table": "packages: {a: b}\n",
        "packages is a list of tables": "packages: [{a: b}]\n",
        "packages is a list of numbers": "packages: [1, 2]\n",
        "catalog is a list": f"{PNPM}catalog: [1]\n",
        "catalogs are strings": f"{PNPM}catalogs: {{a: b}}\n",
        "a catalog of tables": f"{PNPM}catalog: {{a: {{b: c}}}}\n",
        "a tab": "packages:\n\t- x\n",
        "a key that is a list": f"{PNPM}? [a, b]\n: 1\n",
        "a binary": f"{PNPM}x: !!binary {'A' * 99}\n",
        "a set": f"{PNPM}catalog: !!set {{a, b}}\n",
        "a surrogate": f'{PNPM}x: "\\ud800"\n',
        "a surrogate in a pattern": 'packages: ["\\ud800*"]\n',
        "only a scalar": "x\n",
        "only a number": "1\n",
    }
    for what, content in texts.items():
        yield _case(what, "w/pnpm-workspace.yaml", content)


def _go() -> Iterator[Case]:
    for name, text in EVIL.items():
        quoted = json.dumps(text, ensure_ascii=False)
        mod = GOMOD.replace("github.com/acme/mono/a", quoted)
        yield _case(f"module: {name}", "w/a/go.mod", mod)
    for name, text in SOME.items():
        quoted = json.dumps(text, ensure_ascii=False)
        yield _case(f"require: {name}", "w/a/go.mod", f"{GOMOD}require {quoted} v1.0.0\n")
        yield _case(f"use: {name}", "w/go.work", f"go 1.22\nuse {quoted}\n")
    module = "github.com/acme/mono/a"
    mods: Mapping[str, Content] = {
        "19,000 requirements": lambda: (
            GOMOD.encode() + b"require (\n" + b"\texample.com/x v1.0.0\n" * 19_000 + b")\n"
        ),
        "as many directives as a megabyte holds": lambda: GOMOD.encode() + b"x\n" * 500_000,
        "40,000 blocks": lambda: GOMOD.encode() + b"x (\n)\n" * 40_000,
        "as many empty lines as a megabyte holds": lambda: GOMOD.encode() + b"\n" * 1_000_000,
        "a NUL": f"{GOMOD}require example.com/x v0.0.0\nreplace example.com/x => ./a\0b\n",
        "replaced by a long name": (
            f"{GOMOD}require example.com/x v0.0.0\nreplace example.com/x => ./{'n' * 300}\n"
        ),
        "an open block": f"{GOMOD}require (\n",
        "an open string": f'{GOMOD}require "x',
        "an open raw string": f"{GOMOD}require `x\n",
        "a million parentheses": lambda: GOMOD.encode() + b"(" * 1_000_000,
        "a version of 5,000 digits": f"{GOMOD}require example.com/x v{HUGE}.0.0\n",
        "a go version of 5,000 digits": GOMOD.replace("1.22", f"{HUGE}.1"),
        "replaced by a place outside": f"{GOMOD}replace {module} => ../../canary\n",
        "replaced by itself": f"{GOMOD}replace {module} => {module} v1.0.0\n",
        "two modules": f"{GOMOD}module x.example/y\n",
        "no module": "go 1.22\n",
        "a retraction of all": f"{GOMOD}retract [v0.0.0, v{HUGE}.0.0]\n",
        "a million slashes": lambda: b"module " + b"a/" * 500_000 + b"\n",
        "a major of 5,000 digits": GOMOD.replace(module, f"{module}/v{HUGE}"),
        "a gopkg.in of 5,000 digits": GOMOD.replace(module, f"gopkg.in/a.v{HUGE}"),
        "comments without end": lambda: GOMOD.encode() + b"/*" * 500_000,
    }
    for what, content in mods.items():
        yield _case(what, "w/a/go.mod", content)
    works: Mapping[str, Content] = {
        "a module outside": "go 1.22\nuse ../canary\n",
        "the root of the system": "go 1.22\nuse /\n",
        "5,000 modules": lambda: b"go 1.22\nuse (\n" + b"\t./a\n" * 5_000 + b")\n",
        "100,000 modules": lambda: b"go 1.22\nuse (\n" + b"\t./a\n" * 100_000 + b")\n",
        "a NUL": "go 1.22\nuse ./a\0b\n",
        "a long name": f"go 1.22\nuse ./{'n' * 300}\n",
        "an open block": "go 1.22\nuse (\n",
        "itself": "go 1.22\nuse .\n",
    }
    for what, content in works.items():
        yield _case(what, "w/go.work", content)


def _maven() -> Iterator[Case]:
    pom = "w/pom.xml"

    def with_(text: str, *, instead: str = "") -> str:
        kept = POM.replace(instead, "") if instead else POM
        return kept.replace("</project>", f"{text}\n</project>")

    version = "  <version>1.0.0</version>\n"
    for name, text in EVIL.items():
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        yield _case(f"artifactId: {name}", pom, POM.replace("acme<", f"{shown}<"), codes=REFUSED)
    for name, text in SOME.items():
        shown = text.replace("&", "&amp;").replace("<", "&lt;")
        yield _case(f"groupId: {name}", pom, POM.replace("com.example", shown), codes=REFUSED)
        yield _case(f"version: {name}", pom, POM.replace(">1.0.0<", f">{shown}<"), codes=SAID)
        modules = f"<modules><module>{shown}</module></modules>"
        yield _case(f"module: {name}", pom, with_(modules), codes=SAID)
    doubling = "".join(f"<p{n}>${{p{n - 1}}}${{p{n - 1}}}</p{n}>" for n in range(1, 60))
    texts: Mapping[str, Content] = {
        "a document type": f"<!DOCTYPE project [<!ENTITY a 'b'>]>{POM}",
        "an outer entity": (
            f"<!DOCTYPE project [<!ENTITY a SYSTEM 'file:///proc/self/environ'>]>"
            f"{POM.replace('acme', '&a;')}"
        ),
        "laughs": "<!DOCTYPE project ["
        "<!ENTITY a0 'ha'>"
        + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
        + f"]>{POM.replace('acme', '&a11;')}",
        "an unknown entity": POM.replace("acme", "&nbsp;"),
        "properties that double": with_(
            f"<properties><p0>x</p0>{doubling}</properties><description>${{p59}}</description>"
        ).replace(">1.0.0<", ">${p59}<"),
        "properties in a ring": with_("<properties><a>${b}</a><b>${a}</b></properties>").replace(
            ">1.0.0<", ">${a}<"
        ),
        "a property of itself": with_("<properties><a>x${a}</a></properties>").replace(
            ">1.0.0<", ">${a}<"
        ),
        "100,000 open braces": POM.replace(">1.0.0<", f">{'${' * 100_000}<"),
        "100,000 placeholders": POM.replace(">1.0.0<", f">{'${x}' * 50_000}<"),
        "a property of the environment": POM.replace(">1.0.0<", ">${env.GITHUB_TOKEN}<"),
        "1,000 deep": with_("<a>" * 1000 + "</a>" * 1000),
        "100,000 elements": lambda: with_("<a/>" * 100_000).encode(),
        "5 MB of text": lambda: with_(f"<description>{'x' * 5_000_000}</description>").encode(),
        "100,000 attributes": with_("<a " + " ".join(f"a{n}='1'" for n in range(100_000)) + "/>"),
        "100,000 instructions": lambda: with_("<?x y?>" * 100_000).encode(),
        "an open comment": f"{POM}<!-- ",
        "an open CDATA": POM.replace("acme", "<![CDATA[" + "]]" * 100_000),
        "another encoding": f"<?xml version='1.0' encoding='utf-7'?>{POM}",
        "an encoding that is none": f"<?xml version='1.0' encoding='x\x1b'?>{POM}",
        "a parent of itself": with_(
            "<parent><groupId>com.example</groupId><artifactId>acme</artifactId>"
            "<version>1.0.0</version><relativePath>pom.xml</relativePath></parent>"
        ),
        "a parent outside": with_(
            "<parent><groupId>g</groupId><artifactId>p</artifactId><version>1</version>"
            "<relativePath>../canary/inside/pyproject.toml</relativePath></parent>"
        ),
        "a parent without end": with_(
            "<parent><groupId>g</groupId><artifactId>p</artifactId><version>1</version>"
            f"<relativePath>{'../' * 5000}pom.xml</relativePath></parent>"
        ),
        "a module of itself": with_("<modules><module>.</module></modules>"),
        "10,000 modules": with_(
            f"<modules>{''.join(f'<module>m{n}</module>' for n in range(10_000))}</modules>"
        ),
        "a version range without end": POM.replace(">1.0.0<", f">[{',' * 100_000}<"),
        "no version": POM.replace(version, ""),
        "two projects": POM + POM,
        "another root": "<settings/>",
        "10,000 dependencies": with_(
            "<dependencies>"
            + "<dependency><groupId>g</groupId><artifactId>a</artifactId></dependency>" * 10_000
            + "</dependencies>"
        ),
        "a name without namespace": POM.replace("<project ", "<a:project ", 1),
    }
    for what, content in texts.items():
        yield _case(what, pom, content)


def _trees() -> Iterator[Case]:
    """What lies around the manifests."""
    yield Case(
        name="tree: a ring of links",
        files={**NPM, "w/packages/a/up": Link("../.."), "w/packages/loop": Link("../packages")},
        codes=SAID,
    )
    yield Case(
        name="tree: a member that is a link out",
        files={**PYPI, "w/packages/out": Link("../../canary/inside")},
        codes=REFUSED,
    )
    yield Case(
        name="tree: a member that leads to the system",
        files={**NPM, "w/packages/out": Link("/proc/self/cwd")},
        codes=SAID,
    )
    yield Case(
        name="tree: 1,000 directories",
        files={**PYPI, **{f"w/packages/d{n}/x": "" for n in range(1_000)}},
        codes=SAID,
    )
    yield Case(
        name="tree: 300 levels of directories",
        files={**PYPI, f"w/packages/a/{'d/' * 300}pyproject.toml": PYPROJECT},
        codes=SAID,
    )
    names = {
        "newline": "a\n::error::INJECTED",
        "ESC": "\x1b[2J",
        "invalid UTF-8": os.fsdecode(b"\xff\xfe"),
        "bidi": "\u202e",
        "markup": "<b>|`x`",
        "glob": "*[!a]{b}",
    }
    for what, text in names.items():
        yield Case(
            name=f"tree: a directory name with {what}",
            files={**PYPI, f"w/packages/{text}/pyproject.toml": MEMBER.replace("acme-a", "acme-z")},
            codes=SAID,
        )
        yield Case(
            name=f"tree: a workspace whose name has {what}",
            files={
                f"w/{text}/pyproject.toml": PYPI_ROOT,
                f"w/{text}/packages/a/pyproject.toml": MEMBER,
            },
            cwd=f"w/{text}",
            may_write=(f"w/{text}/.releasekit",),
            codes=SAID,
        )
    yield Case(
        name="tree: git's own settings run a command",
        files=PYPI,
        prepare=_hostile_git,
        # `git diff` notes the times of unchanged files there.
        may_write=("w/.git/index",),
        codes=SAID,
    )
    yield Case(name="tree: .git is a fifo", files={**PYPI, "w/.git": Fifo()}, codes=SAID)
    yield Case(
        name="tree: .git is a link to a place outside",
        files={**PYPI, "w/.git": Link("{root}/canary")},
        codes=SAID,
    )
    yield Case(
        name="tree: .git names a place outside",
        files={**PYPI, "w/.git": "gitdir: {root}/canary\n"},
        codes=SAID,
    )
    yield Case(
        name="tree: all five ecosystems, all broken",
        files={
            **{name: "\0" for each in (PYPI, NPM, CRATES, GO, MAVEN) for name in each},
            "w/releasekit.toml": "",
        },
        codes=REFUSED,
    )
    yield Case(
        name="tree: .npmrc, .cargo/config.toml, uv.toml and maven.config are broken",
        files={
            **PYPI,
            **NPM,
            **CRATES,
            **MAVEN,
            **PNPM_WORKSPACE,
            "w/.npmrc": b"\xff\0registry=\n//x/:_authToken=${GITHUB_TOKEN}\n",
            "w/.cargo/config.toml": f"x = {HUGE}\n",
            "w/uv.toml": "[[[[",
            "w/.mvn/maven.config": "\0--file=../canary",
        },
        codes=SAID,
    )


def _change_logs() -> Iterator[Case]:
    """What a release says of itself, printed."""
    texts = {
        **EVIL,
        "an old command": "x ##[error]INJECTED",
        "an output": "x\n  ::set-output name=a::INJECTED",
        "the end of a command": "x\n::stop-commands::INJECTED",
        "invalid UTF-8": "\udcff\udcfe",
    }
    for what, text in texts.items():
        log = f"## 1.0.0\n\n- {text}\n- The end.\n".encode("utf-8", "surrogateescape")
        yield Case(
            name=f"notes: a change log with {what}",
            files={**PYPI, "w/packages/a/CHANGELOG.md": log},
            argv=("notes", "pypi:acme-a", "1.0.0"),
            prepare=commit,
            codes=frozenset({0}),
            says=("The rest is in" if what == "long" else r"^- The end\.$",),
        )


def _hostile_git(root: Path) -> None:
    commit(root)
    run = "touch ../canary/owned"
    (root / "w/.git/config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {run}\n"
        f"\tpager = {run}\n\thooksPath = .\n"
        f'[alias]\n\tls-files = "!{run}"\n'
        f"[diff]\n\texternal = {run}\n"
        f'[diff "x"]\n\tcommand = {run}\n\ttextconv = {run}\n'
        f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {run}\n"
    )
    (root / "w/.git/info/attributes").write_text("* diff=x\n")
    # Refreshed, the index is written anew, which a hook would hear of.
    hook = root / "w/post-index-change"
    hook.write_text(f"#!/bin/sh\n{run}\n")
    hook.chmod(0o755)
    os.utime(root / "w/pyproject.toml", (1, 1))
    with (root / "w/packages/a/pyproject.toml").open("a") as changed:
        changed.write("# changed\n")


CASES: Final = cases(
    *(_any, _wrong_types_of_toml, _toml, _pypi, _globs, _npm, _yaml, _go, _maven),
    *(_trees, _change_logs),
)
