"""Ways to break the release itself: the plan, the steps, the verdicts."""

from __future__ import annotations

from crash.mutations import Mutant

COMPLETE = """\
        if published is not None and published.complete:
            return Action.KEEP, "on the registry already"
        if entry is not None"""

RELEASE_MUTANTS = (
    # The decision
    Mutant(
        "what is there in part counts as there",
        "plan/decision",
        COMPLETE,
        COMPLETE.replace(" and published.complete", ""),
    ),
    Mutant(
        "an upload begun elsewhere binds", "plan/decision", " or entry.intent.registry != url:", ":"
    ),
    Mutant(
        "bytes of other sources are sent",
        "plan/decision",
        "entry.commit == commit and is_clean(commit) and intact(entry)",
        "intact(entry)",
    ),
    Mutant(
        "bytes of changed sources are sent",
        "plan/decision",
        " and is_clean(commit) and intact(entry)",
        " and intact(entry)",
    ),
    Mutant(
        "damaged bytes are sent", "plan/decision", "    if not intact(entry):\n", "    if False:\n"
    ),
    Mutant(
        "sources may change in the middle of an upload",
        "plan/decision",
        "    if entry.commit != commit:\n",
        "    if False:\n",
    ),
    Mutant(
        "other bytes are kept", "plan/decision", "    if comparison.differing:\n", "    if False:\n"
    ),
    Mutant(
        "an unknown digest counts as ours",
        "plan/decision",
        "artifact.digests.get(algorithm) != value",
        "artifact.digests.get(algorithm, value) != value",
    ),
    Mutant(
        "a later build is taken for the first",
        "plan/decision",
        "for artifact in entry.artifacts} != entry.intent.digests:",
        "for artifact in entry.artifacts} == {}:",
    ),
    # The steps
    Mutant(
        "no poll_once at the registry before another attempt",
        "release/phases",
        "            if run.attempts > 1 or run.ambiguity:\n",
        "            if False:\n",
    ),
    Mutant(
        "no intent before the first byte",
        "release/phases",
        "        await self._intend(target.registry.url, sending)\n",
        "",
    ),
    Mutant(
        "the intent is journalled without its files",
        "release/phases",
        "digests=digests)",
        "digests={})",
    ),
    Mutant(
        "only the first of an upload has an intent",
        "release/phases",
        "        await self._intend(target.registry.url, sending)\n",
        "        await self._intend(target.registry.url, sending[: len(runs)])\n",
    ),
    Mutant(
        "one refusal is the refusal of all",
        "release/phases",
        "if not companions or isinstance(error, Denied):",
        "if True:",
    ),
    Mutant(
        "whoever is built goes companions",
        "release/life",
        "            and there.issuperset(edges[run.id])\n",
        "",
    ),
    Mutant(
        "a lost answer is forgotten",
        "release/phases",
        "run.ambiguity = str(error) if ambiguous else ambiguity",
        'run.ambiguity = ""',
    ),
    Mutant(
        "ambiguity is forgotten by the next attempt",
        "release/phases",
        "str(error) if ambiguous else ambiguity",
        'str(error) if ambiguous else ""',
    ),
    Mutant(
        "a refusal is the last word",
        "release/phases",
        "            self._apply_lookup(run)\n        except DigestMismatch",
        "            pass\n        except DigestMismatch",
    ),
    Mutant(
        "what an earlier run sent is forgotten",
        "release/phases",
        "            if run.planned.begun and not run.ambiguity:\n",
        "            if False:\n",
    ),
    Mutant(
        "one attempt too many",
        "release/phases",
        "runs[0].attempts <= self._config.max_retries",
        "True",
    ),
    Mutant(
        "accepted is as good as visible",
        "release/phases",
        "                while trouble := await self.poll_once(run):\n",
        "                while (trouble := await self.poll_once(run)) and False:\n",
    ),
    Mutant(
        "dependents go on in ambiguity",
        "release/phases",
        'if self._config.gate == "accepted" and not all(there):',
        "if False:",
    ),
    Mutant(
        "the manifests stay unpinned",
        "release/phases",
        "        if after != before:\n",
        "        if False:\n",
    ),
    # The release
    Mutant(
        "dependents do not wait",
        "release/release",
        "needs = {on for package in packages for on in self._edges[package] if on in sent_by}",
        "needs: set[PackageId] = set()",
    ),
    Mutant(
        "dependents wait for the upload only",
        "release/release",
        'visible = self._config.gate == "visible"',
        "visible = False",
    ),
    Mutant(
        "uploads do not wait for their build",
        "release/release",
        " | {built_by[package] for package in packages if package in built_by}",
        "",
    ),
    Mutant(
        "build dependencies are not built first",
        "release/release",
        "if dependency.kind is DependencyKind.BUILD and dependency.on in batch_of",
        "if False",
    ),
    Mutant(
        "a stop goes on with what is left",
        "release/release",
        '        if self._ending and phase != "confirm":\n',
        "        if False:\n",
    ),
    Mutant(
        "no last poll_once when the run is ended",
        "release/release",
        "        if self._ending:\n            doubtful",
        "        if False:\n            doubtful",
    ),
    Mutant(
        "an outcome is told before it is final",
        "release/release",
        "        if not run.unconfirmed and all(",
        "        if all(",
    ),
    Mutant("an end is told twice", "release/release", "        self._told.add(package.id)\n", ""),
    Mutant(
        "a dry run uploads",
        "release/release",
        "        if self._config.dry_run:\n",
        "        if False:\n",
    ),
    Mutant(
        "what was refused is sent",
        "release/release",
        "if run.planned.action is Action.REFUSE:",
        "if False:",
    ),
    # The outcome_of
    Mutant(
        "failed, and it is there",
        "release/life",
        "    if run.unconfirmed:\n",
        "    if False:\n",
    ),
    Mutant(
        "an own failure hides the one before",
        "release/life",
        "    if blockers:\n",
        "    if blockers and run.error is None:\n",
    ),
    Mutant(
        "other bytes are unknown",
        "release/life",
        "(run.conflict or run.planned.action is Action.REFUSE)",
        "run.planned.action is Action.REFUSE",
    ),
    Mutant(
        "cancelled dependencies block",
        "release/life",
        "if ended[on].outcome in BLOCKING",
        "if not ended[on].outcome.done",
    ),
    # The plan
    Mutant(
        "left-out dependencies are not missed",
        "plan/make",
        "            if dependency.on not in planned and (there is None or not there.complete):\n",
        "            if False:\n",
    ),
    Mutant(
        "private dependencies are not missed",
        "plan/make",
        "        elif dependency.kind is not DependencyKind.OPTIONAL:\n",
        "        elif False:\n",
    ),
    Mutant(
        "bytes never sent are reported as published",
        "plan/make",
        "return entry.artifacts if action is Action.UPLOAD or the_same else ()",
        "return entry.artifacts",
    ),
    Mutant(
        "the digest does not see the manifest",
        "plan/make",
        "hashlib.sha256(path.read_bytes())",
        "hashlib.sha256()",
    ),
)
