"""Names, versions, ranges and requirements, each in a package that is planned for a registry that
has nothing yet.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from harness.http_server import Handler, serving
from peers import ours
from peers.npm.reading import MANIFEST, name_each, read_events
from peers.scenarios import EQUAL, Case, Verdict
from releasekit.ecosystems.npm import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ASKED: Final = Path(__file__).with_name("asked.cjs")
# What users of a published package can install, of the types of npm-package-arg.
_INSTALLED: Final = {"git", "tag", "version", "range", "remote", "alias"}


def ask(what: str, **asked: object) -> Any:
    """What modules of the npm on PATH say."""
    text = json.dumps({"what": what, **asked})
    done = subprocess.run(
        ["node", str(_ASKED)], input=text, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


class _Empty(Handler):
    def do_GET(self) -> None:
        self.send(404, (), b"{}")


def plan(root: Path, manifests: Mapping[str, Mapping[str, object]]) -> ours.Ran:
    """For npmjs.com, whose place is taken by a registry that is empty."""
    for at, document in manifests.items():
        (root / at).mkdir(parents=True, exist_ok=True)
        (root / at / MANIFEST).write_text(json.dumps(document))
    ours.commit(root)
    with serving(_Empty) as url, mock.patch.object(registry, "NPMJS_HOST", "127.0.0.1"):
        return ours.run("plan", root, "--format", "json", "--npm-registry", url)


def read_names(checkout: Path) -> Iterator[Case]:
    """What npm takes for the name of a new package: a table of its validator's."""
    events = read_events(checkout.glob("test/*.js"), calls=["deepStrictEqual", "same", "validate"])
    pending = None
    for event in events:
        if event.call != "validate":
            pending = event
        elif pending is not None and len(pending.args) > 1 and isinstance(pending.args[1], dict):
            (name, *_), expected = event.args or [None], pending.args[1]
            fine = expected.get("validForNewPackages") is True
            yield Case(
                name=f"{event.file.name}:{event.line}",
                judge=functools.partial(_judge_name, name, fine),
            )


def _judge_name(name: object, fine: bool, directory: Path) -> Verdict:
    if isinstance(name, dict | type(None)) or name == "":
        return Verdict("unusable", "a package.json without a name is no package")
    done = plan(directory / "repository", {".": {"name": name, "version": "1.0.0"}})
    if fine is (done.code == 0):
        return EQUAL if fine or MANIFEST in done.error else Verdict("fault", done.error)
    return Verdict("fault", f"{name!r} is {'fine' if fine else 'refused'}\n{done.error}{done.out}")


def read_versions(checkout: Path) -> Iterator[Case]:
    files = [checkout / f"test/fixtures/{name}-versions.js" for name in ("valid", "invalid")]
    events = read_events(filter(Path.is_file, files), calls=[])
    texts = [row[0] for event in events for row in event.args[0] if isinstance(row[0], str)]
    texts = [*dict.fromkeys(texts)]
    for number, (text, cleaned) in enumerate(
        zip(texts, ask("versions", versions=texts), strict=True)
    ):
        yield Case(
            name=f"versions#{number} {text[:40]}",
            judge=functools.partial(_judge_version, text, cleaned),
        )


def _judge_version(text: str, cleaned: str | None, directory: Path) -> Verdict:
    """npm publishes what its semver makes of it."""
    done = plan(directory / "repository", {".": {"name": "foo", "version": text}})
    if done.code == 0:
        (package,) = done.packages
        if package["version"] == cleaned:
            return EQUAL
    elif cleaned is None and MANIFEST in done.error:
        return EQUAL
    elif done.refuses("RK-221") and cleaned != text and "version" in done.error:
        why = "limits.md: A name, version or table that npm corrects when it publishes"
        return Verdict("explained", why)
    return Verdict("fault", f"npm publishes {text!r} as {cleaned!r}\n{done.error}{done.out}")


def read_ranges(checkout: Path) -> Iterator[Case]:
    """Whether a version in the workspace is what a package asks for."""
    for name, fits in (("include", True), ("exclude", False)):
        for event in read_events([checkout / f"test/fixtures/range-{name}.js"], calls=[]):
            for number, row in enumerate(event.args[0]):
                yield Case(
                    name=f"range-{name}#{number} {row[0]} {row[1]}",
                    judge=functools.partial(_judge_range, row, fits),
                )


def _judge_range(row: Sequence[Any], fits: bool, directory: Path) -> Verdict:
    asked, version, *options = row
    if not isinstance(asked, str) or not isinstance(version, str):
        return Verdict("unusable", "it is no text")
    if any(isinstance(each, dict) and each.get("includePrerelease") for each in options):
        return Verdict("unusable", "npm does not resolve dependencies with includePrerelease")
    root = directory / "repository"
    needing = {"name": "bar", "version": "1.0.0", "dependencies": {"foo": asked}}
    done = plan(
        root,
        {
            ".": {"private": True, "workspaces": ["foo", "bar"]},
            "foo": {"name": "foo", "version": version},
            "bar": needing,
        },
    )
    if done.code:
        if done.refuses("RK-221") and "version" in done.error:
            return Verdict("unusable", "the version is none that is published")
        # There is no version of it that would.
        if not fits and done.refuses("RK-503", "RK-307"):
            return EQUAL
        return Verdict("fault", f"{asked!r} {version!r} {fits}\n{done.error}")
    planned = next(each for each in done.packages if each["name"] == "bar")
    if bool(planned["dependencies"]) is fits:
        return EQUAL
    if not fits and re.search(r"(^|\s)[a-z]{2,}(\s|$)", asked):
        return Verdict("explained", "npm.md: order as if they held the version of this workspace")
    return Verdict("fault", f"{asked!r} holds {version!r}: {fits}\n{done.out}")


def read_requirements(checkout: Path) -> Iterator[Case]:
    """What a dependency may say so that users can install it."""
    events = read_events(checkout.glob("test/*.js"), calls=["npa"], keys=["tests"])
    texts: dict[str, str] = {}
    for _, event in name_each(events):
        given = event.args[0] if event.args else None
        for text in given if isinstance(given, dict) and event.call == "tests" else [given]:
            if isinstance(text, str) and event.file.stem != "windows":
                texts.setdefault(text, f"{event.file.name}:{event.line}")
    specs = {text: _get_spec(text) for text in texts}
    types = ask("specs", specs=[*specs.values()])
    for (text, where), kind in zip(texts.items(), types, strict=True):
        yield Case(
            name=f"{where} {text}", judge=functools.partial(_judge_requirement, specs[text], kind)
        )


def _get_spec(text: str) -> str:
    """What stands behind the name of `name@spec`."""
    name, at, spec = text[1:].partition("@")
    is_named = at and "/" not in name.partition("/")[2] and ":" not in name
    is_named = is_named and (text.startswith("@") or "/" not in name)
    return spec if is_named else text


def _judge_requirement(spec: str, kind: str, directory: Path) -> Verdict:
    needing = {"name": "bar", "version": "1.0.0", "dependencies": {"foo": spec}}
    done = plan(directory / "repository", {".": needing})
    if (kind in _INSTALLED) is (done.code == 0):
        is_named = MANIFEST in done.error or "foo is" in done.error
        return EQUAL if done.code == 0 or is_named else Verdict("fault", done.error)
    if spec.startswith("git+file:") and done.refuses("RK-307"):
        why = "limits.md: git repositories on a disk (`git+file:`)"
        return Verdict("explained", why)
    return Verdict("fault", f"{spec!r} is {kind}\n{done.error}{done.out}")
