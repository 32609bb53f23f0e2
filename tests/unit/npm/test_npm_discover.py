from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import fakes
from javascript import discovered, ecosystem, target, write
from releasekit.ecosystems.npm import NpmInputs, roots
from releasekit.ecosystems.npm.roots import read_workspace_files
from releasekit.errors import ConfigError, PlanError
from releasekit.model import DependencyKind

if TYPE_CHECKING:
    from pathlib import Path

TOP = {"private": True, "workspaces": ["packages/*"]}
# Lists of lists: nine lines for nine billion sevens.
ALIASES = "a0: &a0 [7]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
# Each table has all entries of the one before, three times.
MERGES = "m0: &m0 {x: 1}\n" + "".join(
    f"m{level}: &m{level} {{<<: [{', '.join([f'*m{level - 1}'] * 3)}]}}\n" for level in range(1, 21)
)
CORE = {"name": "@acme/core", "version": "1.0.0"}


def web(**more: object) -> dict[str, object]:
    return {"name": "web", "version": "2.0.0", **more}


@pytest.mark.parametrize(
    ("more", "doubtful"),
    [
        ({"workspaces": ["packages/*"]}, True),
        ({"workspaces": ["packages/*", "."]}, False),
        ({}, False),
        ({"private": True, "workspaces": ["packages/*"]}, True),
    ],
)
def test_the_root_of_a_workspace_is_hardly_meant(
    tmp_path: Path, more: dict[str, object], doubtful: bool
) -> None:
    """R1: as of npm, which publishes a root by itself only; npm's own is one that is meant."""
    root = write(tmp_path, {"package.json": {**CORE, **more}, "packages/a/package.json": web()})
    doubts = {name: package.doubt for name, package in discovered(root).items()}
    assert bool(doubts["@acme/core"]) is doubtful
    assert not doubts.get("web")


@pytest.mark.parametrize(
    ("more", "beside", "doubtful"),
    [
        ({}, ["pyproject.toml"], True),
        ({}, ["Chart.yaml"], True),
        ({}, [], False),
        ({}, ["pyproject.toml", "index.js"], False),
        ({"files": ["lib"]}, ["pyproject.toml"], False),
        ({"exports": "./a.js"}, ["Cargo.toml"], False),
        ({"publishConfig": {"access": "public"}}, ["pyproject.toml"], False),
    ],
)
def test_what_only_tells_changesets_a_version_is_hardly_meant(
    tmp_path: Path, more: dict[str, object], beside: list[str], doubtful: bool
) -> None:
    """R1: the package of another ecosystem in the same directory is the one that goes out."""
    root = write(tmp_path, {"package.json": {"workspaces": ["*"]}, "a/package.json": web(**more)})
    for name in beside:
        (root / "a" / name).write_text("")
    assert bool(discovered(root)["web"].doubt) is doubtful


def refusal(root: Path, **changes: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        discovered(root, **changes)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": TOP},
        {
            "package.json": {
                "private": True,
                "workspaces": {"packages": ["packages/*"], "nohoist": ["**/react-native"]},
            },
            "yarn.lock": "# yarn lockfile v1\n",
        },
        {
            "package.json": {**TOP, "packageManager": "yarn@4.17.0"},
            ".yarnrc.yml": "nodeLinker: node-modules\nyarnPath: .yarn/releases/yarn-4.17.0.cjs\n",
            "yarn.lock": "__metadata:\n  version: 8\n",
        },
        {"package.json": {}, "pnpm-workspace.yaml": "packages: ['packages/*']"},
        {"pnpm-workspace.yaml": "packages:\n- '!packages/skipped'\n- packages/*\n"},
    ],
    ids=["npm", "yarn 1", "yarn 4", "pnpm", "pnpm without a root"],
)
def test_members_are_found_by_every_tools_own_list(
    tmp_path: Path, files: dict[str, object]
) -> None:
    members = {"packages/core/package.json": CORE, "packages/web/package.json": web()}
    assert list(discovered(write(tmp_path, {**files, **members}))) == ["@acme/core", "web"]


@pytest.mark.parametrize("spec", ["^2.0.0", "catalog:", "npm:@acme/core@^0.9"])
@pytest.mark.parametrize("field", ["dependencies", "peerDependencies", "optionalDependencies"])
def test_a_range_that_excludes_the_workspaces_version_is_no_edge(
    tmp_path: Path, field: str, spec: str
) -> None:
    """Npm, pnpm and yarn take such a package from the registry."""
    files = {
        "pnpm-workspace.yaml": "packages: ['*']\ncatalog: {'@acme/core': ^2.0.0}\n",
        "core/package.json": CORE,
        "web/package.json": web(**{field: {"@acme/core": spec}}),
        "ours/package.json": {"name": "ours", "version": "1.0.0", field: {"@acme/core": "^1"}},
    }
    found = discovered(write(tmp_path, files))
    assert found["web"].dependencies == ()
    assert [(n.on.name, n.requirement) for n in found["web"].elsewhere] == [("@acme/core", spec)]
    assert [need.on.name for need in found["ours"].dependencies] == ["@acme/core"]
    assert found["ours"].elsewhere == ()


def test_a_lone_package_is_its_own_workspace(tmp_path: Path) -> None:
    root = write(tmp_path, {"package.json": CORE})
    (found,) = discovered(root).values()
    assert (found.version, found.directory, found.unpublishable) == ("1.0.0", root, "")


def test_nothing_of_npm_is_nothing(tmp_path: Path) -> None:
    assert discovered(write(tmp_path, {"README.md": ""})) == {}


def test_a_manifest_without_a_name_is_nobodys_package(tmp_path: Path) -> None:
    files = {"package.json": TOP, "packages/types/package.json": {"type": "module"}}
    assert discovered(write(tmp_path, files)) == {}


def test_options_add_and_take_away(tmp_path: Path) -> None:
    files = {
        "package.json": {**CORE, "workspaces": ["packages/*"]},
        "packages/web/package.json": web(),
        "more/extra/package.json": {"name": "extra", "version": "1.0.0"},
    }
    root = write(tmp_path, files)
    table = {"packages": ["more/*"], "exclude": ["packages/web", "."]}
    (found,) = asyncio.run(ecosystem(root, table).discover(root)).packages
    assert found.id.name == "extra"


@pytest.mark.parametrize(
    ("manifest", "table", "why"),
    [
        ({"name": "a"}, {"packages": ["a"]}, "its package.json has no version"),
        ({"version": "1.0.0"}, {"packages": ["./a/"]}, "it has no package.json with a name"),
        (web(), {"packages": ["a", "gone"]}, "it has no package.json with a name"),
        ({"name": "a"}, {"packages": ["?"]}, ""),
        ({"name": "a"}, {"packages": ["a"], "exclude": ["a"]}, ""),
        ({"name": "a", "private": True}, {"packages": ["a"]}, ""),
        (web(), {"packages": ["./a/"]}, ""),
    ],
)
def test_what_is_named_for_publishing_is_not_passed_by(
    tmp_path: Path, manifest: dict[str, object], table: dict[str, list[str]], why: str
) -> None:
    """R66"""
    root = write(tmp_path, {"a/package.json": manifest})
    discovery = ecosystem(root, table).discover(root)
    if not why:
        asyncio.run(discovery)
        return
    with pytest.raises(ConfigError, match=f"npm.packages names .*, but {why}"):
        asyncio.run(discovery)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"private": True}, "says private: true"),
        ({"private": True, "version": "x"}, "says private: true"),
        ({"private": "true"}, 'says private: "true"'),
        ({"private": []}, "says private: []"),
        ({"version": "0.0.0-development"}, "has a placeholder as version"),
    ],
)
def test_private_packages_say_why(tmp_path: Path, more: dict[str, object], reason: str) -> None:
    (found,) = discovered(write(tmp_path, {"package.json": {**CORE, **more}})).values()
    assert reason in found.unpublishable


@pytest.mark.parametrize("value", [False, None, 0, ""])
def test_what_javascript_takes_for_false_is_not_private(tmp_path: Path, value: object) -> None:
    (found,) = discovered(write(tmp_path, {"package.json": {**CORE, "private": value}})).values()
    assert not found.unpublishable


def test_without_a_version_nothing_can_be_published(tmp_path: Path) -> None:
    (found,) = discovered(write(tmp_path, {"package.json": {"name": "core"}})).values()
    assert "no version" in found.unpublishable


@pytest.mark.parametrize(
    ("field", "spec", "kind"),
    [
        ("dependencies", "^1.0.0", DependencyKind.RUNTIME),
        ("dependencies", "workspace:^", DependencyKind.RUNTIME),
        ("dependencies", "catalog:", DependencyKind.RUNTIME),
        ("dependencies", "file:../core", DependencyKind.RUNTIME),
        ("dependencies", "workspace:../core", DependencyKind.RUNTIME),
        ("dependencies", "workspace:packages/core", DependencyKind.RUNTIME),
        ("dependencies", "latest", DependencyKind.RUNTIME),
        ("peerDependencies", "*", DependencyKind.PEER),
        ("optionalDependencies", "^1", DependencyKind.OPTIONAL),
        ("devDependencies", "*", None),
        ("dependencies", "https://example.org/core.tgz", None),
        ("dependencies", "npm:other@^1", None),
    ],
)
def test_edges(tmp_path: Path, field: str, spec: str, kind: DependencyKind | None) -> None:
    files = {
        "package.json": TOP,
        "packages/core/package.json": CORE,
        "packages/web/package.json": web(**{field: {"@acme/core": spec, "left-pad": "1"}}),
    }
    edges = discovered(write(tmp_path, files))["web"].dependencies
    assert [(edge.on.name, edge.kind, edge.requirement) for edge in edges] == (
        [("@acme/core", kind, spec)] if kind else []
    )


def test_an_alias_leads_to_the_package_it_names(tmp_path: Path) -> None:
    needs = {"a": "npm:@acme/core@^1", "b": "workspace:@acme/core@*", "c": "catalog:x"}
    files = {
        "pnpm-workspace.yaml": "packages: ['*']\ncatalogs: {x: {c: 'npm:@acme/core@^1.0.0'}}",
        "core/package.json": CORE,
        "web/package.json": web(dependencies=needs),
    }
    edges = discovered(write(tmp_path, files))["web"].dependencies
    assert {edge.on.name for edge in edges} == {"@acme/core"}


def test_optional_peers_and_bundled_packages(tmp_path: Path) -> None:
    files = {
        "package.json": TOP,
        "packages/core/package.json": CORE,
        "packages/peer/package.json": {"name": "peer", "version": "1.0.0"},
        "packages/web/package.json": web(
            dependencies={"@acme/core": "*", "web": "*"},
            peerDependencies={"peer": "*"},
            peerDependenciesMeta={"peer": {"optional": True}, "x": 1},
            bundledDependencies=True,
        ),
        "packages/lib/package.json": {
            "name": "lib", "version": "1.0.0",
            "dependencies": {"@acme/core": "*", "peer": "*"}, "bundleDependencies": ["peer"],
        },
    }  # fmt: skip
    found = discovered(write(tmp_path, files))
    (edge,) = found["web"].dependencies
    assert (edge.on.name, edge.kind) == ("peer", DependencyKind.OPTIONAL)
    assert [edge.on.name for edge in found["lib"].dependencies] == ["@acme/core"]


def test_what_a_tarball_brings_along_is_pinned_with_it_and_built_first(tmp_path: Path) -> None:
    """R64: a bundled sibling with all that it needs at run time, as npm packs it."""
    star = "workspace:*"

    def member(name: str, **keys: object) -> dict[str, object]:
        return {"name": name, "version": "1.0.0", **keys}

    files = {
        "pnpm-workspace.yaml": "packages: ['*']",
        "web/package.json": member(
            "web",
            dependencies={"ui": star, "core": "^0.9.0", "beside": star},
            devDependencies={"tool": star},
            bundleDependencies=["ui", "core", "tool", "gone"],
        ),
        "ui/package.json": member(
            "ui",
            dependencies={"made": star, "web": star},
            optionalDependencies={"inner": star},
            peerDependencies={"beside": star},
            devDependencies={"tool": star},
        ),
        "made/package.json": member("made", scripts={"prepack": "tsc"}),
        "inner/package.json": member("inner", private=True, scripts={"prepare": "tsc"}),
        **{f"{name}/package.json": member(name) for name in ("core", "beside", "tool")},
    }
    root = write(tmp_path, files)
    found = discovered(root)
    web = found["web"]
    assert web.inherits == tuple(root / f"{it}/package.json" for it in ("ui", "made", "inner"))
    assert [(edge.on.name, edge.kind) for edge in web.dependencies] == [
        ("beside", DependencyKind.RUNTIME),
        ("made", DependencyKind.BUILD),
    ]
    directories = [root / name for name in ("ui", "made", "inner")]
    assert [*target(root).composition.list_outside(web)] == directories
    assert found["ui"].inherits == ()


def test_scripts_are_built_after_those_they_compile_against(tmp_path: Path) -> None:
    scripts = {"scripts": {"prepack": "tsc", "test": "x"}}
    files = {
        "package.json": TOP,
        "packages/core/package.json": {**CORE, **scripts},
        "packages/web/package.json": web(dependencies={"@acme/core": "*"}, **scripts),
    }
    (edge,) = discovered(write(tmp_path, files))["web"].dependencies
    assert edge.kind is DependencyKind.BUILD


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("[]", "package.json is not valid JSON: not an object"),
        ("{", "package.json is not valid JSON"),
        ('\ufeff\ufeff{"name": "a"}', "package.json is not valid JSON"),
        ({"name": "-x y-", "version": "1.0.0"}, "name is '-x y-'"),
        ({"name": 7}, "name is 7"),
        ({"name": "../up"}, "name is '../up'"),
        ({"name": "Node_Modules"}, "name is 'Node_Modules'"),
        ({"name": "favicon.ico"}, "name is 'favicon.ico'"),
        ({"name": "@acme/.up"}, "name is '@acme/.up'"),
        ({"name": "x", "version": "1.0.0", "main": ["a.js"]}, "main is ['a.js']"),
        ({"name": ".hidden"}, "name is '.hidden'"),
        ({"name": "a" * 215}, "name is 'aaa"),
        ({"name": "x", "version": "1.0"}, "version is '1.0'"),
        ({"name": "x", "version": "1.0.0+1"}, "version is '1.0.0+1'"),
        ({"name": "x", "version": 1}, "version is 1"),
        (
            {"name": "x", "version": "1.0.0", "dependencies": []},
            "dependencies is [], not a table",
        ),
        ({"name": "x", "version": "1.0.0", "dependencies": {"a": 1}}, "dependencies.a is 1"),
        ({"workspaces": "packages/*"}, "workspaces is 'packages/*'"),
        ({"workspaces": ["../x"]}, "leaves the workspace"),
    ],
)
def test_bad_manifests_are_one_clear_line(tmp_path: Path, document: object, words: str) -> None:
    assert words in str(refusal(write(tmp_path, {"package.json": document})))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("packages: [", "pnpm-workspace.yaml is not valid YAML"),
        ("- a", "pnpm-workspace.yaml is a list, not a table of keys and values"),
        ("packages: 7", "packages is 7"),
        ("catalog: 7", "catalog 'default' is 7"),
        ("catalogs: [7]", "catalog 'catalogs' is [7]"),
        ("catalogs: {x: 7}", "catalog 'x' is 7"),
        (f"{ALIASES}catalog: {{a: *a9}}", "it stands for more than 1000000 values"),
        (f"{ALIASES}catalog: *a9", "it stands for more than 1000000 values"),
        (f"{ALIASES}packages: [*a9]", "it stands for more than 1000000 values"),
        (f"{MERGES}catalog: *m20", "a table has more than 10000 entries"),
        ("packages: &a [*a]", "it is nested more than 100 levels deep"),
        (f"catalog: {{a: 0x{'f' * 5000}}}", "it holds a number of more than 4096 bits"),
        (f"catalog: {{a: {'1:' * 11}1}}", "a number has more than 10 parts"),
        ("packages: !!int ''", "is not valid YAML: "),
        ("packages: !!bool x", "is not valid YAML: "),
        ("packages: !!timestamp x", "is not valid YAML: "),
    ],
)
def test_bad_pnpm_workspaces_are_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    """R51: also where a few aliases stand for gigabytes."""
    assert words in str(refusal(write(tmp_path, {"pnpm-workspace.yaml": text})))


def test_settings_that_cannot_be_read_are_said_so(tmp_path: Path) -> None:
    root = write(tmp_path, {"package.json": CORE, ".yarnrc.yml": "x"})
    path = root / ".yarnrc.yml"
    path.unlink()
    path.symlink_to("/proc/self/mem")
    assert "cannot be read" in str(refusal(root))


def test_an_empty_pnpm_workspace_is_its_root(tmp_path: Path) -> None:
    root = write(tmp_path, {"pnpm-workspace.yaml": "", "package.json": CORE})
    assert list(discovered(root)) == ["@acme/core"]


def test_a_manifest_that_is_too_large_or_no_file_is_refused(tmp_path: Path) -> None:
    """R40"""
    root = write(tmp_path, {"package.json": " " * (1024 * 1024 + 1)})
    assert "larger than" in str(refusal(root))
    (root / "package.json").unlink()
    (root / "pnpm-workspace.yaml").write_text("packages: ['*']")
    (root / "a" / "package.json").mkdir(parents=True)
    assert "cannot be read" in str(refusal(root))


def test_two_packages_of_one_name_are_refused(tmp_path: Path) -> None:
    files = {"package.json": TOP, "packages/a/package.json": CORE, "packages/b/package.json": CORE}
    assert "are both named '@acme/core'" in str(refusal(write(tmp_path, files)))


def test_a_manifest_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    """R36"""
    write(tmp_path, {"outside.json": CORE, "ws/package.json": TOP, "ws/packages/a/x": ""})
    (tmp_path / "ws/packages/a/package.json").symlink_to(tmp_path / "outside.json")
    assert "leads out of the workspace" in str(refusal((tmp_path / "ws").resolve()))


def test_a_dependency_in_a_loop_of_links_is_no_package_here(tmp_path: Path) -> None:
    """R40"""
    dependency = {"dependencies": {"loop": "file:../loop"}}
    root = write(tmp_path, {"package.json": TOP, "packages/web/package.json": web(**dependency)})
    (root / "packages/loop").symlink_to("loop")
    assert discovered(root)["web"].dependencies == ()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"directory": "../dist"}, "publishConfig.directory is '../dist', which is not inside"),
        ({"directory": "dist/../.."}, "which is not inside the package"),
        ({"directory": "/srv/dist"}, "which is not inside the package"),
        ({"directory": 7}, "publishConfig.directory is 7"),
        ({"name": "other"}, "publishConfig.name is 'other'"),
    ],
)
def test_what_pnpm_would_pack_from_elsewhere_is_refused(
    tmp_path: Path, config: dict[str, object], words: str
) -> None:
    """R36: and npm and yarn, which look at neither, lose nothing by it."""
    document = {**CORE, "publishConfig": config}
    root = write(tmp_path, {"pnpm-workspace.yaml": "", "package.json": document})
    assert words in str(refusal(root))
    write(tmp_path, {"package.json": {**document, "private": True}})
    assert discovered(root)
    (root / "pnpm-workspace.yaml").unlink()
    write(tmp_path, {"package.json": document})
    assert discovered(root)


LATER: dict[str, object] = {"mode": "version"}
PKG = "https://npm.pkg.github.com"
CORP = "https://npm.acme.example/team/"
NPMRC = f"; ours\nregistry = '{CORP}'\n"
YARN1: dict[str, object] = {"yarn.lock": "# yarn lockfile v1\n"}
BUN: dict[str, object] = {"bun.lock": "{}"}
BUNFIG = f"[install]\nregistry = '{CORP}'\n"
LERNA = {"command": {"publish": {"registry": CORP}}}


@pytest.mark.parametrize(
    ("files", "given", "refused"),
    [
        # What npm 11 says of each with `npm publish --dry-run`, npm-registry being its setting.
        ({"package.json": {"registry": PKG}}, "", f"publishConfig.registry is '{PKG}'"),
        ({"package.json": {"registry": PKG}}, PKG + "/", ""),
        ({"package.json": {"registry": PKG}}, CORP, f"would go to {CORP}"),
        ({"package.json": {"registry": f"{CORP}registry.npmjs.org/"}}, "", "is 'https://npm.acme"),
        ({"package.json": {"registry": CORP.replace("team", "all")}}, CORP, "/all/'"),
        ({"package.json": {"registry": "https://registry.npmjs.org:8443/"}}, "", ":8443/'"),
        ({"package.json": {"registry": "https://registry.npmjs.org"}}, CORP, "registry.npmjs.org'"),
        ({"package.json": {"registry": "http://registry.npmjs.org/"}}, "", ""),
        ({"package.json": {"registry": "https://registry.yarnpkg.com"}}, "", ""),
        ({"package.json": {"registry": "not an address"}}, "", "'not an address'"),
        ({"package.json": {"registry": ""}}, "", ""),
        ({"package.json": {"registry": PKG}}, "dir:/srv/npm", ""),
        ({"package.json": {"@acme:registry": CORP, "registry": PKG}}, "", "@acme:registry is"),
        ({"package.json": {"@acme:registry": CORP}}, PKG, "publishConfig.@acme:registry is"),
        ({"package.json": {"@other:registry": CORP}}, "", ""),
        ({".npmrc": NPMRC}, "", f".npmrc: registry is '{CORP}', and @acme/core would go to"),
        ({".npmrc": NPMRC}, PKG, ""),
        ({".npmrc": f"@acme:registry={PKG}"}, "", f".npmrc: @acme:registry is '{PKG}'"),
        ({".npmrc": f"@other:registry={PKG}\n# registry={CORP}\nregistry="}, "", ""),
        ({".npmrc": f"@acme:registry={PKG}", "package.json": {"registry": CORP}}, "", f"'{PKG}'"),
        ({".npmrc": NPMRC, "package.json": {"registry": "https://registry.npmjs.org"}}, "", ""),
        ({".npmrc": "registry=https://me:secret@npm.acme.example/"}, "", "'https://***@npm.acme"),
        ({".npmrc": "registry=https://${HOST}/"}, "", "in which ReleaseKit does not resolve ${HO"),
        ({".npmrc": NPMRC, ".yarnrc.yml": ""}, "", ""),
        ({".yarnrc.yml": f"npmRegistryServer: {CORP}"}, "", f"npmRegistryServer is '{CORP}'"),
        (
            {".yarnrc.yml": f"npmRegistryServer: {CORP}\nnpmPublishRegistry: {PKG}"},
            "",
            f".yarnrc.yml: npmPublishRegistry is '{PKG}'",
        ),
        (
            {".yarnrc.yml": f"npmScopes: {{acme: {{npmRegistryServer: '{PKG}'}}}}"},
            "",
            "npmScopes.acme.npmRegistryServer is",
        ),
        ({".yarnrc.yml": "npmScopes: {acme: 7, other: {npmRegistryServer: a}}"}, "", ""),
        # What yarn 1.22.22 and lerna 10 send to a server.
        ({**YARN1, ".yarnrc": f'registry "{CORP}"'}, "", f".yarnrc: registry is '{CORP}'"),
        ({**YARN1, ".yarnrc": f'"@acme:registry" "{PKG}"'}, "", "@acme:registry is"),
        ({**YARN1, ".yarnrc": f"registry {PKG}", ".npmrc": NPMRC}, "", ".npmrc: registry"),
        ({".yarnrc": f'registry "{CORP}"'}, "", ""),
        # Where `bun publish --dry-run` of 1.4.5 says that it would send a package.
        ({**BUN, "bunfig.toml": BUNFIG, ".npmrc": f"registry={PKG}"}, "",
         f"bunfig.toml: install.registry is '{CORP}'"),
        ({**BUN, "bunfig.toml": f"[install.scopes]\nacme = {{url = '{CORP}', token = 'secret'}}",
          ".npmrc": f"@acme:registry={PKG}"}, "", f"install.scopes.acme is '{CORP}'"),
        ({**BUN, "bunfig.toml": f"[install]\nscopes = {{'@acme' = '{CORP}', b = 7}}"}, "",
         "install.scopes.@acme is"),
        ({**BUN, "bunfig.toml": BUNFIG, ".npmrc": f"@acme:registry={PKG}"}, "",
         f".npmrc: @acme:registry is '{PKG}'"),
        ({**BUN, "bunfig.toml": "[install]\nregistry = '$PLACE'"}, "", "not resolve $PLACE"),
        ({**BUN, "package.json": {"@acme:registry": CORP, "registry": PKG}}, "",
         "publishConfig.@acme:registry is"),
        ({**BUN, "bunfig.toml": f"registry = '{CORP}'\n[install]\nregistry = 7"}, "", ""),
        ({"bunfig.toml": BUNFIG}, "", ""),
        ({"lerna.json": LERNA, ".npmrc": f"registry={PKG}"}, "", "lerna.json: command.publish.reg"),
        ({"lerna.json": LERNA, ".npmrc": f"@acme:registry={PKG}"}, "", "@acme:registry is"),
        ({"lerna.json": LERNA, "package.json": {"registry": PKG}}, "", "publishConfig.registry is"),
    ],
)  # fmt: skip
def test_nothing_goes_to_a_registry_that_it_is_not_meant_for(
    tmp_path: Path, files: dict[str, object], given: str, refused: str
) -> None:
    """R1, R68: only `publishConfig` is stronger than an input, as for npm than its own setting."""
    config = files.pop("package.json", {})
    root = write(tmp_path, {"package.json": {**CORE, "publishConfig": config}, **files})
    goes_to = fakes.registries(npm=given)
    if not refused:
        assert discovered(root, registries=goes_to)
        return
    error = refusal(root, registries=goes_to)
    assert refused in str(error)
    assert "secret" not in f"{error} {error.hint}"
    assert "npm-registry: " in error.hint
    assert "$" not in error.hint
    forced = (NpmInputs(force_registry=True),)
    for settled in ({"ecosystem_inputs": forced}, {"exclude_packages": ("@acme/*",)}, LATER):
        assert discovered(root, registries=goes_to, **settled)
    write(tmp_path, {"package.json": {**CORE, "publishConfig": config, "private": True}})
    assert discovered(root, registries=goes_to)


@pytest.mark.parametrize(
    ("files", "place", "refused"),
    [
        # npm says that it ignores the settings of a member.
        ({".npmrc": NPMRC}, "packages/a", ""),
        ({".npmrc": NPMRC}, "tools/a", "tools/a/.npmrc: registry is"),
        ({".npmrc": NPMRC, "/pnpm-workspace.yaml": "packages: ['packages/*']"}, "packages/a",
         "packages/a/.npmrc: registry is"),
        ({".npmrc": NPMRC, "bunfig.toml": BUNFIG, "/bun.lock": "{}"}, "packages/a", ""),
        ({"bunfig.toml": BUNFIG, "/bun.lock": "{}"}, "tools/a", "tools/a/bunfig.toml: install.reg"),
        ({".yarnrc": f"registry {CORP}", "/yarn.lock": "# yarn lockfile v1"}, "packages/a",
         "packages/a/.yarnrc: registry is"),
        ({".yarnrc.yml": f"npmPublishRegistry: {CORP}", "/.yarnrc.yml": ""}, "packages/a",
         "packages/a/.yarnrc.yml: npmPublishRegistry is"),
    ],
)  # fmt: skip
def test_settings_beside_a_package_name_its_registry(
    tmp_path: Path, files: dict[str, object], place: str, refused: str
) -> None:
    """R1, R68: where the repository's own tool reads them."""
    named = {
        name[1:] if name[0] == "/" else f"{place}/{name}": text for name, text in files.items()
    }
    root = write(tmp_path, {"package.json": TOP, f"{place}/package.json": web(), **named})

    def discover() -> object:
        return asyncio.run(ecosystem(root, {"packages": ["tools/*"]}).discover(root))

    if not refused:
        assert discover()
        return
    with pytest.raises(ConfigError, match=refused):
        discover()


def test_one_line_names_all_packages_that_belong_elsewhere(tmp_path: Path) -> None:
    files = {f"packages/{name}/package.json": web(name=name) for name in ("a", "b")}
    root = write(tmp_path, {"package.json": TOP, ".npmrc": NPMRC, **files})
    error = refusal(root)
    assert "and a, b would go to https://registry.npmjs.org/" in str(error)
    assert f"`packages: npm:a,npm:b` and `npm-registry: {CORP}`" in error.hint


@pytest.mark.parametrize("name", ["package.yaml", "package.json5"])
def test_a_manifest_that_only_pnpm_reads_is_named(tmp_path: Path, name: str) -> None:
    """R66: it is a member for pnpm alone; elsewhere such a file belongs to another tool."""
    files: dict[str, object] = {"package.json": TOP, f"packages/a/{name}": "name: a"}
    root = write(tmp_path, {**files, "packages/b/package.json": web()})
    assert [*discovered(root)] == ["web"]
    write(root, {"pnpm-workspace.yaml": "packages: ['packages/*']"})
    error = refusal(root)
    assert f"packages/a/{name}: ReleaseKit reads only package.json" in str(error)
    assert "`exclude` below [npm]" in error.hint
    workspace = asyncio.run(ecosystem(root, {"exclude": ["packages/a"]}).discover(root))
    assert [package.id.name for package in workspace.packages] == ["web"]


TWO = {
    "js/package.json": {"private": True, "workspaces": ["*"]},
    "js/core/package.json": CORE,
    "js/web/package.json": web(dependencies={"@acme/core": "*"}),
    "docs/pnpm-workspace.yaml": "packages: ['*']\ncatalog: {'@acme/core': ^1.0.0}\n",
    "docs/theme/package.json": {
        "name": "theme", "version": "1.0.0", "dependencies": {"@acme/core": "catalog:"}
    },
}  # fmt: skip


def test_several_workspaces_are_one_release(tmp_path: Path) -> None:
    """Each keeps its own tool and its own catalogs; names lead from one to the other."""
    root = write(tmp_path, TWO)
    table = {"workspaces": ["js", "docs"], "exclude": ["js/web"]}
    found = asyncio.run(ecosystem(root, table).discover(root))
    packages = {package.id.name: package for package in found.packages}
    assert list(packages) == ["@acme/core", "theme"]
    assert [edge.on.name for edge in packages["theme"].dependencies] == ["@acme/core"]
    text = (root / "docs/theme/package.json").read_text()
    assert '"@acme/core": "^1.0.0"' in found.pin(text, {"@acme/core": "1.0.0"})
    assert [found.found.home(each).tool for each in found.found.by_name.values()] == ["npm", "pnpm"]


def test_the_workspace_protocol_leads_to_no_other_workspace(tmp_path: Path) -> None:
    theme = {"name": "theme", "version": "1.0.0", "dependencies": {"@acme/core": "workspace:*"}}
    root = write(tmp_path, {**TWO, "docs/theme/package.json": theme})
    found = asyncio.run(ecosystem(root, {"workspaces": ["js", "docs"]}).discover(root))
    with pytest.raises(PlanError, match="no package of this workspace is named '@acme/core'"):
        found.pin((root / "docs/theme/package.json").read_text(), {"@acme/core": "1.0.0"})


def test_a_workspace_without_files_of_one_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, {"js/readme": ""})
    with pytest.raises(ConfigError, match=r"npm\.workspaces: 'js' has no package\.json or pnpm"):
        asyncio.run(ecosystem(root, {"workspaces": ["js"]}).discover(root))


@pytest.mark.parametrize(
    ("files", "directory", "standing"),
    [
        ({"package.json": TOP}, "packages/core", "member"),
        ({"package.json": TOP}, "packages/core/deeper", ""),
        ({"package.json": TOP}, "packages", ""),
        ({"package.json": {"workspaces": ["**"]}}, "node_modules/x", ""),
        ({"pnpm-workspace.yaml": "packages: ['!a/b', 'a/*']"}, "a/b", "excluded"),
        ({"pnpm-workspace.yaml": "packages: ['!a/b', 'a/*']"}, "../elsewhere", ""),
    ],
)
def test_what_a_root_says_of_a_directory(
    tmp_path: Path, files: dict[str, object], directory: str, standing: str
) -> None:
    root = write(tmp_path, files)
    membership = roots.workspace_at(root)
    assert membership is not None
    assert membership((root / directory).resolve()) == standing


def test_a_root_with_settings_alone_is_no_workspace(tmp_path: Path) -> None:
    root = write(tmp_path, {"pnpm-workspace.yaml": "onlyBuiltDependencies: []", "a/x": ""})
    assert roots.workspace_at(root) is roots.workspace_at(root / "a") is None
    assert not roots.publishable_at(root)


def test_what_may_leave_the_repository(tmp_path: Path) -> None:
    root = write(tmp_path, {"a/package.json": CORE, "b/package.json": {**CORE, "private": True}})
    assert roots.publishable_at(root / "a")
    assert not roots.publishable_at(root / "b")


def test_of_two_of_one_name_the_published_one_counts(tmp_path: Path) -> None:
    """But for those in whose workspace only the private one is."""
    needs = {"version": "1.0.0", "dependencies": {"@acme/core": "*"}}
    files = {
        "package.json": {"name": "@acme/core", "private": True},
        "js/package.json": {"private": True, "workspaces": ["*"]},
        "js/core/package.json": CORE,
        "js/web/package.json": {"name": "web", **needs},
        "docs/package.json": {"private": True, "workspaces": ["*"]},
        "docs/core/package.json": {**CORE, "private": True},
        "docs/theme/package.json": {"name": "theme", **needs},
        "more/package.json": {"name": "more", **needs},
    }
    table = {"workspaces": ["js", "docs", "more"]}
    found = asyncio.run(ecosystem(write(tmp_path, files), table).discover(tmp_path.resolve()))
    packages = {package.id.name: package for package in found.packages}
    assert packages["@acme/core"].directory == tmp_path.resolve() / "js/core"
    private = {
        name: each.dependencies[0].private for name, each in packages.items() if each.dependencies
    }
    assert private == {"web": "", "theme": "its package.json says private: true", "more": ""}


@pytest.mark.parametrize(
    ("field", "spec", "exact"),
    [
        ("peerDependencies", "workspace:*", True),
        ("peerDependencies", "1.0.0", True),
        ("peerDependencies", "workspace:^", False),
        ("peerDependencies", "^1.0.0", False),
        ("dependencies", "workspace:*", False),
    ],
)
def test_a_peer_of_one_version_only_says_so(
    tmp_path: Path, field: str, spec: str, *, exact: bool
) -> None:
    """R49: of other dependencies, npm installs a second version beside the first."""
    root = write(
        tmp_path,
        {
            "package.json": {"private": True, "workspaces": ["*"]},
            "core/package.json": {"name": "core", "version": "1.0.0"},
            "app/package.json": {"name": "app", "version": "1.0.0", field: {"core": spec}},
        },
    )
    (edge,) = discovered(root)["app"].dependencies
    assert edge.exact is exact


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("pnpm-workspace.yaml", ("LICENSE",)),
        ("lerna.json", ("LICENSE", "licence.txt")),
        ("nx.json", ()),
    ],
)
def test_licenses_that_pnpm_and_lerna_give(
    tmp_path: Path, file: str, expected: tuple[str, ...]
) -> None:
    """No link, which might lead anywhere."""
    for name in ("LICENSE", "licence.txt", "LICENSES", "sublicense.txt"):
        (tmp_path / name).write_text("Of all\n")
    (tmp_path / "LICENSE.md").symlink_to("LICENSE")
    (tmp_path / "license.d").mkdir()
    (tmp_path / file).write_text("{}")
    assert read_workspace_files(tmp_path).licenses == expected
