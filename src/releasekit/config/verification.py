"""The inputs of whoever asks where files come from."""

from dataclasses import dataclass
from typing import Annotated

from releasekit.config.declaration import FLAG_ONLY, VERIFY, Declaration


@dataclass(frozen=True, kw_only=True)
class Verification:
    """`files` are paths and URLs. `repository` is OWNER/NAME, and `workflow` the name of a file.
    `ref` begins with refs/.
    """

    files: Annotated[
        tuple[str, ...],
        Declaration(
            "Files, directories with releases, and addresses of files on registries, one per line.",
            "lines",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ()
    repository: Annotated[
        str,
        Declaration(
            "The repository, OWNER/NAME at github.com, whose workflows must have signed; required.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    workflow: Annotated[
        str,
        Declaration(
            "The workflow of that repository that must have signed (`release.yml`). Default: any.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    ref: Annotated[
        str,
        Declaration(
            "The branch or tag whose run must have signed, in full: `refs/heads/main`, "
            "`refs/tags/v1.2` (`main` could be either). Default: any, but none of a pull request.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    event: Annotated[
        str,
        Declaration(
            "The event that must have started the run that signed (`push`). Default: any, but "
            "none of a pull request.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    bundle: Annotated[
        str,
        Declaration(
            "The attestations, in place of what lies beside the files or on the registry.",
            "path",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
