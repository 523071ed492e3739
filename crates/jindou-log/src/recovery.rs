//! Recovery: reads a log when it is opened.

use crate::end::end_and_names;
use crate::files::Files;
use crate::format::{FileHead, FoundGroup, RecordGroup, Sealed, file_name, read_group};
use crate::scan::{Cut, Damage, ScanStop, chain, contents, names, walk};
use crate::writer::{Durable, LogWriter, OpenFile, Record};
use jindou_model::{Error, Resource, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Findings of the opening of a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Number of files read.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// Number of records replayed.
    pub records: u64,
    /// Number of records that were skipped because the base includes them.
    pub skipped: u64,
    /// Number of the last record that the store has now, in its base or from the log.
    pub last: u64,
    /// Duration of the opening, replay included.
    pub time: Duration,
    /// The torn tail that a crash left at the end, which was skipped.
    pub cut: Option<Cut>,
    /// Number of records at the end that were not known to be durable, and were therefore written again.
    pub rewritten: u64,
    /// Other epochs that have files in the same folder, which were not read.
    pub other_epochs: Vec<u64>,
    /// Reason why the log cannot be written to now; each update tries again.
    pub read_only: Option<String>,
}

impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(
            f,
            "log: replayed {} from {} ({} bytes) in {:.3} s; the store is at {}",
            plural(self.records, "record"),
            plural(self.files, "file"),
            self.bytes,
            self.time.as_secs_f64(),
            self.last
        )?;
        if self.skipped > 0 {
            write!(
                f,
                "; skipped {} that the base already has",
                plural(self.skipped, "record")
            )?;
        }
        if self.rewritten > 0 {
            write!(
                f,
                "; rewrote {} not known to be durable",
                plural(self.rewritten, "record")
            )?;
        }
        if let Some(cut) = &self.cut {
            write!(f, "; truncated a torn tail: {cut}")?;
        }
        if let Some(why) = &self.read_only {
            write!(f, "; {why}")?;
        }
        Ok(())
    }
}

/// Reads the log, passes each record after number `after` to `replay`, and returns a writer that continues the log.
/// Changes nothing on disk, except for what the next opening would change in the same way.
pub(crate) fn recover(
    files: Arc<dyn Files>,
    epoch: u64,
    after: u64,
    session: u64,
    replay: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<(LogWriter, Recovery)> {
    let begun = Instant::now();
    let mut found = Recovery {
        last: after,
        ..Recovery::default()
    };
    let read_end = end_and_names(&*files, epoch);
    let (end, names) = read_end.map_err(|stop| stop.into_error(&*files))?;
    for name in &names.temporary {
        let _ = files.remove(name);
    }
    found.other_epochs = names.other_epochs(epoch);
    let mut writer = LogWriter::new(Arc::clone(&files), epoch, session);
    writer.end = end.map_or(0, |end| end.sequence);
    writer.next = after.checked_add(1).ok_or_else(numbers_used_up)?;
    if let Some(sequences) = names.epochs.get(&epoch) {
        // The name of a file that a dead process created may not be durable yet. The name must be durable, since the
        // log continues from this file.
        if let Err(e) = files.sync_directory() {
            writer.names_unsynced_after = Some(after);
            found.read_only = Some(format!("the log's directory cannot be synced: {e}"));
        }
        writer.next_sequence = sequences.last().copied().unwrap_or(0) + 1;
        let mut replay = Replay {
            after,
            replay,
            found: &mut found,
        };
        read(&*files, epoch, sequences, &mut writer, &mut replay)
            .map_err(|stop| stop.into_error(&*files))?;
        writer.unsynced_bytes = writer.unsynced.iter().map(|(_, r)| r.len()).sum();
        found.last = writer.next - 1;
    }
    found.time = begun.elapsed();
    Ok((writer, found))
}

pub(crate) fn numbers_used_up() -> Error {
    Error::limit(Resource::Numbers, "the snapshot numbers are used up")
}

struct Replay<'a> {
    after: u64,
    replay: &'a mut dyn FnMut(u64, &[u8]) -> Result<()>,
    found: &'a mut Recovery,
}

impl Replay<'_> {
    /// Replays the records of a group, except for those that the base includes.
    fn group(&mut self, group: &RecordGroup<'_>, records: &[&[u8]]) -> Result<()> {
        for (record, number) in records.iter().zip(group.first..) {
            if number <= self.after {
                self.found.skipped += 1;
                continue;
            }
            (self.replay)(number, record)?;
            self.found.records += 1;
            self.found.last = number;
        }
        Ok(())
    }
}

fn read(
    files: &dyn Files,
    epoch: u64,
    sequences: &[u64],
    writer: &mut LogWriter,
    replay: &mut Replay<'_>,
) -> Result<(), ScanStop> {
    let links = chain(files, epoch, sequences, Some(replay.after))?;
    for (link, bytes) in contents(files, &links) {
        let bytes = bytes.map_err(|e| Error::io(files.path(&link.name), e))?;
        replay.found.files += 1;
        replay.found.bytes += bytes.len() as u64;
        // Ends of groups of this file at which its durable part may end. Once a later group proves an end to be
        // durable, the ends before it are removed.
        let mut proven = link.sealed.map_or(link.head.whole, |s| s.length);
        let mut ends = VecDeque::from([Durable {
            sealed: Sealed {
                sequence: link.head.sequence,
                length: link.head.size() as u64,
                chain: link.check,
            },
            next: link.head.first,
        }]);
        let walked = walk(link, &bytes, &mut |group, records| {
            proven = proven.max(group.durable);
            replay.group(group, records)?;
            ends.push_back(Durable {
                sealed: Sealed {
                    sequence: link.head.sequence,
                    length: group.end,
                    chain: group.check,
                },
                next: group.first + u64::from(group.count),
            });
            while ends.get(1).is_some_and(|e| e.sealed.length <= proven) {
                ends.pop_front();
            }
            Ok(())
        })?;
        writer.durable = ends.pop_front();
        if let (None, Some(d)) = (link.sealed, writer.durable) {
            let behind = d.sealed.length..walked.length;
            writer.unsynced = not_proven_durable(&bytes, behind, &link.head, replay.after);
        }
        writer.kept.push(OpenFile {
            sequence: link.head.sequence,
            next: walked.next,
            bytes: bytes.len() as u64,
        });
        writer.next = writer.next.max(walked.next);
        writer.newest_first = link.head.first;
        replay.found.cut = walked.cut;
    }
    Ok(())
}

/// Reads a log without changing it, and passes records after number `after` to `record` in order. The log may be in
/// use; its newest groups may then be missing, but no group in between.
///
/// # Errors
/// As [`crate::Log::open`].
pub fn replay(
    files: &dyn Files,
    epoch: u64,
    after: u64,
    record: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Recovery> {
    let begun = Instant::now();
    let mut found = Recovery {
        last: after,
        ..Recovery::default()
    };
    let (_, names) = end_and_names(files, epoch).map_err(|s| s.into_error(files))?;
    found.other_epochs = names.other_epochs(epoch);
    let Some(sequences) = names.epochs.get(&epoch) else {
        return Ok(found);
    };
    let links = chain(files, epoch, sequences, Some(after)).map_err(|s| s.into_error(files))?;
    let mut replay = Replay {
        after,
        replay: record,
        found: &mut found,
    };
    for (link, bytes) in contents(files, &links) {
        let bytes = bytes.map_err(|e| Error::io(files.path(&link.name), e))?;
        replay.found.files += 1;
        replay.found.bytes += bytes.len() as u64;
        let walked = walk(link, &bytes, &mut |group, records| {
            replay.group(group, records)
        });
        replay.found.cut = match walked {
            Ok(walked) => walked.cut,
            Err(ScanStop::Damage(d))
                if has_newer_successor(files, epoch, link.head.sequence, &d)? =>
            {
                break;
            }
            Err(stop) => return Err(stop.into_error(files)),
        };
    }
    found.time = begun.elapsed();
    Ok(found)
}

/// True if damage is only that a file's successor is missing from an earlier list of files, because it was created
/// after that.
fn has_newer_successor(
    files: &dyn Files,
    epoch: u64,
    sequence: u64,
    damage: &Damage,
) -> Result<bool> {
    let later = |s: &u64| *s > sequence;
    Ok(damage.file == file_name(epoch, sequence + 1)
        && names(files)?
            .epochs
            .get(&epoch)
            .is_some_and(|all| all.iter().any(later)))
}

/// The records with numbers above `after` in a range of a file, whose groups were validated before.
fn not_proven_durable(file: &[u8], bytes: Range<u64>, head: &FileHead, after: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end
        && let FoundGroup::Group(group) = read_group(file, at as usize, head)
    {
        let all = group.records().unwrap_or_default();
        let later = all
            .iter()
            .zip(group.first..)
            .filter(|&(_, number)| number > after);
        records.extend(later.map(|(record, number)| (number, record.to_vec())));
        at = group.end;
    }
    records
}
