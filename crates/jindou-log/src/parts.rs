//! The parts of a log that a backup copies: beginnings of its files, which never change again.

use crate::end::end_and_names;
use crate::files::Files;
use crate::format::{FileHead, Sealed, file_name, parse_name};
use crate::scan::{ChainFile, chain, contents, walk};
use jindou_model::{Error, Result};

/// The beginning of a log file, up to the end of a group. Parts with equal name, length and chain have equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Name of the file.
    pub name: String,
    /// Length of the part in bytes.
    pub length: u64,
    /// Checksum of the part's last group; without groups, of the file's head.
    pub chain: u64,
    /// Number of the part's first record.
    pub first: u64,
    /// Number of the record after the part's last one.
    pub next: u64,
}

/// The parts of an epoch's log that contain all durable records after `after`. They end with the group of record
/// `acknowledged`, which was acknowledged to a caller; if that is `None`, at the last position that the log itself
/// records as durable. The log may be in use.
///
/// # Errors
/// [`Error::Damaged`] for damage, with its position; [`Error::Io`]. If the log is in use, a retry may succeed.
pub fn parts(
    files: &dyn Files,
    epoch: u64,
    after: u64,
    acknowledged: Option<u64>,
) -> Result<Vec<LogPart>> {
    let (_, names) = end_and_names(files, epoch).map_err(|s| s.into_error(files))?;
    let Some(sequences) = names.epochs.get(&epoch) else {
        return Ok(Vec::new());
    };
    let links = chain(files, epoch, sequences, Some(after)).map_err(|s| s.into_error(files))?;
    let mut parts = Vec::with_capacity(links.len());
    for link in &links {
        let mut part = LogPart {
            name: link.name.clone(),
            length: 0,
            chain: 0,
            first: link.head.first,
            next: link.head.first,
        };
        if let (Some(sealed), Some(next)) = (link.sealed, link.next) {
            (part.length, part.chain, part.next) = (sealed.length, sealed.chain, next);
        } else {
            newest(files, link, acknowledged, &mut part)?;
        }
        if part.next > part.first {
            parts.push(part);
        }
    }
    Ok(parts)
}

/// Sets the end of the part that is the newest file.
fn newest(
    files: &dyn Files,
    link: &ChainFile,
    acknowledged: Option<u64>,
    part: &mut LogPart,
) -> Result<()> {
    let mut all = contents(files, std::slice::from_ref(link));
    let Some((_, bytes)) = all.next() else {
        return Ok(());
    };
    let bytes = bytes.map_err(|e| Error::io(files.path(&link.name), e))?;
    let mut groups = Vec::new();
    let mut proven = link.head.whole;
    walk(link, &bytes, &mut |group, _| {
        proven = proven.max(group.durable);
        groups.push((
            group.first,
            group.first + u64::from(group.count),
            group.end,
            group.check,
        ));
        Ok(())
    })
    .map_err(|s| s.into_error(files))?;
    let counts = |first: u64, end: u64| match acknowledged {
        Some(n) => first <= n || end <= proven,
        None => end <= proven,
    };
    for (first, next, end, check) in groups {
        if !counts(first, end) {
            break;
        }
        (part.next, part.length, part.chain) = (next, end, check);
    }
    Ok(())
}

/// Describes a part as a file of a chain, so that it can be read; `None` if `bytes` are not the beginning of that file.
fn link_of(bytes: &[u8], part: &LogPart) -> Option<ChainFile> {
    let (epoch, sequence) = parse_name(&part.name)?;
    let (head, check) = FileHead::read(bytes).ok()?;
    let ours = (head.epoch, head.sequence, head.first) == (epoch, sequence, part.first);
    ours.then(|| ChainFile {
        name: file_name(epoch, sequence),
        head,
        check,
        sealed: Some(Sealed {
            sequence,
            length: part.length,
            chain: part.chain,
        }),
        next: Some(part.next),
        closed: 0,
    })
}

/// True if these bytes are the content of the part.
#[must_use]
pub fn is_part(bytes: &[u8], part: &LogPart) -> bool {
    bytes.len() as u64 == part.length
        && link_of(bytes, part).is_some_and(|link| walk(&link, bytes, &mut |_, _| Ok(())).is_ok())
}

/// The record that follows number `after`, given the bytes of the part that contains it; `None` if the part does not
/// contain it.
#[must_use]
pub fn record_after(bytes: &[u8], part: &LogPart, after: u64) -> Option<Vec<u8>> {
    let link = link_of(bytes, part)?;
    let mut found = None;
    // The result is ignored: once the record is found, an error ends the walk.
    let _ = walk(&link, bytes, &mut |group, records| {
        let wanted = after.saturating_add(1).checked_sub(group.first);
        let wanted = wanted.and_then(|at| usize::try_from(at).ok());
        match wanted.and_then(|at| records.get(at)) {
            Some(record) => {
                found = Some(record.to_vec());
                Err(Error::Cancelled)
            }
            None => Ok(()),
        }
    });
    found
}
