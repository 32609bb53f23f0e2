"""What the tag of a version is called, which names git refuses, and which tag came before it.

Templates are as `config.tag_options` lets them through.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.git.tag_forms import (
    FIELD,
    OWN_TAGS,
    SHARED_TAGS,
    fill_in,
    is_version_of_another,
    tag_name,
    template_values,
)
from releasekit.problems import Problem
from releasekit.text.version_order import is_stable, version_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Plan


# The fields that tell the packages of one version apart.
_OF_ONE: Final = ("name", "component", "directory")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_VERSION: Final = r"v?[0-9][0-9A-Za-z.!+_-]*"
# A file name has 255 bytes at most, and git writes `NAME.lock` before it writes `NAME`.
_MAX_ELEMENT_BYTES: Final = 250
_MAX_BYTES: Final = 255


def is_shared(template: str) -> bool:
    """Whether packages of the same version share one tag."""
    return set(_OF_ONE).isdisjoint(FIELD.findall(template))


def template_of(tags: Mapping[Package, str], root: Path, *, of_all: bool) -> str:
    """The template that gives these packages these tags, "" where none does. One that names no
    package takes that the tag is that `of_all` packages there are.
    """
    distinct = len(set(tags.values()))
    templates: list[str] = []
    if of_all and distinct == 1:
        templates += [f"{prefix}{{version}}" for prefix in SHARED_TAGS]
    if distinct == len(tags):
        templates += [f"{{{each}}}{joint}{{version}}" for each in _OF_ONE for joint in OWN_TAGS]
    for template in templates:
        if all(tag_name(template, package, root) == tag for package, tag in tags.items()):
            return template
    return ""


def previous_tag(template: str, package: Package, root: Path, tags: Iterable[str]) -> str:
    """The tag of the version before this one, "" where there is none.

    For a stable version it is the last stable one, if there is one: users upgrade from there, not
    from a release candidate.
    """
    # No other field can hold a NUL: manifests and paths cannot.
    text = fill_in(template, {**template_values(package, root), "version": "\0"})
    first, *others = map(re.escape, text.split("\0"))
    version = re.compile(f"{first}(?P<version>{_VERSION})" + "(?P=version)".join(others))
    own = version_key(package.version)
    earlier = [
        (found["version"], name)
        for name in tags
        if (found := version.fullmatch(name))
        and not is_version_of_another(found["version"])
        and version_key(found["version"]) < own
    ]
    if is_stable(package.version):
        earlier = [each for each in earlier if is_stable(each[0])] or earlier
    return max(earlier, key=lambda each: (version_key(each[0]), each[1]), default=("", ""))[1]


def trouble_with_name(name: str) -> str:
    """Why git or GitHub refuses the tag, as the end of a sentence; empty where both accept it.

    https://git-scm.com/docs/git-check-ref-format
    """
    if found := _FORBIDDEN.search(name):
        return f"has {'a space' if found[0] == ' ' else repr(found[0])} in it"
    for sequence in ("..", "@{", "//"):
        if sequence in name:
            return f"has {sequence!r} in it"
    if not name or name in {"@", "HEAD"}:
        return "means something else to git" if name else "is empty"
    if name[0] in "-/" or name[-1] in "./":
        return f"starts with {name[0]!r}" if name[0] in "-/" else f"ends in {name[-1]!r}"
    for element in name.split("/"):
        if element.startswith(".") or element.endswith(".lock"):
            where = "starts with '.'" if element.startswith(".") else "ends in '.lock'"
            return f"has a part {element!r} that {where}"
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "is not text in UTF-8"
    if len(encoded) > _MAX_BYTES or max(map(len, encoded.split(b"/"))) > _MAX_ELEMENT_BYTES:
        return "is too long"
    # https://docs.github.com/en/get-started/using-git/dealing-with-special-characters-in-branch-and-tag-names
    if name.startswith("refs/"):
        return "starts with 'refs/', which GitHub does not take"
    if re.fullmatch(r"[0-9a-fA-F]{40}", name):
        return "looks like a commit, which GitHub does not take"
    if not name.isprintable():
        return "has a character in it that is not shown"
    return ""


_APART: Final = "{ecosystem}/{name}-v{version}"


class Named(NamedTuple):
    """A package, its tag, what the tags of all its versions are like, and whether its registry
    pushes that tag itself.
    """

    package: Package
    tag: str
    like: str
    own: bool


def name_tags(
    plan: Plan, template: str, root: Path, targets: Mapping[str, Target]
) -> dict[PackageId, Named]:
    """The tag of each package in the plan; those without one are left out."""
    found = {}
    for planned in plan.packages:
        package = planned.package
        if package.follows is not None:
            continue
        if (own := targets[package.id.ecosystem].versioning.find_registry_tag(package)) is not None:
            # Modules of one path and several majors differ in nothing else.
            name = like = own
        else:
            name = tag_name(template, package, root)
            like = tag_name(template, replace(package, version="{version}"), root)
        if name:
            found[package.id] = Named(package, name, like, own is not None)
    return found


def refuse_names(named: Mapping[PackageId, Named], template: str) -> None:
    """Raises PlanError for names that git refuses, or that two packages share; asks no remote."""
    holders: dict[str, Package] = {}
    for package, name, like, own in named.values():
        if trouble := trouble_with_name(name):
            raise PlanError(
                f"{package}: its tag would be {name!r}, which {trouble}",
                hint=f'Write another `[tag] name` in releasekit.toml; it is "{template}".',
                problem=Problem.TAG_NAME,
            )
        # Versions that differ today may be the same at the next release.
        for each in (name, like):
            holder = holders.setdefault(each, package)
            if holder is not package and (own or named[holder.id].own or not is_shared(template)):
                raise PlanError(
                    f"{holder.id} and {package.id} would both have the tag {each!r}",
                    hint=f'Tell them apart: [tag] name = "{_APART}" in releasekit.toml.',
                    problem=Problem.SAME_TAG,
                )


def refuse_nested(named: Mapping[PackageId, Named], there: Collection[str]) -> None:
    """Raises PlanError where one tag would be a directory of another: git keeps refs as files.

    https://git-scm.com/docs/git-check-ref-format
    """
    ours = {each.tag for each in named.values()}
    everything = ours.union(there)
    above = {str(each): name for name in everything for each in PurePosixPath(name).parents}
    for package, name, _, _ in named.values():
        if name in there:
            continue
        others = [above[name]] if name in above else []
        others += [str(each) for each in PurePosixPath(name).parents if str(each) in everything]
        if others:
            raise PlanError(
                f"{package}: git can keep no tag {name!r} beside the tag {others[0]!r}",
                hint="Write another `[tag] name` in releasekit.toml.",
                problem=Problem.SAME_TAG,
            )
