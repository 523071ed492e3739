//! `jindou backup` and `jindou restore`.

use super::{cancel_on_interrupt, counted, show_recovery};
use crate::args::{Backup, Restore};
use crate::say::say;
use jindou::{
    Access, BackupInfo, BackupTarget, Database, Error, OpenOptions, Progress, RestoreTo, Result,
    time_text,
};
use jindou_model::units::grouped;
use std::process::ExitCode;

pub fn run(a: &Backup) -> Result<ExitCode> {
    if a.list {
        return list(&BackupTarget::existing(&a.to)?);
    }
    let Some(store) = &a.store else {
        return Err(Error::Usage(
            "no store to back up: name it with --store DIR".into(),
        ));
    };
    let cancel = cancel_on_interrupt();
    let progress = Progress::default();
    let access = Access::Any;
    let options = OpenOptions::default().with_access(access);
    let db = Database::open_with(store, &options)?;
    // The target folder is opened only after the store, so that a missing store leaves no new folder.
    let target = BackupTarget::folder(&a.to)?;
    let report = if db.is_writable().is_ok() {
        show_recovery(&db);
        db.backup(&target, &cancel, &progress)?
    } else {
        // A server has the store open, or its folder is read-only: the durable data is copied without opening the store
        // for writing.
        drop(db);
        Database::backup_of(store, &target, &cancel, &progress)?
    };
    say!(
        "{}: {} bytes, {} of them new in {}, in {:.2} s",
        line(&report.info),
        grouped(report.info.bytes),
        grouped(report.new_bytes),
        counted(report.new_files, "file"),
        report.time.as_secs_f64()
    );
    if report.left_out > 0 {
        eprintln!(
            "jindou: the last {} of the process that has the store open were not durable yet and are not in the backup",
            counted(report.left_out, "transaction")
        );
    }
    if let Some(keep) = a.keep {
        let removed = target.prune(usize::try_from(keep).unwrap_or(usize::MAX))?;
        if removed.backups > 0 || removed.files > 0 {
            say!(
                "removed {} and {} that only older backups need",
                counted(removed.backups, "backup"),
                counted(removed.files, "file")
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(info: &BackupInfo) -> String {
    format!(
        "{} of {}: snapshots {} to {}, restorable to any time since {}",
        info.name,
        time_text(info.time),
        info.base,
        info.snapshot,
        time_text(info.from)
    )
}

fn list(target: &BackupTarget) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let all = target.list()?;
    if all.is_empty() {
        say!("no backups here");
    }
    for backup in all {
        match backup {
            Ok(info) => say!("{}; {} bytes", line(&info), grouped(info.bytes)),
            Err(e) => {
                say!("damaged: {e}");
                code = ExitCode::from(2);
            }
        }
    }
    Ok(code)
}

pub fn restore(a: &Restore) -> Result<ExitCode> {
    let to = match (a.snapshot, a.at) {
        (Some(n), _) => RestoreTo::Snapshot(n),
        (None, Some(time)) => RestoreTo::Time(time),
        (None, None) => RestoreTo::Newest,
    };
    let cancel = cancel_on_interrupt();
    let progress = Progress::default();
    let report = if jindou::replica::is_log(&a.from) {
        if a.backup.is_some() {
            return Err(Error::Usage(format!(
                "{} is a log, which has no backups; choose with --at or --snapshot",
                a.from
            )));
        }
        jindou::replica::restore(&a.from, &a.store, to, &cancel, &progress)?
    } else {
        let mut from = BackupTarget::existing(&a.from)?;
        if let Some(name) = &a.backup {
            from = from.only(name);
        }
        Database::restore(&from, &a.store, to, &cancel, &progress)?
    };
    for warning in &report.warnings {
        eprintln!("jindou: warning: {warning}");
    }
    let committed = report
        .committed
        .map(|t| format!(", committed at {}", time_text(t)));
    say!(
        "{}: snapshot {}{}, {}, from {}",
        a.store.display(),
        report.snapshot,
        committed.unwrap_or_default(),
        counted(report.quads, "quad"),
        report.backup
    );
    Ok(ExitCode::SUCCESS)
}
