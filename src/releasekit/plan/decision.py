"""What to do about one package, from what its registry shows and the journal remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.model import SENT, Action, Artifact, Published, map_digests
from releasekit.report.text import few
from releasekit.state.quarantine import is_intact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from releasekit.model import PackageId, PlannedPackage
    from releasekit.state.history import Intent
    from releasekit.state.journal import HistoryEntry

GONE: Final = (
    "its upload was begun, and the bytes it was begun with are gone from the state directory: "
    "bring that directory back, or bump the version"
)


_BUILT: Final = (
    "somebody else published this version, or the build is not reproducible. Bump the version, run "
    "again where the state directory of the run that built it is, or give the files that another "
    "tool built (`dist`)"
)
UNVOUCHED: Final = (
    "the files that the earlier run built cannot be verified, and this build made others. Give "
    "both runs the same `state-key`, so that the files of the first one are sent, or bump the "
    "version"
)
_AGAIN: Final = "built again, since the files of an earlier run cannot be verified"
_BROUGHT: Final = (
    "a file that was published is never replaced. Take it out of `dist` or `directories`, or bump "
    "the version and build it again"
)


class Comparison(Struct, frozen=True):
    """Our artifacts beside what a registry shows: names it lacks, names whose bytes differ."""

    missing: tuple[str, ...]
    differing: tuple[str, ...]


_SAME: Final = Comparison((), ())


def compare(artifacts: Iterable[Artifact], published: Published | None) -> Comparison:
    """In the registry's own digest algorithm; files of the registry that we lack do not count."""
    theirs = published.files if published else {}
    missing, differing = [], []
    for artifact in artifacts:
        if artifact.filename not in theirs:
            missing.append(artifact.filename)
            continue
        algorithm, _, value = theirs[artifact.filename].partition(":")
        if artifact.digests.get(algorithm) != value:
            differing.append(artifact.filename)
    return Comparison(tuple(missing), tuple(differing))


def decide(
    published: Published | None,
    entry: HistoryEntry | None,
    *,
    commit: str,
    url: str,
    prebuilt: Sequence[Artifact] = (),
) -> tuple[Action, str]:
    """What to do about a package, and why, from what the registry at `url` shows of it, what the
    journal remembers of this version, and the files of it that were built elsewhere.

    Bytes whose upload there had begun bind the run: with another build of the same version, the
    release could end up half one and half the other.
    """
    if entry is not None and _awaits(entry, published, url):
        return Action.AWAIT, "staged by an earlier run; waits for approval"
    action, reason = _decide_without_dist(published, entry, commit, url)
    if action not in {Action.KEEP, Action.PUBLISH}:
        return action, reason
    # Each signing makes another signature, of the same bytes too.
    lasting = [each for each in prebuilt if not each.filename.endswith(".asc")]
    given = compare(lasting, published)
    if given.differing:
        return Action.REFUSE, mismatch(prebuilt, published, given.differing[0], way_out=_BROUGHT)
    if action is Action.KEEP and given.missing:
        return Action.PUBLISH, f"on the registry without {few(given.missing)}"
    if action is Action.PUBLISH and entry is not None and entry.artifacts:
        if _at_hand(entry, prebuilt, commit):
            return Action.UPLOAD, "built by an earlier run"
        if not entry.sealed:
            return action, f"{reason}; {_AGAIN}"
    return action, reason


def _decide_without_dist(
    published: Published | None, entry: HistoryEntry | None, commit: str, url: str
) -> tuple[Action, str]:
    action, reason = Action.PUBLISH, "not on the registry" if published is None else "partly there"
    if entry is not None and entry.intent is not None and _binds(entry, published, url):
        action, reason = _resumed(published, entry, entry.intent, commit)
    elif published is not None and published.complete:
        action, reason = Action.KEEP, "on the registry already"
    if action is Action.KEEP and published is not None and published.lacks:
        return _kept_without(published, entry, reason)
    return action, reason


def _awaits(entry: HistoryEntry, published: Published | None, url: str) -> bool:
    """Whether that registry holds it back, as far as anybody knows, and shows nothing else."""
    if entry.staged is None or not is_begun(entry, url):
        return False
    if published is None:
        return True
    return not published.complete and not compare(entry.artifacts, published).differing


def _resumed(
    published: Published | None, entry: HistoryEntry, intent: Intent, commit: str
) -> tuple[Action, str]:
    """What to do about a package whose upload an earlier run had begun."""
    complete = published is not None and published.complete
    if map_digests(entry.artifacts) != intent.digests and not entry.again:
        if complete:
            return Action.KEEP, "on the registry already"
        return Action.REFUSE, GONE
    comparison = compare(entry.artifacts, published)
    if entry.sealed and comparison.differing:
        return Action.REFUSE, mismatch(entry.artifacts, published, comparison.differing[0])
    # A record that anybody may have written does not say what belongs to a release.
    if comparison == _SAME and (entry.sealed or complete):
        return Action.KEEP, "on the registry, as built before"
    if entry.commit != commit:
        return Action.REFUSE, (
            f"its upload was begun from {entry.commit or 'sources without a commit'}, and the "
            f"sources are now at {commit or 'no commit'}: go back there to finish, or bump the "
            "version"
        )
    if not entry.sealed:
        return Action.PUBLISH, "its upload was begun by an earlier run"
    if not intact(entry):
        return Action.REFUSE, GONE
    return Action.UPLOAD, "its upload was begun by an earlier run"


def _kept_without(
    published: Published, entry: HistoryEntry | None, reason: str
) -> tuple[Action, str]:
    """What is missing beside the files is made where these are at hand."""
    reason = f"{reason}, but {published.lacks}"
    ours = entry is not None and compare(entry.artifacts, published) == _SAME
    if entry is not None and ours and entry.sealed and intact(entry):
        return Action.UPLOAD, reason
    return Action.KEEP, reason


def _at_hand(entry: HistoryEntry, prebuilt: Sequence[Artifact], commit: str) -> bool:
    """Whether an earlier run has built this very release, with these files from elsewhere and no
    others.
    """
    stored = map_digests(entry.artifacts)
    return (
        entry.sealed
        and entry.commit == commit
        and is_clean(commit)
        and entry.prebuilt == {artifact.filename for artifact in prebuilt}
        and all(stored.get(artifact.filename) == artifact.sha256 for artifact in prebuilt)
        and intact(entry)
    )


def _binds(entry: HistoryEntry, published: Published | None, url: str) -> bool:
    """Not when it is known how the upload ended and nothing of it is there: it was refused, or the
    registry was emptied since.
    """
    return is_begun(entry, url) and (entry.uncertain or published is not None)


def is_begun(entry: HistoryEntry, url: str) -> bool:
    """Whether it was to the registry at `url` that a run of ours last began to upload it."""
    return entry.intent is not None and entry.intent.registry == url


def mismatch(
    artifacts: Iterable[Artifact],
    published: Published | None,
    filename: str,
    *,
    way_out: str = _BUILT,
) -> str:
    """Both digests of one file, and the ways out."""
    theirs = published.files[filename] if published else "nothing"
    algorithm = theirs.partition(":")[0]
    ours = next(a.digests.get(algorithm, "?") for a in artifacts if a.filename == filename)
    return f"the registry holds {filename} with {theirs}, ours has {algorithm}:{ours}: {way_out}"


def is_clean(commit: str) -> bool:
    """Whether `commit` says all there is to say about the sources."""
    return bool(commit) and "+" not in commit


def intact(entry: HistoryEntry) -> bool:
    """Whether the stored bytes are still those that were built."""
    return bool(entry.artifacts) and all(is_intact(each.path, each) for each in entry.artifacts)


def without_unplanned(
    packages: Sequence[PlannedPackage], not_to_publish: Collection[PackageId]
) -> tuple[tuple[PlannedPackage, ...], list[str]]:
    """Those that a plan file lets the run publish, or that are published already; and a note."""
    left_out = {
        planned.package.id
        for planned in packages
        if planned.package.id in not_to_publish and planned.action in SENT
    }
    kept = tuple(planned for planned in packages if planned.package.id not in left_out)
    names = few([*map(str, sorted(left_out))])
    return kept, [f"not published, as the plan file says: {names}"] * bool(left_out)
