"""Releases at a forge, one for each tag: what each says, and creating those that are missing."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from msgspec import Struct

from releasekit.announce.forge import Draft, LookAgain, Upload
from releasekit.announce.notes import existing_commit, join_notes, write_notes
from releasekit.announce.tag_names import is_shared, previous_tag
from releasekit.announce.tags import commit_of_version
from releasekit.announced import Announcement, Status
from releasekit.attested import ATTACHED_STATEMENT, RELEASE_STATEMENT
from releasekit.errors import Denied, PackageError, Rejected, Transient
from releasekit.fields import replace
from releasekit.git.tag_forms import tag_name, template_values
from releasekit.host import durable
from releasekit.http.client import retry
from releasekit.plan.decision import is_clean
from releasekit.problems import Problem
from releasekit.text.escape import visible
from releasekit.text.version_order import is_stable, version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from releasekit.announce.forge import Forge, ForgeRelease
    from releasekit.announce.tags import Tagging
    from releasekit.announced import Tag
    from releasekit.attested import ReleaseStatement
    from releasekit.config.tag_options import Latest
    from releasekit.git.remote import RemoteTag
    from releasekit.model import Artifact, Package, PackageId, Plan, Published, Result


CHECKSUMS: Final = "checksums.txt"
_MAX_STATEMENT_BYTES: Final = 64 * 1024 * 1024
PAGE: Final = "report.html"
# How `cksum --check` and `shasum --check` know them, in the form that BSD has for several kinds.
# https://www.gnu.org/software/coreutils/manual/html_node/cksum-general-options.html
_KINDS: Final = {"sha1": "SHA1", "sha256": "SHA256", "sha384": "SHA384", "sha512": "SHA512"}
# GitHub renames assets with other characters in ways that it does not document.
# https://docs.github.com/en/rest/releases/assets#upload-a-release-asset
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")


class Assets(Struct, frozen=True):
    """What a release may hold besides its notes: the files that the registries show, the signed
    release statement, the report page of the run, and by tag extra files. `repository` is the name
    of the project.
    """

    published: Mapping[PackageId, Published]
    statement: ReleaseStatement | None
    page: Callable[[], bytes]
    extra_files: Mapping[str, Sequence[Artifact]] = {}
    repository: str = ""


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
            packages=frozenset(each.id for each in packages),
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
        extra = [*map(_upload_file, material.extra_files.get(subject.tag.name, ()))]
        found: list[Upload] = []
        if "checksums" in wanted:
            text = list_checksums(subject.results, material.published)
            text += "".join(f"SHA256 ({each.name}) = {each.sha256}\n" for each in extra)
            found += [_make_upload(CHECKSUMS, text.encode())] if text else []
        if "files" in wanted:
            found += [
                _upload_file(file)
                for result in subject.results
                for file in result.artifacts
                if durable.is_file(file.path)
            ]
        found += extra
        # It tells of what was built from the commit of this run.
        is_built = any(each.artifacts for each in subject.results)
        if "provenance" in wanted and material.statement is not None and is_built:
            config, first = self.tagging.config, subject.results[0].package
            name = template_values(first, config.root)["component"]
            if is_shared(config.tagging.name):
                name = material.repository
            name = name_asset(f"{name}-{first.version}{ATTACHED_STATEMENT}")
            found += _statement_upload(material.statement, name)
        if self.page:
            found.append(_make_upload(PAGE, self.page, by_name=True))
        return with_unique_names(found)


def name_asset(name: str) -> str:
    """What a file is called on the page of a release."""
    return _UNSAFE.sub(".", name).strip(".")


def _upload_file(file: Artifact) -> Upload:
    return Upload(name=name_asset(file.filename), content=file, sha256=file.sha256, size=file.size)


def _statement_upload(statement: ReleaseStatement, name: str) -> Iterator[Upload]:
    """The statement if the file still holds exactly what this run signed."""
    if not statement.attestations:
        return
    content = durable.read_file(statement.path, max_bytes=_MAX_STATEMENT_BYTES)
    *lines, end = content.split(b"\n")
    there = [hashlib.sha256(line).hexdigest() for line in lines]
    if not end and there == [each.sha256 for each in statement.attestations]:
        made = _make_upload(name, content, by_name=True)
        yield replace(made, formerly=RELEASE_STATEMENT)


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


# At the end of a body, unless somebody adds to that. It says "draft" until the release is whole,
# and "left" where others publish it.
_MARKER: Final = re.compile(
    r"<!-- releasekit(?P<state>| draft| left): (?P<of>[^\s<>]+) sha256:[0-9a-f]{64} -->"
)
_SAFE: Final = "/@+."
_VERSION_AT: Final = re.compile(r"(?:^|[-/@_]|(?<=[a-z])(?=\d))v?(\d+(?:\.\d+)+.*)\Z")


def with_marker(draft: Draft) -> Draft:
    """`draft` with the marker by which the next run recognizes a release that is not whole."""
    sha256 = hashlib.sha256(draft.body.encode()).hexdigest()
    name = draft.object or quote(draft.tag, safe=_SAFE)
    body = f"{draft.body.rstrip()}\n\n<!-- releasekit draft: {name} sha256:{sha256} -->\n"
    return replace(draft, body=body)


def write_state(body: str, state: Literal["", "left"]) -> str:
    """`body` with a marker that says so."""
    marker = _find_marker(body)
    if marker is None:
        return body
    start, end = marker.span("state")
    return f"{body[:start]}{state and ' '}{state}{body[end:]}"


def read_state(body: str, names: Collection[str] = ()) -> str | None:
    """What the marker says; None where there is none, and so the release is not ours, and where it
    is that of another tag than one of these `names`, or objects, if any are given.
    """
    marker = _find_marker(body)
    if marker is None or (names and marker["of"] not in names):
        return None
    return marker["state"].strip()


def _find_marker(body: str) -> re.Match[str] | None:
    """The last one: what is told of commits may look like one."""
    return next(reversed([*_MARKER.finditer(body)]), None)


def announcement_of(
    tag: str, tag_object: str, releases: Sequence[ForgeRelease], draft_hint: str = ""
) -> Announcement:
    """What the forge has for a tag: a published release first, then a draft of ours, which is left
    to others where it is whole and a `draft_hint` tells them how to publish it.
    """
    release = _release_of(tag, releases)
    if release is None:
        return Announcement(tag=tag, status=Status.WANTED)
    names = {tag_object, quote(tag, safe=_SAFE)} if tag_object else ()
    state = read_state(release.body, names)
    if release.draft and state is not None:
        if draft_hint and state == "left":
            note = "an earlier run has made it"
            return replace(_left_as_draft(release, draft_hint), note=note)
        return Announcement(tag=tag, status=Status.WANTED)
    if state is not None and state != "draft":
        return Announcement(tag=tag, status=Status.EXISTING, url=release.url)
    kind = "a draft" if release.draft else "a release"
    note = f"{kind} of the tag {tag} is there that ReleaseKit has not made; it is left as it is"
    hint = "Nothing has to be done. If you delete it, the next run creates another one."
    if state:
        note = f"somebody has published the release of {tag} before all its files were there"
        hint = "Nothing is added to it. Add what is missing; where it can, delete it and run again."
    return Announcement(tag=tag, status=Status.FOREIGN, url=release.url, note=note, hint=hint)


def _left_as_draft(release: ForgeRelease, hint: str) -> Announcement:
    return Announcement(tag=release.tag, status=Status.DRAFT, url=release.url, hint=hint)


def _release_of(tag: str, releases: Sequence[ForgeRelease]) -> ForgeRelease | None:
    """The first of this tag: a forge may have several drafts of one tag."""
    same = [each for each in releases if each.tag == tag]
    return min(
        same, key=lambda each: (each.draft, read_state(each.body) is None, each.id), default=None
    )


async def announce(
    drafts: Sequence[Draft],
    forge: Forge,
    latest: Latest,
    *,
    tell: Callable[[str], None],
) -> dict[str, Announcement]:
    """What became of each, by tag. Failures stay pending; nothing is raised for them."""
    done: dict[str, Announcement] = {}
    try:
        releases = await forge.releases()
        tag = await _find_latest(drafts, releases, forge, latest)
        announcing = _Announcer(forge, releases, tag)
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
        words = "left as a draft:" if status is Status.DRAFT else "announced"
        tell(f"{words if status.done else status.value} {draft.tag}")
    return done


async def _find_latest(
    drafts: Sequence[Draft], releases: Sequence[ForgeRelease], forge: Forge, chosen: Latest
) -> str:
    """The tag to mark as latest; empty where a release that is there is later than all drafts, or
    that is not decided here.
    """
    stable = [
        each
        for each in drafts
        if not each.prerelease
        and is_stable(each.version)
        and (chosen == "highest" or chosen in each.packages)
    ]
    if not stable or forge.draft_hint:
        return ""
    highest = max(stable, key=lambda each: version_key(each.version))
    if chosen == "highest":
        there = _VERSION_AT.search(await forge.latest())
        known = [there[1]] if there else []
    else:
        before, _, after = highest.tag.partition(highest.version.removeprefix("v"))
        tags = [each.tag for each in releases if not (each.draft or each.prerelease)]
        same = [each for each in tags if each.startswith(before) and each.endswith(after)]
        known = [each[len(before) : len(each) - len(after)] for each in same]
    own = version_key(highest.version)
    stable_ones = [each for each in known if _VERSION_AT.match(each) and is_stable(each)]
    is_later = any(version_key(each) > own for each in stable_ones)
    return "" if is_later else highest.tag


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
            found = announcement_of(draft.tag, draft.object, releases, self.forge.draft_hint)
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
            asset = there.get(upload.name) or there.get(upload.formerly)
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
        state: Literal["", "left"] = "left" if self.forge.draft_hint else ""
        release = replace(release, body=write_state(release.body, state))
        is_latest = draft.tag == self.latest
        published = await self.forge.publish(release, latest=is_latest)
        if self.forge.draft_hint:
            return _left_as_draft(published, self.forge.draft_hint)
        return Announcement(tag=draft.tag, status=Status.CREATED, url=published.url)
