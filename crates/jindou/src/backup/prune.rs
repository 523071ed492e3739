//! Removing old backups.

use super::BackupTarget;
use super::document::{self, BackupDocument};
use super::parts;
use jindou_model::{Error, Result};
use std::collections::HashSet;

/// Numbers of backups and bytes that were removed from a backup target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// Number of backups removed.
    pub backups: u64,
    /// Number of files removed, which belonged to no remaining backup.
    pub files: u64,
}

impl BackupTarget {
    /// Removes all backups but the newest `keep`, and the files that none of the kept backups uses. If this is
    /// interrupted, the remaining backups are complete, and the next call removes the remaining files.
    ///
    /// # Errors
    /// [`Error::Usage`] if `keep` is 0; [`Error::Damaged`] if a backup that is kept cannot be read, since its files are
    /// then unknown; [`Error::Conflict`] while another backup is written there; [`Error::Io`].
    pub fn prune(&self, keep: usize) -> Result<PruneReport> {
        if keep == 0 {
            return Err(Error::Usage(
                "at least one backup has to be kept; to remove all of them, remove their folder"
                    .into(),
            ));
        }
        let _alone = self.alone()?;
        let files = &*self.files;
        let there = files.list().map_err(|e| Error::io(files.path(""), e))?;
        let all = self.documents()?;
        let names = self.names(&there);
        let old = names.len().saturating_sub(keep);
        let mut needed = HashSet::new();
        for document in all.into_iter().skip(old) {
            let document = document?;
            needed.extend(document.files.into_iter().flat_map(|f| f.parts));
            needed.extend(document.log.iter().map(BackupDocument::name_of_log));
        }
        let remove = |name: &str| match files.remove(name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(files.path(name), e))
            }
            _ => Ok(()),
        };
        let mut report = PruneReport::default();
        // Documents are removed before the files they name, so that every listed backup has all its files.
        for name in &names[..old] {
            remove(name)?;
            report.backups += 1;
        }
        files
            .sync_directory()
            .map_err(|e| Error::io(files.path(""), e))?;
        let of_backups = |n: &&String| parts::is_name(n) || document::is_log_name(n);
        for name in there.iter().filter(of_backups) {
            if !needed.contains(name) {
                remove(name)?;
                report.files += 1;
            }
        }
        Ok(report)
    }
}
