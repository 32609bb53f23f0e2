"""Ways to break what survives a crash: each an edit of the source, which must be there once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`module` also says which tests have to notice it."""

    name: str
    module: str
    old: str
    new: str


MUTANTS = (
    # Durable files
    Mutant(
        "renamed before the bytes are on the disk",
        "host/durable",
        "\n            os.fsync(descriptor)\n",
        "\n",
    ),
    Mutant(
        "the name is not on the disk",
        "host/durable",
        "        raise\n    fsync_directory(path.parent)",
        "        raise",
    ),
    Mutant(
        "written in place",
        "host/durable",
        "        temporary.replace(path)\n",
        "        path.write_bytes(data)\n        temporary.unlink()\n",
    ),
    Mutant(
        "the mode is forgotten", "host/durable", "os.fchmod(descriptor, attributes.mode)", "pass"
    ),
    Mutant("the times are forgotten", "host/durable", "if times_ns is not None:", "if False:"),
    Mutant("a short write is taken for a whole one", "host/durable", "while view:", "if view:"),
    Mutant(
        "a leftover is in the way",
        "host/durable",
        "        temporary.unlink(missing_ok=True)\n",
        "        pass\n",
    ),
    Mutant(
        "a failure leaves a temporary file",
        "host/durable",
        "            temporary.unlink()\n",
        "            pass\n",
    ),
    # Pins
    Mutant(
        "the backup is dropped before the manifests are back",
        "state/pins",
        "    originals = load(backup, root)\n",
        "    originals = load(backup, root)\n    durable.remove(backup)\n",
    ),
    Mutant("the backup is never dropped", "state/pins", "    durable.remove(backup)\n", ""),
    Mutant(
        "an edited manifest is overwritten",
        "state/pins",
        '    if state == "edited":\n        return False\n    if state == "pinned"',
        '    if state != "original"',
    ),
    Mutant(
        "pinned bytes are taken for an original",
        "state/pins",
        "if twice := paths",
        "if False and paths",
    ),
    Mutant(
        "a temporary file stays",
        "state/pins",
        "        durable.remove(unfinished)\n",
        "        pass\n",
    ),
    Mutant(
        "the time is not given back",
        "state/pins",
        "original.data, times_ns=original.times_ns)",
        "original.data)",
    ),
    Mutant(
        "mode and time of unchanged bytes do not count",
        "state/pins",
        " or _differs(original):",
        ":",
    ),
    Mutant(
        "recovers what another ecosystem has pinned",
        "state/pins",
        'backup_directory(state_directory, ecosystem).glob("*.json")',
        '(state_directory / "backup").glob("*/*.json")',
    ),
    Mutant(
        "a damaged backup is believed",
        "state/pins",
        "if digest != _sha256(body).encode():",
        "if False:",
    ),
    Mutant(
        "a backup may name any file",
        "state/pins",
        'if path.is_absolute() or ".." in path.parts:',
        "if False:",
    ),
    Mutant(
        "a link may lead anywhere", "state/pins", "if not path.is_relative_to(root):", "if False:"
    ),
    Mutant(
        "half a set stays pinned",
        "state/pins",
        "        except BaseException:\n            self.close()\n",
        "        except BaseException:\n",
    ),
    Mutant(
        "a manifest that moved is replaced all the same",
        "state/pins",
        "    if original.path.resolve() != original.path:\n",
        "    if False:\n",
    ),
    Mutant(
        "unfinished backups stay",
        "state/pins",
        "            unfinished.unlink()\n",
        "            pass\n",
    ),
    # Locks
    Mutant(
        "the file is deleted",
        "state/locks",
        "os.ftruncate(descriptor, 0)\n            os.close",
        'os.unlink(os.readlink(f"/proc/self/fd/{descriptor}"))\n            os.close',
    ),
    Mutant(
        "everybody shares the lock",
        "state/locks",
        "if try_lock(descriptor):",
        "if try_lock(descriptor, shared=True):",
    ),
    Mutant(
        "taken in any order", "state/locks", "sorted(set(ecosystems))", "dict.fromkeys(ecosystems)"
    ),
    Mutant(
        "the order is not looked at", "state/locks", "if self._held and ecosystem <= ", "if '~' < "
    ),
    Mutant(
        "some are kept when others cannot be had",
        "state/locks",
        "        locks.close()\n        raise",
        "        raise",
    ),
    Mutant(
        "a refused lock leaks",
        "state/locks",
        "        except BaseException:\n            os.close(descriptor)\n            raise",
        "        except BaseException:\n            raise",
    ),
    Mutant("follows a symbolic link", "state/locks", " | durable.O_NOFOLLOW", ""),
    Mutant("a look makes a run fail", "state/locks", "ATTEMPTS = 5", "ATTEMPTS = 1"),
    Mutant(
        "asks this machine for a process of another",
        "state/locks",
        " or holder.host != socket.gethostname():",
        ":",
    ),
    # Journal
    Mutant(
        "the upload does not wait for the intent",
        "state/journal",
        "digests=dict(digests))\n        await self._log.sync()",
        "digests=dict(digests))",
    ),
    Mutant(
        "the end of a run may be lost",
        "state/journal",
        "result=result)\n        await self._log.sync()",
        "result=result)",
    ),
    Mutant(
        "the built files are not on the disk",
        "state/journal",
        "        await self._log.persist([artifact.path for artifact in artifacts])\n",
        "",
    ),
    Mutant("records are not counted", "state/journal", "        self._sequence += 1\n", ""),
    Mutant(
        "reasons are not redacted", "state/journal", "reason=self._redact(reason)", "reason=reason"
    ),
    Mutant(
        "promises what is only written",
        "state/logfile",
        "data = line(self._durable)",
        "data = line(size)",
    ),
    Mutant(
        "an fsync counts for what came during it",
        "state/logfile",
        "                self._durable = reached\n",
        "                self._durable = self._end\n",
    ),
    Mutant(
        "two processes write at once",
        "state/logfile",
        "with self._reporting(), self._locked():\n            size",
        "with self._reporting():\n            size",
    ),
    Mutant(
        "a tail is cut off while others write",
        "state/logfile",
        "with self._reporting(), self._locked():\n            data",
        "with self._reporting():\n            data",
    ),
    Mutant("a torn tail stays", "state/logfile", "if size < len(data):", "if False:"),
    Mutant(
        "half a record stays on a full disk",
        "state/logfile",
        "            except OSError:\n                os.ftruncate(self._descriptor, size)\n",
        "            except OSError:\n",
    ),
    Mutant(
        "half a line of a dead process stays",
        "state/logfile",
        'if size and self._read(size - 1) != b"\\n":',
        "if False:",
    ),
    Mutant(
        "a failed fsync is forgotten", "state/logfile", "            self._failure = error\n", ""
    ),
    Mutant(
        "directories of built files may be lost",
        "state/logfile",
        "                durable.fsync_directory(directory)\n",
        "                pass\n",
    ),
    Mutant(
        "built files are never synced",
        "state/logfile",
        "                durable.fsync(file)\n",
        "                pass\n",
    ),
    Mutant("a shortened file is not noticed", "state/logfile", "if self._in_place():", "if True:"),
    Mutant(
        "what is durable is told of a file that is gone",
        "state/logfile",
        "            if replaced == self._replaced:\n",
        "            if True:\n",
    ),
    # What is left of a long journal
    Mutant("an open upload is forgotten", "state/compaction", " or not facts.settled\n", "\n"),
    Mutant(
        "a run at work loses records",
        "state/compaction",
        "kept = at_work | _of_packages",
        "kept = _of_packages",
    ),
    Mutant(
        "a shorter journal vouches for nothing",
        "state/compaction",
        '"durable": size',
        '"durable": 0',
    ),
    Mutant(
        "any failure settles it", "state/compaction", ' and record["run"] == self._intent_run', ""
    ),
    # What the journal says
    Mutant(
        "the checksum is not looked at",
        "state/history",
        "sound = [line[-_SEAL:] == b'",
        "sound = [line[-_SEAL:] != b'",
    ),
    Mutant(
        "promised records may vanish", "state/history", "and size > intact for", "and False for"
    ),
    Mutant("any torn tail is damage", "state/history", "and size > intact for", "for"),
    Mutant(
        "unknown events are passed over",
        "state/history",
        '            raise ValueError(f"unknown event {event!r}")',
        "            return",
    ),
    Mutant(
        "lost records are not missed",
        "state/history",
        'if record["seq"] != self._sequence.get(run, 0):',
        "if False:",
    ),
    Mutant(
        "a newer schema is read as ours", "state/history", 'if record["v"] > SCHEMA:', "if False:"
    ),
    Mutant(
        "any failure settles an upload",
        "state/history",
        ' and _is_of(entry.get("intent"), record)',
        "",
    ),
    Mutant(
        "a rebuild forgets the upload before it",
        "state/history",
        '            outcome=None,\n            reason="",\n        )\n\n    def intent',
        "            uncertain=False,\n        )\n\n    def intent",
    ),
    Mutant(
        "a failure counts as a duration", "state/history", 'if "error" not in record:', "if True:"
    ),
    Mutant(
        "artifacts may lie anywhere",
        "state/history",
        'if path.startswith("/") or ',
        'if False and path.startswith("/") or ',
    ),
)
