"""A state directory, a plan file and results that somebody else has written."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from hostile.case import Case, Content, Fifo, Folder, Link, Sparse, cases
from hostile.manifests import HUGE, REFUSED, SAID, SOME
from hostile.workspaces_of import BUILT, PUBLISH, tarball
from unit.provenance import bundles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATE: Final = "w/.releasekit"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("plan", "--registry", "dir:{root}/registry"),
    "publish": PUBLISH,
    "check": ("check",),
    "fix": ("check", "--fix"),
    "report": ("report",),
}
# check says 1 where it found something.
_SAID: Final = SAID | {1}
# What is as large as it may be is parsed in one go, before anything else is under way.
_PARSED_S: Final = 1.0
_EVIL_DIGEST: Final = "0" * 64
_PACKAGE: Final = "npm:@acme/a"


def line(record: Mapping[str, object] | str) -> bytes:
    """A line of the journal with the CRC that fits."""
    text = record if isinstance(record, str) else json.dumps(record, separators=(",", ":"))
    body = text.rstrip("}").encode() if isinstance(record, str) else text[:-1].encode()
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def journal(*events: Mapping[str, object], **common: object) -> bytes:
    """These events of one run, numbered and sealed."""
    usual = {"v": 2, "run": "0" * 32, "at": 0.1, "durable": 0, **common}
    return b"".join(line({**usual, "seq": n, **event}) for n, event in enumerate(events))


STARTED: Final = {
    "event": "run_started",
    "plan": "0" * 64,
    "commit": "",
    "tool": "1.0.0",
    "started_at": "2026-11-22T12:00:00+00:00",
    "ecosystems": ["npm"],
}


def built(**changed: object) -> dict[str, object]:
    data = tarball(description="a backdoor")
    digests = {"sha256": hashlib.sha256(data).hexdigest()}
    path = "dist/npm/@acme/a/1.0.0/acme-a-1.0.0.tgz"
    artifact = {"path": path, "size": len(data), "digests": digests}
    return {
        "event": "built",
        "package": _PACKAGE,
        "version": "1.0.0",
        "fingerprint": "f" * 64,
        "artifacts": [artifact],
        **changed,
    }


def intent(**changed: object) -> dict[str, object]:
    return {
        "event": "intent",
        "package": _PACKAGE,
        "version": "1.0.0",
        "registry": "dir:/nowhere",
        "digests": {"acme-a-1.0.0.tgz": _EVIL_DIGEST},
        **changed,
    }


def outcome(**changed: object) -> dict[str, object]:
    return {
        "event": "outcome",
        "package": _PACKAGE,
        "version": "1.0.0",
        "outcome": "published",
        "reason": "",
        **changed,
    }


def _with(files: Mapping[str, Content], command: str, name: str, **options: Any) -> Case:
    return Case(
        name=f"{command}: {name}",
        files={**BUILT, **files},
        argv=COMMANDS[command],
        **{"codes": _SAID, "may_write": ("registry",), **options},
    )


def _places() -> Iterator[Case]:
    """Something else in the place of each file and directory of the state."""
    places = (
        *("", "journal.jsonl", ".journal.jsonl.tmp", "lock.npm", "results.json", "plan.json"),
        *("dist", "dist/npm", "dist/npm/@acme", "dist/npm/@acme/a", "dist/npm/@acme/a/1.0.0"),
        *("backup", "backup/npm", "logs", "work", ".gitignore", "dist/npm/@acme/a/.1.0.0.building"),
    )
    contents: Mapping[str, Content] = {
        "a link to a directory": Link("{root}/canary"),
        "a link to a file": Link("{root}/canary/precious"),
        "a link to nothing": Link("{root}/canary/new"),
        "a fifo": Fifo(),
        "a file": b"x\n",
    }
    for at, place in enumerate(places):
        path = f"{STATE}/{place}".rstrip("/")
        for step, (what, content) in enumerate(contents.items()):
            command = ("publish", "plan", "fix", "publish", "report")[(at + step) % 5]
            yield _with({path: content}, command, f"{place or 'the directory'} is {what}")
        if "link" not in place and "." in place.rpartition("/")[2][1:]:
            for command in ("publish", "check"):
                yield _with({path: Folder()}, command, f"{place} is a directory")
    for command in COMMANDS:
        link = {STATE: Link("{root}/canary/inside")}
        yield _with(link, command, "the whole state is a link out", codes=REFUSED)
        inner = {f"{STATE}/dist": Link("{root}/canary")}
        yield _with(inner, command, "dist is a link out", codes=REFUSED | {1})


def _journals() -> Iterator[Case]:
    good = journal(STARTED, built(), intent(), outcome())
    texts: Mapping[str, Content] = {
        "random bytes": bytes(range(256)) * 20,
        "NUL bytes": b"\0" * 5000,
        "a torn tail": good[:-20],
        "damage in the middle": good.replace(b'"seq":1', b'"seq":9', 1),
        "a line that is missing": good.partition(b"\n")[2],
        "a newer schema": journal(STARTED, v=99),
        "a schema of 5,000 digits": line(f'{{"v":{HUGE},"run":"x","seq":0}}'),
        "a million lines": lambda: good + b"\n" * 1_000_000,
        "40 MB of empty lines": lambda: b"\n" * 40_000_000,
        "2 million sound lines of nothing": lambda: line("{}") * 2_000_000,
        "100,000 results": lambda: journal(
            STARTED, *[outcome(package=f"npm:p{n}") for n in range(100_000)]
        ),
        "40,000 uploads under way": lambda: journal(
            STARTED, *[intent(package=f"npm:p{n}") for n in range(40_000)]
        ),
        "200,000 durations": lambda: journal(
            STARTED,
            *[
                {"event": "step_ended", "node": f"build {n}", "duration_s": 1.0}
                for n in range(200_000)
            ],
        ),
        "300,000 steps": lambda: journal(
            STARTED, *[{"event": "step_started", "node": f"build {_PACKAGE}"}] * 300_000
        ),
        "10 million lists in a line": lambda: journal({**STARTED, "x": [[]] * 10_000_000}),
        "a million files of one upload": lambda: journal(
            STARTED, intent(digests={f"{n:x}": "" for n in range(1_000_000)})
        ),
        "400,000 files of one upload": lambda: journal(
            STARTED, intent(digests={f"{n:x}": "" for n in range(400_000)})
        ),
        "100,000 sound lines": lambda: journal(
            STARTED, *[{"event": "step_started", "node": f"build {_PACKAGE}"}] * 100_000
        ),
        "ten sparse gigabytes": Sparse(10 * 1024**3),
        "one line of 30 MB": lambda: b"x" * 30_000_000,
        "10,000 runs": lambda: b"".join(journal(STARTED, run=f"{n:032}") for n in range(10_000)),
        "an unknown event": journal(STARTED, {"event": "rm_rf"}),
        "an event of another type": journal(STARTED, {"event": ["built"]}),
        "no event": journal({}),
        "a list for a line": line("[1,2"),
        "100,000 deep": line('{"v":' + "[" * 100_000 + "]" * 100_000),
        "a surrogate in a name": journal(STARTED, built(package="npm:@acme/\ud800")),
        "a surrogate in a version": journal(STARTED, intent(version="\udfff")),
        "a time that is infinite": line('{"v":2,"run":"x","seq":0,"at":1e999,"durable":0}'),
        "a duration that is no number": journal(
            STARTED,
            {"event": "step_ended", "node": f"build {_PACKAGE}", "duration_s": float("nan")},
        ),
        "a node that is none": journal(STARTED, {"event": "step_started", "node": "x"}),
        "needs in a ring": journal(
            STARTED, {"event": "planned", "needs": {_PACKAGE: [_PACKAGE], "x": [1]}}
        ),
        "a start that is no time": journal({**STARTED, "started_at": "\x1b[2J"}),
        "a tool for the runner": journal({**STARTED, "tool": "x\n::error::INJECTED"}),
        "an ecosystem that is none": journal({**STARTED, "ecosystems": ["../../canary", 1]}),
        "a run for the runner": journal(STARTED, intent(), run="x\n::error::INJECTED"),
        "an intent of 10,000 files": journal(
            STARTED, intent(digests={f"f{n}": _EVIL_DIGEST for n in range(10_000)})
        ),
        "an intent of digests that are none": journal(STARTED, intent(digests={"a": 1})),
        "an intent with a digest of 1 MB": lambda: journal(
            STARTED, intent(digests={"a.tgz": "0" * 1_000_000})
        ),
        "an outcome that is none": journal(STARTED, built(), outcome(outcome="owned")),
        "an outcome without anything": journal(STARTED, outcome()),
    }
    for what, content in texts.items():
        for command in ("publish", "check"):
            yield _with(
                {f"{STATE}/journal.jsonl": content},
                command,
                f"the journal has {what}",
                stall_s=_PARSED_S if callable(content) else 0.2,
            )
    for what, text in SOME.items():
        named = journal(STARTED, built(package=f"npm:{text}"), intent(package=f"npm:{text}"))
        versioned = journal(STARTED, built(version=text), intent(version=text))
        yield _with({f"{STATE}/journal.jsonl": named}, "publish", f"a package named {what}")
        yield _with({f"{STATE}/journal.jsonl": versioned}, "fix", f"a version like {what}")


def _forged() -> Iterator[Case]:
    """What looks as if it had been built: it is not what gets published."""
    path = f"{STATE}/dist/npm/@acme/a/1.0.0/acme-a-1.0.0.tgz"
    backdoor = tarball(description="a backdoor")
    recorded = journal(STARTED, built(prebuilt=["acme-a-1.0.0.tgz"]))
    yield _with(
        {f"{STATE}/journal.jsonl": recorded, path: backdoor},
        "publish",
        "a backdoor beside the right file",
        never_says=("backdoor",),
        unpublished=b"backdoor",
    )
    artifacts: Mapping[str, object] = {
        "outside": [{"path": "../../canary/precious", "size": 8, "digests": {"sha256": "0" * 64}}],
        "absolute": [{"path": "/proc/self/environ", "size": 8, "digests": {"sha256": "0" * 64}}],
        "of a size below 0": [{"path": "dist/x", "size": -1, "digests": {"sha256": "0" * 64}}],
        "of a huge size": [{"path": "dist/x", "size": 10**30, "digests": {"sha256": "0" * 64}}],
        "without digests": [{"path": "dist/x", "size": 1, "digests": {}}],
        "of another hash": [{"path": "dist/x", "size": 1, "digests": {"md5": "0" * 32}}],
        "that are no list": [1],
        "90,000 times": [{"path": "dist/x", "size": 1, "digests": {"sha256": "0"}}] * 90_000,
        "50,000 times": [{"path": "dist/x", "size": 1, "digests": {"sha256": "0" * 64}}] * 50_000,
        "with NUL": [{"path": "dist/\0", "size": 1, "digests": {"sha256": "0" * 64}}],
        "with a surrogate": [{"path": "dist/\ud800", "size": 1, "digests": {"sha256": "0" * 64}}],
    }
    for what, listed in artifacts.items():
        recorded = journal(STARTED, built(artifacts=listed), intent())
        for command in ("publish", "fix"):
            files: Mapping[str, Content] = {f"{STATE}/journal.jsonl": recorded}
            yield _with(files, command, f"artifacts {what}")


def _backups() -> Iterator[Case]:
    """Manifests that an earlier run is said to have pinned."""

    def sealed(body: bytes) -> bytes:
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    def backup(*originals: object) -> bytes:
        return sealed(json.dumps(originals).encode())

    def original(path: str, **changed: object) -> dict[str, object]:
        attributes = {"mode": 0o644, "uid": 0, "gid": 0, "xattrs": {}}
        return {
            "path": path,
            "data": base64.b64encode(b"owned").decode(),
            "pinned": hashlib.sha256(b"precious").hexdigest(),
            "attributes": attributes,
            "times_ns": [0, 0],
            **changed,
        }

    contents: Mapping[str, Content] = {
        "that leads out": backup(original("../canary/precious")),
        "that is absolute": backup(original("/proc/self/environ")),
        "of a link": backup(original("out")),
        "below a link": backup(original("outdir/precious")),
        "of git's own": backup(original(".git/config")),
        "with data that is none": backup(original("package.json", data="!")),
        "with times of 5,000 digits": b"0\n[",
        "with a wrong checksum": b"0" * 64 + b"\n[]",
        "that is no list": hashlib.sha256(b"1").hexdigest().encode() + b"\n1",
        "with a path that is none": backup({**original("x"), "path": 1}),
        "with NUL in a path": backup(original("a\0b")),
        "with a surrogate": backup(original("\ud800")),
        "100,000 deep": sealed(b"[" * 100_000),
        "of 10 million values": lambda: sealed(b"[" + b"[]," * 10_000_000 + b"0]"),
        "of a million values": lambda: sealed(b"[" + b"{}," * 480_000 + b"0]"),
        "of 40 MB": lambda: backup(
            original("package.json", data=base64.b64encode(b"x" * 30_000_000).decode())
        ),
        "of ten sparse gigabytes": Sparse(10 * 1024**3),
    }
    for what, content in contents.items():
        pinned: Mapping[str, Content] = {
            f"{STATE}/backup/npm/{'0' * 16}.json": content,
            "w/out": Link("../canary/precious"),
            "w/outdir": Link("../canary"),
        }
        for command in ("publish", "fix"):
            stall_s = _PARSED_S if callable(content) else 0.2
            yield _with(pinned, command, f"a backup {what}", stall_s=stall_s)
    for command in ("publish", "check"):
        lock: Mapping[str, Content] = {f"{STATE}/lock.npm": lambda: b"[" + b"[]," * 20_000_000}
        yield _with(lock, command, "a lock of 60 MB")


def _results(**changed: object) -> dict[str, object]:
    return {
        "schema": 1,
        "run_id": "0" * 32,
        "plan_digest": "0" * 64,
        "commit": "",
        "started_at": "2026-11-22T12:00:00+00:00",
        "duration_s": 1.0,
        "dry_run": False,
        "result": "success",
        "packages": [_row()],
        "private": [],
        **changed,
    }


def _row(**changed: object) -> dict[str, object]:
    return {
        "ecosystem": "npm",
        "name": "@acme/a",
        "version": "1.0.0",
        "outcome": "published",
        "reason": "",
        "hint": "",
        "attempts": 1,
        "duration_s": 1.0,
        "url": "",
        "dependencies": [],
        "artifacts": [],
        "spans": [],
        "warnings": [],
        "log": [],
        **changed,
    }


def _reports() -> Iterator[Case]:
    texts: Mapping[str, Content] = {
        "what it should": json.dumps(_results()),
        "a huge integer": json.dumps(_results()).replace('"attempts": 1', f'"attempts": {HUGE}'),
        "a huge schema": json.dumps(_results()).replace('"schema": 1', f'"schema": {HUGE}'),
        "NaN": json.dumps(_results(duration_s=float("nan"))),
        "infinity": json.dumps(_results()).replace('"duration_s": 1.0', '"duration_s": 1e999'),
        "a negative duration": json.dumps(_results(duration_s=-1e300)),
        "100,000 deep": "[" * 100_000,
        "a list": "[]",
        "nothing": "",
        "a year of 9999": json.dumps(_results(started_at="9999-12-31T23:59:59+00:00")),
        "a year of 1": json.dumps(_results(started_at="0001-01-01T00:00:00+14:00")),
        "20,000 packages": lambda: json.dumps(
            _results(packages=[_row(name=f"p{n}") for n in range(20_000)])
        ).encode(),
        "10 million empty lists": lambda: b"[" + b"[]," * 10_000_000 + b"0]",
        "30 million characters and an emoji": lambda: (
            b'{"a": "' + b"x" * 30_000_000 + "\N{ROCKET}".encode() + b'"}'
        ),
        "110,000 files": lambda: json.dumps(
            _results(
                packages=[_row(artifacts=[{"filename": "a", "sha256": "b", "size": 0}] * 110_000)]
            )
        ).encode(),
        "900,000 dependencies": lambda: json.dumps(
            _results(packages=[_row(dependencies=[f"npm:{n:x}" for n in range(900_000)])])
        ).encode(),
        "230,000 dependencies": lambda: json.dumps(
            _results(packages=[_row(dependencies=[f"npm:{n:x}" for n in range(230_000)])])
        ).encode(),
        "30,000 packages": lambda: json.dumps(
            _results(packages=[_row(name=f"p{n}") for n in range(30_000)])
        ).encode(),
        "40,000 packages": lambda: json.dumps(
            _results(packages=[_row(name=f"p{n}") for n in range(40_000)])
        ).encode(),
        "a million values with halves of pairs": lambda: (
            b"[" + b'{"\\ud800":"\\ud800"},' * 480_000 + b"0]"
        ),
        "a log of 20 MB": lambda: json.dumps(
            _results(packages=[_row(outcome="failed", log=["x" * 20_000_000])])
        ).encode(),
        "spans without end": json.dumps(
            _results(packages=[_row(spans=[{"phase": "build", "start_s": 0.0, "end_s": 1e300}])])
        ),
        "a link that runs": json.dumps(_results(packages=[_row(url="javascript:alert(1)")])),
        "a dependency on itself": json.dumps(
            _results(packages=[_row(dependencies=["npm:@acme/a"])])
        ),
        "a size of 5,000 digits": json.dumps(
            _results(packages=[_row(artifacts=[{"filename": "a", "sha256": "b", "size": 0}])])
        ).replace('"size": 0', f'"size": {HUGE}'),
        "invalid UTF-8": b'{"schema": "\xff"}',
        "ten sparse gigabytes": Sparse(10 * 1024**3),
        "a fifo": Fifo(),
    }
    for key in ("name", "version", "reason", "hint", "url", "log", "dependencies"):
        for what, text in {**SOME, "surrogate": "\ud800"}.items():
            value = [text] if key in {"log", "dependencies"} else text
            row = _row(outcome="failed", **{key: value})
            texts = {**texts, f"{key}: {what}": json.dumps(_results(packages=[row]))}
    for what, content in texts.items():
        fits = what == "what it should"
        yield _with(
            {f"{STATE}/one/results.json": content},
            "report",
            f"results hold {what}",
            codes=frozenset({0}) if fits else _SAID,
            stall_s=_PARSED_S if callable(content) else 0.2,
        )
    yield _with(
        {f"{STATE}/one": Link("{root}/canary")},
        "report",
        "results lie behind a link",
        codes=REFUSED,
    )
    many = [_row(name=f"p{n}", dependencies=[f"npm:{n}-{on}" for on in range(9)]) for n in range(9)]
    yield _with(
        {
            f"{STATE}/{job:02}/results.json": json.dumps(
                _results(packages=[{**row, "name": f"{row['name']}-{job}"} for row in many])
                | {"x": [0] * 100_000}
            )
            for job in range(20)
        },
        "report",
        "results of 20 jobs that are large together",
        codes=REFUSED,
        says=("with the results before it, more than",),
    )
    ring = {f"{STATE}/a/loop": Link("..")}
    yield _with(ring, "report", "results in a ring of links", codes=REFUSED)


def _plan_files() -> Iterator[Case]:
    def plan(**changed: object) -> str:
        row = {
            "ecosystem": "npm",
            "name": "@acme/a",
            "version": "1.0.0",
            "action": "publish",
            "reason": "",
            "fingerprint": "0" * 64,
            "dependencies": [],
            **changed,
        }
        return json.dumps({"schema": 1, "commit": "", "digest": "0" * 64, "packages": [row]})

    texts: Mapping[str, Content] = {
        "a huge integer": f'{{"schema": {HUGE}}}',
        "100,000 deep": "[" * 100_000,
        "NUL bytes": b"\0" * 100,
        "invalid UTF-8": b'{"schema": "\xff"}',
        "a list": "[]",
        "a schema that acts": '{"schema": "\\u001b[2J\\n::error::INJECTED"}',
        "a schema of 1 MB": lambda: b'{"schema": "' + b"x" * 1_000_000 + b'"}',
        "ten sparse gigabytes": Sparse(10 * 1024**3),
        "a fifo": Fifo(),
        "a directory": Folder(),
        "a link to the environment": Link("/proc/self/environ"),
        "another fingerprint": plan(),
        "an action that is none": plan(action="owned"),
        "10 million empty lists": lambda: b"[" + b"[]," * 10_000_000 + b"0]",
        "100,000 sound packages": lambda: (
            plan().replace("[{", "[" + f"{plan()[plan().index('[') + 1 : -2]}," * 99_999 + "{")
        ).encode(),
        "50,000 packages": lambda: (
            plan().replace("[{", "[" + '{"ecosystem": 1},' * 50_000 + "{").encode()
        ),
        "a surrogate": plan(name="\ud800"),
        **{f"a name: {what}": plan(name=text) for what, text in SOME.items()},
        **{
            f"a commit: {what}": plan().replace('""', json.dumps(text), 1)
            for what, text in SOME.items()
        },
    }
    for what, content in texts.items():
        yield Case(
            name=f"plan-file: {what}",
            files={**BUILT, "plan.json": content},
            argv=(*PUBLISH, "--plan-file", "{root}/plan.json"),
            codes=REFUSED,
            may_write=("registry",),
            stall_s=_PARSED_S if callable(content) else 0.2,
        )


def _bundles() -> Iterator[Case]:
    """What lies beside a file as its attestation."""

    def bundle(statement: bytes) -> bytes:
        document = bundles.document()
        document["dsseEnvelope"]["payload"] = base64.b64encode(statement).decode()
        return json.dumps(document).encode()

    empty = b'{"_type": "https://in-toto.io/Statement/v1", "predicate": ['
    texts: Mapping[str, Content] = {
        "ten million lines": lambda: b"{}\n" * 10_000_000,
        "ten million ends of lines": lambda: b"{}\n{}" + b"\r" * 15_000_000 + b"\n" * 9_000,
        "a list of ten million": lambda: b'{"attestations": [' + b"{}," * 10_000_000 + b"{}]}",
        "a statement of a million values": lambda: bundle(empty + b"[]," * 900_000 + b"0]}"),
        "many statements of 90,000 values": lambda: b"\n".join(
            [bundle(json.dumps({**bundles.STATEMENT, "predicate": [[]] * 40_000}).encode())] * 100
        ),
        "100,000 deep": b"[" * 100_000,
        "half a line": b'{"verificationMaterial": {',
    }
    for what, content in texts.items():
        yield Case(
            name=f"verify: a bundle with {what}",
            files={"w/a.whl": b"a", "w/a.whl.sigstore.json": content},
            argv=("verify", "{root}/w", "--repository", "acme/widgets"),
            codes=frozenset({1}),
            says=("FAILED a.whl: a.whl.sigstore.json (is not JSON|is neither|has|holds)\\b",),
            stall_s=_PARSED_S if callable(content) else 0.2,
        )


def _directories() -> Iterator[Case]:
    """Where the state is said to be."""
    places: Mapping[str, str] = {
        "below a file": "package.json/state",
        "a file": "package.json",
        "a name of 300": "s" * 300,
        "a path of 5,000": "s/" * 2500,
        "the workspace": ".",
        "a member": "packages/a",
        "a fifo": "{root}/fifo",
        "git's own": ".git",
        "the kernel's": "/proc/self/state",
        "a link out": "out",
        "below a link out": "out/state",
    }
    for what, place in places.items():
        for command in ("publish", "check"):
            # What a user names outside of the workspace is theirs to write.
            own = ("w/s", "w/.gitignore", "w/packages/a", "w/.git", "canary")
            yield Case(
                name=f"{command}: the state directory is {what}",
                files={**BUILT, "fifo": Fifo(), "w/.git/HEAD": "x", "w/out": Link("../canary")},
                argv=(*COMMANDS[command], "--state-directory", place),
                codes=_SAID,
                may_write=(
                    *("registry", *own),
                    *(() if what != "the workspace" else ("w",)),
                ),
            )


def _registries() -> Iterator[Case]:
    """A `dir:` registry with something else in its places."""
    places = (
        "npm",
        "npm/-",
        "npm/-/@acme",
        "npm/@acme",
        "npm/@acme/a",
        "npm/.lock",
        "npm/-/@acme/a",
    )
    contents: Mapping[str, Content] = {
        "a link to a directory": Link("{root}/canary"),
        "a link to a file": Link("{root}/canary/precious"),
        "a fifo": Fifo(),
        "a file": b"\0not json\xff",
    }
    for place in places:
        for what, content in contents.items():
            yield Case(
                name=f"registry: {place} is {what}",
                files={**BUILT, f"registry/{place}": content},
                argv=PUBLISH,
                codes=_SAID,
                may_write=("registry",),
            )
    documents: Mapping[str, Content] = {
        "a huge integer": f'{{"versions": {HUGE}}}',
        "100,000 deep": lambda: b"[" * 100_000,
        "a surrogate": '{"name": "\\ud800", "versions": {"\\ud800": {}}}',
        "versions that are a list": '{"versions": [1]}',
        "a digest of 1 MB": lambda: json.dumps(
            {"versions": {"1.0.0": {"dist": {"integrity": "sha512-" + "A" * 1_000_000}}}}
        ).encode(),
        "a digest that is none": '{"versions": {"1.0.0": {"dist": {"shasum": [1]}}}}',
        "20,000 versions": lambda: json.dumps(
            {"versions": {f"1.0.{n}": {} for n in range(20_000)}}
        ).encode(),
        "a version that acts": (
            '{"versions": {"\\u001b[2J": {}}, "dist-tags": {"latest": "\\n::error::INJECTED"}}'
        ),
        "ten sparse gigabytes": Sparse(10 * 1024**3),
        "other bytes": json.dumps(
            {"name": "@acme/a", "versions": {"1.0.0": {"dist": {"shasum": "0" * 40}}}}
        ),
    }
    for what, content in documents.items():
        yield Case(
            name=f"registry: a document with {what}",
            files={**BUILT, "registry/npm/@acme/a": content},
            argv=PUBLISH,
            codes=_SAID,
            may_write=("registry",),
        )


CASES: Final = cases(
    _places,
    _journals,
    _forged,
    _backups,
    _reports,
    _plan_files,
    _bundles,
    _directories,
    _registries,
)
