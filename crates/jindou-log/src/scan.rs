//! Reads a log: finds the files that belong to it and the valid bytes in them, and checks that they were not changed.

use crate::closed::{CLOSED, Closed};
use crate::end::LogEnd;
use crate::files::Files;
use crate::format::{
    FileHead, FollowingGroups, FoundGroup, GroupKind, LONG_HEAD, RecordGroup, Sealed, file_name,
    groups_after, parse_name, read_group,
};
use jindou_model::{Error, Result};
use std::ops::RangeInclusive;

/// A part of a log that was changed or lost after it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file.
    pub file: String,
    /// Position in bytes from which on the file cannot be used.
    pub offset: u64,
    /// Description of the damage, without file and position.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_of_whole_file() {
            true => write!(f, "{}: {}", self.file, self.what),
            false => write!(f, "{}, byte {}: {}", self.file, self.offset, self.what),
        }
    }
}

/// [`Damage::what`] begins with this if a file is missing, so that the damage has no position.
const MISSING: &str = "the file is missing";

impl Damage {
    /// True if the file as a whole is missing, so that the position has no meaning.
    #[must_use]
    pub fn is_of_whole_file(&self) -> bool {
        self.what.starts_with(MISSING)
    }
}

/// Reason why reading a log stopped.
#[derive(Debug)]
pub(crate) enum ScanStop {
    Damage(Damage),
    Error(Error),
}

impl From<Error> for ScanStop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl From<Damage> for ScanStop {
    fn from(d: Damage) -> Self {
        Self::Damage(d)
    }
}

impl ScanStop {
    /// The error for a caller that needs the log.
    pub fn into_error(self, files: &dyn Files) -> Error {
        match self {
            Self::Error(e) => e,
            Self::Damage(d) => {
                let end = files.end_path();
                let of_end = end.file_name().is_some_and(|n| *n == *d.file);
                if of_end {
                    return Error::damaged(end, d.what);
                }
                Error::Damaged {
                    offset: (!d.is_of_whole_file()).then_some(d.offset),
                    message: format!(
                        "the log is damaged: {}. Nothing was changed. The unreadable part has acknowledged updates: restore \
                            the store from a backup, or put the file back as it was",
                        d.what
                    ),
                    file: files.path(&d.file),
                }
            }
        }
    }
}

pub(crate) fn damage(file: &str, offset: u64, what: impl Into<String>) -> Damage {
    Damage {
        file: file.to_owned(),
        offset,
        what: what.into(),
    }
}

/// The files of a log, by epoch.
#[derive(Debug, Default)]
pub(crate) struct LogFileNames {
    /// Sequence numbers of the files of each epoch, ascending.
    pub epochs: std::collections::BTreeMap<u64, Vec<u64>>,
    /// Names of files that were incomplete when a process died.
    pub temporary: Vec<String>,
}

impl LogFileNames {
    /// The sequence numbers of an epoch's files, ascending.
    pub fn of(&self, epoch: u64) -> &[u64] {
        self.epochs.get(&epoch).map_or(&[][..], Vec::as_slice)
    }

    /// All epochs but this one.
    pub fn other_epochs(&self, epoch: u64) -> Vec<u64> {
        let all = self.epochs.keys().copied();
        all.filter(|&e| e != epoch).collect()
    }
}

/// Lists the files of a log; ignores other files.
pub(crate) fn names(files: &dyn Files) -> Result<LogFileNames> {
    let mut found = LogFileNames::default();
    for name in files.list().map_err(|e| Error::io(files.path(""), e))? {
        if let Some((epoch, sequence)) = parse_name(&name) {
            found.epochs.entry(epoch).or_default().push(sequence);
        } else if let Some(whole) = name.strip_suffix(crate::files::TEMPORARY)
            && (parse_name(whole).is_some() || whole == CLOSED)
        {
            found.temporary.push(name);
        }
    }
    found
        .epochs
        .values_mut()
        .for_each(|list| list.sort_unstable());
    Ok(found)
}

/// A file of a chain, in which each file continues the one before.
#[derive(Clone, Debug)]
pub(crate) struct ChainFile {
    pub name: String,
    pub head: FileHead,
    /// Checksum of the head.
    pub check: u64,
    /// End of the valid part of this file, as recorded by the next file; `None` for the newest file.
    pub sealed: Option<Sealed>,
    /// Number of the next file's first record; `None` for the newest file.
    pub next: Option<u64>,
    /// The file's length in bytes when the log was closed, if it was the newest file then; otherwise 0.
    pub closed: u64,
}

/// Follows a log from its newest file back to the file that contains the record after `after`; without `after`, as far
/// as files exist. The result begins with the oldest file.
pub(crate) fn chain(
    files: &dyn Files,
    epoch: u64,
    sequences: &[u64],
    after: Option<u64>,
) -> Result<Vec<ChainFile>, ScanStop> {
    let closed = Closed::read(files)?.filter(|closed| closed.epoch == epoch);
    let mut links: Vec<ChainFile> = Vec::new();
    let mut wanted = sequences.last().map(|&s| (s, None::<(Sealed, u64)>));
    while let Some((sequence, by)) = wanted.take() {
        let name = file_name(epoch, sequence);
        if sequences.binary_search(&sequence).is_err() {
            let Some((_, next)) = by else { break };
            if after.is_none() {
                break;
            }
            let last = next.saturating_sub(1);
            let what = format!("{MISSING}; it has the records up to {last}");
            return Err(damage(&name, 0, what).into());
        }
        let bytes = files.read(&name, LONG_HEAD as u64);
        let bytes = bytes.map_err(|e| Error::io(files.path(&name), e))?;
        let (head, check) = FileHead::read(&bytes).map_err(|what| damage(&name, 0, what))?;
        if (head.epoch, head.sequence) != (epoch, sequence) {
            return Err(damage(&name, 0, "the file's name does not match its contents").into());
        }
        if head.previous.is_some_and(|p| p.sequence >= sequence) {
            return Err(damage(
                &name,
                0,
                "the file names itself or a later file as its predecessor",
            )
            .into());
        }
        wanted = head.previous.map(|p| (p.sequence, Some((p, head.first))));
        if after.is_some_and(|after| head.first <= after.saturating_add(1)) {
            wanted = None;
        }
        links.push(ChainFile {
            name,
            head,
            check,
            sealed: by.map(|(s, _)| s),
            next: by.map(|(_, next)| next),
            closed: match by {
                None => closed
                    .filter(|c| c.sequence == sequence)
                    .map_or(0, |c| c.length),
                Some(_) => 0,
            },
        });
    }
    links.reverse();
    if let (Some(after), Some(oldest)) = (after, links.first())
        && oldest.head.first > after.saturating_add(1)
    {
        let what = format!(
            "the log begins at record {}, but the store needs records from {} on",
            oldest.head.first,
            after.saturating_add(1)
        );
        return Err(damage(&oldest.name, 0, what).into());
    }
    Ok(links)
}

/// Reads the files of a chain in order.
pub(crate) fn contents<'a>(
    files: &'a dyn Files,
    chain: &'a [ChainFile],
) -> impl Iterator<Item = (&'a ChainFile, std::io::Result<Vec<u8>>)> {
    let links = chain.iter();
    links.map(move |link| (link, files.read(&link.name, u64::MAX)))
}

/// The end of a log file that a crash left incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// Name of the file.
    pub file: String,
    /// Position of the first skipped byte.
    pub offset: u64,
    /// Number of skipped bytes, up to the end of the file.
    pub bytes: u64,
    /// Number of complete records among the skipped bytes. None of them was durable.
    pub records: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} bytes from byte {} on were never acknowledged as durable",
            self.file, self.bytes, self.offset
        )?;
        if self.records > 0 {
            write!(f, " ({} whole records among them)", self.records)?;
        }
        Ok(())
    }
}

/// Result of reading a file of a chain.
#[derive(Debug)]
pub(crate) struct Walked {
    /// Position of the end of the last valid group.
    pub length: u64,
    pub chain: u64,
    /// Number of the next record.
    pub next: u64,
    pub cut: Option<Cut>,
}

/// Function that receives a group and its records.
type Visit<'a> = dyn FnMut(&RecordGroup<'_>, &[&[u8]]) -> Result<()> + 'a;

/// Reads the groups of a file in order and passes them to `visit`.
pub(crate) fn walk(
    link: &ChainFile,
    file: &[u8],
    visit: &mut Visit<'_>,
) -> Result<Walked, ScanStop> {
    let name = &link.name;
    let wrong = |offset: u64, what: &str| ScanStop::Damage(damage(name, offset, what));
    let (head, check) = FileHead::read(file).map_err(|what| damage(name, 0, what))?;
    if head != link.head {
        return Err(wrong(0, "the head of the file has changed"));
    }
    let counts = match link.sealed {
        None => file,
        Some(s) => usize::try_from(s.length)
            .ok()
            .and_then(|l| file.get(..l))
            .ok_or_else(|| {
                let what = format!("the file ends here, but had {} bytes", s.length);
                damage(name, file.len() as u64, what)
            })?,
    };
    let mut w = Walked {
        length: head.size() as u64,
        chain: check,
        next: head.first,
        cut: None,
    };
    loop {
        let at = w.length;
        if link.sealed.is_some_and(|s| s.length == at) {
            break;
        }
        let group = match read_group(counts, at as usize, &head) {
            FoundGroup::Group(group) => group,
            FoundGroup::Changed(what) => return Err(wrong(at, what)),
            stop @ (FoundGroup::Torn | FoundGroup::End) => {
                check_end(link, at, &head)?;
                if matches!(stop, FoundGroup::Torn) {
                    w.cut = Some(torn_tail(link, file, counts, at, &head)?);
                }
                break;
            }
        };
        let records = group.records();
        let records =
            records.ok_or_else(|| wrong(at, "group header does not match its records"))?;
        if group.first != w.next || group.chain != w.chain {
            return Err(wrong(at, "a group does not continue the one before it"));
        }
        if group.kind == GroupKind::Continued {
            let next = file_name(head.epoch, head.sequence + 1);
            let what = format!("{MISSING}; it continues {name} with record {}", w.next);
            return Err(damage(&next, 0, what).into());
        }
        visit(&group, &records)?;
        w.length = group.end;
        w.chain = group.check;
        w.next += u64::from(group.count);
    }
    if link.sealed.is_some_and(|s| s.chain != w.chain) {
        return Err(wrong(
            w.length,
            "the next file continues another version of this one",
        ));
    }
    if let Some(next) = link.next
        && next != w.next
    {
        let what = format!(
            "the file ends before record {}, and the next begins at {next}",
            w.next
        );
        return Err(wrong(w.length, &what));
    }
    Ok(w)
}

/// Returns damage unless the groups of a file may end at this position.
fn check_end(link: &ChainFile, at: u64, head: &FileHead) -> Result<(), ScanStop> {
    if link.sealed.is_some() || at < head.whole {
        let what = "a group has changed or is missing";
        return Err(damage(&link.name, at, what).into());
    }
    if at < link.closed {
        let what = format!(
            "a group is missing or has changed: {CLOSED} says that the file had {} bytes when the log was closed",
            link.closed
        );
        return Err(damage(&link.name, at, what).into());
    }
    Ok(())
}

/// Describes the rest of a file after its last valid group as a torn tail. Returns damage if a complete group in the
/// rest records that bytes before that group were durable.
fn torn_tail(
    link: &ChainFile,
    file: &[u8],
    counts: &[u8],
    at: u64,
    head: &FileHead,
) -> Result<Cut, ScanStop> {
    let FollowingGroups { records, durable } = groups_after(counts, at as usize, head);
    if let Some((_, by)) = durable.filter(|&(d, _)| d > at) {
        let what = format!(
            "a group is missing or has changed: the one at byte {by} was written after it was durable"
        );
        return Err(damage(&link.name, at, what).into());
    }
    Ok(Cut {
        file: link.name.clone(),
        offset: at,
        bytes: file.len() as u64 - at,
        records,
    })
}

/// Findings of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Number of files read.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// Number of groups in these files.
    pub groups: u64,
    /// Number of records in these files.
    pub records: u64,
    /// Numbers of the first and the last record of each epoch; `None` for an epoch without records.
    pub epochs: Vec<(u64, Option<RangeInclusive<u64>>)>,
    /// Damage that was found.
    pub damages: Vec<Damage>,
    /// Torn tails, which are not damage and will be skipped by the next opening.
    pub cuts: Vec<Cut>,
    /// Files that no log needs any more. They are not damage, and the next [`crate::Log::truncate`] removes them.
    pub leftovers: Vec<String>,
}

impl LogReport {
    /// True if there is no damage.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }

    /// The result; `None` if it is damage, which then is in the report.
    fn take<T>(&mut self, result: Result<T, ScanStop>) -> Result<Option<T>> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(ScanStop::Damage(d)) => {
                self.damages.push(d);
                Ok(None)
            }
            Err(ScanStop::Error(e)) => Err(e),
        }
    }
}

/// Reads all logs in a folder, of all epochs. Verifies all checksums, that records are consecutive, and that the newest
/// file exists. Changes nothing. If a log is in use, its newest groups may look like a torn tail.
///
/// # Errors
/// Fails if the folder or a file cannot be read. Damage is not an error but part of the report.
pub fn check(files: &dyn Files) -> Result<LogReport> {
    check_all(files, None)
}

/// As [`check`], for a base of this epoch that needs all records after number `after`. A missing file that contains
/// such records is then damage, too.
///
/// # Errors
/// As [`check`].
pub fn check_for(files: &dyn Files, epoch: u64, after: u64) -> Result<LogReport> {
    check_all(files, Some((epoch, after)))
}

fn check_all(files: &dyn Files, base: Option<(u64, u64)>) -> Result<LogReport> {
    let mut report = LogReport::default();
    let end = report.take(LogEnd::read(files, None))?.flatten();
    let names = names(files)?;
    if let Some(end) = end {
        let missing = end.missing(files, names.of(end.epoch));
        report.damages.extend(missing.err());
    }
    report.leftovers = names.temporary;
    for (&epoch, sequences) in &names.epochs {
        let after = base.filter(|b| b.0 == epoch).map(|b| b.1);
        let Some(links) = report.take(chain(files, epoch, sequences, after))? else {
            continue;
        };
        let in_chain: Vec<u64> = links.iter().map(|l| l.head.sequence).collect();
        let out = sequences
            .iter()
            .filter(|s| in_chain.binary_search(s).is_err());
        report.leftovers.extend(out.map(|&s| file_name(epoch, s)));
        let mut first = None;
        let mut last = 0;
        for (link, bytes) in contents(files, &links) {
            let bytes = bytes.map_err(|e| Error::io(files.path(&link.name), e))?;
            report.files += 1;
            report.bytes += bytes.len() as u64;
            let walked = walk(link, &bytes, &mut |group, _| {
                report.groups += 1;
                report.records += u64::from(group.count);
                Ok(())
            });
            if let Some(w) = report.take(walked)? {
                first.get_or_insert(link.head.first);
                last = w.next;
                report.cuts.extend(w.cut);
            }
        }
        let range = first.filter(|&f| f < last).map(|f| f..=last - 1);
        report.epochs.push((epoch, range));
    }
    Ok(report)
}
