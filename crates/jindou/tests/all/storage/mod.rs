//! The store on disk: logs, merges, backups, damaged files.

mod backup;
mod damage;
mod freeing;
mod lost_log;
mod merging;
mod numbers;
mod prefixes;
mod recluster;
mod shard_servers;
mod transactions;

use jindou::{
    BackupReport, BackupTarget, CancelToken, Database, Progress, RestoreReport, RestoreTo, Result,
};
use std::path::Path;

fn backup_of(dir: &Path, target: &BackupTarget) -> Result<BackupReport> {
    Database::backup_of(dir, target, &CancelToken::new(), &Progress::default())
}

fn restore(target: &BackupTarget, dir: &Path, to: RestoreTo) -> Result<RestoreReport> {
    let (cancel, progress) = (CancelToken::new(), Progress::default());
    Database::restore(target, dir, to, &cancel, &progress)
}

fn sound(dir: &Path) {
    let report = Database::check(dir).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
}
