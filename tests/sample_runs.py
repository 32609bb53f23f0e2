"""Plans and finished runs in every shape the report has to tell about."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from releasekit.announced import Announcement, Status, Tag
from releasekit.attested import Attestation, ReleaseStatement
from releasekit.fields import replace
from releasekit.model import (
    Action,
    Artifact,
    Dependency,
    DependencyKind,
    Outcome,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
    Published,
    Report,
    Result,
    Span,
    Staged,
)
from releasekit.problems import Problem

ROOT = Path("/work space/repository")

HOSTILE = (
    *("|", "\\|", "\\", "`", "```", "````", "~~~", "**", "__", "~~", "# ", "- ", "1. ", "%%"),
    *("<b>", "</details>", "</code>", "<!--", "-->", "-->|x|", '"]', "&#124;", "&lt;"),
    *("\n", "\n\n", "\r", "\t", "\0", "\x1b[2J", "\u202eevil", "\ud800"),
    *("@octocat", "::error::x", "##[error]", "{{ x }}", "${{ x }}"),
    *("[x](javascript:y)", "![i](https://evil.example/i.png)"),
    *("https://evil.example", "www.evil.example"),
)
# Lone surrogates too: to leave them out, Hypothesis tries all 1,114,112 characters for a second.
anything = st.text(st.characters(), min_size=1, max_size=5)
hostile_text = st.lists(st.sampled_from(HOSTILE) | anything, min_size=1).map("".join)


def package(
    name: str = "core",
    version: str = "1.0.0",
    *,
    needs: tuple[str, ...] = (),
    unpublishable: str = "",
) -> Package:
    directory = ROOT / "packages" / "core"
    return Package(
        id=PackageId("pypi", name),
        version=version,
        directory=directory,
        manifest=directory / "pyproject.toml",
        dependencies=tuple(
            Dependency(
                on=PackageId("pypi", other),
                kind=DependencyKind.RUNTIME,
                requirement=f"{other}>=1",
            )
            for other in needs
        ),
        unpublishable=unpublishable,
    )


def artifact(filename: str = "core-1.0.0.tar.gz") -> Artifact:
    path = ROOT / ".releasekit" / "dist" / filename
    return Artifact(path=path, size=1234, digests={"sha256": "ab" * 32})


def result(
    name: str = "core",
    outcome: Outcome = Outcome.PUBLISHED,
    *,
    version: str = "1.0.0",
    reason: str = "because",
    hint: str = "",
    log: tuple[str, ...] = (),
    url: str = "",
    artifacts: tuple[Artifact, ...] = (),
    spans: tuple[Span, ...] = (),
    staged: Staged | None = None,
) -> Result:
    return Result(
        package=package(name, version),
        outcome=outcome,
        reason=reason,
        hint=hint,
        log=log,
        attempts=1,
        duration_s=1.5,
        url=url,
        artifacts=artifacts,
        spans=spans,
        staged=staged,
    )


def report(
    *results: Result,
    edges: dict[str, tuple[str, ...]] | None = None,
    private: tuple[Package, ...] = (),
    dry_run: bool = False,
    started_at: str = "2026-11-20T12:00:00+00:00",
    run_id: str = "r1",
    commit: str = "c0ffee",
) -> Report:
    needs = edges or {}
    return Report(
        run_id=run_id,
        plan_digest="d1" * 32,
        commit=commit,
        started_at=started_at,
        duration_s=12.5,
        dry_run=dry_run,
        results=results,
        private=private,
        edges={
            each.package.id: frozenset(
                PackageId("pypi", name) for name in needs.get(each.package.id.name, ())
            )
            for each in results
        },
    )


def outcomes(*kinds: Outcome, dry_run: bool = False) -> Report:
    return report(*(result(f"p{n}", kind) for n, kind in enumerate(kinds)), dry_run=dry_run)


PUBLIC_LOG = "https://rekor.sigstore.dev"
ATTESTATIONS = "https://github.com/acme/widgets/attestations"


def signed(filename: str = "core-1.0.0.tar.gz", index: int = 7, log: str = PUBLIC_LOG) -> Artifact:
    """A file that a registry got an attestation of."""
    file = artifact(filename)
    path = file.path.with_name(f"{filename}.sigstore.json")
    entry = Attestation(path=path, sha256="cd" * 32, log_index=index, log_url=log)
    return replace(file, attestation=entry)


def statement(
    subjects: int = 2, *, url: str = f"{ATTESTATIONS}/31", note: str = "", log: str = PUBLIC_LOG
) -> ReleaseStatement:
    path = ROOT / ".releasekit" / "provenance.jsonl"
    entry = Attestation(path=path, sha256="ef" * 32, log_index=9, log_url=log)
    return ReleaseStatement(path=path, subjects=subjects, attestations=(entry,), url=url, note=note)


def signed_report(about: ReleaseStatement | None = None, *, provenance: str = "") -> Report:
    """Two files of one package signed, and by default all of them together."""
    files = (signed(), signed("core-1.0.0-py3-none-any.whl", 8))
    run = report(result("core", artifacts=files))
    return replace(run, statement=about or statement(), provenance=provenance)


def staged_report() -> Report:
    """One published, two staged, one of another kind blocked by one of them."""
    return report(
        result("core"),
        result(
            "http",
            Outcome.STAGED,
            reason="accepted; it waits for a person's approval",
            staged=Staged(id="5f0c", url="https://registry.example/staged/5f0c", tag="next"),
            artifacts=(artifact("http-1.0.0.tgz"),),
        ),
        result("extras", Outcome.STAGED, staged=Staged()),
        result("app", Outcome.BLOCKED, reason="needs pypi:http, which is staged"),
        edges={"http": ("core",), "app": ("http", "core")},
    )


def partial_report() -> Report:
    """Two published, one there before, one failed with a log, one blocked by it, one private."""
    return report(
        result(
            "core",
            url="https://pypi.org/project/core/1.0.0/",
            artifacts=(artifact("core-1.0.0.tar.gz"), artifact("core-1.0.0-py3-none-any.whl")),
            spans=(
                Span(phase="build", start_s=0.0, end_s=1.0),
                Span(phase="upload", start_s=1.0, end_s=3.25),
                Span(phase="confirm", start_s=3.25, end_s=4.0),
            ),
        ),
        result("extras", Outcome.ALREADY_PUBLISHED),
        result("http", spans=(Span(phase="build", start_s=1.0, end_s=1.0),)),
        result(
            "broken",
            Outcome.FAILED,
            reason="the build failed",
            hint="Read the log.",
            log=("Traceback:", "SyntaxError: invalid syntax"),
        ),
        result("app", Outcome.BLOCKED, reason="needs pypi:broken, which failed"),
        edges={"http": ("core",), "app": ("broken", "http")},
        private=(package("tools", "0", unpublishable="marked Private :: Do Not Upload"),),
    )


def step(
    name: str, action: Action, *, needs: tuple[str, ...] = (), reason: str = "new"
) -> PlannedPackage:
    kept = action is Action.KEEP
    return PlannedPackage(
        package=package(name, needs=needs),
        action=action,
        reason=reason,
        fingerprint="f1" * 32,
        artifacts=(artifact(f"{name}-1.0.0.tar.gz"),) if action is Action.UPLOAD else (),
        published=Published(files={f"{name}.whl": "sha256:00"}, url="https://x/") if kept else None,
    )


def plan(*steps: PlannedPackage, private: tuple[Package, ...] = ()) -> Plan:
    return Plan(
        packages=steps,
        private=private,
        commit="c0ffee",
        digest="d1" * 32,
        registries={"pypi": "https://upload.pypi.org/legacy/"},
    )


def mixed_plan() -> Plan:
    return plan(
        step("core", Action.KEEP, reason="on the registry already"),
        step("http", Action.UPLOAD, needs=("core",), reason="built by an earlier run"),
        step("app", Action.PUBLISH, needs=("http", "core")),
        step("broken", Action.REFUSE, reason="other bytes are there"),
        private=(package("tools", "0", unpublishable="marked Private :: Do Not Upload"),),
    )


RELEASES = "https://github.com/acme/widgets/releases/tag"


def tag(
    name: str = "core-v1.0.0",
    status: Status = Status.CREATED,
    *,
    note: str = "",
    hint: str = "",
    problem: Problem | None = None,
) -> Tag:
    known = status in {Status.CREATED, Status.EXISTING}
    return Tag(
        name=name,
        status=status,
        commit="c0" * 20 if known else "",
        object="0b" * 20 if known else "",
        url=f"https://github.com/acme/widgets/tree/{name}" if known else "",
        note=note,
        hint=hint,
        problem=problem,
    )


def announcement(
    name: str = "core-v1.0.0",
    status: Status = Status.CREATED,
    *,
    note: str = "",
    hint: str = "",
    problem: Problem | None = None,
) -> Announcement:
    known = status in {Status.CREATED, Status.EXISTING, Status.FOREIGN}
    url = f"{RELEASES}/{name}" if known else ""
    return Announcement(tag=name, status=status, url=url, note=note, hint=hint, problem=problem)


def followed(
    name: str = "core",
    outcome: Outcome = Outcome.PUBLISHED,
    *,
    tagged: Status | None = Status.CREATED,
    announced: Status | None = Status.CREATED,
) -> Result:
    """A package with its own tag and release, with a sentence where something is wrong."""
    own = f"{name}-v1.0.0"
    return replace(
        result(name, outcome),
        tag=_own_tag(own, tagged) if tagged else None,
        announcement=_own_release(own, announced) if announced else None,
    )


def _own_tag(name: str, status: Status) -> Tag:
    if status not in {Status.FOREIGN, Status.PENDING}:
        return tag(name, status)
    hint = f"Look after the tag that is {status}."
    return tag(name, status, note=f"the tag is {status}", hint=hint, problem=Problem.TAG_REFUSED)


def _own_release(name: str, status: Status) -> Announcement:
    if status not in {Status.FOREIGN, Status.PENDING}:
        return announcement(name, status)
    owed = status is Status.PENDING
    return announcement(
        name,
        status,
        note=f"the release is {status}",
        hint="Give the job `contents: write`." if owed else "",
        problem=Problem.PACKAGE if owed else None,
    )


def hostile_followed(text: str, status: Status = Status.PENDING) -> Result:
    """All that a tag and a release say is `text`."""
    return replace(
        result(text, reason=text),
        tag=Tag(name=text, status=status, commit=text, object=text, url=text, note=text, hint=text),
        announcement=Announcement(tag=text, status=status, url=text, note=text, hint=text),
    )
