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

use crate::end;
use crate::files::{Files, if_found};
use crate::scan::{ScanStop, damage};
use jindou_model::Error;

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
        end::to_text(
            FIRST_LINE,
            self.epoch,
            self.sequence,
            ("length", self.length),
        )
    }

    /// Parses the text; `None` if it differs from output of [`Self::to_text`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (epoch, sequence, length) = end::parse(FIRST_LINE, "length", text)?;
        Some(Self {
            epoch,
            sequence,
            length,
        })
    }

    /// Reads the file; `None` if it does not exist. Must be called before the log files are read, since the log may be
    /// in use at the same time.
    ///
    /// # Errors
    /// Damage if the content is invalid, since the file is written completely or not at all; [`Error::Io`].
    pub fn read(files: &dyn Files) -> Result<Option<Self>, ScanStop> {
        let text = if_found(files.read(CLOSED, LONGEST));
        let Some(text) = text.map_err(|e| Error::io(files.path(CLOSED), e))? else {
            return Ok(None);
        };
        let what = "its contents have changed. It only records the length of the newest log file: if that file is \
            whole, remove it";
        let closed = Self::parse(&text).ok_or_else(|| damage(CLOSED, 0, what))?;
        Ok(Some(closed))
    }
}
