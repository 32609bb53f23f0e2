"""What is to be said at the forge about the versions of a run, one release for each tag."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from releasekit.announced import Announcement, Status
from releasekit.attested import RELEASE_STATEMENT
from releasekit.errors import CommandFailed, PackageError
from releasekit.forge.interface import Draft, Upload
from releasekit.host import durable
from releasekit.notes.body import before, joined, notes_of
from releasekit.notes.names import is_shared, previous_tag, tag_name
from releasekit.notes.versions import is_stable
from releasekit.plan.decision import is_clean
from releasekit.plan.tags import commit_of_version
from releasekit.problems import Problem
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from releasekit.announced import Tag
    from releasekit.attested import ReleaseStatement
    from releasekit.git.remote import RemoteTag
    from releasekit.model import Package, PackageId, Plan, Published, Result
    from releasekit.plan.tags import Tagging

_CHECKSUMS: Final = "checksums.txt"
_MAX_STATEMENT_BYTES: Final = 64 * 1024 * 1024
_PAGE: Final = "report.html"
# How `cksum --check` and `shasum --check` know them, in the form that BSD has for several kinds.
# https://www.gnu.org/software/coreutils/manual/html_node/cksum-general-options.html
_KINDS: Final = {"sha1": "SHA1", "sha256": "SHA256", "sha384": "SHA384", "sha512": "SHA512"}
# What GitHub calls an asset that is uploaded under another name, nobody can foretell.
# https://docs.github.com/en/rest/releases/assets#upload-a-release-asset
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, slots=True)
class Material:
    """What a release may tell of, besides its notes: what the registries show, the release
    statement that the run has signed, and the page of the run, if that is wanted.
    """

    published: Mapping[PackageId, Published]
    statement: ReleaseStatement | None
    page: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Subject:
    """One tag that is on the remote, and what was published under it."""

    tag: Tag
    results: Sequence[Result]


def subjects(results: Sequence[Result]) -> list[Subject]:
    """In publish order; only what has its tag."""
    found: dict[str, list[Result]] = {}
    tags: dict[str, Tag] = {}
    for result in results:
        if result.tag is not None and result.tag.status.done:
            found.setdefault(result.tag.name, []).append(result)
            tags[result.tag.name] = result.tag
    return [Subject(tags[name], each) for name, each in found.items()]


async def drafts(
    plan: Plan,
    wanted: Sequence[Subject],
    tagging: Tagging,
    material: Material,
    remote_tags: Mapping[str, RemoteTag],
) -> tuple[list[Draft], dict[str, Announcement]]:
    """One for each, and what is owed where nobody here knows what to say, by the tag; may take a
    while, as git is asked for the history of each.
    """
    made: list[Draft] = []
    silent: dict[str, Announcement] = {}
    # It is one page for all of them, and made on the loop, whose time it tells.
    page = material.page() if "report" in tagging.config.announcing.assets else b""
    telling = _Telling(plan, tagging, material, remote_tags, page)
    for each in wanted:
        try:
            made.append(await telling.draft(each))
        except (PackageError, CommandFailed, OSError) as error:
            told = (
                error
                if isinstance(error, PackageError)
                else PackageError(str(error), problem=Problem.NOT_ANNOUNCED)
            )
            tag = each.tag.name
            silent[tag] = unsaid(Announcement(tag=tag, status=Status.OWED), told)
    return made, silent


@dataclass(frozen=True, slots=True)
class _Telling:
    """What all drafts are made of."""

    plan: Plan
    tagging: Tagging
    material: Material
    remote_tags: Mapping[str, RemoteTag]
    page: bytes

    async def draft(self, subject: Subject) -> Draft:
        """Raises PackageError where the clone does not hold what there is to tell of."""
        tag = subject.tag
        shared = is_shared(self.tagging.config.tagging.name)
        commit = await self._commit(subject)
        packages = [each.package for each in subject.results]
        texts = {each: await self._notes(each, tag, commit) for each in packages}
        return Draft(
            tag=tag.name,
            title=tag.name if shared else f"{packages[0].id.name} {packages[0].version}",
            body=joined(texts),
            prerelease=not is_stable(packages[0].version),
            version=packages[0].version,
            object=tag.object,
            assets=await asyncio.to_thread(self._assets, subject),
        )

    async def _commit(self, subject: Subject) -> str:
        """The one of the tag, or, where a registry has made that of its own, the one below it."""
        package = subject.results[0].package.id
        planned = next(each for each in self.plan.packages if each.package.id == package)
        built = commit_of_version(planned, self.plan.commit)
        asked = [subject.tag.commit, built]
        here = await self.tagging.commits.existing(filter(is_clean, asked))
        for commit in asked:
            if commit in here:
                return commit
        raise PackageError(
            f"the commit {subject.tag.commit} of the tag {subject.tag.name} is not in this clone",
            hint="`fetch-depth: 0` at actions/checkout brings it.",
            problem=Problem.NOT_ANNOUNCED,
        )

    async def _notes(self, package: Package, tag: Tag, commit: str) -> str:
        config, commits = self.tagging.config, self.tagging.commits
        template = config.tagging.name
        if tag.name != tag_name(template, package, config.root):
            template = tag.name.replace(package.version, "{version}")
        previous = previous_tag(template, package, config.root, self.remote_tags)
        return await notes_of(
            package,
            commits,
            commit=commit,
            previous=await before(self.remote_tags[previous].commit if previous else "", commits),
            others=[each.package for each in self.plan.packages],
            beside=[config.root] if is_shared(config.tagging.name) else [],
            repository=self.tagging.repository,
        )

    def _assets(self, subject: Subject) -> tuple[Upload, ...]:
        """Those that are asked for and at hand; blocks."""
        wanted, material = self.tagging.config.announcing.assets, self.material
        found: list[Upload] = []
        if "checksums" in wanted and (text := checksums(subject.results, material.published)):
            found.append(_upload(_CHECKSUMS, text.encode()))
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
            found += _signed(material.statement)
        if self.page:
            found.append(_upload(_PAGE, self.page, by_name=True))
        return told_apart(found)


def _signed(statement: ReleaseStatement) -> Iterator[Upload]:
    """What this run has signed, and nothing that lies there instead."""
    if not statement.attestations:
        return
    content = durable.read_file(statement.path, max_bytes=_MAX_STATEMENT_BYTES)
    *lines, end = content.split(b"\n")
    there = [hashlib.sha256(line).hexdigest() for line in lines]
    if not end and there == [each.sha256 for each in statement.attestations]:
        yield _upload(RELEASE_STATEMENT, content, by_name=True)


def told_apart(uploads: Sequence[Upload]) -> tuple[Upload, ...]:
    """Two packages of one release may have files of one name: none takes the place of another."""
    names = Counter(
        each.name for each in {(each.name, each.sha256): each for each in uploads}.values()
    )
    told = (
        each if names[each.name] == 1 else replace(each, name=f"{each.sha256[:8]}-{each.name}")
        for each in uploads
    )
    return tuple({each.name: each for each in told}.values())


def _upload(name: str, content: bytes, *, by_name: bool = False) -> Upload:
    sha256 = hashlib.sha256(content).hexdigest()
    return Upload(name=name, content=content, sha256=sha256, size=len(content), by_name=by_name)


def checksums(results: Sequence[Result], published: Mapping[PackageId, Published]) -> str:
    """What the registries show, so that every machine writes the same; empty where none of it is a
    checksum, as of Go modules, whose tags are.
    """
    lines = []
    for result in results:
        shown = published.get(result.package.id)
        for filename, digest in sorted(shown.files.items()) if shown else ():
            algorithm, _, value = digest.partition(":")
            if algorithm in _KINDS:
                lines.append(f"{_KINDS[algorithm]} ({visible(filename)}) = {value}")
    return "".join(f"{line}\n" for line in lines)


def untagged(tag: Tag) -> Announcement:
    """What is owed where the tag is: the forge would make one of its own."""
    error = PackageError(
        f"the tag {tag.name} is not on the remote as it should be",
        hint="What keeps the tag away is said with it.",
        problem=Problem.NOT_ANNOUNCED,
    )
    return unsaid(Announcement(tag=tag.name, status=Status.OWED), error)


def unsaid(announcement: Announcement, error: PackageError) -> Announcement:
    """It is owed, and why."""
    return replace(
        announcement,
        status=Status.OWED,
        note=str(error),
        hint=error.hint,
        problem=Problem.NOT_ANNOUNCED,
    )


def with_announcements(
    results: Sequence[Result], told: Mapping[str, Announcement]
) -> tuple[Result, ...]:
    """Each of what is published with the release of its tag."""
    found = []
    for result in results:
        if result.tag is None:
            found.append(result)
            continue
        said = told.get(result.tag.name)
        if said is None or (result.tag.status is Status.FOREIGN and said.status.done):
            said = untagged(result.tag)
        found.append(replace(result, announcement=said))
    return tuple(found)
