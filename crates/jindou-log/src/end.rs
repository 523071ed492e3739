//! The end record of a log: the name of its newest file, stored outside of the log's folder. Without the record, the
//! loss of the log's last files, or of the whole log, would go unnoticed.
//!
//! ```text
//! jindou-log-end 1                   format version
//! epoch 5b0c…                        id epoch, 16 hex digits
//! file 12                            sequence number of the newest file; 0: there need not be any
//! first 345                          number of its first record
//! end 01ab…                          xxh3-64 of all lines above
//! ```
//!
//! A directory stores the record twice: next to the log's folder, and as `end.jd` in that folder, which is read if the
//! first copy is missing.
//!
//! The record is replaced, durably, after a new log file has its name and before any record in that file is
//! acknowledged. So the file that the end record names, or a newer one, always exists.

use crate::files::Files;
use crate::format::file_name;
use crate::scan::{Damage, LogFileNames, ScanStop, damage, names};
use jindou_model::{Error, Result};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Name of the end record's file for a log whose folder is called `log`; for other folders, their name replaces `log`.
/// The file is next to the folder.
pub const END: &str = "log-end.jd";

const FIRST_LINE: &str = "jindou-log-end 1\n";
const FIRST_WORD: &str = "jindou-log-end ";

/// Content of the end record: the newest file that the log must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub epoch: u64,
    /// The file's sequence number; 0 if the log need not have any file.
    pub sequence: u64,
    /// Number of the file's first record.
    pub first: u64,
}

impl LogEnd {
    pub fn to_text(self) -> String {
        to_text(FIRST_LINE, self.epoch, self.sequence, ("first", self.first))
    }

    /// Parses the text; `None` if it differs from output of [`Self::to_text`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (epoch, sequence, first) = parse(FIRST_LINE, "first", text)?;
        Some(Self {
            epoch,
            sequence,
            first,
        })
    }

    /// Reads the end record of an epoch's log. `None` for logs that predate end records, if the record is of another
    /// epoch, and if the log need not have any file. Must be called before the files are listed, since newer ones may
    /// be created at the same time.
    pub fn read(files: &dyn Files, epoch: Option<u64>) -> Result<Option<Self>, ScanStop> {
        let path = files.end_path();
        let text = match files.end() {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(e) => return Err(Error::io(path, e).into()),
        };
        match Self::parse(&text) {
            Some(end) => {
                Ok(Some(end)
                    .filter(|e| e.sequence > 0 && epoch.is_none_or(|epoch| e.epoch == epoch)))
            }
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let newer = text.starts_with(FIRST_WORD.as_bytes())
                    && !text.starts_with(FIRST_LINE.as_bytes());
                let what = if newer {
                    "it is damaged or of another format version; use the jindou that wrote it"
                } else {
                    "its contents have changed. It only records which log file is the newest: if no log \
                        file is missing, remove it, and end.jd in the log's folder"
                };
                Err(damage(&name, 0, what).into())
            }
        }
    }

    /// Returns the missing file as damage if the newest of the files with these sequence numbers is older than this
    /// end.
    pub fn missing(&self, files: &dyn Files, sequences: &[u64]) -> Result<(), Damage> {
        if sequences.last().is_some_and(|&s| s >= self.sequence) {
            return Ok(());
        }
        let path = files.end_path();
        let what = format!(
            "the file is missing; {} names it as the newest, with the records from {} on",
            path.file_name().unwrap_or_default().to_string_lossy(),
            self.first
        );
        Err(damage(&file_name(self.epoch, self.sequence), 0, what))
    }
}

/// Reads the end record of an epoch's log, lists the log files, and checks that the newest one exists. The record is read
/// first, since the log may be in use: a file that is created later is newer than the one that the record names.
pub(crate) fn end_and_names(
    files: &dyn Files,
    epoch: u64,
) -> Result<(Option<LogEnd>, LogFileNames), ScanStop> {
    let end = LogEnd::read(files, Some(epoch))?;
    let names = names(files)?;
    if let Some(end) = end {
        end.missing(files, names.of(epoch))?;
    }
    Ok((end, names))
}

/// The text of a record about a log file: the first line, the epoch, the file's sequence number, another number with its
/// name, and the xxh3-64 of all lines before.
pub(crate) fn to_text(first_line: &str, epoch: u64, sequence: u64, last: (&str, u64)) -> String {
    let (name, number) = last;
    let mut text = format!("{first_line}epoch {epoch:016x}\nfile {sequence}\n{name} {number}\n");
    let sum = xxh3_64(text.as_bytes());
    text += &format!("end {sum:016x}\n");
    text
}

/// The three numbers of a text; `None` if it differs from output of [`to_text`].
pub(crate) fn parse(first_line: &str, last: &str, text: &[u8]) -> Option<(u64, u64, u64)> {
    let lines = std::str::from_utf8(text).ok()?.strip_prefix(first_line)?;
    let mut lines = lines.lines();
    let mut word = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let epoch = u64::from_str_radix(word("epoch")?, 16).ok()?;
    let sequence = word("file")?.parse().ok()?;
    let number = word(last)?.parse().ok()?;
    let again = to_text(first_line, epoch, sequence, (last, number));
    (again.as_bytes() == text).then_some((epoch, sequence, number))
}

/// True if the log of an epoch ever had files in this folder, according to its end record. Neither the folder nor the
/// files need exist any more.
///
/// # Errors
/// [`Error::Damaged`] if the record is damaged, [`Error::Io`].
pub fn was_begun(folder: &Path, epoch: u64) -> Result<bool> {
    let files = crate::files::Directory::unchecked(folder);
    LogEnd::read(&files, Some(epoch))
        .map(|end| end.is_some())
        .map_err(|stop| stop.into_error(&files))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also for `closed.jd`, whose text has the same form.
    #[test]
    fn it_comes_back_and_any_change_is_seen() {
        let end = LogEnd {
            epoch: 0xABC,
            sequence: 12,
            first: 345,
        };
        let text = end.to_text().into_bytes();
        assert_eq!(LogEnd::parse(&text), Some(end));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bad = text.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(LogEnd::parse(&bad), None, "{at} {bit}");
            }
            assert_eq!(LogEnd::parse(&text[..at]), None, "{at}");
        }
    }
}
