"""What can go wrong, by the id under which docs/problems.md says what it means and what to do.

The first digit is the exit code a problem leads to by itself; those with 5 are warnings. An id is
never given to another problem, also when its own is gone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

OWN_REPOSITORY: Final = "org/releasekit-action"
_DOCS: Final = f"https://github.com/{OWN_REPOSITORY}/blob/v1/docs"


class Problem(StrEnum):
    """`Problem("RK-101")`; `headline` begins its section."""

    headline: str

    def __new__(cls, number: str, headline: str) -> Self:
        problem = str.__new__(cls, number)
        problem._value_ = number
        problem.headline = headline
        return problem

    PACKAGE = "RK-100", "An error without a page of its own"
    BUILD_FAILED = "RK-101", "A build failed"
    BUILD_TIMED_OUT = "RK-102", "A build did not end in time"
    BUILD_TOOL = "RK-103", "A build needs a tool that is missing"
    BUILD_REQUIREMENTS = "RK-104", "Build requirements cannot be installed"
    BUILT_OTHERWISE = "RK-105", "The build made something else than was planned"
    CHANGED_MEANWHILE = "RK-106", "Something changed during the release"
    CANNOT_START = "RK-107", "A tool cannot be started, or not in the sandbox"
    NO_PLACE_TO_BUILD = "RK-108", "What is built cannot be written or read"
    STATE_IN_PACKAGE = "RK-109", "A package holds the state of a run"
    NOT_COMMITTED = "RK-110", "A Go module is not committed as it is"
    GO_SUM = "RK-111", "The hashes of a Go module are missing"
    SIGNING = "RK-112", "gpg did not sign"
    WARNING_OF_BUILD = "RK-113", "A warning about what was built is an error"
    FOLLOW_UP = "RK-114", "Published, but what should have followed failed"
    RUNNER_FILES_WRITTEN = "RK-115", "A build wrote to the files of the runner"
    NOT_A_PACKAGE = "RK-116", "What was built is not a package that can be published"
    NOT_SIGNED = "RK-117", "A file was not signed, and so not sent"
    NOT_VERIFIED = "RK-118", "Nothing vouches for a file"
    REFUSED = "RK-120", "The registry refused"
    DENIED = "RK-121", "The registry does not accept the credentials"
    STAGE_ONLY = "RK-122", "These credentials may only stage"
    NOT_TRUSTED = "RK-123", "Trusted publishing was refused"
    OTHER_BYTES = "RK-124", "The version is there, or was begun, with other files"
    WRONG_ADDRESS = "RK-125", "The address of the registry leads elsewhere"
    STRANGE_ANSWER = "RK-126", "The registry answers as no registry does"
    DIRECTORY = "RK-127", "A directory cannot be used as a registry"
    VERSION_GONE = "RK-128", "The version was taken away again"
    CERTIFICATE = "RK-129", "The certificate of a server is not trusted"
    TAG_REFUSED = "RK-130", "A tag cannot be pushed"
    NOT_ATTESTED = "RK-131", "A file cannot be attested"
    TAG_FOREIGN = "RK-132", "Another tag has the name"
    TAG_OWED = "RK-133", "A version is not tagged"
    NOT_ANNOUNCED = "RK-134", "A release is not announced"
    UNREACHABLE = "RK-140", "The registry gave no usable answer"
    DOWN = "RK-141", "The registry is down"
    RATE_LIMITED = "RK-142", "The registry asks for a longer pause"
    NOT_SENT_IN_TIME = "RK-143", "An upload did not end in time"
    UNDECIDED = "RK-144", "Nobody knows whether the registry has it"
    NOT_VISIBLE = "RK-145", "Uploaded, but not seen on the registry in time"
    ATTESTATIONS_DOWN = "RK-146", "Nobody signs or logs attestations now"
    BLOCKED = "RK-150", "What it needs was not published"
    WAITS_FOR_APPROVAL = "RK-151", "What it needs waits for approval"
    OTHER_JOB = "RK-152", "Another job did not publish what it needs"
    GOES_TOGETHER = "RK-153", "What it has to go out with failed"
    CANCELLED = "RK-154", "The run ended before its turn"
    DEADLINE = "RK-155", "The deadline passed"
    NOT_REPORTED = "RK-156", "No results account for a package"
    WAITS_DIFFERENT = "RK-160", "What waits is not what the run staged"
    CANNOT_APPROVE = "RK-161", "What waits cannot be approved or taken back"
    CODE_WANTED = "RK-162", "A one-time code is wanted"
    UNDER_REVIEW = "RK-163", "The registry still checks what waits"
    RUN_ARTIFACTS = "RK-164", "The artifacts of a workflow run cannot be read"
    DISK = "RK-170", "The state directory cannot be written"

    VALUE = "RK-201", "A value cannot be used"
    UNKNOWN_NAME = "RK-202", "There is no input, key or ecosystem of that name"
    COMMAND_LINE = "RK-203", "The command line is not understood"
    SECRET_IN_THE_OPEN = "RK-204", "A secret is where others can read it"
    UNUSABLE_SECRET = "RK-205", "A secret cannot be used"
    PATH = "RK-206", "A path cannot be used"
    ADDRESS = "RK-207", "An address cannot be used"
    NETWORK_SETTINGS = "RK-208", "The settings of a proxy or of certificates are wrong"
    NOTHING_MATCHES = "RK-209", "A pattern matches no package"
    NO_PACKAGES = "RK-210", "There is nothing to publish here"
    INSIDE_WORKSPACE = "RK-211", "The directory belongs to a larger workspace"
    NO_SANDBOX = "RK-212", "The system has no sandbox, or it is in vain"
    TOOL_MISSING = "RK-213", "A tool is missing"
    SHARDS = "RK-214", "The release cannot be split like that"
    PLAN_FILE = "RK-215", "A plan file cannot be used"
    RESULTS = "RK-216", "Results cannot be used, or joined"
    APPROVAL = "RK-217", "There is nothing that could be approved"
    DIST = "RK-218", "The files in `dist` cannot be used"
    REGISTRY_SETTINGS = "RK-219", "The settings of a registry do not fit"
    UNREADABLE = "RK-220", "A file cannot be read"
    MANIFEST = "RK-221", "A manifest has a value that cannot be used"
    SAME_NAME = "RK-222", "Two packages have one name"
    MEMBERS = "RK-223", "The members of a workspace are not there"
    NO_SOURCE = "RK-224", "A dependency is to come from where nothing is"
    RUNNER = "RK-225", "A file of the runner cannot be used"
    CANNOT_EXECUTE = "RK-226", "ReleaseKit cannot start itself again"
    # Said by entrypoint.sh.
    NO_ENVIRONMENT = "RK-227", "ReleaseKit cannot be installed"
    TRUST_CONFIG = "RK-228", "The trust config cannot be used"
    UNNAMED_REGISTRY = "RK-229", "Nothing but a file names where a token would go"

    PLAN = "RK-300", "The plan contradicts itself"
    CYCLE = "RK-301", "Packages depend on each other in a circle"
    UNKNOWN_DEPENDENCY = "RK-302", "A dependency is not part of the plan"
    NO_CREDENTIALS = "RK-303", "There are no credentials"
    NEEDS_PRIVATE = "RK-304", "A package needs one that is never published"
    NEEDS_LEFT_OUT = "RK-305", "A package needs one that is left out"
    EXCLUDES_VERSION = "RK-306", "A requirement excludes the version of this release"
    CANNOT_PIN = "RK-307", "A dependency cannot be pinned the way it is written"
    DIST_DOES_NOT_FIT = "RK-308", "A file in `dist` does not fit the plan"
    NOT_AS_PLANNED = "RK-309", "The sources are not those of the plan file"
    WARNING_OF_PLAN = "RK-310", "A warning is an error"
    NEVER_TAKEN = "RK-311", "The registry never takes such a version"
    NO_SUCH_DEPENDENCY = "RK-312", "A dependency names nothing of the workspace"
    ALL_AT_ONCE = "RK-313", "Packages that go out together need others in between"
    GO_REPLACED = "RK-314", "A Go module would not be the same for others"
    CANNOT_ATTEST = "RK-315", "Attestations are required, and cannot be made"
    SAME_TAG = "RK-316", "Two packages would have one tag"
    TAG_NAME = "RK-317", "A tag cannot have that name"
    PUBLISHES_ITSELF = "RK-318", "A napi package would go out without its platforms"
    JOURNAL_DAMAGED = "RK-320", "The journal is damaged"
    JOURNAL_NEWER = "RK-321", "A newer version wrote the journal"
    STATE = "RK-322", "The state directory cannot be used"
    PINNED_MANIFEST = "RK-323", "A manifest was changed while it was pinned"

    LOCKED = "RK-401", "Another run is at work"

    CHANGED_WITHOUT_BUMP = "RK-501", "Changed since it was published"
    EMPTY_PACKAGE = "RK-502", "The package is empty"
    EXCLUDED_SIBLING = "RK-503", "The range leaves out a sibling's version"
    INVALID_METADATA = "RK-504", "The metadata is not valid"
    MISSING_FILES = "RK-505", "Files that it names are missing"
    MISSING_README = "RK-506", "There is no description"
    NEW_NAME = "RK-507", "The name is new"
    OLDER_SIBLING = "RK-508", "It wants an older sibling"
    PLATFORM_TAG = "RK-509", "The wheel is for this machine alone"
    UNSANDBOXED = "RK-510", "It is built without a sandbox"
    REFUSED_BUT_THERE = "RK-511", "The registry refused it, and shows it"

    @property
    def is_warning(self) -> bool:
        return self.startswith("RK-5")

    @property
    def url(self) -> str:
        """Its section. Warnings have one by the name that `releasekit.toml` has for them."""
        if self.is_warning:
            return f"{_DOCS}/warnings.md#{self.name.lower().replace('_', '-')}"
        return f"{_DOCS}/problems.md#{self.lower()}"


def mark(problem: Problem | None) -> str:
    """The end of a line about it."""
    return f" [{problem}]" if problem else ""
