//! The harness's interface to an engine.

use crate::engines::Server;
use crate::http::Endpoint;
use crate::{Result, Seen};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Facts about an engine that a reader needs to judge its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Short name, the one `--peers` takes.
    pub name: String,
    /// Its version, as it says itself.
    pub version: String,
    /// Licence it is under.
    pub licence: String,
    /// Memory, threads and indexes it was given, and how its answers reached the client.
    pub how: String,
    /// True if the client reached it over HTTP.
    pub over_http: bool,
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident at most: own memory and the mapped files' pages.
    pub resident: u64,
    /// Of that, own (anonymous) at most.
    pub own: u64,
}

impl Memory {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            own: self.own.max(other.own),
        }
    }
}

/// Time, disk space and memory that a load took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// From the start of the loader to the end of its last step (checkpoint, statistics, indexes).
    pub seconds: f64,
    /// Blocks that the store takes on disk, in bytes.
    pub disk: u64,
    /// Peak over the loader's processes.
    pub memory: Memory,
}

/// One timed run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// From before the query's text leaves the client to after its answer's last byte has come.
    pub seconds: f64,
    /// Bytes of the answer.
    pub bytes: u64,
}

/// Reason why a query has no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The query took longer than it may; the engine may be busy with it still.
    #[error("timed out")]
    Timeout,
    /// The driver cannot ask this (a query that has no translation into SQL yet).
    #[error("not asked: {0}")]
    NotAsked(String),
    /// The engine answered with an error.
    #[error("{0}")]
    Refused(String),
    /// The connection or the process broke; the engine must be started again.
    #[error("{0}")]
    Broken(String),
}

/// A query's result.
pub type Outcome<T> = std::result::Result<T, Failure>;

/// An engine: installed, with a folder of its own to keep its store in.
///
/// The order of calls is `load` (or not, if the store is there), `start`, then `time` and `check` any number of
/// times, `stop`; and `start` again. After [`Failure::Timeout`] and [`Failure::Broken`] the harness stops and starts it.
pub trait Engine {
    /// Version, licence and set-up. Valid before `load` already.
    fn about(&self) -> About;

    /// Loads a file of N-Triples in the canonical layout (one space between terms and before the dot, only the
    /// escapes that are needed) into an empty store; nothing runs afterwards.
    fn load(&mut self, data: &Path) -> Result<Loaded>;

    /// Makes it ready to answer.
    fn start(&mut self) -> Result<()>;

    /// Its HTTP server, for an engine that has one; the methods below then ask that.
    fn server(&mut self) -> Option<&mut Server> {
        None
    }

    /// Answers a query into nothing, counting bytes (SPARQL Results TSV).
    fn time(&mut self, query: &str, limit: Duration) -> Outcome<Timed> {
        endpoint(self.server())?.time(query, limit)
    }

    /// Answers a query and reads every term of the answer.
    fn check(&mut self, query: &str, limit: Duration) -> Outcome<Seen> {
        endpoint(self.server())?.check(query, limit)
    }

    /// Answers a query as SPARQL Results JSON, the whole text. Only engines with a server do.
    ///
    /// # Errors
    /// As the engine says; [`Failure::NotAsked`] for one that has no server.
    fn answer(&mut self, query: &str, limit: Duration) -> Outcome<Vec<u8>> {
        endpoint(self.server())?.answer(query, limit)
    }

    /// The most memory it had since `start`; zeros when it does not run.
    fn memory(&mut self) -> Memory {
        self.server().map_or(Memory::default(), |s| s.memory())
    }

    /// Ends it. Does nothing when it does not run.
    fn stop(&mut self) {
        if let Some(server) = self.server() {
            server.stop();
        }
    }
}

fn endpoint(server: Option<&mut Server>) -> Outcome<&mut Endpoint> {
    match server {
        Some(server) => server.endpoint(),
        None => Err(Failure::NotAsked("it has no server".into())),
    }
}
