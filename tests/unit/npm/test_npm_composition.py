from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.npm import NpmOptions
from releasekit.ecosystems.npm.composition import NpmComposition
from releasekit.ecosystems.npm.discover import find_packages, make_packages

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package


def member(root: Path, name: str, **keys: object) -> None:
    (root / name).mkdir()
    text = json.dumps({"name": f"@acme/{name}", "version": "1.0.0", **keys})
    (root / name / "package.json").write_text(text)


def found(root: Path) -> dict[str, Package]:
    text = json.dumps({"name": "top", "private": True, "workspaces": ["*"]})
    (root / "package.json").write_text(text)
    return {each.id.name: each for each in make_packages(find_packages(root, NpmOptions()))}


def composition(root: Path, *here: Package) -> NpmComposition:
    return NpmComposition(find_packages(root, NpmOptions()), here, root)


def test_what_users_do_not_install_may_be_compiled_in(tmp_path: Path) -> None:
    """R49: as tsdown, rollup and esbuild take dependencies for development."""
    star = "workspace:*"
    member(
        tmp_path,
        "client",
        dependencies={"@acme/core": star, "left-pad": "^1"},
        devDependencies={"@acme/inner": star, "@acme/kit": star, "@acme/lint": star},
    )
    member(tmp_path, "kit")
    member(tmp_path, "core")
    member(tmp_path, "lint", private=True)
    shared = {"@acme/core": star, "@acme/deep": star, "@acme/client": star}
    member(tmp_path, "inner", private=True, dependencies=shared)
    member(tmp_path, "deep", private=True, devDependencies={"@acme/inner": star})
    here = found(tmp_path)
    parts = composition(tmp_path, *here.values()).find_parts(here["@acme/client"])
    names = {part.id.name: [each.id.name for each in takers] for part, takers in parts.items()}
    assert names == {
        "@acme/inner": ["@acme/client", "@acme/deep"],
        "@acme/lint": ["@acme/client"],
        "@acme/deep": ["@acme/inner"],
    }
    core = here["@acme/core"]
    assert composition(tmp_path, *here.values()).find_parts(core) == {}


@pytest.mark.parametrize(
    ("name", "text", "taken"),
    [
        ("src/index.ts", "export { a } from '@acme/inner';", True),
        ("src/a.mjs", 'await import("@acme/inner/sub.js")', True),
        ("src/index.ts", "import '@acme/inner-other'", False),
        ("src/index.ts", "// of @acme/inner", False),
        ("src/index.test.ts", "import '@acme/inner'", False),
        ("eslint.config.mjs", "import '@acme/inner'", False),
        ("README.md", "import '@acme/inner'", False),
        ("src/gone.ts", "", False),
    ],
)
def test_only_what_a_source_imports_is_taken_in(
    tmp_path: Path, name: str, text: str, *, taken: bool
) -> None:
    """R49: presets of linters and helpers of tests are dependencies for development, too."""
    member(tmp_path, "client")
    member(tmp_path, "inner", private=True)
    here = found(tmp_path)
    if text:
        (tmp_path / "client" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "client" / name).write_text(text)
    tracked = {here["@acme/client"]: [name], here["@acme/inner"]: ["index.js"]}
    counts = composition(tmp_path).follow_imports(
        here["@acme/client"], here["@acme/inner"], tracked.__getitem__
    )
    assert (counts is not None and counts("index.js")) is taken


def test_settings_of_tools_say_less_than_sources(tmp_path: Path) -> None:
    """R49: what tsdown.config.ts names besides, no source takes in."""
    exports = {".": "./index.js", "./more": "./more.js"}
    member(tmp_path, "client")
    member(tmp_path, "inner", private=True, exports=exports)
    here = found(tmp_path)
    (tmp_path / "client/index.ts").write_text("import '@acme/inner'")
    (tmp_path / "client/tsdown.config.ts").write_text("'@acme/inner/more'")
    files = {"client": ["index.ts", "tsdown.config.ts"], "inner": ["index.js", "more.js"]}
    tracked = {here[f"@acme/{name}"]: names for name, names in files.items()}
    counts = composition(tmp_path).follow_imports(
        here["@acme/client"], here["@acme/inner"], tracked.__getitem__
    )
    assert counts is not None
    assert [name for name in files["inner"] if counts(name)] == ["index.js"]


def test_of_too_many_sources_one_may_import_it(tmp_path: Path) -> None:
    member(tmp_path, "client")
    member(tmp_path, "inner", private=True)
    here = found(tmp_path)
    names = [f"src/{number}.ts" for number in range(5_001)]
    counts = composition(tmp_path).follow_imports(
        here["@acme/client"], here["@acme/inner"], lambda _: names
    )
    assert counts is not None
    assert counts("index.js")


INNER = {
    "src/index.ts": "export * from './a.js'; import x from './data.json';",
    "src/a.ts": "export { b } from '../lib/b';",
    "lib/b/index.ts": "import '.'",
    "src/data.json": "{}",
    "src/other.ts": "import './a.js'",
    "src/deep.ts": "",
}
REACHED = ["lib/b/index.ts", "src/a.ts", "src/data.json", "src/index.ts"]


@pytest.mark.parametrize(
    ("source", "tsconfig", "exports", "changed", "expected"),
    [
        ("'@acme/inner'", "", {".": {"types": "./src/index.ts"}}, {}, REACHED),
        (
            "'@acme/inner/x'",
            "",
            {".": "./src/index.ts", "./x": "./src/deep.ts"},
            {},
            ["src/deep.ts"],
        ),
        (
            "'@acme/inner'",
            "node_modules/@acme/inner/src/a.ts",
            {},
            {},
            ["lib/b/index.ts", "src/a.ts"],
        ),
        ("'@acme/inner'", "../inner/src/deep.ts", {".": "./dist/index.js"}, {}, ["src/deep.ts"]),
        ("'@acme/inner'", "", {".": "./src/a.ts"}, {"src/a.ts": "x === '#'"}, ["src/a.ts"]),
        # What cannot be followed may lead anywhere.
        ("'@acme/inner'", "", {".": "./dist/index.js"}, {}, sorted(INNER)),
        ("'@acme/inner'", "", {".": "./src/a.ts"}, {"src/a.ts": "import '#b'"}, sorted(INNER)),
        ("'@acme/inner'", "", {".": "./src/a.ts"}, {"src/a.ts": "import '@/b'"}, sorted(INNER)),
        ("'@acme/inner'", "", {".": "./src/a.ts"}, {"src/a.ts": "'@acme/inner'"}, sorted(INNER)),
    ],
)
def test_what_an_import_leads_to_is_taken_in(
    tmp_path: Path,
    source: str,
    tsconfig: str,
    exports: object,
    changed: dict[str, str],
    expected: list[str],
) -> None:
    """R49: a bundler takes no other files of a private package."""
    member(tmp_path, "client")
    member(tmp_path, "inner", private=True, exports=exports)
    (tmp_path / "client/index.ts").write_text(f"import {source}")
    if tsconfig:
        text = f'{{"compilerOptions": {{"paths": {{"@acme/inner": ["{tsconfig}"]}}}}}}'
        (tmp_path / "client/tsconfig.json").write_text(text)
    text = '{"compilerOptions": {"paths": {"@/*": ["./src/*"], "x": ["../x"]}}}'
    (tmp_path / "inner/tsconfig.json").write_text(text)
    for name, content in {**INNER, **changed}.items():
        path = tmp_path / "inner" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    here = found(tmp_path)
    tracked = {here["@acme/client"]: ["index.ts"], here["@acme/inner"]: sorted(INNER)}
    counts = composition(tmp_path).follow_imports(
        here["@acme/client"], here["@acme/inner"], tracked.__getitem__
    )
    assert counts is not None
    assert [name for name in sorted(INNER) if counts(name)] == expected
