"""Signals at every step of a run: always sent as the same function is called."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from effort import SEARCHING
from hostile.case import Case, SignalAt, cases
from hostile.workspaces_of import BUILT, PUBLISH, PYPI

if TYPE_CHECKING:
    from collections.abc import Iterator


# When, by the function that is called then.
_PLANNING: Final = {
    "at the start": "releasekit.cli.{command}:refuse_links",
    "as processes start": "releasekit.cli.prepare:start_processes",
    "as directories are listed": "releasekit.cli.prepare:survey_root",
    "as ecosystems open": "releasekit.cli.prepare:open_ecosystems",
    "at discovery": "releasekit.cli.prepare:discover",
    "as prebuilt files are read": "releasekit.cli.prepare:with_prebuilt",
    "as the plan is made": "releasekit.cli.prepare:make_plan",
    "as warnings are looked for": "releasekit.cli.prepare:with_warnings",
}
_RELEASING: Final = {
    "as the lock is taken": "releasekit.cli.publish:locks.acquire",
    "as pins are restored": "releasekit.cli.publish:restore_manifests",
    "as the journal opens": "releasekit.cli.publish:Journal.open",
    "as the run is put on record": "releasekit.state.journal:Journal.run_started",
    "at the build": "releasekit.release.phases:Phases.build",
    "at the upload": "releasekit.release.phases:Phases.upload",
    "at the intent": "releasekit.release.uploading:Uploads._intend",
    "as files are sent": "releasekit.release.uploading:Uploads.upload_or_stage",
    "as the end is put on record": "releasekit.state.journal:Journal.run_ended",
    "as results are written": "releasekit.cli.publish:tell",
}
_ENDED_BY: Final = {signal.SIGINT: -signal.SIGINT, signal.SIGTERM: -signal.SIGTERM}


def _plans() -> Iterator[Case]:
    for when, where in _PLANNING.items():
        for number, ended in _ENDED_BY.items():
            yield Case(
                name=f"plan, {number.name} {when}",
                files=PYPI,
                signals=(SignalAt(where.format(command="plan"), number),),
                codes=frozenset({130, ended}),
            )


def _publishes() -> Iterator[Case]:
    for at, (when, place) in enumerate({**_PLANNING, **_RELEASING}.items()):
        where = place.format(command="publish")
        # One handler serves both.
        for number in _ENDED_BY if SEARCHING else [*_ENDED_BY][at % 2 :][:1]:
            late = where.endswith((".run_ended", ":tell"))
            yield Case(
                name=f"publish, {number.name} {when}",
                files=BUILT,
                argv=PUBLISH,
                signals=(SignalAt(where, number),),
                # What had ended when the signal came has ended well.
                codes=frozenset({0, 130}) if late or ".release." in where else frozenset({130}),
                may_write=("registry",),
            )
    for when, place in {**_PLANNING, **_RELEASING}.items():
        where = place.format(command="publish")
        late = where.endswith((".run_ended", ":tell"))
        yield Case(
            name=f"publish, both signals at once {when}",
            files=BUILT,
            argv=PUBLISH,
            signals=(SignalAt(where, signal.SIGINT), SignalAt(where, signal.SIGTERM)),
            codes=frozenset({0, 130}) if late or ".release." in where else frozenset({130}),
            may_write=("registry",),
        )


def _others() -> Iterator[Case]:
    for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH):
        for where in ("releasekit.cli.prepare:discover", "releasekit.release.phases:Phases.upload"):
            codes = {
                signal.SIGHUP: {0, 130},
            }
            resumed = (SignalAt("releasekit.release.release:ReleaseRun.pause", signal.SIGUSR2),)
            yield Case(
                name=f"publish, {number.name} at {where.rpartition(':')[2]}",
                files=BUILT,
                argv=PUBLISH,
                signals=(SignalAt(where, number), *(resumed if "USR1" in number.name else ())),
                codes=frozenset(codes.get(number, {0})),
                may_write=("registry",),
            )
    for command in (("check",), ("check", "--fix"), ("report",)):
        for number, ended in _ENDED_BY.items():
            yield Case(
                name=f"{' '.join(command)}, {number.name}",
                files=PYPI,
                argv=command,
                signals=(SignalAt(f"releasekit.cli.{command[0]}:run", number),),
                codes=frozenset({130, ended}),
            )


CASES: Final = cases(_plans, _publishes, _others)
