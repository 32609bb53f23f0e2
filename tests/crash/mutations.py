"""Ways to break what survives a crash."""

from __future__ import annotations

from mutation import always, change, mutants, never, without

DURABLE = mutants(
    "host/durable",
    {
        "renamed before the bytes are on the disk": without("replace", "os.fsync(descriptor)"),
        "the name is not on the disk": without("replace", "folder.sync()"),
        "written in place": change(
            "replace",
            "folder.rename(name, path.name)",
            "path.write_bytes(data); folder.unlink(name)",
        ),
        "the mode is forgotten": without("_set_attributes", "os.fchmod(...)"),
        "the times are forgotten": never("replace", "times_ns is not None"),
        "a short write is taken for a whole one": change(
            "write_all", "view = view[...]", "os.write(descriptor, view); break"
        ),
        "a leftover is in the way": never("replace", "temporary is not None"),
        "a failure leaves a temporary file": change(
            "replace",
            "with contextlib.suppress(OSError):\n    folder.unlink(name)",
            "pass",
        ),
    },
)

# Directories on the way.
FOLDER = mutants(
    "host/folder",
    {
        "a link to a directory is followed": change("Folder._open_inner", "_STEP", "os.O_RDONLY"),
        "a link to a file is followed": without("_PLAIN", "os.O_NOFOLLOW"),
        "the kernel follows links": change("_open_without_links", "_RESOLVE_NO_SYMLINKS", "0"),
        "anything is removed": without("Folder.unlink", "_require_regular(...)"),
        "anything is replaced": without("Folder.rename", "_require_regular(...)"),
    },
)

DIRECTORY = mutants(
    "state/directory",
    {"links that were planted are handed to builds": never("links", "entry.is_symlink()")},
)

PINS = mutants(
    "state/pins",
    {
        "the backup is dropped before the manifests are back": change(
            "give_back",
            "originals = load(backup, root)",
            "originals = load(backup, root); durable.remove(backup)",
        ),
        "the backup is never dropped": without("give_back", "durable.remove(backup)"),
        "an edited manifest is overwritten": (
            never("_restore", "state == 'edited'"),
            change("_restore", "state == 'pinned'", "state != 'original'"),
            never("_put.look", "state_of(original) == 'edited'"),
        ),
        "an edit while the bytes are written is lost": without("_put", "last_look=look"),
        "what a tool rewrites counts as edited": without("state_of", "original.pinned is None"),
        "what a tool rewrites stays after a kill": never("give_back", "_is_left(each)"),
        "what git has put there counts as rewritten": always(
            "_is_left", "original.path.lstat().st_ino == original.inode"
        ),
        "pinned bytes are taken for an original": change("_save", "_files(...)", "()"),
        "a temporary file stays": without("_remove_unfinished", "durable.remove(unfinished)"),
        "the time is not given back": without("_restore", "times_ns=original.times_ns"),
        "mode and time of unchanged bytes do not count": without("_restore", "_differs(original)"),
        "recovers what another ecosystem has pinned": change(
            "backups",
            "_files(...)",
            "sorted((state_directory / 'backup').glob('*/*.json'))",
        ),
        "a damaged backup is believed": never("load", "digest != ..."),
        "a backup may name any file": never("_decode", "path.is_absolute() or ..."),
        "a link may lead anywhere": always("_examine", "path.is_relative_to(...)"),
        "half a set stays pinned": without("EphemeralPin._change", "self.close()"),
        "a link in the place of a manifest is followed": change(
            "state_of", "durable.read_file(...)", "original.path.read_bytes()"
        ),
        "unfinished backups stay": without("recover", "durable.remove(unfinished)"),
    },
)

LOCKS = mutants(
    "state/locks",
    {
        "the file is deleted": change(
            "Locks.close",
            "os.close(descriptor)",
            "os.unlink(os.readlink(f'/proc/self/fd/{descriptor}')); os.close(descriptor)",
        ),
        "everybody shares the lock": change(
            "_lock_or_raise", "try_lock(descriptor)", "try_lock(descriptor, shared=True)"
        ),
        "taken in any order": change(
            "acquire", "sorted(set(ecosystems))", "dict.fromkeys(ecosystems)"
        ),
        "some are kept when others cannot be had": without("acquire", "locks.close()"),
        "a refused lock leaks": without("Locks.take", "undo.callback(os.close, descriptor)"),
        "a look makes a run fail": change("ATTEMPTS", "5", "1"),
        "asks this machine for a process of another": never("has_ended", "holder.host != ..."),
    },
)

LOCK_ORDER = mutants(
    "state/lock_order",
    {
        "the order is not looked at": never("take", "held and ..."),
        "a lock that was given back still counts": without("take", "not hold.released"),
    },
)

JOURNAL = mutants(
    "state/journal",
    {
        "the upload does not wait for the intent": without(
            "Journal.intent", "await self._log.sync()"
        ),
        "the end of a run may be lost": without("Journal.run_ended", "await self._log.sync()"),
        "the built files are not on the disk": without(
            "Journal.built", "await self._log.persist(...)"
        ),
        "records are not counted": without("Journal._append", "self._sequence += 1"),
        "reasons are not redacted": change("Journal.outcome", "self._redact(reason)", "reason"),
        "promises what is only written": change("LogFile.append", "self._durable", "size"),
        "an fsync counts for what came during it": change(
            "LogFile.sync", "self._durable = reached", "self._durable = self._end"
        ),
        "two processes write at once": without("LogFile.append", "self._locked()"),
        "a tail is cut off while others write": without("LogFile.heal", "self._locked()"),
        "a torn tail stays": never("LogFile.heal", "size < len(data)"),
        "half a record stays on a full disk": without("LogFile.append", "os.ftruncate(...)"),
        "half a line of a dead process stays": never("LogFile._cut_half_line", "size and ..."),
        "a failed fsync is forgotten": without("LogFile._fsync", "self._failure = error"),
        "directories of built files may be lost": without(
            "LogFile._persist", "durable.fsync_directory(...)"
        ),
        "built files are never synced": without("LogFile._persist", "durable.fsync(file)"),
        "half a line is taken for ours": always("LogFile.append", "found == self._end"),
        "a shortened file is not noticed": always("LogFile._size_in_place", "is_ours"),
        "what is durable is told of a file that is gone": always(
            "LogFile.sync", "replaced == self._replaced"
        ),
    },
)

# What the journal says, and what is left of a long one.
HISTORY = mutants(
    "state/history",
    {
        "the checksum is not looked at": change(
            "_is_sound", "line[-_SEAL:] == ...", "line[-_SEAL:] != _seal(line[:-_SEAL])"
        ),
        "promised records may vanish": never("fold", "size > intact"),
        "any torn tail is damage": without("fold", "size > intact"),
        "unknown events are passed over": change(
            "_Fold.apply", "raise ValueError(f'unknown event {...!r}')", "return"
        ),
        "lost records are not missed": never("_Fold.apply", "record['seq'] != ..."),
        "a newer schema is read as ours": never("_Fold.apply", "record['v'] > SCHEMA"),
        "any failure settles an upload": without("_Fold.outcome", "_is_of(...)"),
        "a rebuild forgets the upload before it": (
            without("_Fold.built", "outcome=None"),
            change("_Fold.built", "reason=''", "uncertain=False"),
        ),
        "a failure counts as a duration": always("_Fold.step_ended", "'error' not in record"),
        "artifacts may lie anywhere": without("_Fold._path", "path.startswith('/')"),
        "an open upload is forgotten": without("compact", "not folded.settled"),
        "a run at work loses records": without("compact", "run in over"),
        "a shorter journal vouches for nothing": change(
            "compact", "{**record, 'durable': shorter.tell()}", "{**record, 'durable': 0}"
        ),
    },
)

MUTANTS = (
    *(*DURABLE, *FOLDER, *DIRECTORY, *PINS, *LOCKS, *LOCK_ORDER),
    *(*JOURNAL, *HISTORY),
)
