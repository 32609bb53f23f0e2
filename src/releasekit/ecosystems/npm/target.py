"""JavaScript packages and npm-like registries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.interface import Discovery, Services, Target
from releasekit.ecosystems.npm import Inputs, document
from releasekit.ecosystems.npm.attesting import NpmAttesting
from releasekit.ecosystems.npm.bundling import compiled_in, takes_in
from releasekit.ecosystems.npm.directory_layout import PackumentDirectory
from releasekit.ecosystems.npm.ecosystem import Npm
from releasekit.ecosystems.npm.entry_points import warnings_of
from releasekit.ecosystems.npm.history import inherited_at, offered_at, packs, version_at
from releasekit.ecosystems.npm.prebuilt import Tarballs
from releasekit.ecosystems.npm.registry import NPMJS, NpmRegistry
from releasekit.ecosystems.npm.staging import NpmStaging
from releasekit.ecosystems.npm.tools import missing_tool
from releasekit.graph import levels_above
from releasekit.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Registry
    from releasekit.ecosystems.npm import Options
    from releasekit.ecosystems.npm.ecosystem import NpmWorkspace
    from releasekit.model import PlannedPackage


# npmjs.com scans what it takes before it shows it: for 5 minutes as a rule, for 15 or more at peak
# times, and for 55 of them once.
# https://github.blog/changelog/2026-07-28-npm-publish-time-malware-scanning-and-dual-use-metadata/
# https://github.com/apache/maka/pull/5328
_SCANNED_WITHIN_S: Final = 45 * 60.0
_SCAN_MIN: Final = (5, 15)


def scan_notes(packages: Sequence[PlannedPackage]) -> str:
    """How long a release waits for the scans of npmjs.com, level after level."""
    sent = {
        each.package.id: {need.on for need in each.package.dependencies}
        for each in packages
        if each.action in {Action.PUBLISH, Action.UPLOAD}
    }
    levels = 1 + max(levels_above(sent).values(), default=-1)
    if not levels:
        return ""
    least, most = (minutes * levels for minutes in _SCAN_MIN)
    note = f"npm: npmjs.com scans each version before it shows it: expect {least} to {most} minutes"
    if levels == 1:
        return note
    return (
        f"{note}, since these packages stand on {levels} levels, and each waits until the one "
        "below is there. With `gate: accepted` all are scanned at once, and for some minutes a "
        "package may be there before what it needs"
    )


def layout(config: Config, options: Options) -> Layout:
    return PackumentDirectory(tag=config.own(Inputs).tag, url=options.directory_url or NPMJS)


def target(
    config: Config, options: Options, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a tag or a registry that cannot be used."""
    document.checked_tag(config.own(Inputs).tag, where="npm-tag")
    registry = directory or NpmRegistry(config, services)
    is_new, staging, told, shows_within_s = None, None, [], 0.0
    attests, takes, private = True, None, config.trust_config is not None
    if isinstance(registry, NpmRegistry):
        shows_within_s = _SCANNED_WITHIN_S if registry.is_npmjs else 0.0
        is_new = registry.is_new
        staging = NpmStaging(registry, options.stage or config.stage)
        told = [staging.plan_notes, registry.plan_notes]
        if registry.is_npmjs and config.gate == "visible" and staging.mode != "always":
            told.append(scan_notes)
        attests, takes = registry.is_npmjs or config.attestations == "required", registry

    def goes_to(found: NpmWorkspace, registry: Registry) -> Target:
        return Target(
            found,
            registry,
            plan_notes=lambda packages: ". ".join(
                filter(None, (notes(packages) for notes in (found.plan_notes, *told)))
            ),
            follow_up=found,
            warnings_of=warnings_of,
            is_new=is_new,
            prebuilt=Tarballs(found),
            staging=staging,
            shows_within_s=shows_within_s,
            missing_tool=partial(missing_tool, processes=services.processes),
            attesting=NpmAttesting(found, takes, private) if attests else None,
            version_at=version_at,
            packs=packs,
            inherited_at=partial(inherited_at, found.found),
            offered_at=offered_at,
            compiled_in=partial(compiled_in, found.found, found.packages),
            takes_in=takes_in,
        )

    return Discovery.joining(Npm(config, options, services), registry, goes_to)
