"""Ways to break the scheduler."""

from __future__ import annotations

from mutation import always, change, mutants, never, without

FRONTIER = mutants(
    "scheduler/frontier",
    {
        "one too many in a lane": change(
            "_Lane.free", "len(self.running)", "len(self.running) - 1"
        ),
        "one too few in a lane": change("_Lane.free", "len(self.running)", "len(self.running) + 1"),
        "starts while paused": never("Frontier.take", "self.paused"),
        "begins while paused": without("Frontier.may_run", "self.paused"),
        "begins after cancel": without("Frontier.may_run", "self._stopping and ..."),
        "begins after removal": without("Frontier.may_run", "node.leaving"),
        "shortest path first": (
            change("Frontier._enqueue", "-node.remaining", "node.remaining"),
            change("Frontier.take", "-node.remaining", "node.remaining"),
        ),
        "first come first served": without("Frontier.__init__", "node.remaining = ..."),
        "takes by outdated priority": without("Frontier.take", "priority == -node.remaining"),
        "starts again what runs": without("Frontier.take", "node.state is READY"),
        "unknown does not block": without("BLOCKING", "Outcome.UNKNOWN"),
        "blocks one level only": without("BLOCKING", "Outcome.BLOCKED"),
        "a removal never bars": without("Frontier._blocks", "outcome is Outcome.REMOVED and ..."),
        "a removal always bars": without("Frontier._blocks", "node.bars"),
        "backing off holds the slot": without("Frontier.defer", "self._leave_slot(name)"),
        "removal hides a success": without("Frontier.settle", "outcome in {..., ...}"),
        "removal while running is forgotten": never("Frontier.settle", "node.leaving"),
        "waits for what is done": always("Frontier._insert", "dependency.state is not SETTLED"),
        "added below a failure": never("Frontier.add", "any(...)"),
        "adding raises no priority": without("Frontier.add", "self._reprioritise(...)"),
        "blocking lowers no priority": without("Frontier._settle", "self._reprioritise(shortened)"),
        "settled dependents count": without("Frontier._longest_from", "d.state is not SETTLED"),
        "what prepares nothing goes first": without(
            "Frontier._longest_from", "longest == -math.inf"
        ),
        "what prepares nothing does not wait": never(
            "Frontier._longest_from", "node.lane.name in self._preparing and ..."
        ),
        "a removal rewrites the past": (
            never("Frontier.remove", "node.state is SETTLED"),
            never("Frontier._settle", "node.state is SETTLED"),
        ),
        "a removal does not wait for the attempt": never(
            "Frontier.remove", "node.state is RUNNING"
        ),
        "cancel forgets who backs off": without("Frontier.cancel", "node.state is WAITING"),
        "retries after cancel": without("Frontier.defer", "self._stopping"),
        "begins after cancel what nothing was done for": without(
            "Frontier._comes_too_late", "done"
        ),
        "whatever is ready completes something": without(
            "Frontier._comes_too_late", "node.lane.name in self._completing"
        ),
        "a cancel relents": without("Frontier.cancel", "self._completing &= ..."),
        "cancelled while paused for ever": change(
            "Frontier.cancel", "self.paused, self._stopping = ...", "self._stopping = True"
        ),
        "done elsewhere, and started all the same": without(
            "Frontier.may_run", "node.state is SETTLED"
        ),
        "done elsewhere is tried again": without("Frontier.defer", "node.state is SETTLED"),
        "done elsewhere is published here": change("Frontier.mark_done", "self._settle(...)", "[]"),
        "a sequence by the longest path": never("Frontier._longest_from", "self._sequential"),
        "a sequence in every lane": without("Frontier.__init__", "lane.ready, lane.running = ..."),
        "a sequence goes on while one backs off": always("Frontier.defer", "not self._sequential"),
        "a sequence ends with who backed off": never("Frontier._record", "node.state is WAITING"),
        "released after cancel": never("Frontier._release", "self._stopping and ..."),
        "blocks what has ended": never("Frontier._settle", "dependent.state is not PENDING"),
    },
)

PRIORITY = mutants(
    "graph",
    {
        "a queue sorts upside down": without("PriorityQueue.pop", "reverse=True"),
        "a queue forgets who is in its list": change(
            "PriorityQueue.pop", "many += few", "many[:] = few"
        ),
        "a queue repeats itself": without("PriorityQueue.pop", "few.clear()"),
        "the latest go first": never("PriorityQueue.pop", "many[-1] < few[0]"),
        "the latest go last": without("PriorityQueue.pop", "many[-1] < few[0]"),
    },
)

ENGINE = mutants(
    "scheduler/engine",
    {
        "names done are forgotten": without("Scheduler.from_graph", "done=done"),
        "an end starts nothing": without("Scheduler._report", "self._advance()"),
        "resume starts nothing": without("Scheduler.resume", "self._advance()"),
        "a retry is not started": without("Scheduler._wake", "self._advance()"),
        "a retry outlives its package": change(
            "Scheduler._report", "self._pauses.pop(name).cancel()", "self._pauses.pop(name)"
        ),
        "begins without a look": always("Scheduler._attempt", "self._frontier.may_run(name)"),
        "cancelled before it began": (
            always("Scheduler._interrupt", "name in self._running"),
            change(
                "Scheduler._advance",
                "_ = ...",
                "self._running[name] = self._group.start(self._attempt(name))",
            ),
        ),
        "forgets what it cancelled": without(
            "Scheduler._interrupt", "self._reasons.interrupted.setdefault(...)"
        ),
        "removal lets the attempt run": never("Scheduler.remove_package", "... is State.RUNNING"),
        "grace for every lane": change(
            "Scheduler.cancel", "self._frontier.lane_of(name) not in lanes", "not lanes"
        ),
        "grace without end": never("Scheduler.cancel", "grace_s and not self._frontier.finished"),
        "no grace": always("Scheduler.cancel", "grace_s is not None and ..."),
        "a plain cancel interrupts": change(
            "Scheduler.cancel", "grace_s is not None and grace_s <= 0", "not grace_s"
        ),
        "done elsewhere goes on": without("Scheduler.mark_done", "self._interrupt(...)"),
        "no time-out": without("Scheduler._attempt", "deadlines.start(...)"),
        "a cancellation from within ends nothing": change(
            "Scheduler._find_failure", "return deadlines.passed() if ... else cancelled", "raise"
        ),
        "observers are trusted": change(
            "_tell", "(Exception, asyncio.CancelledError)", "ZeroDivisionError"
        ),
        "does not look twice for the end": change(
            "Scheduler.run", "await self._changed.wait()", "await self._changed.wait(); break"
        ),
    },
)

ATTEMPTS = mutants(
    "scheduler/retries",
    {
        "one attempt too few": change(
            "Retry.decide", "attempts > self.max_retries", "attempts >= self.max_retries"
        ),
        "one attempt too many": change(
            "Retry.decide", "attempts > self.max_retries", "attempts - 1 > self.max_retries"
        ),
        "retries what is final": always("Retry.is_passing", "isinstance(error, Transient)"),
        "deaf to retry_after": change("Backoff.draw", "max(...)", "rng.uniform(0.0, self.most_s)"),
        "twice the delay": change("Retry.decide", "min(doublings, 64)", "min(doublings + 1, 64)"),
        "unknown counts as failed": never("outcome_of", "isinstance(error, Undecided)"),
    },
)

MUTANTS = (*FRONTIER, *PRIORITY, *ENGINE, *ATTEMPTS)
