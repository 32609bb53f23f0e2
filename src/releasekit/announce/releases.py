"""Releases at a forge, one for each tag: what each says, and creating those that are missing."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import Struct

from releasekit.announce.forge import Draft, LookAgain, Upload
from releasekit.announce.notes import existing_commit, join_notes, write_notes
from releasekit.announce.tag_names import is_shared, previous_tag
from releasekit.announce.tags import commit_of_version
from releasekit.announced import Announcement, Status
from releasekit.attested import RELEASE_STATEMENT
from releasekit.errors import Denied, PackageError, Rejected, Transient
from releasekit.fields import replace
from releasekit.git.tag_forms import tag_name
from releasekit.host import durable
from releasekit.http.client import retry
from releasekit.plan.decision import is_clean
from releasekit.problems import Problem
from releasekit.text.escape import visible
from releasekit.text.version_order import is_stable, version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from releasekit.announce.forge import Forge, ForgeRelease
    from releasekit.announce.tags import Tagging
    from releasekit.announced import Tag
    from releasekit.attested import ReleaseStatement
    from releasekit.git.remote import RemoteTag
    from releasekit.model import Package, PackageId, Plan, Published, Result


_CHECKSUMS: Final = "checksums.txt"
_MAX_STATEMENT_BYTES: Final = 64 * 1024 * 1024
_PAGE: Final = "report.html"
# How `cksum --check` and `shasum --check` know them, in the form that BSD has for several kinds.
# https://www.gnu.org/software/coreutils/manual/html_node/cksum-general-options.html
_KINDS: Final = {"sha1": "SHA1", "sha256": "SHA256", "sha384": "SHA384", "sha512": "SHA512"}
# GitHub renames assets with other characters in ways that it does not document.
# https://docs.github.com/en/rest/releases/assets#upload-a-release-asset
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")


class Assets(Struct, frozen=True):
    """What a release may hold besides its notes: the files that the registries show, the signed
    release statement, and the report page of the run.
    """

    published: Mapping[PackageId, Published]
    statement: ReleaseStatement | None
    page: Callable[[], bytes]


class TaggedRelease(Struct, frozen=True):
    """A tag that is on the remote, and what was published under it."""

    tag: Tag
    results: Sequence[Result]


def group_by_tag(results: Sequence[Result]) -> list[TaggedRelease]:
    """In publish order; packages without their tag are left out."""
    found: dict[str, list[Result]] = {}
    tags: dict[str, Tag] = {}
    for result in results:
        if result.tag is not None and result.tag.status.done:
            found.setdefault(result.tag.name, []).append(result)
            tags[result.tag.name] = result.tag
    return [TaggedRelease(tags[name], each) for name, each in found.items()]


async def build_drafts(
    plan: Plan,
    wanted: Sequence[TaggedRelease],
    tagging: Tagging,
    material: Assets,
    remote_tags: Mapping[str, RemoteTag],
) -> tuple[list[Draft], dict[str, Announcement]]:
    """A draft for each tag, and by tag the announcements that stay pending because the clone lacks
    what they would say. May take a while: git lists the history of each.
    """
    made: list[Draft] = []
    silent: dict[str, Announcement] = {}
    # One page for all; rendered on the event loop, since it shows the time of the run.
    page = material.page() if "report" in tagging.config.announcing.assets else b""
    telling = _DraftBuilder(plan, tagging, material, remote_tags, page)
    for each in wanted:
        try:
            made.append(await telling.draft(each))
        except PackageError as error:
            silent[each.tag.name] = pending_announcement(each.tag.name, error)
        except OSError as error:
            told = PackageError(str(error), problem=Problem.NOT_ANNOUNCED)
            silent[each.tag.name] = pending_announcement(each.tag.name, told)
    return made, silent


class _DraftBuilder(Struct, frozen=True):
    """What all drafts have in common."""

    plan: Plan
    tagging: Tagging
    material: Assets
    remote_tags: Mapping[str, RemoteTag]
    page: bytes

    async def draft(self, subject: TaggedRelease) -> Draft:
        """Raises PackageError where this clone lacks the commit of the tag."""
        tag = subject.tag
        shared = is_shared(self.tagging.config.tagging.name)
        commit = await self._commit(subject)
        packages = [each.package for each in subject.results]
        texts = {each: await self._notes(each, tag, commit) for each in packages}
        return Draft(
            tag=tag.name,
            title=tag.name if shared else f"{packages[0].id.name} {packages[0].version}",
            body=join_notes(texts),
            prerelease=not is_stable(packages[0].version),
            version=packages[0].version,
            object=tag.object,
            assets=await asyncio.to_thread(self._assets, subject),
        )

    async def _commit(self, subject: TaggedRelease) -> str:
        """That of the tag; where a registry tags its own commit, the one that was built from."""
        package = subject.results[0].package.id
        planned = next(each for each in self.plan.packages if each.package.id == package)
        built = commit_of_version(planned, self.plan.commit)
        asked = [subject.tag.commit, built]
        here = await self.tagging.commits.find_existing(filter(is_clean, asked))
        for commit in asked:
            if commit in here:
                return commit
        raise PackageError(
            f"the commit {subject.tag.commit} of the tag {subject.tag.name} is not in this clone",
            hint="`fetch-depth: 0` at actions/checkout brings it, `GIT_DEPTH: 0` at GitLab.",
            problem=Problem.NOT_ANNOUNCED,
        )

    async def _notes(self, package: Package, tag: Tag, commit: str) -> str:
        config, commits = self.tagging.config, self.tagging.commits
        template = config.tagging.name
        if tag.name != tag_name(template, package, config.root):
            template = tag.name.replace(package.version, "{version}")
        previous = previous_tag(template, package, config.root, self.remote_tags)
        return await write_notes(
            package,
            commits,
            commit=commit,
            previous=await existing_commit(
                self.remote_tags[previous].commit if previous else "", commits
            ),
            others=[each.package for each in self.plan.packages],
            beside=[config.root] if is_shared(config.tagging.name) else [],
            pages=self.tagging.pages,
        )

    def _assets(self, subject: TaggedRelease) -> tuple[Upload, ...]:
        """The assets that are asked for and available; blocks."""
        wanted, material = self.tagging.config.announcing.assets, self.material
        found: list[Upload] = []
        if "checksums" in wanted and (text := list_checksums(subject.results, material.published)):
            found.append(_make_upload(_CHECKSUMS, text.encode()))
        if "files" in wanted:
            found += [
                Upload(
                    name=_UNSAFE.sub(".", file.filename).strip("."),
                    content=file,
                    sha256=file.sha256,
                    size=file.size,
                )
                for result in subject.results
                for file in result.artifacts
                if durable.is_file(file.path)
            ]
        if "provenance" in wanted and material.statement is not None:
            found += _statement_upload(material.statement)
        if self.page:
            found.append(_make_upload(_PAGE, self.page, by_name=True))
        return with_unique_names(found)


def _statement_upload(statement: ReleaseStatement) -> Iterator[Upload]:
    """The statement if the file still holds exactly what this run signed."""
    if not statement.attestations:
        return
    content = durable.read_file(statement.path, max_bytes=_MAX_STATEMENT_BYTES)
    *lines, end = content.split(b"\n")
    there = [hashlib.sha256(line).hexdigest() for line in lines]
    if not end and there == [each.sha256 for each in statement.attestations]:
        yield _make_upload(RELEASE_STATEMENT, content, by_name=True)


def with_unique_names(uploads: Sequence[Upload]) -> tuple[Upload, ...]:
    """Packages of one release may have files of the same name; these get a prefix."""
    names = Counter(
        each.name for each in {(each.name, each.sha256): each for each in uploads}.values()
    )
    told = (
        each if names[each.name] == 1 else replace(each, name=f"{each.sha256[:8]}-{each.name}")
        for each in uploads
    )
    return tuple({each.name: each for each in told}.values())


def _make_upload(name: str, content: bytes, *, by_name: bool = False) -> Upload:
    sha256 = hashlib.sha256(content).hexdigest()
    return Upload(name=name, content=content, sha256=sha256, size=len(content), by_name=by_name)


def list_checksums(results: Sequence[Result], published: Mapping[PackageId, Published]) -> str:
    """The digests that registries show, so that every machine writes the same file. Empty where
    they show none that checksum tools know, as for Go modules.
    """
    lines = []
    for result in results:
        shown = published.get(result.package.id)
        for filename, digest in sorted(shown.files.items()) if shown else ():
            algorithm, _, value = digest.partition(":")
            if algorithm in _KINDS:
                lines.append(f"{_KINDS[algorithm]} ({visible(filename)}) = {value}")
    return "".join(f"{line}\n" for line in lines)


def pending_announcement(tag: str, error: PackageError) -> Announcement:
    """The next run tries again; `error` says why this one did not."""
    return Announcement(
        tag=tag,
        status=Status.PENDING,
        note=str(error).rstrip("."),
        hint=error.hint,
        problem=Problem.NOT_ANNOUNCED,
    )


def with_announcements(
    results: Sequence[Result], told: Mapping[str, Announcement]
) -> tuple[Result, ...]:
    """`results`, each published one with the announcement of its tag."""
    found = []
    for result in results:
        if result.tag is None:
            found.append(result)
            continue
        said = told.get(result.tag.name)
        if said is None or (result.tag.status is Status.FOREIGN and said.status.done):
            # Without its tag a release stays pending: the forge would create another tag.
            error = PackageError(
                f"the tag {result.tag.name} is not on the remote as it should be",
                hint="What keeps the tag away is said with it.",
                problem=Problem.NOT_ANNOUNCED,
            )
            said = pending_announcement(result.tag.name, error)
        found.append(replace(result, announcement=said))
    return tuple(found)


# At the end of a body, where it survives edits of the text.
_MARKER: Final = re.compile(r"<!-- releasekit: [^\s<>]+ sha256:[0-9a-f]{64} -->\s*\Z")
_VERSION_AT: Final = re.compile(r"(?:^|[-/@_]|(?<=[a-z])(?=\d))v?(\d+(?:\.\d+)+.*)\Z")


def with_marker(draft: Draft) -> Draft:
    """`draft` with the marker by which the next run recognizes the release."""
    sha256 = hashlib.sha256(draft.body.encode()).hexdigest()
    name = draft.object or quote(draft.tag, safe="/@+.")
    body = f"{draft.body.rstrip()}\n\n<!-- releasekit: {name} sha256:{sha256} -->\n"
    return replace(draft, body=body)


def announcement_of(tag: str, releases: Sequence[ForgeRelease]) -> Announcement:
    """What the forge has for a tag: a published release first, then a draft of ours."""
    release = _release_of(tag, releases)
    if release is None or (release.draft and is_ours(release)):
        return Announcement(tag=tag, status=Status.WANTED)
    if is_ours(release):
        return Announcement(tag=tag, status=Status.EXISTING, url=release.url)
    kind = "a draft" if release.draft else "a release"
    return Announcement(
        tag=tag,
        status=Status.FOREIGN,
        url=release.url,
        note=f"{kind} of the tag {tag} is there that ReleaseKit has not made; it is left as it is",
        hint="Nothing has to be done. If you delete it, the next run creates another one.",
    )


def is_ours(release: ForgeRelease) -> bool:
    return _MARKER.search(release.body[-1_000:]) is not None


def _release_of(tag: str, releases: Sequence[ForgeRelease]) -> ForgeRelease | None:
    """The first of this tag: a forge may have several drafts of one tag."""
    same = [each for each in releases if each.tag == tag]
    return min(same, key=lambda each: (each.draft, not is_ours(each), each.id), default=None)


async def announce(
    drafts: Sequence[Draft], forge: Forge, *, tell: Callable[[str], None]
) -> dict[str, Announcement]:
    """What became of each, by tag. Failures stay pending; nothing is raised for them."""
    done: dict[str, Announcement] = {}
    try:
        announcing = _Announcer(forge, await forge.releases(), await _find_latest(drafts, forge))
    except PackageError as error:
        return {each.tag: pending_announcement(each.tag, error) for each in drafts}
    denied: PackageError | None = None
    # Some forges show the newest release as the latest.
    for draft in sorted(drafts, key=lambda each: each.tag == announcing.latest):
        if denied is not None:
            done[draft.tag] = pending_announcement(draft.tag, denied)
            continue
        try:
            attempt = partial(announcing.finish, with_marker(draft))
            done[draft.tag] = await retry(attempt, forge.policy)
        except PackageError as error:
            # A rate limit concerns all releases, so the others are not tried either.
            limited = isinstance(error, Transient) and error.limited
            denied = error if limited or isinstance(error, Denied) else None
            done[draft.tag] = pending_announcement(draft.tag, error)
        status = done[draft.tag].status
        tell(f"{'announced' if status.done else status.value} {draft.tag}")
    return done


async def _find_latest(drafts: Sequence[Draft], forge: Forge) -> str:
    """The tag to mark as latest; empty where an existing release is later than all drafts."""
    stable = [each for each in drafts if not each.prerelease and is_stable(each.version)]
    if not stable:
        return ""
    highest = max(stable, key=lambda each: version_key(each.version))
    there = _VERSION_AT.search(await forge.latest())
    return "" if there and version_key(there[1]) > version_key(highest.version) else highest.tag


class _Announcer(Struct):
    """`known` is what the forge last listed; None where it has to be asked again."""

    forge: Forge
    known: Sequence[ForgeRelease] | None
    latest: str

    async def finish(self, draft: Draft) -> Announcement:
        """Do what is missing of one release. Raises LookAgain where it is to be called again."""
        releases, self.known = self.known, None
        try:
            if releases is None:
                releases = await self.forge.releases()
            found = announcement_of(draft.tag, releases)
            if found.status is Status.WANTED:
                found = await self._make(draft, _release_of(draft.tag, releases))
        except Transient as error:
            # The forge client has already retried this.
            if isinstance(error, LookAgain) or error.limited:
                raise
            return pending_announcement(draft.tag, error)
        self.known = releases
        return found

    async def _make(self, draft: Draft, release: ForgeRelease | None) -> Announcement:
        await self.forge.require_tag(draft)
        if release is None:
            release = await self.forge.create(draft)
        there = {each.name: each for each in release.assets}
        for upload in draft.assets:
            asset = there.get(upload.name)
            if asset is not None and not asset.finished:
                await self.forge.drop_unfinished(release, asset)
                asset = None
            if asset is None:
                await self.forge.upload(release, upload)
            elif not upload.by_name and (
                asset.size != upload.size
                or await self.forge.digest_of(release, asset) not in {"", f"sha256:{upload.sha256}"}
            ):
                raise Rejected(
                    f"the draft of {draft.tag} has another file as {upload.name}",
                    hint="Delete that draft; the next run makes it again.",
                    problem=Problem.OTHER_BYTES,
                )
        published = await self.forge.publish(release, latest=draft.tag == self.latest)
        return Announcement(tag=draft.tag, status=Status.CREATED, url=published.url)
