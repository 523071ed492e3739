//! `closed.jd`, a file in the log's folder that states the length of the newest log file when the log was last closed.
//! Without this file, truncating that log file afterwards could not be told from a crash that tore its end.
//!
//! ```text
//! jindou-log-closed 1                format version
//! epoch 5b0c…                        id epoch, 16 hex digits
//! file 12                            sequence number of the file
//! length 4567                        bytes of its groups
//! end 01ab…                          xxh3-64 of all lines above
//! ```
//!
//! The file is written after the log file's bytes are durable. A log file that was closed is not written to again:
//! later records go to a new file. So the stated length stays right after a crash, since the newest log file is another
//! one then. A log without `closed.jd` can be read as well.

use crate::files::Files;
use crate::scan::{Damage, ScanStop};
use jindou_model::Error;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const CLOSED: &str = "closed.jd";

const FIRST_LINE: &str = "jindou-log-closed 1\n";
/// Longest length of the file in bytes.
const LONGEST: u64 = 1 << 10;

/// Content of `closed.jd`: the newest log file when the log was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub epoch: u64,
    /// The log file's sequence number.
    pub sequence: u64,
    /// Length of the log file in bytes, up to the end of its last group.
    pub length: u64,
}

impl Closed {
    pub fn to_text(self) -> String {
        let Self {
            epoch,
            sequence,
            length,
        } = self;
        let mut text =
            format!("{FIRST_LINE}epoch {epoch:016x}\nfile {sequence}\nlength {length}\n");
        let sum = xxh3_64(text.as_bytes());
        text += &format!("end {sum:016x}\n");
        text
    }

    /// Parses the text; `None` if it differs from output of [`Self::to_text`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        let lines = std::str::from_utf8(text).ok()?.strip_prefix(FIRST_LINE)?;
        let mut lines = lines.lines();
        let mut word = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let closed = Self {
            epoch: u64::from_str_radix(word("epoch")?, 16).ok()?,
            sequence: word("file")?.parse().ok()?,
            length: word("length")?.parse().ok()?,
        };
        (closed.to_text().as_bytes() == text).then_some(closed)
    }

    /// Reads the file; `None` if it does not exist. Must be called before the log files are read, since the log may be
    /// in use at the same time.
    ///
    /// # Errors
    /// Damage if the content is invalid, since the file is written completely or not at all; [`Error::Io`].
    pub fn read(files: &dyn Files) -> Result<Option<Self>, ScanStop> {
        if !files.appends() {
            return Ok(None);
        }
        match files.read(CLOSED, LONGEST) {
            Ok(text) => match Self::parse(&text) {
                Some(closed) => Ok(Some(closed)),
                None => Err(Damage {
                    file: CLOSED.into(),
                    offset: 0,
                    what: "its contents have changed. It only records the length of the newest log file: if that file is \
                        whole, remove it"
                        .into(),
                }
                .into()),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(files.path(CLOSED), e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_any_change_is_seen() {
        let closed = Closed {
            epoch: 0xABC,
            sequence: 12,
            length: 345,
        };
        let text = closed.to_text().into_bytes();
        assert_eq!(Closed::parse(&text), Some(closed));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bad = text.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(Closed::parse(&bad), None, "{at} {bit}");
            }
            assert_eq!(Closed::parse(&text[..at]), None, "{at}");
        }
    }
}
