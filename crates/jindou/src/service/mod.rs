//! `SERVICE` over HTTP (SPARQL 1.1 Federated Query): sends queries to endpoints on an allow-list, and passes their rows
//! to the engine.
//!
//! A query's text may come from anyone, so the administrator decides which machines it may contact: only hosts on an
//! [`AllowList`], also for redirects. If a name resolves to this machine or its own network, that address must be on
//! the list as well.

mod allow;
mod answer;
mod call;
mod document;
mod json;
mod labels;
mod rows;
mod tls;
mod wide;

pub use allow::{AllowList, Allowed, NotAllowed};
pub use answer::{AnswerError, XmlAnswer};
pub use call::HttpCaller;
pub use json::JsonAnswer;
pub use rows::{EndpointAnswer, TableAnswer, answer_format};
pub use tls::{tls_config, unverified_tls_config};
pub use wide::{MOST_VARIABLES, WideAnswer};
