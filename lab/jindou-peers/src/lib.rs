//! Other engines, installed, loaded and asked the same questions: the fair comparison behind `jindou bench … --peers`.
//!
//! - [`Engine`]: what the harness wants of an engine; [`engines`] drives Oxigraph, Virtuoso, Jena,
//!   DuckDB and a Jindou server.
//! - [`compare`]: the same data into each, the same queries to each in turn, answers compared.
//! - [`report`]: what came out, as a table or JSON.
//! - [`install`]: obtains each engine from its registry, in a pinned version.
//!
//! Nothing else in the project depends on this crate.

pub mod engines;
pub mod install;
pub mod report;

mod compare;
mod engine;
pub mod http;
mod machine;
mod process;
mod seen;
mod sql;

pub use compare::{Named, Options, compare, geometric_mean};
pub use engine::{About, Engine, Failure, Loaded, Memory, Outcome, Timed};
pub use machine::Machine;
pub use process::{disk_usage, own_memory, run_to_end};
pub use seen::{Seen, gives_graph, read_graph, read_json, read_tsv};

/// An error that ends a comparison, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error("{path}: {source}")]
    Io {
        /// Its path.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A program that failed, with the end of what it said.
    #[error("{program} failed ({status}): {said}")]
    Program {
        /// Its name.
        program: String,
        /// Its exit status.
        status: String,
        /// The last lines of its output.
        said: String,
    },
    /// An engine that did not come up, or is not there.
    #[error("{0}")]
    Engine(String),
}

impl Error {
    /// An error at a path.
    pub fn io(path: impl AsRef<std::path::Path>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.as_ref().display().to_string(),
            source,
        }
    }
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
