"""Ways to break the release itself: the plan, the phases, the verdicts."""

from __future__ import annotations

from mutation import always, change, mutants, never, without

DECISION = mutants(
    "plan/decision",
    {
        "what is there in part counts as there": always(
            "_decide_without_dist", "published.complete"
        ),
        "an upload begun elsewhere binds": always("_binds", "is_begun(entry, url)"),
        "what went elsewhere went here": always("is_begun", "entry.intent.registry == url"),
        "bytes of other sources are sent": (
            without("_at_hand", "entry.commit == commit"),
            without("_at_hand", "is_clean(commit)"),
        ),
        "bytes of changed sources are sent": without("_at_hand", "is_clean(commit)"),
        "damaged bytes are sent": never("_resumed", "not intact(entry)"),
        "sources may change in the middle of an upload": never(
            "_resumed", "entry.commit != commit"
        ),
        "other bytes are kept": change(
            "_resumed",
            "compare(entry.artifacts, published)",
            "Comparison(compare(entry.artifacts, published).missing, ())",
        ),
        "an unknown digest counts as ours": change(
            "compare", "artifact.digests.get(...)", "artifact.digests.get(algorithm, value)"
        ),
        "bytes from elsewhere give way to built ones": without("_at_hand", "all(...)"),
        "what was taken out of dist is sent": without("_at_hand", "entry.prebuilt == ..."),
        "other bytes than those from elsewhere are kept": change(
            "decide",
            "compare(lasting, published)",
            "Comparison(compare(lasting, published).missing, ())",
        ),
        "what waits is sent again": never("decide", "entry is not None and _awaits(...)"),
        "what waits elsewhere waits here": never("_awaits", "not is_begun(entry, url)"),
        "other bytes than those that wait are waited for": without(
            "_awaits", "not compare(entry.artifacts, published).differing"
        ),
        "a later build is taken for the first": change(
            "_resumed", "... != intent.digests", "not entry.artifacts"
        ),
    },
)

BUILDING = mutants(
    "release/building",
    {"the manifests stay unpinned": never("make_pins", "after != before")},
)

PHASES = mutants(
    "release/phases",
    {
        "one refusal is the refusal of all": always("Phases._upload_together", "not going or ..."),
        "dependents go on in ambiguity": never("Phases.conclude", "self.config.gate == 'accepted'"),
        "what was refused before is asked for": never(
            "Phases.conclude", "any(run.error or run.held_by for run in runs)"
        ),
        "what was refused is sent": never(
            "Phases._check_before_upload", "run.planned.action is Action.REFUSE"
        ),
        "a batch that is built in part is uploaded": never(
            "Phases.hold", "(reason := held_back(...))"
        ),
        "a package goes out unsigned": change("Phases.conclude", "run.error = final", "pass"),
    },
)

ATTEMPTS = mutants(
    "scheduler/engine",
    {
        "the last attempt is one of many": never(
            "Scheduler._attempt", "backoff is None and ... and ..."
        ),
        "a stop is followed by another attempt": without(
            "Scheduler._judge", "self._reasons.cancelled"
        ),
    },
)

UPLOADING = mutants(
    "release/uploading",
    {
        "no look at the registry before another attempt": never(
            "Uploads._find_missing", "run.attempts > 1 or run.ambiguity"
        ),
        "no intent before the first byte": without(
            "Uploads.upload_missing", "await self._intend(...)"
        ),
        "the intent is journalled without its files": change(
            "Uploads._intend", "digests=digests", "digests={}"
        ),
        "only the first of an upload has an intent": change(
            "Uploads.upload_missing",
            "self._intend(...)",
            "self._intend(target.registry.url, sending[: len(runs)])",
        ),
        "a lost answer is forgotten": change(
            "Uploads.upload_missing", "str(error) if ambiguous else ambiguity", "''"
        ),
        "ambiguity is forgotten by the next attempt": change(
            "Uploads.upload_missing",
            "str(error) if ambiguous else ambiguity",
            "str(error) if ambiguous else ''",
        ),
        "what is staged is not on record": without("Uploads._accept", "self.journal.outcome(...)"),
        "it stages against the will of its input": without(
            "Uploads.upload_or_stage", "staging.mode != 'auto'"
        ),
        "another attempt publishes": change(
            "Uploads.upload_or_stage",
            "run.stages, run.may_only_stage = True, words",
            "run.note = words",
        ),
        "what is to be staged is published": never(
            "Uploads.upload_or_stage", "staging is not None and ..."
        ),
    },
)

POLLING = mutants(
    "release/polling",
    {
        "a refusal is the last word": without("Lookups.is_published", "await self._look_up(run)"),
        "what an earlier run sent is forgotten": never(
            "Lookups.is_published", "run.planned.begun and ..."
        ),
        "nothing of ours is all of it": without("Lookups._look_up", "(bool(...) or complete)"),
        "accepted is as good as visible": change(
            "Lookups.poll_until_shown",
            "(trouble := await self.poll_once(run))",
            "(trouble := await self.poll_once(run)) and False",
        ),
    },
)

EVENTS = mutants(
    "release/events",
    {
        "an end is told twice": without("Events.ended", "self._ended.add(package.id)"),
        "where it waits is forgotten": without("Events.ended", "staged=result.staged"),
    },
)

DELIVERY = mutants(
    "release/package_run",
    {
        "dependents of what waits are published": change(
            "block_on_staged", "run.stages or bool(waiting)", "run.stages"
        ),
        "what cannot wait beside it goes out": change(
            "block_on_staged", "mode == 'never' or on.ecosystem != ecosystem", "False"
        ),
        "it waits where nothing may be staged": change(
            "block_on_staged",
            "mode == 'never' or on.ecosystem != ecosystem",
            "on.ecosystem != ecosystem",
        ),
        "other ecosystems go out before what waits": change(
            "block_on_staged", "mode == 'never' or on.ecosystem != ecosystem", "mode == 'never'"
        ),
    },
)

STAGED = mutants(
    "plan/registries",
    {
        "nobody looks what became of it": never("refresh_staged", "planned.action is Action.AWAIT"),
        "what was rejected is awaited": never("_refresh", "dropped"),
        "what was just approved is called rejected": change(
            "_refresh",
            "found is None and await registry.lookup(planned.package) is None",
            "found is None",
        ),
    },
)

VERDICT = mutants(
    "report/view",
    {
        "what failed hides behind what waits": without("awaiting_approval", "missing <= found"),
        "a release of which parts wait is a failure": never(
            "View._verdict_of_packages", "held_back and ..."
        ),
    },
)

TASKS = mutants(
    "release/tasks",
    {
        "dependents do not wait": change(
            "TaskGraph._transfers",
            "{on for package in packages for on in self.edges[package]}",
            "set()",
        ),
        "dependents wait for the upload only": always(
            "TaskGraph._gate", "self._config.gate == 'accepted'"
        ),
        "uploads do not wait for their build": without(
            "TaskGraph._transfers",
            "{self._built_by[each] for each in packages if each in self._built_by}",
        ),
        "uploads do not wait for their attestation": without(
            "TaskGraph._transfers", "self._attested(packages)"
        ),
        "a dry run uploads": (
            always("TaskGraph.__init__", "config.is_uploading"),
            always("TaskGraph.tasks", "self._config.is_uploading"),
        ),
        "what waits in no order waits in order": never(
            "TaskGraph._transfers", "self.staging_mode(upload.package) == 'always'"
        ),
        "nobody waits for the approval": never("TaskGraph._gate", "not beside and ..."),
        "what an earlier run staged is sent": change(
            "TaskGraph._uploads", "{Action.KEEP, Action.AWAIT}", "{Action.KEEP}"
        ),
        "what waits goes out with the rest": never("TaskGraph._together", "Action.AWAIT in ..."),
    },
)

ATTESTING = mutants(
    "release/attesting",
    {
        "what is signed is signed again": never(
            "Attestations._signed", "artifact.attestation is not None"
        ),
        "what was signed before a failure is forgotten": never(
            "Attestations.sign", "run.artifacts != before"
        ),
    },
)

RELEASE = mutants(
    "release/release",
    {
        "a stop goes on with what is left": never(
            "ReleaseRun._failed", "self._config.failure_policy == 'stop'"
        ),
        "nobody confirms what was in flight": change(
            "ReleaseRun.__init__", "{'confirm', 'approval', 'follow-up'}", "{'follow-up'}"
        ),
        "two things at a time": never(
            "ReleaseRun.__init__", "lanes['upload'] == lanes['build'] == 1 and not plan.foreign"
        ),
        "no last look when the run is ended": change("ReleaseRun.run", "run.unconfirmed", "False"),
        "an outcome is told before it is final": never("ReleaseRun._failed", "run.unconfirmed"),
    },
)

LIFE = mutants(
    "release/package_run",
    {
        "whoever is built goes along": without("companions", "there.issuperset(...)"),
        "what is refused keeps the rest back": without("held_back", "run.planned.action in SENT"),
        "failed, and it is there": never("outcome_of", "run.unconfirmed"),
        "an own failure hides the one before": change(
            "outcome_of",
            "Outcome.BLOCKED",
            "Outcome.BLOCKED if run.error is None else Outcome.FAILED",
        ),
        "other bytes are unknown": without("outcome_of", "run.conflict"),
        "what waits is lost in the end": never("outcome_of", "run.staged is not None"),
        "what waits for approval is in doubt": without(
            "PackageRun.unconfirmed", "self.staged is not None"
        ),
        "what waits goes along": change(
            "PackageRun.waiting", "self.planned.action not in _NEVER_SENT", "True"
        ),
        "what waits for all builds blocks what waits for them too": never(
            "results_of", "not blockers"
        ),
        "cancelled dependencies block": change(
            "results_of", "ended[on].outcome in BLOCKING", "not ended[on].outcome.done"
        ),
    },
)

MAKE = mutants(
    "plan/make",
    {
        "left-out dependencies are not missed": always(
            "refuse_left_out", "dependency.kind is DependencyKind.DEV or ..."
        ),
        "private dependencies are not missed": never(
            "without_private", "dependency.kind not in ..."
        ),
        "bytes never sent are reported as published": always(
            "_stored_artifacts", "action in _AS_BUILT or the_same"
        ),
        "the digest does not see the manifest": without("fingerprint", "read_file(...)"),
    },
)

SECOND_LOOK = mutants(
    "release/phases",
    {
        "sources are not looked at again": without(
            "Phases._check_before_upload", "await self._look_again(run)"
        ),
        "what goes along is not looked at again": without(
            "Phases._upload_together", "await self._look_again(companion)"
        ),
        "what has arrived meanwhile is called failed": without(
            "Phases._look_again",
            "not (run.planned.begun and await self.lookups.is_published(run))",
        ),
    },
)

BATCHES = mutants(
    "release/tasks",
    {
        "build dependencies are not built first": never(
            "_find_needs",
            "need.kind is DependencyKind.BUILD or target.builds_on_published or ...",
        ),
        "builds do not wait for the registry": never("_find_needs", "need.visible_first"),
        "what waits for other jobs keeps the rest back": change(
            "batches_of",
            "dict.fromkeys(foreign.values())",
            "[frozenset().union(*foreign.values())]",
        ),
        "uploads wait for no builds": never("TaskGraph._transfers", "self._hold and any(...)"),
        "uploads wait for builds that come after them": change(
            "TaskGraph._holds", "late.isdisjoint(...)", "not batch.absent"
        ),
        "what is not signed is sent": change(
            "TaskGraph._holds", "self._attested(sent - late)", "frozenset()"
        ),
    },
)

FOREIGN = mutants(
    "release/sibling_jobs",
    {
        "jobs that are at work are given up": without(
            "ExternalPackages.shown", "self._progress_s = self._events.now_s()"
        ),
        "what waits for us is asked for all the time": never(
            "ExternalPackages._met", "not each.unmet"
        ),
        "what waits for us is asked for at once": change(
            "ExternalPackages.__init__", "(needs & known) - kept", "set()"
        ),
        "what cannot come is waited for": without("ExternalPackages._until_shown", "each.never"),
        "a job that ended decides, not the registry": never(
            "ExternalPackages._until_shown", "each.run.visible"
        ),
        "nobody is told what is missing": without(
            "ExternalPackages.wait", "self._runs[dependent].lacks[package] = missing"
        ),
    },
)

OTHERS = mutants(
    "release/sibling_jobs",
    {
        "results of an earlier attempt count": change(
            "OtherJobs._look", "found if self._seen is None else self._seen", "self._seen or {}"
        ),
        "results of other sources count": without(
            "OtherJobs._read", "report.commit != self._commit"
        ),
        "what a job said before it began again counts": without(
            "OtherJobs._look", "del self._ended[path]"
        ),
    },
)

SOURCES = mutants(
    "release/sources",
    {
        "a look from before the build serves it": change(
            "Sources._seen_after", "self._seen_by <= number", "not self._seen_by"
        ),
        "every package has a look of its own": always(
            "Sources._seen_after", "self._seen_by <= number"
        ),
        "another commit counts as the one planned": never(
            "Sources.change", "head != self._planned"
        ),
        "what is pinned just now counts as changed": change(
            "Sources._changed_manifest",
            "{stamp.sha256, self._pinned.get(path)}",
            "{stamp.sha256}",
        ),
        "what was pinned once never counts as changed": without(
            "Sources.building", "self._pinned.pop(path, None)"
        ),
    },
)

ORDER = mutants(
    "plan/order",
    {
        "no dependency is set aside": change(
            "without_soft_cycles", "set(without_cycles(...))", "{(o, n.on) for o, n in soft}"
        ),
        "whatever is needed is set aside too": change(
            "without_soft_cycles", "not need.soft", "False"
        ),
        "peers give way first": change("without_soft_cycles", "_KEPT_FIRST", "_KEPT_FIRST[::-1]"),
        "what nobody needs is news": never("_notes", "need.kind is DependencyKind.ORDER"),
    },
)

GRAPH = mutants(
    "graph",
    {
        "a kept soft edge is forgotten": without("without_cycles", "edges[name].add(dependency)"),
        "soft edges beside a cycle are set aside": change(
            "without_cycles", "{name, dependency} <= circling and ...", "name in circling"
        ),
        "where an edge led before others were kept": without(
            "without_cycles", "found_from.cache_clear()"
        ),
    },
)

MUTANTS = (
    *(*DECISION, *MAKE, *ORDER, *GRAPH),
    *(*PHASES, *POLLING, *EVENTS, *SECOND_LOOK, *SOURCES, *TASKS, *ATTESTING, *RELEASE, *LIFE),
    *(*ATTEMPTS, *BUILDING, *UPLOADING, *BATCHES, *FOREIGN, *OTHERS),
    *(*DELIVERY, *STAGED, *VERDICT),
)
