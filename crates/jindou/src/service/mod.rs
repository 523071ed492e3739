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
mod terms;
mod tls;
mod wide;

pub use allow::{AllowList, Allowed, NotAllowed};
pub use answer::{AnswerError, XmlAnswer};
pub use call::HttpCaller;
pub use json::JsonAnswer;
pub use rows::{EndpointAnswer, TableAnswer, answer_format};
pub use tls::{tls_config, unverified_tls_config};
pub use wide::{MOST_VARIABLES, WideAnswer};

#[cfg(test)]
mod tests {
    use super::{AnswerError, EndpointAnswer};
    use jindou_model::term;
    use oxrdf::Term;
    use sparesults::QueryResultsFormat;

    pub(super) type Rows = Vec<Vec<Option<Term>>>;

    /// The variables and the rows of an answer.
    pub(super) fn read(
        format: QueryResultsFormat,
        text: &[u8],
    ) -> Result<(Vec<String>, Rows), AnswerError> {
        let mut answer = EndpointAnswer::open(format, text, "", None)?;
        let names = answer.variables().to_vec();
        let mut rows = Vec::new();
        while let Some(cells) = answer.row()? {
            let decoded = |cell: &Option<Vec<u8>>| cell.as_ref().map(|c| term::decode(c).unwrap());
            rows.push(cells.iter().map(decoded).collect());
        }
        Ok((names, rows))
    }
}
