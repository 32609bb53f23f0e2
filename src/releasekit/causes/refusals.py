"""Why a run is refused before anything is changed: what it was given, and what it found.

One class for each cause that users look up, in the tree of `errors`.
"""

from __future__ import annotations

from releasekit.errors import ConfigError, PlanError, StateError
from releasekit.problems import Problem


class UnknownName(ConfigError):
    """There is no input, key or ecosystem of that name."""

    problem = Problem.UNKNOWN_NAME


class CommandLineError(ConfigError):
    """Arguments that are not understood."""

    problem = Problem.COMMAND_LINE


class ExposedSecret(ConfigError):
    """A secret where others can read it."""

    problem = Problem.SECRET_IN_THE_OPEN


class UnusableSecret(ConfigError):
    """A secret that cannot be one."""

    problem = Problem.UNUSABLE_SECRET


class PathError(ConfigError):
    """A path that leads nowhere, elsewhere, or to the wrong kind of thing."""

    problem = Problem.PATH


class AddressError(ConfigError):
    """A URL that cannot be used."""

    problem = Problem.ADDRESS


class NetworkSettings(ConfigError):
    """Variables about proxies and certificates that cannot be used."""

    problem = Problem.NETWORK_SETTINGS


class NothingMatches(ConfigError):
    """A choice of packages that chooses none."""

    problem = Problem.NOTHING_MATCHES


class NoPackages(ConfigError):
    """Nothing that could be published."""

    problem = Problem.NO_PACKAGES


class InsideWorkspace(ConfigError):
    """The root is a part of something larger."""

    problem = Problem.INSIDE_WORKSPACE


class NoSandbox(ConfigError):
    """A sandbox is required, and the system has none, or one that is of no use here."""

    problem = Problem.NO_SANDBOX


class ToolMissing(ConfigError):
    """A plan cannot be made without a tool."""

    problem = Problem.TOOL_MISSING


class ShardError(ConfigError):
    """Parts that there are not, or that cannot be made."""

    problem = Problem.SHARDS


class PlanFileError(ConfigError):
    """No plan, or none that this version reads."""

    problem = Problem.PLAN_FILE


class ResultsError(ConfigError):
    """No results, or none that go together."""

    problem = Problem.RESULTS


class ApprovalError(ConfigError):
    """Nothing to approve, or nobody to ask."""

    problem = Problem.APPROVAL


class DistError(ConfigError):
    """Files that were built elsewhere and cannot be used."""

    problem = Problem.DIST


class RegistrySettings(ConfigError):
    """What is said of a registry contradicts itself, or what it is."""

    problem = Problem.REGISTRY_SETTINGS


class Unreadable(ConfigError):
    """A file of the workspace that cannot be read for what it should be."""

    problem = Problem.UNREADABLE


class ManifestError(ConfigError):
    """A value in a manifest that cannot be used."""

    problem = Problem.MANIFEST


class SameName(ConfigError):
    """Two packages of one name."""

    problem = Problem.SAME_NAME


class MembersError(ConfigError):
    """A workspace that names what is not there, or too much."""

    problem = Problem.MEMBERS


class NoSource(ConfigError):
    """A dependency that is taken from where nothing is."""

    problem = Problem.NO_SOURCE


class RunnerFile(ConfigError):
    """A file that the runner reads after the step cannot be used."""

    problem = Problem.RUNNER


class NeedsPrivate(PlanError):
    """A package needs what never leaves the repository."""

    problem = Problem.NEEDS_PRIVATE


class NeedsLeftOut(PlanError):
    """A package needs what nobody is going to publish."""

    problem = Problem.NEEDS_LEFT_OUT


class ExcludesVersion(PlanError):
    """A requirement that the version of this release does not meet."""

    problem = Problem.EXCLUDES_VERSION


class CannotPin(PlanError):
    """A dependency that is written in a form in which no version can be put."""

    problem = Problem.CANNOT_PIN


class DistDoesNotFit(PlanError):
    """A file that was built elsewhere, of something else than is planned."""

    problem = Problem.DIST_DOES_NOT_FIT


class NotAsPlanned(PlanError):
    """The sources differ from those that the plan file was made of."""

    problem = Problem.NOT_AS_PLANNED


class WarningsAreErrors(PlanError):
    """Warnings of the plan that end it."""

    problem = Problem.WARNING_OF_PLAN


class NeverTaken(PlanError):
    """A version that the registry takes from nobody."""

    problem = Problem.NEVER_TAKEN


class CannotAttest(PlanError):
    """Attestations are required, and something keeps the job from making one."""

    problem = Problem.CANNOT_ATTEST


class NoSuchDependency(PlanError):
    """A dependency on something of the workspace that is not there."""

    problem = Problem.NO_SUCH_DEPENDENCY


class AllAtOnce(PlanError):
    """Packages that go out together, and others that belong in between."""

    problem = Problem.ALL_AT_ONCE


class GoReplaced(PlanError):
    """A Go module that only this workspace can build."""

    problem = Problem.GO_REPLACED


class SameTag(PlanError):
    """Two packages that one tag cannot tell apart, or tags that no repository has side by side."""

    problem = Problem.SAME_TAG


class TagName(PlanError):
    """What git takes for no name of a tag."""

    problem = Problem.TAG_NAME


class PublishesItself(PlanError):
    """A package whose own script publishes others while it is packed."""

    problem = Problem.PUBLISHES_ITSELF


class BuildCycle(PlanError):
    """Packages that need one another to be built."""

    problem = Problem.CYCLE


class PinConflict(StateError):
    """A manifest is neither as it was nor as it was pinned."""

    problem = Problem.PINNED_MANIFEST


class UnnamedRegistry(ConfigError):
    """Credentials would go to a registry that no input names."""

    problem = Problem.UNNAMED_REGISTRY


class TrustError(ConfigError):
    """What says whom to trust cannot be used."""

    problem = Problem.TRUST_CONFIG
