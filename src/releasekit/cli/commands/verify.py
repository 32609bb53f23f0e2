"""The command verify: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final

from releasekit.config import values
from releasekit.config.command import Command, CommandInputs, Positional
from releasekit.config.declaration import declare_flag
from releasekit.config.values import Url


class VerifyInputs(CommandInputs, frozen=True, kw_only=True):
    files: Annotated[
        tuple[Path | Url, ...],
        declare_flag(
            "Files, directories with releases, and addresses of files on registries, one per line.",
            "lines",
            into=values.path_or_url,
        ),
    ] = ()
    repository: Annotated[
        str,
        declare_flag(
            "The repository, OWNER/NAME at github.com or https://gitlab.com/GROUP/PROJECT, whose "
            "workflow must have signed; required.",
            into=values.repository,
        ),
    ] = ""
    workflow: Annotated[
        str,
        declare_flag(
            "The workflow of that repository that must have signed: `release.yml`, or at GitLab "
            "its path, `.gitlab-ci.yml`. Default: any.",
            into=values.workflow,
        ),
    ] = ""
    ref: Annotated[
        str,
        declare_flag(
            "The branch or tag whose run must have signed, in full: `refs/heads/main`, "
            "`refs/tags/v1.2` (`main` could be either). Default: any except a pull request's."
        ),
    ] = ""
    event: Annotated[
        str,
        declare_flag(
            "The event that must have started the signing run (`push`). Default: any except a pull"
            " request's."
        ),
    ] = ""
    bundle: Annotated[
        Path | None,
        declare_flag(
            "The file with the attestations, instead of those beside the files or on the registry."
        ),
    ] = None


COMMAND: Final = Command(
    name="verify",
    about="Check which workflow signed a release. Needs no workspace, and no credentials.",
    examples="""\
  releasekit verify dist --repository acme/kit
  releasekit verify *.whl --repository https://gitlab.com/acme/kit
  releasekit verify dist --repository acme/kit --workflow release.yml
  releasekit verify dist --repository acme/kit --ref refs/tags/v1.2
  releasekit verify dist --repository acme/kit --bundle provenance.jsonl
""",
    module="releasekit.cli.verify",
    positional=Positional(
        input="files",
        metavar="PATH|URL",
        help="files, directories with releases, and addresses of files on registries",
        noun="file",
        several=True,
    ),
    exit_codes="""\
exit codes:
  0    all files are verified
  1    at least one file is not verified, or has no attestation
  2    the configuration or an input is wrong
  130  cancelled
""",
    inputs=VerifyInputs,
    takes=frozenset({"trust-config"}),
)
