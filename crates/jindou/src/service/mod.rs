//! `SERVICE` over HTTP (SPARQL 1.1 Federated Query): asks endpoints of an allow-list and gives their rows to the engine.
//!
//! A query's text comes from anyone, so the administrator says which machines it may contact: hosts of an
//! [`AllowList`], no others, redirects included; and names that lead into this machine or its own network only if their
//! address is on the list as well.

mod allow;
mod answer;
mod call;
mod document;
mod labels;
mod tls;
mod wide;

pub use allow::{AllowList, Allowed, NotAllowed};
pub use answer::{AnswerError, XmlAnswer};
pub use call::HttpCaller;
pub use labels::Labels;
pub use tls::tls_config;
pub use wide::{MOST_VARIABLES, WideAnswer};
