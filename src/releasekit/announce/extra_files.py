"""Files of the user's own for release pages, found and hashed before anybody's code runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from releasekit.announce.releases import CHECKSUMS, PAGE, name_asset, pending_announcement
from releasekit.announced import Status
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.errors import ConfigError, PackageError
from releasekit.fields import replace
from releasekit.host.files import inside
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.toml_value import show_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.announce.tags import Tagging
    from releasekit.config.tag_options import ExtraFiles
    from releasekit.ecosystems.interface import Target
    from releasekit.git.commits import Commits
    from releasekit.model import Artifact, Plan, PlannedPackage

# Of a file, too. With our own, of a release. https://docs.github.com/en/repositories/releasing-projects-on-github/about-releases#storage-and-bandwidth-quotas
_MOST: Final = 990
_MOST_BYTES: Final = 2 * 1024**3
_WHERE: Final = "releasekit.toml: [announce] extra-files"


async def plan_extra_files(
    plan: Plan, tagging: Tagging, targets: Mapping[str, Target]
) -> tuple[Plan, dict[str, tuple[Artifact, ...]]]:
    """`plan`, and by tag the files of releases that are to be made. One is pending where its tag is
    on another commit, as what is here was not made from that. Raises ConfigError.
    """
    config, patterns = tagging.config, tagging.config.announcing.extra_files
    if not patterns:
        return plan, {}
    packages: list[PlannedPackage] = []
    for each in plan.packages:
        has_files = isinstance(patterns, tuple) or patterns.get(str(each.package.id))
        is_wanted = each.announcement and each.announcement.status is Status.WANTED
        if has_files and is_wanted and each.tag:
            versioning = targets[each.package.id.ecosystem].versioning
            is_own = versioning.find_registry_tag(each.package) is not None
            head = plan.commit.partition("+")[0]
            if error := await _find_obstacle(each.tag.commit, head, tagging.commits, is_own=is_own):
                pending = pending_announcement(each.tag.name, error)
                packages.append(replace(each, announcement=pending))
                continue
        packages.append(each)
    announced = [each.announcement for each in packages if each.announcement]
    owed = {each.tag for each in announced if each.status is Status.PENDING}
    wanted = {each.tag for each in announced if each.status is Status.WANTED} - owed
    plan = replace(plan, packages=tuple(packages))
    try:
        return plan, await asyncio.to_thread(
            find_extra_files, config.root, patterns, packages, wanted, is_part=config.is_part
        )
    except ConfigError as error:
        if config.is_uploading:
            raise
        refused = f"publish refuses this as it is now: {error}"
        return replace(plan, notes=(*plan.notes, refused)), {}


async def _find_obstacle(
    commit: str, head: str, commits: Commits, *, is_own: bool
) -> PackageError | None:
    """Why what is here, at `head`, may not belong to a tag on `commit`; None where it does, and
    where `commit` is empty. A tag that `is_own` is made by its registry.
    """
    if commit in {"", head}:
        return None
    hint = "Run the job of its tag again, or make the release by hand."
    if commit not in await commits.find_existing([commit]):
        hint = (
            "Whether they are cannot be told without the commit of its tag: check out with "
            "`fetch-depth: 0`, at GitLab with `GIT_DEPTH: 0`."
        )
    # A registry may tag a commit of its own on top of this one.
    elif is_own and head in (await commits.list_parents("--max-count=1", commit))[commit]:
        return None
    return PackageError(
        f"its extra files would be those of another commit, {head[:12]}",
        hint=hint,
        problem=Problem.NOT_ANNOUNCED,
    )


def find_extra_files(
    root: Path,
    patterns: ExtraFiles,
    packages: Sequence[PlannedPackage],
    tags: Collection[str],
    *,
    is_part: bool,
) -> dict[str, tuple[Artifact, ...]]:
    """By tag, for those of `tags`; blocks. A run that `is_part` does not see all releases.

    Raises ConfigError for a pattern that nothing fits, and where nothing says whose the files are.
    """
    named = {str(each.package.id): each.tag.name for each in packages if each.tag is not None}
    by_owner = {"": patterns} if isinstance(patterns, tuple) else patterns
    if by_owner.get("") and (is_part or len(set(named.values())) > 1):
        raise ConfigError(
            f"{_WHERE} is {show_toml(list(patterns))}, and there may be several releases",
            hint="Write whose files they are: extra-files = "
            f"{{ {show_toml(next(iter(named), 'npm:@acme/app'))} = {show_toml(list(patterns))} }}.",
        )
    found: dict[str, dict[Path, Artifact]] = {}
    for owner, wanted in by_owner.items():
        tag = named.get(owner, "") if owner else next(iter(named.values()), "")
        if tag in tags:
            for pattern in wanted:
                found.setdefault(tag, {}).update(_find(root, pattern))
    for tag, files in found.items():
        names = Counter([CHECKSUMS, PAGE, *(name_asset(path.name) for path in files)])
        if bad := [name for name, count in names.items() if count > 1 or not name]:
            raise ConfigError(
                f"{_WHERE}: {tag} cannot have two files of one name, or one without: {few(bad)}",
                hint="Rename one. Names hold letters, digits, and _ . + -; others become a dot.",
            )
        if len(files) > _MOST:
            raise ConfigError(
                f"{_WHERE}: more than {_MOST} files for {tag}; a release takes no more"
            )
    return {tag: tuple(files.values()) for tag, files in found.items()}


def _find(root: Path, pattern: str) -> dict[Path, Artifact]:
    where = f"{_WHERE}: {show_toml(pattern)}"
    is_hidden = any(part.startswith(".") and part != "." for part in pattern.split("/"))
    if pattern.endswith("**"):
        pattern += "/*"  # which Python takes for directories alone until 3.13
    try:
        paths = (
            path
            for path in root.glob(pattern)
            if (is_hidden or "/." not in f"/{path.relative_to(root).as_posix()}")
            and not path.is_dir()
        )
        files = sorted(islice(paths, _MOST + 1))
    except (NotImplementedError, ValueError) as error:
        raise ConfigError(f"{where} is no pattern: {error}") from error
    if not files:
        raise ConfigError(
            f"{where} fits no file",
            hint=f"It is relative to {root}. Its files have to be there before ReleaseKit runs.",
        )
    for path in files:
        inside(root, path, where=where)
    try:
        found = {path: digested(path, "sha256") for path in files}
    except PackageError as error:
        raise ConfigError(f"{where}: {error}") from error
    for path, file in found.items():
        if not 0 < file.size < _MOST_BYTES:
            raise ConfigError(f"{where}: {path} is empty, or has 2 GiB: no release takes it")
    return found
