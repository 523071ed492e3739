//! Backups, restoring, and checking of stores. Reports are instances of the classes in `python/jindou/_reports.py`.

use crate::errors::exception;
use crate::options::token;
use crate::wait::interruptible;
use jindou::{
    BackupInfo, BackupTarget, CancelToken, Database, Error, Progress, RestoreTo, parse_time,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::path::{Path, PathBuf};

/// An instance of a report class with these attributes.
fn report<'py>(
    py: Python<'py>,
    class: &str,
    of: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("jindou._reports")?;
    module.getattr(class)?.call((), Some(of))
}

fn moment(py: Python<'_>, micros: u64) -> PyResult<Bound<'_, PyAny>> {
    py.import("jindou._reports")?
        .call_method1("moment", (micros,))
}

fn info<'py>(py: Python<'py>, info: &BackupInfo) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("name", &info.name)?;
    of.set_item("time", moment(py, info.time)?)?;
    of.set_item("snapshot", info.snapshot)?;
    of.set_item("first_snapshot", info.base)?;
    of.set_item("first_time", moment(py, info.from)?)?;
    of.set_item("bytes", info.bytes)?;
    Ok(of)
}

fn location(path: &Path) -> PyResult<&str> {
    path.to_str().ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{}: the path of a folder of backups must be UTF-8",
            path.display()
        ))
    })
}

fn cancelled_by(cancel: Option<&Bound<'_, PyAny>>) -> PyResult<CancelToken> {
    cancel.map_or_else(|| Ok(CancelToken::new()), token)
}

/// Backs up a database; if it cannot be changed, copies the files of its store.
pub fn take<'py>(
    py: Python<'py>,
    db: &Database,
    store: Option<&Path>,
    to: &Path,
    keep: Option<usize>,
    cancel: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (to, cancel) = (location(to)?, cancelled_by(cancel)?);
    let (done, pruned) = interruptible(py, &cancel, || {
        if keep == Some(0) {
            return Err(Error::Usage(
                "keep=0: at least one backup has to be kept".into(),
            ));
        }
        let target = BackupTarget::folder(to)?;
        let progress = Progress::default();
        let done = match store {
            Some(store) if db.is_writable().is_err() => {
                Database::backup_of(store, &target, &cancel, &progress)?
            }
            _ => db.backup(&target, &cancel, &progress)?,
        };
        let pruned = keep.map(|keep| target.prune(keep)).transpose()?;
        Ok((done, pruned.unwrap_or_default()))
    })?;
    let of = info(py, &done.info)?;
    of.set_item("new_files", done.new_files)?;
    of.set_item("new_bytes", done.new_bytes)?;
    of.set_item("left_out", done.left_out)?;
    of.set_item("removed", pruned.backups)?;
    of.set_item("seconds", done.time.as_secs_f64())?;
    report(py, "BackupReport", &of)
}

/// The backups in a folder, in the order in which they were taken. A damaged one is a `DamagedError` in the list.
#[pyfunction]
pub fn backups(py: Python<'_>, folder: PathBuf) -> PyResult<Bound<'_, PyList>> {
    let folder = location(&folder)?;
    let all = py.detach(|| BackupTarget::existing(folder)?.list());
    let out = PyList::empty(py);
    for backup in all.map_err(exception)? {
        out.append(match backup {
            Ok(backup) => report(py, "BackupInfo", &info(py, &backup)?)?,
            Err(e) => exception(e).into_value(py).into_bound(py).into_any(),
        })?;
    }
    Ok(out)
}

/// Restores a backup to a new store directory, all or nothing. Every byte is compared with its checksum.
///
/// Restores the newest backup in the folder, or the one that `backup` names. With `snapshot`, the store is restored as
/// of that snapshot; with `at` (a `datetime` with a time zone, or text such as `"2026-11-22T07:42:15Z"`), as of that
/// time.
#[pyfunction]
#[pyo3(signature = (folder, store, *, backup = None, snapshot = None, at = None, cancel = None))]
pub fn restore<'py>(
    py: Python<'py>,
    folder: PathBuf,
    store: PathBuf,
    backup: Option<&str>,
    snapshot: Option<u64>,
    at: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (folder, cancel) = (location(&folder)?, cancelled_by(cancel)?);
    let to = match (snapshot, at) {
        (None, None) => RestoreTo::Newest,
        (Some(snapshot), None) => RestoreTo::Snapshot(snapshot),
        (None, Some(at)) => {
            let text: String = match at.cast::<PyString>() {
                Ok(text) => text.extract()?,
                Err(_) => at.call_method0("isoformat")?.extract()?,
            };
            RestoreTo::Time(parse_time(&text).map_err(exception)?)
        }
        (Some(_), Some(_)) => {
            return Err(PyTypeError::new_err("snapshot= and at= exclude each other"));
        }
    };
    let done = interruptible(py, &cancel, || {
        let mut from = BackupTarget::existing(folder)?;
        if let Some(name) = backup {
            from = from.only(name);
        }
        Database::restore(&from, &store, to, &cancel, &Progress::default())
    })?;
    let of = PyDict::new(py);
    of.set_item("backup", done.backup)?;
    of.set_item("snapshot", done.snapshot)?;
    let committed = done.committed.map(|time| moment(py, time)).transpose()?;
    of.set_item("committed", committed)?;
    of.set_item("quads", done.quads)?;
    of.set_item("bytes", done.bytes)?;
    of.set_item("warnings", done.warnings)?;
    report(py, "RestoreReport", &of)
}

/// Compares every byte of a store directory with its checksums, and reads all records of its log. Damage is not raised
/// as an exception but part of the report. Other processes may have the store open.
#[pyfunction]
pub fn check(py: Python<'_>, store: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let found = interruptible(py, &CancelToken::new(), || Database::check(&store))?;
    let of = PyDict::new(py);
    of.set_item("files", found.files)?;
    of.set_item("bytes", found.bytes)?;
    let damages = found.damages.iter().map(ToString::to_string);
    of.set_item("damages", damages.collect::<Vec<_>>())?;
    of.set_item("unlisted", found.unlisted)?;
    report(py, "CheckReport", &of)
}
