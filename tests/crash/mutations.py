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
        "durable",
        "\n            os.fsync(descriptor)\n",
        "\n",
    ),
    Mutant(
        "the name is not on the disk",
        "durable",
        "        raise\n    fsync_directory(path.parent)",
        "        raise",
    ),
    Mutant(
        "written in place",
        "durable",
        "        temporary.replace(path)\n",
        "        path.write_bytes(data)\n        temporary.unlink()\n",
    ),
    Mutant("the mode is forgotten", "durable", "os.fchmod(descriptor, attributes.mode)", "pass"),
    Mutant("the times are forgotten", "durable", "if times_ns is not None:", "if False:"),
    Mutant("a short write is taken for a whole one", "durable", "while view:", "if view:"),
    Mutant(
        "a leftover is in the way",
        "durable",
        "        temporary.unlink(missing_ok=True)\n",
        "        pass\n",
    ),
    Mutant(
        "a failure leaves a temporary file",
        "durable",
        "            temporary.unlink()\n",
        "            pass\n",
    ),
    # Pins
    Mutant(
        "the backup is dropped before the manifests are back",
        "pins",
        "    originals = load(backup, root)\n",
        "    originals = load(backup, root)\n    durable.remove(backup)\n",
    ),
    Mutant("the backup is never dropped", "pins", "    durable.remove(backup)\n", ""),
    Mutant(
        "an edited manifest is overwritten",
        "pins",
        '    if state == "edited":\n        return False\n    if state == "pinned"',
        '    if state != "original"',
    ),
    Mutant(
        "pinned bytes are taken for an original",
        "pins",
        "if twice := paths",
        "if False and paths",
    ),
    Mutant(
        "a temporary file stays", "pins", "        durable.remove(unfinished)\n", "        pass\n"
    ),
    Mutant(
        "the time is not given back",
        "pins",
        "original.data, times_ns=original.times_ns)",
        "original.data)",
    ),
    Mutant("mode and time of unchanged bytes do not count", "pins", " or _differs(original):", ":"),
    Mutant(
        "recovers what another ecosystem has pinned",
        "pins",
        'backup_directory(state_directory, ecosystem).glob("*.json")',
        '(state_directory / "backup").glob("*/*.json")',
    ),
    Mutant(
        "a damaged backup is believed", "pins", "if digest != _sha256(body).encode():", "if False:"
    ),
    Mutant(
        "a backup may name any file",
        "pins",
        'if path.is_absolute() or ".." in path.parts:',
        "if False:",
    ),
    Mutant("a link may lead anywhere", "pins", "if not path.is_relative_to(root):", "if False:"),
    Mutant(
        "half a set stays pinned",
        "pins",
        "        except BaseException:\n            self.close()\n",
        "        except BaseException:\n",
    ),
    Mutant(
        "a manifest that moved is replaced all the same",
        "pins",
        "    if original.path.resolve() != original.path:\n",
        "    if False:\n",
    ),
    Mutant(
        "unfinished backups stay", "pins", "            unfinished.unlink()\n", "            pass\n"
    ),
    # Locks
    Mutant(
        "the file is deleted",
        "locks",
        "os.ftruncate(descriptor, 0)\n            os.close",
        'os.unlink(os.readlink(f"/proc/self/fd/{descriptor}"))\n            os.close',
    ),
    Mutant(
        "everybody shares the lock",
        "locks",
        "if try_lock(descriptor):",
        "if try_lock(descriptor, shared=True):",
    ),
    Mutant("taken in any order", "locks", "sorted(set(ecosystems))", "dict.fromkeys(ecosystems)"),
    Mutant("the order is not looked at", "locks", "if self._held and ecosystem <= ", "if '~' < "),
    Mutant(
        "some are kept when others cannot be had",
        "locks",
        "        locks.close()\n        raise",
        "        raise",
    ),
    Mutant(
        "a refused lock leaks",
        "locks",
        "        except BaseException:\n            os.close(descriptor)\n            raise",
        "        except BaseException:\n            raise",
    ),
    Mutant("follows a symbolic link", "locks", " | durable.O_NOFOLLOW", ""),
    Mutant("a look makes a run fail", "locks", "ATTEMPTS = 5", "ATTEMPTS = 1"),
    Mutant(
        "asks this machine for a process of another",
        "locks",
        " or holder.host != socket.gethostname():",
        ":",
    ),
    # Journal
    Mutant(
        "the upload does not wait for the intent",
        "journal",
        "digests=dict(digests))\n        await self._log.sync()",
        "digests=dict(digests))",
    ),
    Mutant(
        "the end of a run may be lost",
        "journal",
        "result=result)\n        await self._log.sync()",
        "result=result)",
    ),
    Mutant(
        "the built files are not on the disk",
        "journal",
        "        await self._log.persist([artifact.path for artifact in artifacts])\n",
        "",
    ),
    Mutant("records are not counted", "journal", "        self._sequence += 1\n", ""),
    Mutant("reasons are not redacted", "journal", "reason=self._redact(reason)", "reason=reason"),
    Mutant(
        "promises what is only written",
        "logfile",
        "data = line(self._durable)",
        "data = line(size)",
    ),
    Mutant(
        "an fsync counts for what came during it",
        "logfile",
        "                self._durable = reached\n",
        "                self._durable = self._end\n",
    ),
    Mutant(
        "two processes write at once",
        "logfile",
        "with self._reporting(), self._locked():\n            size",
        "with self._reporting():\n            size",
    ),
    Mutant(
        "a tail is cut off while others write",
        "logfile",
        "with self._reporting(), self._locked():\n            data",
        "with self._reporting():\n            data",
    ),
    Mutant("a torn tail stays", "logfile", "if size < len(data):", "if False:"),
    Mutant(
        "half a record stays on a full disk",
        "logfile",
        "            except OSError:\n                os.ftruncate(self._descriptor, size)\n",
        "            except OSError:\n",
    ),
    Mutant(
        "half a line of a dead process stays",
        "logfile",
        'if size and self._read(size - 1) != b"\\n":',
        "if False:",
    ),
    Mutant("a failed fsync is forgotten", "logfile", "            self._failure = error\n", ""),
    Mutant(
        "directories of built files may be lost",
        "logfile",
        "                durable.fsync_directory(directory)\n",
        "                pass\n",
    ),
    Mutant(
        "built files are never synced",
        "logfile",
        "                durable.fsync(file)\n",
        "                pass\n",
    ),
    Mutant("a shortened file is not noticed", "logfile", "if self._in_place():", "if True:"),
    Mutant(
        "what is durable is told of a file that is gone",
        "logfile",
        "            if replaced == self._replaced:\n",
        "            if True:\n",
    ),
    # What is left of a long journal
    Mutant("an open upload is forgotten", "compaction", " or not facts.settled\n", "\n"),
    Mutant(
        "a run at work loses records",
        "compaction",
        "kept = at_work | _of_packages",
        "kept = _of_packages",
    ),
    Mutant(
        "a shorter journal vouches for nothing", "compaction", '"durable": size', '"durable": 0'
    ),
    Mutant("any failure settles it", "compaction", ' and record["run"] == self._intent_run', ""),
    # What the journal says
    Mutant(
        "the checksum is not looked at",
        "history",
        "sound = [line[-_SEAL:] == b'",
        "sound = [line[-_SEAL:] != b'",
    ),
    Mutant("promised records may vanish", "history", "and size > intact for", "and False for"),
    Mutant("any torn tail is damage", "history", "and size > intact for", "for"),
    Mutant(
        "unknown events are passed over",
        "history",
        '            raise ValueError(f"unknown event {event!r}")',
        "            return",
    ),
    Mutant(
        "lost records are not missed",
        "history",
        'if record["seq"] != self._sequence.get(run, 0):',
        "if False:",
    ),
    Mutant("a newer schema is read as ours", "history", 'if record["v"] > SCHEMA:', "if False:"),
    Mutant(
        "any failure settles an upload",
        "history",
        ' and _is_of(entry.get("intent"), record)',
        "",
    ),
    Mutant(
        "a rebuild forgets the upload before it",
        "history",
        '            outcome=None,\n            reason="",\n        )\n\n    def intent',
        "            uncertain=False,\n        )\n\n    def intent",
    ),
    Mutant("a failure counts as a duration", "history", 'if "error" not in record:', "if True:"),
    Mutant(
        "artifacts may lie anywhere",
        "history",
        'if path.startswith("/") or ',
        'if False and path.startswith("/") or ',
    ),
)
