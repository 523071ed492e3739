//! Opening of databases: store directories, or in memory.

use crate::database::PyDatabase;
use crate::errors::exception;
use crate::wait::interruptible;
use jindou::{Access, Database, Durability, OpenOptions, Runtime, Verify};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Opens a store directory. The database can be changed if no other process is changing the store. With
/// `read_only=True` nothing in the directory is changed; with `read_only=False` it is an error if the database cannot
/// be changed.
///
/// `verify` tells when the store's files are compared with their checksums: `"eager"` (before this returns; some 3 GB
/// per second if they are in memory), `"background"` (afterwards; answers that were given before damage is found may be
/// wrong) or `"off"` (damage may lead to wrong answers). `durability`: `"batch"` (an update that has returned is never
/// lost), or `"none"` (a power failure may lose it). `threads` and `memory` (bytes) limit all queries together. Queries
/// that need more memory write temporary files into `temp_dir` (the store's own folder by default), together at most
/// `temp_limit` bytes. With `create=True`, an empty store is created if there is none.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "the keywords of a Python function"
)]
#[pyo3(signature = (path, *, create = false, read_only = None, verify = "eager", durability = "batch", threads = None, memory = None, temp_dir = None, temp_limit = None))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    create: bool,
    read_only: Option<bool>,
    verify: &str,
    durability: &str,
    threads: Option<usize>,
    memory: Option<u64>,
    temp_dir: Option<PathBuf>,
    temp_limit: Option<u64>,
) -> PyResult<PyDatabase> {
    if create && read_only == Some(true) {
        return Err(PyValueError::new_err(
            "create=True makes a store to be changed: leave out read_only=True",
        ));
    }
    let access = match read_only {
        None => Access::Any,
        Some(true) => Access::Read,
        Some(false) => Access::Write,
    };
    let verify: Verify = verify.parse().map_err(PyValueError::new_err)?;
    let durability = match durability {
        "batch" => Durability::Batch,
        "none" => Durability::None,
        other => {
            let why = format!("durability='{other}': write \"batch\" or \"none\"");
            return Err(PyValueError::new_err(why));
        }
    };
    let mut runtime = Runtime::builder();
    if let Some(threads) = threads {
        runtime = runtime.threads(threads);
    }
    if let Some(memory) = memory {
        runtime = runtime.memory(memory);
    }
    if let Some(folder) = temp_dir {
        runtime = runtime.temp_dir(folder).map_err(exception)?;
    }
    if let Some(limit) = temp_limit {
        runtime = runtime.temp_limit(limit);
    }
    let options = OpenOptions::default()
        .with_access(access)
        .with_create(create)
        .with_verify(verify)
        .with_durability(durability)
        .with_runtime(runtime.build());
    let db = interruptible(py, &Default::default(), || {
        Database::open_with(&path, &options)
    })?;
    Ok(PyDatabase::new(db, Some(path)))
}

/// An empty database in memory, which is lost with the object. For many millions of quads, load a store.
#[pyfunction]
pub fn memory() -> PyDatabase {
    PyDatabase::new(Database::in_memory(), None)
}
