//! Writes groups: chooses the file, keeps track of durable data, and handles disk errors.

mod end;

use crate::closed::{CLOSED, Closed};
use crate::files::{File, Files};
use crate::format::{
    FileHead, GroupHead, GroupKind, LONG_HEAD, Sealed, file_name, group_size, parse_name,
    write_group,
};
use jindou_model::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Number and content of a record.
pub(crate) type Record = (u64, Vec<u8>);

/// Reason why the log does not accept records; reported to every waiting caller.
#[derive(Clone, Debug)]
pub(crate) struct LogFailure {
    pub path: PathBuf,
    pub cause: FailureCause,
    pub what: String,
}

/// The cause of a [`LogFailure`]. Only `Disk` may be temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The disk returned an error of this kind.
    Disk(io::ErrorKind),
    /// The file that was being written was removed or replaced.
    Removed,
    /// A bug in the log.
    Bug,
}

impl LogFailure {
    pub fn to_error(&self) -> Error {
        let what = || self.what.clone();
        match self.cause {
            FailureCause::Disk(kind) => Error::io(&self.path, io::Error::new(kind, what())),
            FailureCause::Removed => Error::damaged(&self.path, what()),
            FailureCause::Bug => Error::Internal(what()),
        }
    }
}

/// The end of the data that is known to be durable, from which the next file continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durable {
    pub sealed: Sealed,
    /// Number of the record after the last durable one.
    pub next: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub sequence: u64,
    /// Number of the record after the file's last one.
    pub next: u64,
    /// The file's length in bytes.
    pub bytes: u64,
}

/// The file to which groups are appended.
struct Current {
    file: Box<dyn File>,
    name: String,
    sequence: u64,
    seed: u64,
    /// Position of the next group.
    end: u64,
    /// Checksum of the last group, which the next group will contain.
    chain: u64,
    /// Length of the file in bytes, including zeros for groups to come.
    lengthened: u64,
    /// Number of bytes that recovery will know to be durable: each group records how many bytes were synced before it,
    /// and this is the number in the last group.
    proven: u64,
}

impl Current {
    /// The head of the next group, which records that this many bytes are durable.
    fn group(&self, kind: GroupKind, first: u64, durable: u64) -> GroupHead {
        GroupHead {
            kind,
            first,
            at: self.end,
            durable,
            chain: self.chain,
            seed: self.seed,
        }
    }
}

pub(crate) struct LogWriter {
    pub files: Arc<dyn Files>,
    pub epoch: u64,
    pub session: u64,
    /// Size in bytes at which the log continues in a new file.
    pub file_bytes: u64,
    /// Files are extended to multiples of this many bytes; with 0, by the bytes written.
    pub lengthen: u64,
    /// All files that are still needed, oldest first.
    pub kept: Vec<OpenFile>,
    pub next_sequence: u64,
    /// Sequence number of the newest file that was recorded by [`Files::set_end`]; 0 for none.
    pub end: u64,
    /// Number of the first record in the newest file that recovery read.
    pub newest_first: u64,
    /// The end of the durable data; `None` if the next file need not continue any file.
    pub durable: Option<Durable>,
    /// Records that were acknowledged, or read by recovery, and are not known to be durable.
    pub unsynced: Vec<Record>,
    /// Bytes of these records.
    pub unsynced_bytes: usize,
    /// Number of the next record.
    pub next: u64,
    /// Number of the last record that is certain to survive, if the directory could not be synced after recovery: files
    /// with later records may be lost.
    pub names_unsynced_after: Option<u64>,
    /// Number of the last record that is certain to survive, if the newest file could not be recorded by
    /// [`Files::set_end`]: the loss of that file, with later records, would go unnoticed.
    pub end_unrecorded_after: Option<u64>,
    pub broken: Option<LogFailure>,
    /// True if the next group must start a new file.
    pub roll: bool,
    current: Option<Current>,
    buffer: Vec<u8>,
}

impl LogWriter {
    pub fn new(files: Arc<dyn Files>, epoch: u64, session: u64) -> Self {
        Self {
            files,
            epoch,
            session,
            file_bytes: 0,
            lengthen: 0,
            kept: Vec::new(),
            next_sequence: 1,
            end: 0,
            newest_first: 0,
            durable: None,
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            next: 0,
            names_unsynced_after: None,
            end_unrecorded_after: None,
            broken: None,
            roll: false,
            current: None,
            buffer: Vec::new(),
        }
    }

    /// Writes records as one group. With `sync`, also syncs them and everything before them. After an error, none of
    /// the new records is in the log; but if a crash follows before the next success, recovery may find them, complete.
    pub fn write(&mut self, records: Vec<Record>, sync: bool) -> Result<(), LogFailure> {
        self.check_broken()?;
        let before = self.unsynced.len();
        let next = self.next;
        self.next = records.last().map_or(next, |(n, _)| n + 1);
        let bytes = group_size(&records);
        self.unsynced_bytes += records.iter().map(|(_, r)| r.len()).sum::<usize>();
        self.unsynced.extend(records);
        let result = self.write_unsynced(before, bytes, sync);
        if result.is_err() {
            self.unsynced.retain(|(n, _)| *n < next);
            self.unsynced_bytes = self.unsynced.iter().map(|(_, r)| r.len()).sum();
            self.next = next;
        }
        result
    }

    fn write_unsynced(&mut self, new: usize, bytes: usize, sync: bool) -> Result<(), LogFailure> {
        let roll = std::mem::take(&mut self.roll);
        if self
            .current
            .as_ref()
            .is_some_and(|c| roll || c.end >= self.file_bytes)
        {
            // The new file must continue durable data. If the sync fails, everything that was not synced is written to
            // the new file.
            let last = self.unsynced.split_off(new);
            let synced = self.sync_current(None);
            let old = if synced { self.current.take() } else { None };
            let next = self.durable.map(|d| d.next);
            self.unsynced.extend(last);
            self.start()?;
            if let (Some(old), Some(next)) = (old, next) {
                Self::append_continued_mark(old, next, &mut self.buffer);
            }
            return Ok(());
        }
        let before = self.current.as_ref().map(|c| c.end);
        if self.append(new, bytes) && (!sync || self.sync_current(before)) {
            return Ok(());
        }
        self.check_broken()?;
        self.start()
    }

    /// Syncs everything that was written. After an error, retrying is correct: the records are then written to a new
    /// file.
    pub fn sync(&mut self) -> Result<(), LogFailure> {
        self.check_broken()?;
        if self.names_unsynced_after.is_some() {
            self.files
                .sync_directory()
                .map_err(|e| self.failure("", &e))?;
            self.names_unsynced_after = None;
        }
        if self.end_unrecorded_after.is_some() {
            self.record_existing_newest()?;
        }
        if self.unsynced.is_empty() || self.sync_current(None) {
            return Ok(());
        }
        self.check_broken()?;
        self.start()
    }

    /// Number of the last record that would survive a power failure.
    pub fn durable_upto(&self) -> u64 {
        let unsynced = self.unsynced.first().map_or(self.next, |(n, _)| *n);
        let known = unsynced.saturating_sub(1);
        let limits = [self.names_unsynced_after, self.end_unrecorded_after];
        limits.into_iter().flatten().fold(known, u64::min)
    }

    fn all_synced(&mut self) {
        self.unsynced.clear();
        self.unsynced_bytes = 0;
    }

    fn check_broken(&self) -> Result<(), LogFailure> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Appends `unsynced[new..]` to the current file. False if there is no file that can be appended to.
    fn append(&mut self, new: usize, bytes: usize) -> bool {
        let (Some(c), Some((first, _))) = (&mut self.current, self.unsynced.get(new)) else {
            return false;
        };
        let records = &self.unsynced[new..];
        let synced = self.durable.map_or(0, |d| d.sealed.length);
        let head = c.group(GroupKind::Records, *first, synced);
        self.buffer.clear();
        let chain = write_group(&head, records, &mut self.buffer);
        let end = c.end + bytes as u64;
        if self.lengthen > 0 && end > c.lengthened {
            let zeros = end.next_multiple_of(self.lengthen) - end;
            self.buffer.resize(self.buffer.len() + zeros as usize, 0);
        }
        let before = c.end;
        if c.file.write_at(before, &self.buffer).is_err() {
            self.abandon_current(Some(before));
            return false;
        }
        c.lengthened = c.lengthened.max(c.end + self.buffer.len() as u64);
        c.end = end;
        c.chain = chain;
        c.proven = synced;
        if self.buffer.capacity() > 4 << 20 {
            self.buffer = Vec::new();
        }
        if let Some(kept) = self.kept.last_mut() {
            kept.next = self.next;
            kept.bytes = c.lengthened.max(end);
        }
        true
    }

    /// Syncs the current file. False if the file must not be used any more; it was then truncated to `keep` bytes, if
    /// given.
    fn sync_current(&mut self, keep: Option<u64>) -> bool {
        let Some(c) = &mut self.current else {
            return self.unsynced.is_empty();
        };
        let in_place = match c.file.sync() {
            Ok(()) => c.file.in_place(),
            Err(e) => Err(e),
        };
        match in_place {
            Ok(true) => {
                self.durable = Some(Durable {
                    sealed: Sealed {
                        sequence: c.sequence,
                        length: c.end,
                        chain: c.chain,
                    },
                    next: self
                        .unsynced
                        .last()
                        .map_or(self.durable.map_or(self.next, |d| d.next), |(n, _)| n + 1),
                });
                self.all_synced();
                true
            }
            Ok(false) => {
                self.broken = Some(LogFailure {
                    path: self.files.path(&c.name),
                    cause: FailureCause::Removed,
                    what: "the log file was removed or replaced while in use. Acknowledged updates are \
                        still in memory: merge or back up this store before stopping it; updates are \
                        refused until then"
                        .into(),
                });
                self.current = None;
                false
            }
            Err(_) => {
                self.abandon_current(keep);
                false
            }
        }
    }

    /// Stops writing to the current file. With `keep`, truncates it to that length: the records after it were not
    /// acknowledged, take space, and would be found by recovery if the process died now.
    fn abandon_current(&mut self, keep: Option<u64>) {
        if let (Some(mut c), Some(keep)) = (self.current.take(), keep) {
            let _ = c.file.truncate(keep);
        }
    }

    /// Writes everything that is not durable to a new file, which continues from the durable data.
    pub fn start(&mut self) -> Result<(), LogFailure> {
        self.check_broken()?;
        self.current = None;
        let first = self.unsynced.first().map_or(self.next, |(n, _)| *n);
        let previous = self.durable.filter(|d| d.next == first).map(|d| d.sealed);
        let size = match self.unsynced.is_empty() {
            true => 0,
            false => group_size(&self.unsynced),
        };
        let sequence = self.next_sequence;
        let mut head = FileHead {
            epoch: self.epoch,
            sequence,
            session: self.session,
            first,
            long: FileHead::is_long(first),
            whole: 0,
            previous,
        };
        let begin = head.size() as u64;
        head.whole = begin + size as u64;
        self.buffer.clear();
        let mut chain = head.write(&mut self.buffer);
        if !self.unsynced.is_empty() {
            let group = GroupHead {
                kind: GroupKind::Records,
                first,
                at: begin,
                durable: begin,
                chain,
                seed: head.seed(),
            };
            chain = write_group(&group, &self.unsynced, &mut self.buffer);
        }
        let name = file_name(self.epoch, sequence);
        if let Err(e) = self.files.put(&name, &self.buffer) {
            // The file must stay if an earlier attempt may have recorded it as the newest.
            if !self.may_be_recorded(sequence) {
                let _ = self.files.remove(&name);
            }
            return Err(self.failure(&name, &e));
        }
        self.record_newest(sequence, first)?;
        self.started(name, &head, chain);
        Ok(())
    }

    fn started(&mut self, name: String, head: &FileHead, chain: u64) {
        let length = self.buffer.len() as u64;
        self.durable = Some(Durable {
            sealed: Sealed {
                sequence: head.sequence,
                length,
                chain,
            },
            next: self.next,
        });
        self.all_synced();
        self.kept.push(OpenFile {
            sequence: head.sequence,
            next: self.next,
            bytes: length,
        });
        self.next_sequence = head.sequence + 1;
        self.end_unrecorded_after = None;
        self.names_unsynced_after = None;
        // If opening the file fails, the next group starts another file.
        self.current = self.files.open(&name).ok().map(|file| Current {
            file,
            name,
            sequence: head.sequence,
            seed: head.seed(),
            end: length,
            chain,
            lengthened: length,
            proven: length,
        });
        if self.buffer.capacity() > 4 << 20 {
            self.buffer = Vec::new();
        }
    }

    fn failure(&self, name: &str, e: &io::Error) -> LogFailure {
        LogFailure {
            path: self.files.path(name),
            cause: FailureCause::Disk(e.kind()),
            what: format!(
                "the log cannot be written: {e}. Updates are refused until it can be; queries still work"
            ),
        }
    }

    /// Appends a group which records that everything before it is durable. Later damage to the last group can then be
    /// told from a torn tail.
    pub fn mark(&mut self) {
        let Some(d) = self.durable else { return };
        let Some(c) = &mut self.current else { return };
        if c.proven >= c.end || c.end != d.sealed.length || !self.unsynced.is_empty() {
            return;
        }
        let head = c.group(GroupKind::Mark, d.next, c.end);
        self.buffer.clear();
        let chain = write_group(&head, &[], &mut self.buffer);
        let before = c.end;
        if c.file.write_at(before, &self.buffer).is_err() {
            self.abandon_current(Some(before));
            return;
        }
        c.end += self.buffer.len() as u64;
        c.proven = c.end;
        c.chain = chain;
        c.lengthened = c.lengthened.max(c.end);
        self.sync_current(Some(before));
    }

    /// Appends a group to the old file that says that a newer file exists. Errors are ignored, since the group matters
    /// only if the newer file is lost.
    fn append_continued_mark(mut old: Current, next: u64, buffer: &mut Vec<u8>) {
        let head = old.group(GroupKind::Continued, next, old.end);
        buffer.clear();
        write_group(&head, &[], buffer);
        let _ = old.file.write_at(old.end, buffer);
        let _ = old.file.truncate(old.end + buffer.len() as u64);
        let _ = old.file.sync();
    }

    /// Syncs, and records this in the log. The writer must not be used afterwards.
    pub fn close(&mut self) -> Result<(), LogFailure> {
        let result = self.sync();
        self.mark();
        if let Some(mut c) = self.current.take() {
            let _ = c.file.truncate(c.end);
            let durable = |d: &Durable| (d.sealed.sequence, d.sealed.length) == (c.sequence, c.end);
            if result.is_ok() && self.durable.as_ref().is_some_and(durable) {
                let closed = Closed {
                    epoch: self.epoch,
                    sequence: c.sequence,
                    length: c.end,
                };
                // Errors are ignored, since `closed.jd` matters only if the file is truncated later.
                let _ = self.files.put(CLOSED, closed.to_text().as_bytes());
            }
        }
        result
    }

    /// Forgets files without records after number `upto`, and returns the sequence number of the first file to keep,
    /// before which all can be removed. Keeps the newest file, so that sequence numbers continue.
    pub fn truncate(&mut self, upto: u64) -> Result<u64, LogFailure> {
        if self.next <= upto.saturating_add(1)
            && self.broken.as_ref().is_some_and(|b| {
                matches!(
                    b.cause,
                    FailureCause::Removed | FailureCause::Disk(io::ErrorKind::NotFound)
                )
            })
        {
            self.broken = None;
            self.durable = None;
            self.all_synced();
        }
        self.check_broken()?;
        if self.next <= upto.saturating_add(1)
            && self.kept.last().is_some_and(|k| k.bytes > LONG_HEAD as u64)
        {
            self.sync()?;
            self.start()?;
        }
        let newest = self.kept.len().saturating_sub(1);
        let gone = self.kept[..newest]
            .iter()
            .take_while(|k| k.next <= upto.saturating_add(1))
            .count();
        self.kept.drain(..gone);
        Ok(self.kept.first().map_or(0, |k| k.sequence))
    }
}

/// Removes those files of an epoch whose sequence numbers are lower than this one.
pub(crate) fn remove_before(files: &dyn Files, epoch: u64, sequence: u64) -> Result<(), Error> {
    let wrong = |name: &str, e| Error::io(files.path(name), e);
    let mut names = files.list().map_err(|e| wrong("", e))?;
    names.retain(|n| parse_name(n).is_some_and(|(e, s)| e == epoch && s < sequence));
    // Oldest first, so that after a crash at any point the remaining files are a log without gaps.
    names.sort_unstable();
    for name in &names {
        match files.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(wrong(name, e)),
            _ => {}
        }
    }
    Ok(())
}
