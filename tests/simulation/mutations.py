"""Ways to break the scheduler: each an edit of its source, which must be there exactly once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str
    edits: tuple[tuple[str, str], ...]


def _mutant(name: str, module: str, *edits: tuple[str, str]) -> Mutant:
    return Mutant(name, module, edits)


FREE = "self.limit - len(self.running)"
ORDER = "node.lane.ready.push((-node.remaining, node.name))"
PENDING_ONLY = "if dependent.state is not PENDING:"

MUTANTS = (
    _mutant("one too many in a lane", "scheduler/frontier", (FREE, f"{FREE} + 1")),
    _mutant("one too few in a lane", "scheduler/frontier", (FREE, f"{FREE} - 1")),
    _mutant("starts while paused", "scheduler/frontier", ("if self.paused:", "if False:")),
    _mutant("begins while paused", "scheduler/frontier", ("not (self.paused or ", "not (")),
    _mutant(
        "begins after cancel", "scheduler/frontier", ("or self._stopping or self._n", "or self._n")
    ),
    _mutant("begins after removal", "scheduler/frontier", (" or self._nodes[name].leaving)", ")")),
    _mutant(
        "shortest path first",
        "scheduler/frontier",
        (ORDER, ORDER.replace("-node", "node")),
        ("priority == -node.remaining", "priority == node.remaining"),
    ),
    _mutant(
        "first come first served",
        "scheduler/frontier",
        ("node.remaining = self._longest_from(node)", "pass"),
    ),
    _mutant(
        "takes by outdated priority", "scheduler/frontier", (" and priority == -node.remaining", "")
    ),
    _mutant(
        "starts again what runs",
        "scheduler/frontier",
        ("node.state is READY and priority", "priority"),
    ),
    _mutant(
        "unknown does not block",
        "scheduler/frontier",
        ("Outcome.FAILED, Outcome.UNKNOWN, ", "Outcome.FAILED, "),
    ),
    _mutant("blocks one level only", "scheduler/frontier", (", Outcome.BLOCKED})", "})")),
    _mutant(
        "a removal never bars",
        "scheduler/frontier",
        (" or (outcome is Outcome.REMOVED and node.bars)", ""),
    ),
    _mutant(
        "a removal always bars",
        "scheduler/frontier",
        ("outcome is Outcome.REMOVED and node.bars", "outcome is Outcome.REMOVED"),
    ),
    _mutant(
        "backing off holds the slot",
        "scheduler/frontier",
        (
            "node = self._leave_slot(name)\n        node.state = WAITING",
            "node = self._nodes[name]\n        node.state = WAITING",
        ),
    ),
    _mutant(
        "removal hides a success",
        "scheduler/frontier",
        ("if node.leaving and outcome in {Outcome.FAILED, Outcome.CANCELLED}:", "if node.leaving:"),
    ),
    _mutant(
        "removal while running is forgotten",
        "scheduler/frontier",
        ("if node.leaving and outcome in", "if outcome in ()and outcome in"),
    ),
    _mutant(
        "waits for what is done",
        "scheduler/frontier",
        (
            "if dependency.state is not SETTLED:\n                node.unmet += 1",
            "node.unmet += 1",
        ),
    ),
    _mutant(
        "added below a failure",
        "scheduler/frontier",
        ("if any(self._blocks(dependency) for dependency in self._before(node)):", "if False:"),
    ),
    _mutant(
        "adding raises no priority",
        "scheduler/frontier",
        ("self._reprioritise(self._before(node))", "pass"),
    ),
    _mutant(
        "blocking lowers no priority",
        "scheduler/frontier",
        ("self._reprioritise(shortened)", "pass"),
    ),
    _mutant(
        "settled dependents count",
        "scheduler/frontier",
        (
            "[d.remaining for d in node.dependents if d.state is not SETTLED]",
            "[d.remaining for d in node.dependents]",
        ),
    ),
    _mutant(
        "a removal rewrites the past",
        "scheduler/frontier",
        (
            "if node.state is SETTLED:\n            return []",
            "if False:\n            return []",
        ),
        ("if node.state is SETTLED:\n                continue", "if False: continue"),
    ),
    _mutant(
        "a removal does not wait for the attempt",
        "scheduler/frontier",
        ("return [] if node.state is RUNNING else ", "return "),
    ),
    _mutant(
        "cancel forgets who backs off",
        "scheduler/frontier",
        ("idle = {READY, WAITING}", "idle = {READY}"),
    ),
    _mutant(
        "released after cancel",
        "scheduler/frontier",
        ("return not dependent.unmet and self._stopping", "return False"),
    ),
    _mutant("blocks what has ended", "scheduler/frontier", (PENDING_ONLY, "if False:")),
    _mutant("a queue forgets who is in its list", "priority", ("many += few", "many[:] = few")),
    _mutant("a queue sorts upside down", "priority", ("many.sort(reverse=True)", "many.sort()")),
    _mutant("a queue repeats itself", "priority", ("few.clear()", "pass")),
    _mutant("the latest go first", "priority", ("many[-1] < few[0]", "False")),
    _mutant(
        "the latest go last",
        "priority",
        ("few and not (many and many[-1] < few[0])", "few and not many"),
    ),
    _mutant(
        "names done are forgotten",
        "scheduler/engine",
        (", lanes={LANE: concurrency}, done=done)", ", lanes={LANE: concurrency})"),
    ),
    _mutant(
        "an end starts nothing",
        "scheduler/engine",
        (
            "self._reason(name, by))\n        self._advance()",
            "self._reason(name, by))",
        ),
    ),
    _mutant(
        "resume starts nothing",
        "scheduler/engine",
        ("self._frontier.paused = False\n        self._advance()", "self._frontier.paused = False"),
    ),
    _mutant(
        "a retry is not started",
        "scheduler/engine",
        ("self._frontier.wake(name)\n        self._advance()", "self._frontier.wake(name)"),
    ),
    _mutant(
        "a retry outlives its package",
        "scheduler/engine",
        ("self._pauses.pop(name).cancel()", "self._pauses.pop(name)"),
    ),
    _mutant(
        "begins without a look",
        "scheduler/engine",
        ("if not self._frontier.may_run(name):", "if False:"),
    ),
    _mutant(
        "cancelled before it began",
        "scheduler/engine",
        (
            "if name in self._running:\n            self._interrupted",
            "if name in self._running or True:\n            self._interrupted",
        ),
        (
            "_ = self._lifetime.start(self._attempt(name))",
            "self._running[name] = self._lifetime.start(self._attempt(name))",
        ),
    ),
    _mutant(
        "forgets what it cancelled", "scheduler/engine", ("self._interrupted.add(name)\n", "pass\n")
    ),
    _mutant(
        "removal lets the attempt run",
        "scheduler/engine",
        ("if self._frontier.state(name) is State.RUNNING:", "if False:"),
    ),
    _mutant(
        "grace for every lane",
        "scheduler/engine",
        (
            "if grace_s <= 0 or (lanes is not None and self._frontier.lane_of(name) not in lanes):",
            "if grace_s <= 0:",
        ),
    ),
    _mutant(
        "grace without end", "scheduler/engine", ("if grace_s > 0 and self._running:", "if False:")
    ),
    _mutant("no grace", "scheduler/engine", ("if grace_s <= 0 or (lanes", "if True or (lanes")),
    _mutant("no time-out", "scheduler/engine", ("deadlines.start(name, task)", "pass")),
    _mutant(
        "a cancellation from within ends nothing",
        "scheduler/engine",
        (
            "is not Stage.OPEN:\n                raise\n            error",
            "is not Stage.OPEN:\n                raise\n            raise\n            error",
        ),
    ),
    _mutant(
        "observers are trusted",
        "scheduler/engine",
        ("except (Exception, asyncio.CancelledError):", "except ZeroDivisionError:"),
    ),
    _mutant(
        "does not look twice for the end",
        "scheduler/engine",
        ("while not self._frontier.finished:\n", "if not self._frontier.finished:\n"),
    ),
    _mutant(
        "one attempt too few",
        "scheduler/attempts",
        ("attempt <= self.max_retries[lane]", "attempt < self.max_retries[lane]"),
    ),
    _mutant(
        "one attempt too many",
        "scheduler/attempts",
        ("attempt <= self.max_retries[lane]", "attempt <= self.max_retries[lane] + 1"),
    ),
    _mutant(
        "retries what is final",
        "scheduler/attempts",
        ("return isinstance(error, Transient)\n", "return True\n"),
    ),
    _mutant(
        "deaf to retry_after", "scheduler/attempts", ("delay = max(delay, float(asked))", "pass")
    ),
    _mutant(
        "twice the delay", "scheduler/attempts", ("backoff(attempt - 1, ", "backoff(attempt, ")
    ),
    _mutant(
        "unknown counts as failed",
        "scheduler/attempts",
        ("Outcome.UNKNOWN if isinstance(error, Undecided) else ", ""),
    ),
)
