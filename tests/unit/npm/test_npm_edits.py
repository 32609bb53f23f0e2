"""Versions written into manifests, catalogs and lock files; what the tools say of the result is in
tests/versions/test_npm_locks.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from javascript import target, write
from releasekit.errors import PlanError
from releasekit.problems import Problem
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.decided import Ranges

CORE = {"name": "core", "version": "1.2.3"}
PNPM = {"pnpm-workspace.yaml": "packages: ['*']\n"}


def written(root: Path, files: Mapping[str, object], **versions: str) -> set[str]:
    """The files that change where packages get these versions; a second time, none does."""
    top = write(root, files)
    changed = write_versions(top, target(top), versions)
    assert write_versions(top, target(top), versions) == set()
    return changed


def refused(root: Path, files: Mapping[str, object], **versions: str) -> PlanError:
    top = write(root, files)
    with pytest.raises(PlanError) as caught:
        write_versions(top, target(top), versions)
    assert caught.value.problem is Problem.CANNOT_WRITE
    return caught.value


@pytest.mark.parametrize(
    ("field", "spec", "fix", "breaking"),
    [
        ("dependencies", "^1.2.0", "^1.2.4", "^2.0.0"),
        ("optionalDependencies", "1.2.3", "1.2.4", "2.0.0"),
        ("devDependencies", "~1.2", "~1.2", "~2.0"),
        ("peerDependencies", "^1.2.0", "^1.2.0", "^2.0.0"),
        ("peerDependencies", ">=1", ">=1", ">=1"),
        ("dependencies", "workspace:^1.2.0", "workspace:^1.2.4", "workspace:^2.0.0"),
        ("dependencies", "workspace:1.2.3", "workspace:1.2.4", "workspace:2.0.0"),
        ("dependencies", "workspace:core@^1.2.0", "workspace:core@^1.2.4", "workspace:core@^2.0.0"),
        ("dependencies", "npm:core@1.x", "npm:core@1.x", "npm:core@2.x"),
        *(
            ("dependencies", spec, spec, spec)
            for spec in (
                *("workspace:*", "workspace:^", "workspace:~", "*", "latest", "file:../core"),
                *("^0.9.0", ">=2.0.0-rc.1", "workspace:../core", "https://example.com/core.tgz"),
            )
        ),
    ],
)
def test_a_requirement_is_raised_or_made_to_fit(
    tmp_path: Path, field: str, spec: str, fix: str, breaking: str
) -> None:
    for new, expected in (("1.2.4", fix), ("2.0.0", breaking)):
        web = json.dumps({"name": "web", "version": "3.0.0", field: {"core": spec}})
        root = tmp_path / new
        written(
            root,
            {**PNPM, "core/package.json": CORE, "web/package.json": web},
            core=new,
            web="3.0.1",
        )
        wanted = web.replace("3.0.0", "3.0.1").replace(json.dumps(spec), json.dumps(expected))
        assert (root / "web/package.json").read_text() == wanted


def test_where_nobody_is_released_a_requirement_changes_only_if_it_excludes(tmp_path: Path) -> None:
    """Of a package that stays, of a private one, and of a root without a name."""
    needs = {"devDependencies": {"core": "^1.2.0"}}
    files = {
        "package.json": {"private": True, "workspaces": ["*"], **needs},
        "core/package.json": CORE,
        "web/package.json": {"name": "web", "version": "3.0.0", **needs},
        "tools/package.json": {"name": "tools", "private": True, **needs},
    }
    everything = {name for name in files if name.endswith(".json")}
    assert written(tmp_path / "a", files, core="1.9.0") == {"core/package.json"}
    assert written(tmp_path / "b", files, core="2.0.0") == everything
    root = write(tmp_path / "c", files)
    versions = {"core": "1.9.0", "web": "3.1.0"}
    changed = write_versions(root, target(root), versions, ranges="keep")
    assert changed == {"core/package.json", "web/package.json"}
    assert "^1.2.0" in (root / "web/package.json").read_text()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("^0.9.0 || workspace:^1.0.0", "workspace:^0.9.0 || ^2.0.0"),
        ("workspace:^1.0.0 || ^0.9.0", "workspace:^2.0.0 || ^0.9.0"),
        ("workspace:>= || ^0.9.0", "workspace:>= || ^0.9.0"),
    ],
)
def test_an_alternative_that_leads_to_the_workspace_is_raised(
    tmp_path: Path, spec: str, expected: str
) -> None:
    """R63: whatever alternative `workspace:` stands before."""
    web = {"name": "web", "version": "3.0.0", "peerDependencies": {"core": spec}}
    files = {
        **PNPM,
        "core/package.json": {"name": "core", "version": "1.2.0"},
        "web/package.json": web,
    }
    root = write(tmp_path, files)
    write_versions(root, target(root), {"core": "2.0.0", "web": "4.0.0"})
    after = json.loads((root / "web/package.json").read_text())
    assert after["peerDependencies"] == {"core": expected}


@pytest.mark.parametrize("ranges", ["raise", "keep"])
def test_a_stable_version_keeps_no_requirement_of_a_prerelease(
    tmp_path: Path, ranges: Ranges
) -> None:
    web = {
        "name": "web",
        "version": "3.0.1-rc.1",
        "dependencies": {"core": "^1.3.0-rc.1"},
        "peerDependencies": {"core": "^1.2.0 || ^1.3.0-rc.1"},
    }
    files = {
        **PNPM,
        "core/package.json": {"name": "core", "version": "1.3.0-rc.2"},
        "web/package.json": web,
    }
    root = write(tmp_path, files)
    write_versions(root, target(root), {"core": "1.3.0", "web": "3.0.1"}, ranges=ranges)
    after = json.loads((root / "web/package.json").read_text())
    assert after["dependencies"] == {"core": "^1.3.0"}
    assert after["peerDependencies"] == {"core": "^1.2.0 || ^1.3.0"}


def test_a_package_that_needs_itself_means_the_published_one(tmp_path: Path) -> None:
    core = {**CORE, "devDependencies": {"core": "^1.2.0"}}
    written(tmp_path, {**PNPM, "core/package.json": core}, core="2.0.0")
    text = json.dumps({**core, "version": "2.0.0"})
    assert (tmp_path / "core/package.json").read_text() == text


def test_all_but_the_versions_stays_to_the_byte(tmp_path: Path) -> None:
    text = (
        '\ufeff{ "name" :\t"web",\r\n"version":"3.0.0","x":{"version":"3.0.0"},\r\n'
        '"dependencies": {"core":"^9", "core": "^1.2.0"} , "é":"\\u00e9"}'
    )
    root = write(tmp_path, {**PNPM, "core/package.json": CORE, "web/package.json": "{}"})
    (root / "web/package.json").write_bytes(text.encode())
    write_versions(root, target(root), {"core": "1.3.0", "web": "3.0.1"})
    expected = text.replace('"version":"3.0.0","x"', '"version":"3.0.1","x"').replace(
        "^1.2", "^1.3"
    )
    assert (root / "web/package.json").read_bytes().decode() == expected


def test_a_catalog_is_edited_on_its_line(tmp_path: Path) -> None:
    yaml = """\
packages: ['*']  # all
catalog:
  other: ^1.2.0
  'core': "^1.2.0"   # ours
catalogs:
  old:
    core: ~1.2.3
"""
    web = {"name": "web", "version": "3.0.0", "dependencies": {"core": "catalog:"}}
    tools = {"name": "tools", "private": True, "devDependencies": {"core": "catalog:old"}}
    files = {
        "pnpm-workspace.yaml": yaml,
        "core/package.json": CORE,
        "web/package.json": web,
        "tools/package.json": tools,
    }
    assert written(tmp_path, files, core="1.2.4", web="3.1.0") == {
        *("core/package.json", "web/package.json", "pnpm-workspace.yaml")
    }
    edited = yaml.replace('"^1.2.0"', '"^1.2.4"')
    assert (tmp_path / "pnpm-workspace.yaml").read_text() == edited


def test_catalogs_of_bun_are_edited_with_its_lock(tmp_path: Path) -> None:
    top = """\
{ "workspaces": {"packages": ["*"], "catalog": {"other": "^1.2.0", "core": "^1.2.0"},
    "catalogs": {"old": {"core": "~1.2.3"}, "off": {"core": "^1.2.0"}}},
  "catalog": {"other": "^1.2.0"} }
"""
    lock = """\
{
  "lockfileVersion": 1,
  "workspaces": {
    "": {
      "name": "all, }",
    },
    "core": {
      "name": "core",
      "version": "1.2.3",
    },
    "web": {
      "name": "web",
      "version": "3.0.0",
      "dependencies": {
        "core": "catalog:",
      },
      "devDependencies": {
        "core": "^1.2.0",
      },
    },
    "tools": {
      "name": "tools",
    },
  },
  "catalog": {
    "core": "^1.2.0",
  },
  "catalogs": {
    "off": {
      "core": "^1.2.0",
    },
    "old": {
      "core": "~1.2.3",
    },
  },
  "packages": {
    "core": ["core@workspace:core"],
  },
}
"""
    asked = {"dependencies": {"core": "catalog:"}, "devDependencies": {"core": "^1.2.0"}}
    tools = {"name": "tools", "private": True, "devDependencies": {"core": "catalog:old"}}
    files = {
        "package.json": top,
        "bun.lock": lock,
        "bun.lockb": "left over",
        "core/package.json": CORE,
        "web/package.json": {"name": "web", "version": "3.0.0", **asked},
        "tools/package.json": tools,
    }
    changed = written(tmp_path, files, core="1.2.4", web="3.1.0")
    assert changed == {*("core/package.json", "web/package.json", "package.json", "bun.lock")}
    edited = top.replace('"core": "^1.2.0"}', '"core": "^1.2.4"}', 1)
    assert (tmp_path / "package.json").read_text() == edited
    before, off, after = lock.partition('"off": {\n      "core": "^1.2.0"')
    for old, new in {'"1.2.3"': '"1.2.4"', '"3.0.0"': '"3.1.0"', '"^1.2.0"': '"^1.2.4"'}.items():
        before = before.replace(old, new)
    assert (tmp_path / "bun.lock").read_text() == before + off + after


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pnpm-workspace.yaml", "packages: ['*']\ncatalog: {core: ^1.2.0}\n"),
        (".yarnrc.yml", "catalog:\n  core: ^1.2.0\n"),
    ],
)
def test_a_catalog_in_another_form_is_refused(tmp_path: Path, name: str, text: str) -> None:
    files = {
        name: text,
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": {
            "name": "web",
            "version": "3.0.0",
            "dependencies": {"core": "catalog:"},
        },
    }
    error = refused(tmp_path, files, core="2.0.0")
    assert str(error).startswith(f"{tmp_path / name}: catalogs.default.core is '^1.2.0'")


def test_every_requirement_without_a_form_for_the_version_is_named(tmp_path: Path) -> None:
    web = {"name": "web", "version": "3.0.0", "dependencies": {"core": "workspace:1.x"}}
    tools = {"name": "tools", "private": True, "devDependencies": {"core": "~1.2"}}
    files = {
        **PNPM,
        "core/package.json": CORE,
        "web/package.json": web,
        "tools/package.json": tools,
    }
    error = refused(tmp_path, files, core="2.0.0-rc.1")
    told = {str(each): each.hint for each in (error, *error.others)}
    place = f"{tmp_path}/web/package.json: dependencies.core is 'workspace:1.x'"
    assert told == {
        f"{place}, a form that cannot hold 2.0.0-rc.1": (
            'Write a range with all three numbers, such as "workspace:^1.2.3".'
        ),
        f"{tmp_path}/tools/package.json: devDependencies.core is '~1.2', a form that cannot "
        "hold 2.0.0-rc.1": 'Write a range with all three numbers, such as "^1.2.3".',
    }


WEB = {"name": "web", "version": "3.0.0", "dependencies": {"core": "^1.2.0"}}
LINKED = {"node_modules/core": {"link": True, "resolved": "core"}}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("bun.lock", "{}", "is not in a format that can be edited"),
        ("bun.lock", '{"lockfileVersion": 0,}', "is not in a format that can be edited"),
        ("bun.lock", '{"lockfileVersion": true}', "is not in a format that can be edited"),
        ("bun.lock", "<<<<<<< HEAD", "is not in a format that can be edited"),
        ("bun.lock", '{"lockfileVersion": 1, "workspaces": {"core": {},}}', "lacks {root}/web"),
        ("bun.lockb", "#!/usr/bin/env bun\n", "is not in a format that can be edited"),
        ("package-lock.json", '{"lockfileVersion": 1}', "is not in a format that can be edited"),
        ("package-lock.json", "<<<<<<< HEAD", "is not in a format that can be edited"),
        (
            "package-lock.json",
            '{"lockfileVersion": 3, "packages": {"core": {}}}',
            "lacks {root}/web",
        ),
        ("pnpm-lock.yaml", "lockfileVersion: '6.0'\n", "is not in a format that can be edited"),
        ("pnpm-lock.yaml", "lockfileVersion: '9.0'\nimporters:\n  core: {}\n", "lacks {root}/web"),
        ("yarn.lock", "__metadata:\n  version: 6\n", "is not in a format that can be edited"),
        (
            "yarn.lock",
            """\
__metadata:
  version: 8

"core@npm:^1.0.0, core@npm:^1.2.0, core@workspace:core":
  resolution: "core@workspace:core"

"plugin@npm:^1.0.0":
  resolution: "plugin@npm:1.0.0"
  dependencies:
    core: "npm:^1.0.0"

"web@workspace:web":
  resolution: "web@workspace:web"
  dependencies:
    core: "npm:^1.2.0"
""",
            ": a package of the registry needs core@npm:^1.0.0, which excludes 2.0.0",
        ),
    ],
)
def test_a_lock_that_cannot_follow_is_refused(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": WEB,
        name: text,
    }
    error = refused(tmp_path, files, core="2.0.0", web="3.0.1")
    message = told.format(root=tmp_path)
    assert str(error) == f"{tmp_path / name}{'' if message[0] == ':' else ' '}{message}"
    assert "install" in error.hint


def test_a_lock_without_versions_may_be_of_any_format_where_only_they_change(
    tmp_path: Path,
) -> None:
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": WEB,
        "yarn.lock": "# yarn lockfile v1\n",
        "pnpm-lock.yaml": "lockfileVersion: 5.4\n",
    }
    assert written(tmp_path, files, core="1.2.4") == {"core/package.json"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "package-lock.json",
            json.dumps(
                {
                    "lockfileVersion": 3,
                    "packages": {
                        **LINKED,
                        "core": CORE,
                        "web": WEB,
                        "web/node_modules/core": {"version": "1.2.1"},
                    },
                }
            ),
        ),
        (
            "pnpm-lock.yaml",
            """\
lockfileVersion: '9.0'
importers:
  core: {}
  web:
    dependencies:
      core:
        specifier: ^1.2.0
        version: 1.2.1
""",
        ),
        (
            "bun.lock",
            """\
{
  "lockfileVersion": 1,
  "workspaces": {
    "core": { "name": "core", "version": "1.2.3" },
    "web": { "name": "web", "version": "3.0.0", "dependencies": { "core": "^1.2.0", }, },
  },
  "packages": {
    "core": ["core@workspace:core"],
    "web": ["web@workspace:web"],
    "web/core": ["core@1.2.1", "", {}, "sha512-"],
  }
}
""",
        ),
        (
            "yarn.lock",
            """\
__metadata:
  version: 8

"core@npm:^1.2.0":
  resolution: "core@npm:1.2.1"

"core@workspace:core":
  resolution: "core@workspace:core"

"web@workspace:web":
  resolution: "web@workspace:web"
  dependencies:
    core: "npm:^1.2.0"
""",
        ),
    ],
)
def test_what_a_lock_takes_from_the_registry_stays(tmp_path: Path, name: str, text: str) -> None:
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": WEB,
        name: text,
    }
    changed = written(tmp_path, files, core="2.0.0", web="3.0.1")
    assert changed - {"package-lock.json", "bun.lock"} == {"core/package.json", "web/package.json"}
    assert '"core": "^1.2.0"' in (tmp_path / "web/package.json").read_text()


@pytest.mark.parametrize("other", ["devDependencies", ""])
def test_what_leads_to_the_workspace_is_edited_beside_what_leads_elsewhere(
    tmp_path: Path, other: str
) -> None:
    """R36: bun.lock has the registry's version of one name, and another is that of the root."""
    lock = """\
{
  "lockfileVersion": 1,
  "workspaces": {
    "": { "name": "top", "version": "1.0.0", "devDependencies": { "core": "^0.9.0", } },
    "core": { "name": "core", "version": "1.2.3" },
    "web": { "name": "web", "version": "3.0.0", "peerDependencies": {
      "core": "workspace:^1.2.0", "top": "workspace:^1.0.0",
    }, },
  },
  "packages": {
    "core": ["core@0.9.1", "", {}, "sha512-"],
    "top": ["top@root:", {}],
    "web": ["web@workspace:web"],
  }
}
"""
    asked: dict[str, object] = {
        "peerDependencies": {"core": "workspace:^1.2.0", "top": "workspace:^1.0.0"}
    }
    files = {
        "package.json": {
            "name": "top",
            "version": "1.0.0",
            "workspaces": ["*"],
            "devDependencies": {"core": "^0.9.0"},
        },
        "core/package.json": CORE,
        "web/package.json": {
            "name": "web",
            "version": "3.0.0",
            **asked,
            **({other: {"core": "^0.9.0"}} if other else {}),
        },
        "bun.lock": lock,
    }
    written(tmp_path, files, core="2.0.0", web="3.0.1", top="2.0.0")
    changed = json.loads((tmp_path / "web/package.json").read_text())
    assert changed["peerDependencies"] == {"core": "workspace:^2.0.0", "top": "workspace:^2.0.0"}
    text = (tmp_path / "bun.lock").read_text()
    assert '"core": "workspace:^2.0.0", "top": "workspace:^2.0.0"' in text
    assert '"core": "^0.9.0"' in text


@pytest.mark.parametrize(
    "members",
    [
        '"gone": {"name": "g", "dependencies": {"core": "1"}}}, "workspaces": {',
        '"\\ud800": {"name": "g", "dependencies": {"core": "1"}},',
    ],
)
def test_a_strange_lock_is_no_traceback(tmp_path: Path, members: str) -> None:
    """R40"""
    known = '"core": {"name": "core", "version": "1.2.3"}, "web": {"name": "web"}'
    lock = f'{{"lockfileVersion": 1, "workspaces": {{{members}{known}}}, "packages": {{}}}}'
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": WEB,
        "bun.lock": lock,
    }
    assert "bun.lock" in written(tmp_path, files, core="2.0.0", web="3.0.1")


def test_a_lock_beside_a_member_counts_for_nothing(tmp_path: Path) -> None:
    """Left over from before there was a workspace: npm reads none but the root's."""
    lock = {"lockfileVersion": 3, "packages": {"": {}, **LINKED, "core": CORE, "web": WEB}}
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "package-lock.json": lock,
        "core/package.json": CORE,
        "web/package.json": WEB,
        "web/package-lock.json": {"lockfileVersion": 1, "version": "2.0.0"},
    }
    changed = written(tmp_path, files, core="2.0.0", web="3.0.1")
    assert changed == {"core/package.json", "web/package.json", "package-lock.json"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_entries_of_yarn_are_sorted_by_what_they_are_now(tmp_path: Path, end: str) -> None:
    head = "# This file is generated.\n\n__metadata:\n  version: 8\n\n"
    core = '"core@npm:^1.2.0, core@workspace:core":\n  resolution: "core@workspace:core"\n'
    other = '"core@npm:^2.0.0":\n  resolution: "core@npm:2.0.9"\n'
    web = '"web@workspace:web":\n  resolution: "web@workspace:web"\n  dependencies:\n    core: '
    files = {
        "package.json": {"private": True, "workspaces": ["*"]},
        "core/package.json": CORE,
        "web/package.json": WEB,
        "yarn.lock": "",
    }
    root = write(tmp_path, files)
    before = f'{head}{core}\n{other}\n{web}"npm:^1.2.0"\n'
    (root / "yarn.lock").write_bytes(before.replace("\n", end).encode())
    write_versions(root, target(root), {"core": "3.0.0"})
    after = f'{head}{other}\n{core.replace("^1.2.0", "^3.0.0")}\n{web}"npm:^3.0.0"\n'
    assert (root / "yarn.lock").read_bytes() == after.replace("\n", end).encode()
