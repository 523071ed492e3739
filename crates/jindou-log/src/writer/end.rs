//! Maintains the end record of a log, which names its newest file.

use super::{LogFailure, LogWriter};
use crate::end::LogEnd;
use crate::format::file_name;

impl LogWriter {
    /// Records in the end record that this file is the newest. On an error, removes the file, unless the end record may
    /// name it already; no record in the file was acknowledged yet.
    pub(super) fn record_newest(&mut self, sequence: u64, first: u64) -> Result<(), LogFailure> {
        let end = LogEnd {
            epoch: self.epoch,
            sequence,
            first,
        };
        let Err(e) = self.files.set_end(end.to_text().as_bytes()) else {
            self.end = sequence;
            return Ok(());
        };
        let failure = LogFailure {
            path: self.files.end_path(),
            ..self.failure("", &e)
        };
        if !self.may_be_recorded(sequence) {
            let _ = self.files.remove(&file_name(self.epoch, sequence));
        }
        Err(failure)
    }

    /// True if the end record may name the file with this sequence number; false only if it certainly names an older
    /// one.
    pub(super) fn may_be_recorded(&self, sequence: u64) -> bool {
        match self.files.end() {
            Ok(text) => {
                let there = text.as_deref().and_then(LogEnd::parse);
                there.is_some_and(|t| t.epoch == self.epoch && t.sequence >= sequence)
            }
            Err(_) => true,
        }
    }

    /// Records the newest file in the end record if that does not name it yet, because the log predates end records, or
    /// because a process died between creating the file and recording it. Until this succeeds, the loss of that file
    /// would go unnoticed; but the next record goes to a new file, which is recorded.
    pub fn record_existing_newest(&mut self) -> Result<(), LogFailure> {
        if let Some(newest) = self.mark_unrecorded() {
            // A file must not be recorded while its name is not durable.
            if self.names_unsynced_after.is_some() {
                return Ok(());
            }
            let end = LogEnd {
                epoch: self.epoch,
                sequence: newest,
                first: self.newest_first,
            };
            self.files
                .set_end(end.to_text().as_bytes())
                .map_err(|e| LogFailure {
                    path: self.files.end_path(),
                    ..self.failure("", &e)
                })?;
            self.end = newest;
        }
        self.end_unrecorded_after = None;
        Ok(())
    }

    /// If the end record does not name the newest file, counts that file's records as not durable, since its loss would
    /// go unnoticed, and returns its sequence number.
    pub fn mark_unrecorded(&mut self) -> Option<u64> {
        let newest = self.kept.last()?.sequence;
        if self.end >= newest {
            return None;
        }
        self.end_unrecorded_after = Some(self.newest_first.saturating_sub(1));
        Some(newest)
    }
}
