"""The job summary of a run that an error has ended before it had anything else to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.summary.heading import alert_box, facts, title
from releasekit.text.escape import clip, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.host.origin import Origin
    from releasekit.problems import Problem

_MAX_CHARS = 2_000


def early_summary(
    errors: Sequence[tuple[str, str]], problem: Problem, origin: Origin, *, published: bool
) -> str:
    """`errors` are messages, each with what to do about it. `published` says whether something may
    be on a registry by now.
    """
    ended = "The run ended with an error." if published else "Nothing was published."
    hints = dict.fromkeys(markdown(clip(hint, _MAX_CHARS)) for _, hint in errors if hint)
    lines = [
        *title("❌", origin.project, "the run ended early"),
        *alert_box(
            "CAUTION",
            [f"**{ended}**", *(markdown(clip(message, _MAX_CHARS)) for message, _ in errors)],
        ),
        *(line for hint in hints for line in (f"**What to do**: {hint}", "")),
        f"More about it: [{problem}]({problem.url})",
        "",
        *facts("", "", origin.run_url, []),
    ]
    return "\n".join(lines).rstrip() + "\n"
