//! Random small graphs, and random queries over all operators of SPARQL 1.1 with the answers of `spareval`; random
//! damage to texts; an evaluator of expressions written from the specifications; hostile texts of every construct and
//! size; the W3C's test suites.
//!
//! For tests only. A random query has two forms that are equivalent by the standard: one for the engine under test, and
//! one for `spareval` as the oracle, which avoids everything in which `spareval` deviates from the standard
//! ([`Query::oracle`]).

pub mod attack;
pub mod cases;
mod comparing;
mod counting;
mod documents;
mod expression;
mod folders;
pub mod http;
mod inputs;
mod matrix;
mod mutate;
mod oracle;
mod overview;
mod path;
mod ports;
mod query;
mod random;
pub mod reference;
pub mod seeds;
mod served;
mod specified;
mod stopwatch;
pub mod w3c;

pub use comparing::{comparable, comparing_quads, comparing_query};
pub use counting::{Counted, Counting, counted, counted_of_thread, turn};
pub use documents::{Document, documents, may_end};
pub use expression::{Theme, Tree, algebra, tree};
pub use folders::{copy_folder, files_below, unpack};
pub use inputs::{CaseText, case_texts, find, from_environment, shared, shared_too};
pub use matrix::{matrix, random_values};
pub use mutate::Mutator;
pub use oracle::{Answer, answer};
pub use overview::{overview_quads, overview_query};
pub use path::{PathQuery, path_data, path_query};
pub use ports::free_port;
pub use query::{Query, query};
pub use random::{Rng, named, quads, triple};
pub use served::Served;
pub use specified::{as_specified, evaluator, in_pattern as pattern_as_specified};
pub use stopwatch::{Stopwatch, process_time, thread_time, time_of_process};
