//! HTTP server: the SPARQL 1.1 Protocol, the Graph Store Protocol, a service description with VoID statistics,
//! management of running queries, health checks and metrics. `docs/server.md` documents it for users.
//!
//! | module | job |
//! |---|---|
//! | `listen` | sockets, TLS, connections, graceful shutdown |
//! | `local` | the Unix socket |
//! | `stalled` | cuts connections whose readers do not read, when memory is short |
//! | `write_buffer` | sends the responses to pipelined requests together |
//! | `auth` | tokens, and the rights that they grant |
//! | `guard` | checks that every request must pass |
//! | `bodies` | charges request bodies to the memory of all queries |
//! | `consistency` | how fresh the data for a query must be, for a store with a shared log |
//! | `conditions` | entity tags, If-Match and If-None-Match |
//! | `codings` | decodes compressed request bodies |
//! | `routes` | one file for each route |
//! | `negotiate` | Accept, Accept-Encoding and the parameter `format` |
//! | `page` | files of the web page |
//! | `base` | base IRI for relative IRIs in queries |
//! | `run` | runs one query on a thread of its own, from admission to its last byte |
//! | `write` | runs one update, from admission to its answer |
//! | `admission` | the only access to the database: lists and limits queries; `limits`: how many may wait for a slot, and which are refused |
//! | `piece` | requests that are answered with one document: plans, descriptions, completions |
//! | `inline` | answers light queries on the network thread |
//! | `sinks` | counts a query's rows and passes them on |
//! | `response` | splits an answer into chunks, compresses them, and sends them to the response's body |
//! | `slots` | limits how many queries compute at the same time |
//! | `live` | one running query: its limits, its state, its cancellation |
//! | `problem`, `paths` | errors as HTTP responses, without paths of files |
//! | `jobs` | jobs on the whole store, such as reclustering |
//! | `kept` | returns free memory to the system while queries run |
//! | `metrics`, `figures` | metrics for Prometheus |
//!
//! The server uses the database only through the crate `jindou`.

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
mod local;
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
mod slow;
mod stalled;
mod tls;
mod write;
mod write_buffer;

/// Milliseconds, rounded to microseconds.
fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The library, since signatures contain its types.
pub use jindou;
pub use listen::Server;
pub use options::{ServeError, ServerOptions, TlsFiles};

/// For benchmarks in `lab/`, which compare schedulers with the same admission.
#[doc(hidden)]
pub use admission::limits::{Admission, AdmissionLimits, Refusal, RefusalReason, WorkClass};

/// The names of each request parameter, and the routes that accept it; for tests that cover all of them.
#[doc(hidden)]
#[must_use]
pub fn parameters() -> &'static [(&'static [&'static str], &'static str)] {
    routes::parameters::PARAMETERS
}

/// The paths of all routes; for tests that cover all of them.
#[doc(hidden)]
#[must_use]
pub fn routes() -> &'static [&'static str] {
    routes::PATHS
}
