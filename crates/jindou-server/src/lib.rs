//! Jindou over HTTP: the SPARQL 1.1 Protocol, the Graph Store Protocol, a service description with VoID statistics,
//! live queries, health and metrics. `docs/server.md` is its user documentation.
//!
//! | module | job |
//! |---|---|
//! | `listen` | sockets, TLS, connections, graceful shutdown |
//! | `stalled` | connections whose readers take nothing |
//! | `auth` | tokens, and what those who carry them may do |
//! | `guard` | the checks that every request passes |
//! | `bodies` | bodies of requests, within the memory of all queries |
//! | `consistency` | what queries over a store with a shared log must see |
//! | `conditions` | entity tags, If-Match and If-None-Match |
//! | `codings` | bodies that come compressed |
//! | `routes` | one file a route |
//! | `negotiate` | Accept, Accept-Encoding and the parameter `format` |
//! | `page` | files of the page for people |
//! | `base` | what relative IRIs of a query stand under |
//! | `run` | one query from admission to its last byte, on a thread of its own |
//! | `write` | one update from admission to its answer |
//! | `admission` | the only way to the database: queries that exist, their shares and limits; `limits`: how many wait for a slot, and which are refused |
//! | `piece` | requests that are answered by one document: plans, descriptions, completions |
//! | `inline` | light queries, answered where their request was read |
//! | `sinks` | where a query's rows go, counted on the way |
//! | `writer` | formatted answers → chunks → the response's body, compressed on the way |
//! | `slots` | how many queries compute at once |
//! | `live` | one query that exists: its limits, its state, its end |
//! | `problem`, `paths` | errors as HTTP answers, without the places of files |
//! | `jobs` | work on the whole store: reclustering |
//! | `kept` | free memory that the allocator keeps while queries run |
//! | `metrics` | counters for Prometheus |
//!
//! The server uses the database only through the crate `jindou`; completion comes from `jindou::complete`.

mod admission;
mod advice;
mod auth;
mod base;
mod batch;
mod bodies;
mod codings;
mod conditions;
mod consistency;
#[doc(hidden)]
pub mod documents;
mod figures;
mod guard;
mod inline;
mod jobs;
mod kept;
mod listen;
mod live;
mod metrics;
mod negotiate;
mod options;
mod paths;
mod piece;
mod problem;
mod profile;
mod quads;
mod registry;
mod response;
mod routes;
mod run;
mod shared;
mod sinks;
mod slots;
mod stalled;
mod tls;
mod write;

/// Milliseconds, to a microsecond.
fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The library, whose types appear in signatures.
pub use jindou;
pub use listen::Server;
pub use options::{ServeError, ServerOptions, TlsFiles};

/// For the laboratory, which compares schedulers under the same admission.
#[doc(hidden)]
pub use admission::limits::{Admission, AdmissionLimits, Refusal, RefusalReason, WorkClass};

/// The names of each parameter of requests, and the routes that take it, for tests that cover each of them.
#[doc(hidden)]
#[must_use]
pub fn parameters() -> &'static [(&'static [&'static str], &'static str)] {
    routes::parameters::PARAMETERS
}

/// Paths of all routes, for tests that cover each of them.
#[doc(hidden)]
#[must_use]
pub fn routes() -> &'static [&'static str] {
    routes::PATHS
}
