"""What a repository's answer to a PUT means; half of it is told by the wording alone."""

from __future__ import annotations

from typing import Final

from releasekit.ecosystems.shared.answers import Answers, hints_by_status

ANSWERS: Final = Answers(
    # 409 is GitHub Packages' and GitLab's word for a file that is there, 412 that of a server which
    # heeds If-None-Match. https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
    taken=frozenset({409, 412}),
    exists=(
        # https://github.com/sonatype/nexus-public (StorageFacet, "write policy")
        (400, "updating asset"),
        # https://jfrog.com/help/r/artifactory-how-to-resolve-403-forbidden-errors
        (403, "overwrite"),
        (403, "delete permission"),
    ),
    by_status=hints_by_status(
        denied="Check `maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`), and "
        "whether this user may deploy there.",
        wrong_place="`maven-registry` is the address of a repository for releases, the one that "
        "distributionManagement names, and not that of a group or a mirror.",
    ),
    moved="maven-registry",
)
