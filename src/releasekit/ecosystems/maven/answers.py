"""What a repository's answer to a PUT means; half of it is told by the wording alone."""

from __future__ import annotations

from typing import Final

from releasekit.ecosystems.shared.answers import Answers

# 409 is GitHub Packages' and GitLab's word for a file that is there, 412 that of a server which
# heeds If-None-Match. https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
_TAKEN: Final = frozenset({409, 412})
_EXISTS: Final = (
    # https://github.com/sonatype/nexus-public (StorageFacet, "write policy")
    (400, "updating asset"),
    # https://jfrog.com/help/r/artifactory-how-to-resolve-403-forbidden-errors
    (403, "overwrite"),
    (403, "delete permission"),
)
_DENIED: Final = (
    "Check `maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`), and whether "
    "this user may deploy there."
)
_WRONG_PLACE: Final = (
    "`maven-registry` is the address of a repository for releases, the one that "
    "distributionManagement names, and not that of a group or a mirror."
)
_BY_STATUS: Final = {401: _DENIED, 403: _DENIED, 404: _WRONG_PLACE, 405: _WRONG_PLACE}
ANSWERS: Final = Answers(taken=_TAKEN, exists=_EXISTS, by_status=_BY_STATUS, moved="maven-registry")
