//! `SERVICE` over HTTP (SPARQL 1.1 Federated Query): sends queries to the endpoints of an allow-list and gives their
//! rows to the engine.
//!
//! A query's text may come from anyone, so the administrator decides which machines it may contact: only hosts of an
//! [`AllowList`], for redirects as well. A name that resolves to this machine or its own network is only allowed if
//! that address is on the list as well.

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
