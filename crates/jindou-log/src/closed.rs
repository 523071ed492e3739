//! The length of a log's newest file at the log's last clean end, in a file of the log's folder. Without it, that file could be
//! cut short afterwards and pass for one that a crash has torn.
//!
//! ```text
//! jindou-log-closed 1                format version
//! epoch 5b0c…                        id epoch, 16 hex digits
//! file 12                            sequence number of the file
//! length 4567                        bytes of its groups
//! end 01ab…                          xxh3-64 of all lines above
//! ```
//!
//! It is written after these bytes are durable, and a file that was closed is not written to again. So it says nothing wrong
//! after a crash: the newest file is another one then. A log without it is read as before.

use crate::files::Files;
use crate::scan::{Damage, ScanStop};
use jindou_model::Error;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// Its name.
pub(crate) const CLOSED: &str = "closed.jd";

const FIRST_LINE: &str = "jindou-log-closed 1\n";
/// Longest such file.
const LONGEST: u64 = 1 << 10;

/// The newest file of a log that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub epoch: u64,
    /// Its sequence number.
    pub sequence: u64,
    /// Bytes of its groups.
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

    /// Parses the text; `None` for anything but output of [`Self::to_text`].
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

    /// Reads the note; `None` without one. It must be read before the files: they may be written meanwhile.
    ///
    /// # Errors
    /// Damage if it is another text: it is written whole or not at all. [`Error::Io`].
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
