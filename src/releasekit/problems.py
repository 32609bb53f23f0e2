"""What can go wrong, by the id under which docs/problems.md says what it means and what to do.

The first digit is the exit code that a problem causes; those with 5 are warnings. An id is never
given to another problem, even when its own no longer occurs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

OWN_REPOSITORY: Final = "org/releasekit-action"
DOCS: Final = f"https://github.com/{OWN_REPOSITORY}/blob/v1/docs"


class Problem(StrEnum):
    """`Problem("RK-101")`; `headline` begins its section."""

    headline: str

    def __new__(cls, number: str, headline: str) -> Self:
        problem = str.__new__(cls, number)
        problem._value_ = number
        problem.headline = headline
        return problem

    PACKAGE = "RK-100", "An error without its own section"
    BUILD_FAILED = "RK-101", "A build failed"
    BUILD_TIMED_OUT = "RK-102", "A build did not end in time"
    BUILD_TOOL = "RK-103", "A build needs a tool that is missing"
    BUILD_REQUIREMENTS = "RK-104", "Build requirements cannot be installed"
    BUILT_OTHERWISE = "RK-105", "The build did not produce the planned files"
    CHANGED_MEANWHILE = "RK-106", "Something changed during the release"
    CANNOT_START = "RK-107", "A tool cannot be started, or not in the sandbox"
    NO_PLACE_TO_BUILD = "RK-108", "Built files cannot be written or read"
    STATE_IN_PACKAGE = "RK-109", "A package contains ReleaseKit's state"
    NOT_COMMITTED = "RK-110", "A Go module has uncommitted changes"
    GO_SUM = "RK-111", "The hashes of a Go module are missing"
    SIGNING = "RK-112", "gpg did not sign"
    WARNING_OF_BUILD = "RK-113", "A warning about built files counts as an error"
    FOLLOW_UP = "RK-114", "Published, but a follow-up script failed"
    RUNNER_FILES_WRITTEN = "RK-115", "A build wrote to the files of the runner"
    NOT_A_PACKAGE = "RK-116", "What was built is not a package that can be published"
    NOT_SIGNED = "RK-117", "A file could not be signed and was not uploaded"
    NOT_VERIFIED = "RK-118", "A file cannot be verified"
    UNRESOLVABLE = "RK-119", "A built file has a requirement that no client can resolve"
    REFUSED = "RK-120", "The registry refused"
    DENIED = "RK-121", "The registry does not accept the credentials"
    STAGE_ONLY = "RK-122", "These credentials may only stage"
    NOT_TRUSTED = "RK-123", "Trusted publishing was refused"
    OTHER_BYTES = "RK-124", "The version exists with different files"
    WRONG_ADDRESS = "RK-125", "The registry's address redirects elsewhere"
    STRANGE_ANSWER = "RK-126", "Unexpected response from the registry"
    DIRECTORY = "RK-127", "A directory cannot be used as a registry"
    VERSION_GONE = "RK-128", "The version was removed from the registry"
    CERTIFICATE = "RK-129", "The certificate of a server is not trusted"
    TAG_REFUSED = "RK-130", "A tag cannot be pushed"
    NOT_ATTESTED = "RK-131", "A file cannot be attested"
    TAG_FOREIGN = "RK-132", "The tag exists on another commit"
    TAG_OWED = "RK-133", "A version was not tagged"
    NOT_ANNOUNCED = "RK-134", "A release was not created"
    STEP_FAILED = "RK-135", "A step failed"
    STEP_UNKNOWN = "RK-136", "The check of a step does not tell"
    UNREACHABLE = "RK-140", "The registry gave no usable answer"
    DOWN = "RK-141", "The registry is down"
    RATE_LIMITED = "RK-142", "The registry asks for a longer pause"
    NOT_SENT_IN_TIME = "RK-143", "An upload did not end in time"
    UNDECIDED = "RK-144", "It is unclear whether the registry has the package"
    NOT_VISIBLE = "RK-145", "Uploaded, but not seen on the registry in time"
    ATTESTATIONS_DOWN = "RK-146", "The signing service is unavailable"
    BLOCKED = "RK-150", "A dependency was not published"
    WAITS_FOR_APPROVAL = "RK-151", "A dependency waits for approval"
    OTHER_JOB = "RK-152", "Another job did not publish a dependency"
    GOES_TOGETHER = "RK-153", "Another package of the same deployment failed"
    CANCELLED = "RK-154", "The run ended before its turn"
    DEADLINE = "RK-155", "The deadline passed"
    NOT_REPORTED = "RK-156", "No results file mentions a package"
    WAITS_DIFFERENT = "RK-160", "The staged files are not those of the run"
    CANNOT_APPROVE = "RK-161", "A staged version cannot be approved or rejected"
    CODE_WANTED = "RK-162", "A one-time code is required"
    UNDER_REVIEW = "RK-163", "The registry is still checking a staged version"
    RUN_ARTIFACTS = "RK-164", "The artifacts of a workflow run cannot be read"
    DISK = "RK-170", "The state directory cannot be written"

    VALUE = "RK-201", "A value cannot be used"
    UNKNOWN_NAME = "RK-202", "Unknown input, key or ecosystem"
    COMMAND_LINE = "RK-203", "The command line is not understood"
    SECRET_IN_THE_OPEN = "RK-204", "Others can read a secret"
    UNUSABLE_SECRET = "RK-205", "A secret cannot be used"
    PATH = "RK-206", "A path cannot be used"
    ADDRESS = "RK-207", "An address cannot be used"
    NETWORK_SETTINGS = "RK-208", "Wrong settings of a proxy or of certificates"
    NOTHING_MATCHES = "RK-209", "A pattern matches no package"
    NO_PACKAGES = "RK-210", "There is nothing to publish here"
    INSIDE_WORKSPACE = "RK-211", "The directory belongs to a larger workspace"
    NO_SANDBOX = "RK-212", "The sandbox is missing or has no effect"
    TOOL_MISSING = "RK-213", "A tool is missing"
    SHARDS = "RK-214", "The release cannot be split like that"
    PLAN_FILE = "RK-215", "A plan file cannot be used"
    RESULTS = "RK-216", "Results cannot be used, or joined"
    APPROVAL = "RK-217", "There is nothing to approve"
    DIST = "RK-218", "Files that were built elsewhere cannot be used"
    REGISTRY_SETTINGS = "RK-219", "The settings of a registry contradict each other"
    UNREADABLE = "RK-220", "A file cannot be read"
    MANIFEST = "RK-221", "A manifest has a value that cannot be used"
    SAME_NAME = "RK-222", "Two packages have one name"
    MEMBERS = "RK-223", "Members of a workspace are missing"
    NO_SOURCE = "RK-224", "The source of a dependency does not exist"
    RUNNER = "RK-225", "A file of the runner cannot be used"
    CANNOT_EXECUTE = "RK-226", "ReleaseKit cannot restart itself"
    # Said by entrypoint.sh.
    NO_ENVIRONMENT = "RK-227", "ReleaseKit cannot be installed"
    TRUST_CONFIG = "RK-228", "The trust config cannot be used"
    UNNAMED_REGISTRY = "RK-229", "Only a file names the registry that a token would go to"
    TRACED = "RK-230", "The log of the job shows every secret"
    FOREIGN_EVENT = "RK-231", "The event may run a stranger's code with secrets"
    STEP = "RK-232", "A step cannot run here"

    PLAN = "RK-300", "The plan contradicts itself"
    CYCLE = "RK-301", "Packages depend on each other in a circle"
    UNKNOWN_DEPENDENCY = "RK-302", "A dependency is not part of the plan"
    NO_CREDENTIALS = "RK-303", "Credentials are missing"
    NEEDS_PRIVATE = "RK-304", "A package depends on one that is never published"
    NEEDS_LEFT_OUT = "RK-305", "A package depends on one that is left out"
    EXCLUDES_VERSION = "RK-306", "A requirement excludes the version of this release"
    CANNOT_PIN = "RK-307", "A dependency cannot be published as it is written"
    DIST_DOES_NOT_FIT = "RK-308", "A file in `dist` does not fit the plan"
    NOT_AS_PLANNED = "RK-309", "The sources differ from those of the plan file"
    WARNING_OF_PLAN = "RK-310", "A warning counts as an error"
    NEVER_TAKEN = "RK-311", "The registry does not accept such a package"
    NO_SUCH_DEPENDENCY = "RK-312", "A dependency names no package of the workspace"
    ALL_AT_ONCE = "RK-313", "Packages of one upload need others in between"
    GO_REPLACED = "RK-314", "A Go module would differ for its users"
    CANNOT_ATTEST = "RK-315", "Required attestations cannot be made"
    SAME_TAG = "RK-316", "Two packages would have one tag"
    TAG_NAME = "RK-317", "The name of a tag is not valid"
    PUBLISHES_ITSELF = "RK-318", "A napi package would be published without its platforms"
    DIRECTORY_CLOSED = "RK-319", "A directory registry cannot be written"
    JOURNAL_DAMAGED = "RK-320", "The journal is damaged"
    JOURNAL_NEWER = "RK-321", "A newer version wrote the journal"
    STATE = "RK-322", "The state directory cannot be used"
    PINNED_MANIFEST = "RK-323", "A manifest was changed while it was pinned"
    NO_RIGHT = "RK-324", "These credentials may not publish a package"
    NOT_CHECKED_OUT = "RK-325", "Files of a package are not checked out"
    NEEDS_YANKED = "RK-326", "A package depends on a version that is yanked"
    ONLY_HERE = "RK-327", "A dependency is a file that only this repository has"
    TAGGED_ELSEWHERE = "RK-330", "The version decided has a tag already"
    STABLE_NEEDS_PRERELEASE = "RK-331", "A stable package would require a prerelease"
    NO_NEXT_VERSION = "RK-332", "The next version cannot be decided"
    CHANGE_FILE = "RK-333", "A change file cannot be used"
    SHALLOW_HISTORY = "RK-334", "The history does not reach back"
    EDITED_MANIFEST = "RK-335", "A file to write a version into has uncommitted changes"
    NO_PULL_REQUESTS = "RK-336", "A job may not open pull requests"
    CANNOT_WRITE = "RK-338", "A version cannot be written where it stands"
    UNKNOWN_BRANCH = "RK-339", "The release branch is unknown"
    OTHER_TOOL = "RK-340", "A setting of another tool decides versions"
    STRANGE_OUTPUT = "RK-342", "A tool prints what ReleaseKit cannot read"
    OTHER_PACKER = "RK-345", "The packer of the repository would pack something else"
    UNREAD_SETTING = "RK-346", "A setting of a build is not applied"
    TOOL_TOO_OLD = "RK-347", "A tool is too old"
    REFUSED_BY_CENTRAL = "RK-356", "Maven Central would refuse a package"

    LOCKED = "RK-401", "Another run is active"

    CHANGED_WITHOUT_BUMP = "RK-501", "Changed since it was published"
    EMPTY_PACKAGE = "RK-502", "The package is empty"
    EXCLUDED_SIBLING = "RK-503", "A range excludes a sibling's version"
    INVALID_METADATA = "RK-504", "The metadata is not valid"
    MISSING_FILES = "RK-505", "Files that the manifest names are missing"
    MISSING_README = "RK-506", "The description is missing"
    NEW_NAME = "RK-507", "The name is new"
    OLDER_SIBLING = "RK-508", "It requires an older sibling"
    PLATFORM_TAG = "RK-509", "The wheel is for this machine alone"
    UNSANDBOXED = "RK-510", "It is built without the sandbox"
    REFUSED_BUT_THERE = "RK-511", "The registry refused it, but shows it"
    UNCOMMITTED = "RK-512", "It holds changes that no commit has"
    LATE_CHANGE = "RK-513", "Changes came after its version was decided"
    MISSING_INTENT = "RK-514", "Nothing says what its changes ask for"
    UNREAD_COMMIT = "RK-515", "A commit does not say what it asks for"
    OVER_LIMIT = "RK-516", "The release is larger than a registry takes"
    ENDS_EARLY = "RK-517", "The run ends before the release can"
    WITHDRAWN_SIBLING = "RK-518", "It requires a sibling that was withdrawn"
    UNREAD_MANIFEST = "RK-520", "A file that could be a package cannot be read"

    @property
    def is_warning(self) -> bool:
        return self.startswith("RK-5")

    @property
    def url(self) -> str:
        """Its section. Warnings have one by the name that `releasekit.toml` has for them."""
        if self.is_warning:
            return f"{DOCS}/warnings.md#{self.name.lower().replace('_', '-')}"
        return f"{DOCS}/problems.md#{self.lower()}"


def mark(problem: Problem | None) -> str:
    """The end of a line about it."""
    return f" [{problem}]" if problem else ""
