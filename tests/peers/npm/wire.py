"""What npm sends to a registry, and what it does not send, beside what ReleaseKit does."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from harness.http_server import Handler, serving
from peers import ours
from peers.npm import packing
from peers.npm.reading import MANIFEST, as_files, fill_in, is_unknown, name_each, read_events
from peers.scenarios import EQUAL, Case, Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

# What says which program sent it; and the digests, which the tarballs decide.
_SENDERS: Final = (
    "_nodeVersion",
    "_npmVersion",
    "_npmUser",
    "gitHead",
    "dist",
    "_from",
    "_resolved",
    "_integrity",
)
# What npm makes of files that are not in the tarball.
_EXPLAINED: Final = {"contributors"}
# In no order that a sort has.
_CONDITIONS: Final = {"types": "./b.js", "import": "./c.js", "node": "./a.js", "default": "./b.js"}
_ORDERED: Final = {
    MANIFEST: json.dumps(
        {"exports": {"./z": _CONDITIONS, ".": _CONDITIONS}, "imports": {"#z": _CONDITIONS}}
    ),
    **dict.fromkeys(("a.js", "b.js", "c.js"), ""),
}
_NO_README: Final = "ERROR: No README data found!"
_README: Final = ("readme", "readmeFilename")


class _Recorder(Handler):
    sent: dict[str, dict[str, Any]]

    def do_PUT(self) -> None:
        if received := self.received():
            body = json.loads(received[1])
            self.sent[body["name"]] = body
            self.send(201, (), b"{}")

    def do_GET(self) -> None:
        name = unquote(self.path[1:])
        for known, body in self.sent.items():
            if name == known:
                page = {key: body[key] for key in ("name", "versions", "dist-tags")}
                return self.send(200, (), json.dumps(page).encode())
            for version, entry in body["versions"].items():
                if name == f"{known}/{version}":
                    return self.send(200, (), json.dumps(entry).encode())
        return self.send(404, (), b"{}")


def read_manifests(checkout: Path) -> Iterator[Case]:
    """Of @npmcli/package-json, and of what was there before it."""
    calls = ["testPrepare", "testNormalize", "testdir", "testFixNameStep"]
    for name, event in name_each(read_events(checkout.glob("test/*.js"), calls=calls)):
        tree = next(
            (each for each in event.args if isinstance(each, dict) and not is_unknown(each)), None
        )
        if (
            tree is None
            or MANIFEST not in tree
            or (event.call == "testdir" and "testdir" in event.tail)
        ):
            continue
        yield Case(name=name, judge=functools.partial(judge, functools.partial(_as_filled, tree)))


def read_ordered(_checkout: Path) -> Iterator[Case]:
    judged = functools.partial(judge, functools.partial(_as_filled, _ORDERED))
    yield Case(name="order of conditions", judge=judged)


def _as_filled(tree: Mapping[str, object]) -> Files:
    return fill_in(as_files(tree))


def read_fixtures(checkout: Path) -> Iterator[Case]:
    """Each is the package.json of some package, or of none."""
    for path in sorted(checkout.glob("test/fixtures/*.json")):
        text = path.read_text(errors="replace")
        read = functools.partial(_as_manifest, text)
        name = f"{checkout.name.partition('_')[0]}/{path.name}"
        yield Case(name=name, judge=functools.partial(judge, read))


def _as_manifest(text: str) -> Files:
    return fill_in(Files(files={MANIFEST: text}))


def read_published(checkout: Path) -> Iterator[Case]:
    events = read_events([checkout / "test/lib/commands/publish.js"], keys=["prefixDir"])
    for name, event in name_each(events):
        yield Case(
            name=f"sent {name}",
            judge=functools.partial(judge, functools.partial(as_files, event.args[0])),
        )


def judge(read: Callable[[], Files], directory: Path) -> Verdict:
    root = directory / "repository"
    try:
        files = read()
        files.write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    document = packing.read_json(root / MANIFEST)
    if document.get("workspaces"):
        return Verdict("unusable", "npm publishes one package at a time")
    (root / "releasekit.toml").write_text(packing.SETTINGS)
    ours.commit(root)
    theirs: dict[str, Any] = {}
    with serving(_Recorder, sent=theirs) as url:
        refusal = _publish_by_npm(root, url, directory / "home", document)
    made: dict[str, Any] = {}
    with serving(_Recorder, sent=made) as url:
        os.environ["RELEASEKIT_NPM_TOKEN"] = "peer"
        os.environ["RELEASEKIT_NPM_FORCE_REGISTRY"] = "true"
        arguments = ["--npm-registry", url, "--state-directory", str(directory / "state")]
        planned = ours.run("plan", root, "--format", "json", *arguments)
        done = ours.run("publish", root, "--build-sandbox", "off", *arguments)
    if not theirs and not made:
        is_early = planned.code or not planned.packages
        return EQUAL if is_early else Verdict("fault", f"the plan does not refuse it: {done.out}")
    if not theirs:
        return _explained(f"only npm refuses it: {refusal}\n{done.error}{done.out}", planned)
    if not made:
        return _explained(f"only ReleaseKit refuses it: {done.error}\n{done.out}", planned)
    wrong = _compare(made, theirs)
    if not wrong:
        return EQUAL
    is_optional = "optionalDependencies" in document and "bundle" in str([*document])
    unexplained = [
        line
        for line in wrong
        if (key := line.partition(" is ")[0]) not in _EXPLAINED
        and "gist.github.com" not in line
        and not (key == "dependencies" and is_optional)
    ]
    if not unexplained:
        return Verdict("explained", "npm.md: Only files in the tarball count")
    return Verdict("fault", "\n".join(unexplained))


def _publish_by_npm(root: Path, url: str, home: Path, document: Mapping[str, Any]) -> str:
    tag = "next" if "-" in str(document.get("version", "")) else "latest"
    given = document.get("publishConfig")
    own = given.get("tag") if isinstance(given, dict) else None
    argv = ["npm", "publish", "--registry", url, f"--{url.partition(':')[2]}/:_authToken=peer"]
    argv += [] if own or tag == "latest" else ["--tag", tag]
    environment = {**packing.environment(home), "npm_config_offline": "false"}
    done = subprocess.run(
        argv, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _compare(made: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    if made.keys() != theirs.keys():
        return [f"ReleaseKit sends {[*made]}, and npm {[*theirs]}"]
    wrong = []
    for name, body in made.items():
        other = theirs[name]
        wrong += [
            f"{key} is {body.get(key)!r} here, and {other.get(key)!r} there"
            for key in ("dist-tags", "access", "description")
            if (body.get(key) or None) != (other.get(key) or None)
        ]
        (version, entry), (wanted, entry_there) = (
            next(iter(each["versions"].items())) for each in (body, other)
        )
        wrong += _check_tarball(name, version, body)
        if version != wanted:
            wrong.append(f"version is {version} here, and {wanted} there")
        for key in sorted({*entry, *entry_there} - {*_SENDERS}):
            left, right = entry.get(key) or None, entry_there.get(key) or None
            is_shown = key not in _README or right not in {None, _NO_README}
            if packing.is_other(key, left, right) and is_shown:
                wrong.append(f"{key} is {str(left)[:150]!r} here, and {str(right)[:150]!r} there")
    return wrong


def _check_tarball(name: str, version: str, body: Mapping[str, Any]) -> list[str]:
    """Clients hold what they download against the digests, of which npm sends its own."""
    sent = body["_attachments"][f"{name}-{version}.tgz"]
    data, dist = base64.b64decode(sent["data"]), body["versions"][version]["dist"]
    sha512 = base64.b64encode(hashlib.sha512(data).digest()).decode()
    wanted = {
        "integrity": f"sha512-{sha512}",
        "shasum": hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    }
    wrong = [f"{key} is that of other bytes" for key in wanted if dist[key] != wanted[key]]
    return wrong if sent["length"] == len(data) else [*wrong, "length is another one"]


def _explained(what: str, planned: ours.Ran) -> Verdict:
    if planned.refuses("RK-221"):
        return Verdict("explained", "limits.md: what is committed would not be what is published.")
    if "rk-119" in what:
        return Verdict("explained", "npm.md: A package whose tarball does not contain")
    return Verdict("fault", what)
