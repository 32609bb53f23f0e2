"""What goes wrong on paper: a build, an upload that its registry refuses, and some warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.errors import BuildFailed, PackageError, Rejected
from releasekit.graph import reachable
from releasekit.model import Node, PackageId, PackageWarning, WarningName
from releasekit.report.view import READ_ITS_LOG

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from releasekit.model import Package

_LOGS: Final = ".releasekit/logs/20261122T120000Z-8d0f3a51"


@dataclass(frozen=True, slots=True)
class Mishap:
    """The task that failed for good, and why."""

    node: Node
    error: PackageError


def mishaps(
    packages: Sequence[Package], edges: Mapping[PackageId, Collection[PackageId]]
) -> tuple[Mishap, ...]:
    """In a small release one build; in others an upload too, neither of which waits for the other:
    so many others wait for them that it shows, and not so many that nothing is left.
    """
    dependents: dict[PackageId, list[PackageId]] = {package.id: [] for package in packages}
    for package, needs in edges.items():
        for on in needs:
            dependents[on].append(package)
    behind = {
        package.id: reachable([package.id], dependents.__getitem__) - {package.id}
        for package in packages
    }

    def closest(ecosystem: str, wanted: int, apart: set[PackageId]) -> Package:
        candidates = (
            each
            for each in packages
            if each.id.ecosystem == ecosystem
            and not apart & {each.id, *behind[each.id]}
            and not any(each.id in behind[other] for other in apart)
        )
        return min(candidates, key=lambda each: (abs(len(behind[each.id]) - wanted), each.id))

    if len(packages) < 10:
        return (_readme_missing(closest("pypi", 1, set())),)
    compiled = closest("cargo", len(packages) // 14, set())
    refused = closest("pypi", len(packages) // 30, {compiled.id, *behind[compiled.id]})
    return _not_compiled(compiled), _refused(refused)


def _readme_missing(package: Package) -> Mishap:
    cause = "OSError: Readme file does not exist: README.md"
    log = (
        "Traceback (most recent call last):",
        '  File "…/hatchling/build.py", line 44, in build_sdist',
        "    return os.path.basename(next(builder.build(directory=sdist_directory)))",
        '  File "…/hatchling/builders/plugin/interface.py", line 92, in build',
        "    self.metadata.validate_fields()",
        '  File "…/hatchling/metadata/core.py", line 266, in validate_fields',
        "    self.core.validate_fields()",
        '  File "…/hatchling/metadata/core.py", line 1366, in validate_fields',
        "    getattr(self, attribute)",
        '  File "…/hatchling/metadata/core.py", line 531, in readme',
        "    raise OSError(message)",
        cause,
    )
    hint = f"{READ_ITS_LOG} The whole output is in {_LOGS}/build-pypi-{package.id.name}.log"
    error = BuildFailed(f"its build failed with exit code 1: {cause}", log=log, hint=hint)
    return Mishap(Node("build", package.id), error)


def _not_compiled(package: Package) -> Mishap:
    cause = "error[E0425]: cannot find function `retry_after` in module `http`"
    log = (
        "   Compiling acme-errors v2.11.0",
        f"   Compiling {package.id.name} v{package.version}",
        cause,
        "  --> src/client.rs:118:33",
        "    |",
        "118 |     let pause = crate::http::retry_after(&response);",
        "    |                              ^^^^^^^^^^^ not found in `crate::http`",
        "",
        "For more information about this error, try `rustc --explain E0425`.",
        f"error: could not compile `{package.id.name}` (lib) due to 1 previous error",
        "error: failed to verify package tarball",
    )
    hint = f"{READ_ITS_LOG} The whole output is in {_LOGS}/build-cargo-{package.id.name}.log"
    error = BuildFailed(f"cargo package failed with exit code 101: {cause}", log=log, hint=hint)
    return Mishap(Node("build", package.id), error)


def _refused(package: Package) -> Mishap:
    error = Rejected(
        f"{package}: POST https://upload.pypi.org/legacy/: HTTP 400 The description failed to "
        "render for 'text/x-rst'. See https://pypi.org/help/#description-content-type for more "
        "information."
    )
    return Mishap(Node("upload", package.id), error)


_NEW_NAME: Final = PackageWarning(
    name=WarningName.NEW_NAME,
    message="registry.npmjs.org has no package of this name yet: make sure that it is "
    "spelled correctly",
)
_NO_README: Final = PackageWarning(
    name=WarningName.MISSING_README,
    message="it has no description, so its page is empty: name a `readme`",
)


def warnings_of(package: PackageId, number: int) -> tuple[PackageWarning, ...]:
    """Of few packages; `number` is any below 256, and the same for the same package."""
    if package.ecosystem == "npm" and number % 16 == 14:
        return (_NEW_NAME,)
    return (_NO_README,) if package.ecosystem == "pypi" and number % 12 == 5 else ()
