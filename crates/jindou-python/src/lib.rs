//! The Python module `jindou._jindou`: Jindou's engine in a Python process. The package in `python/jindou/` exports it
//! to users.
//!
//! | module | job |
//! |---|---|
//! | `terms` | `IRI`, `BlankNode`, `Triple`, `Quad`, and `literal` `Literal` ↔ `oxrdf`'s |
//! | `errors` | the library's errors → the classes of `python/jindou/errors.py` |
//! | `process` | objects that a fork inherits |
//! | `wait` | work without the interpreter's lock, which Ctrl-C cancels |
//! | `options` | keyword arguments → `QueryOptions`, `UpdateOptions` |
//! | `opening` | `open`, `memory` |
//! | `database` | `Database`: what it can do; `query`: queries; `update`: changes and `Transaction`; `loading`: files and text |
//! | `backups` | backups, restored stores, checks |
//! | `prepared` | bindings of queries, by prepared queries that are kept |
//! | `prefixes` | the prefixes of a database, as a dict |
//! | `facts` | counts of a store, reasons of empty answers |
//! | `profile` | `Profile`: what the steps of a query did |
//! | `quads` | quads by their terms, and as N-Quads |
//! | `solutions` | `Solutions`: batches of rows as they come, and tables of all of them |
//! | `rows` | `Row`: rows as Python objects |
//! | `triples` | `Triples`: the answer of CONSTRUCT and DESCRIBE |
//! | `frame` | DataFrames and Arrow tables as quads |
//! | `arrow` | columns of an answer as Arrow arrays, and the stream that hands them over |
//!
//! No lock is held while Python code runs, except for those taken with `MutexExt`, which releases the interpreter's
//! lock while it waits.

mod arrow;
mod backups;
mod database;
mod errors;
mod facts;
mod frame;
mod literal;
mod loading;
mod opening;
mod options;
mod prefixes;
mod prepared;
mod process;
mod profile;
mod quads;
mod query;
mod rows;
mod solutions;
mod terms;
mod triples;
mod update;
mod wait;

use pyo3::prelude::*;

/// Tracks the memory for parsing and planning a query. It is the allocator of this library only; Python's objects have
/// their own.
#[global_allocator]
static ALLOCATOR: jindou::Tracked = jindou::Tracked::new();

/// The engine in the process.
#[pymodule]
fn _jindou(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<terms::Iri>()?;
    m.add_class::<terms::Blank>()?;
    m.add_class::<literal::Lit>()?;
    m.add_class::<terms::PyTriple>()?;
    m.add_class::<terms::PyQuad>()?;
    m.add_class::<options::Cancel>()?;
    m.add_class::<database::PyDatabase>()?;
    m.add_class::<profile::Profile>()?;
    m.add_class::<update::Report>()?;
    m.add_class::<update::Transaction>()?;
    m.add_class::<loading::Loaded>()?;
    m.add_class::<solutions::Solutions>()?;
    m.add_class::<rows::Rows>()?;
    m.add_class::<rows::Row>()?;
    m.add_class::<triples::Triples>()?;
    m.add_class::<prefixes::Prefixes>()?;
    m.add_class::<quads::Quads>()?;
    m.add_class::<quads::QuadIterator>()?;
    m.add_function(wrap_pyfunction!(opening::open, m)?)?;
    m.add_function(wrap_pyfunction!(opening::memory, m)?)?;
    m.add_function(wrap_pyfunction!(loading::load, m)?)?;
    m.add_function(wrap_pyfunction!(backups::backups, m)?)?;
    m.add_function(wrap_pyfunction!(backups::check, m)?)?;
    m.add_function(wrap_pyfunction!(backups::restore, m)?)?;
    Ok(())
}
