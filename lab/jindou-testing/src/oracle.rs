//! Answers of `spareval` over a small dataset.

use oxrdf::{Dataset, Quad, Term};
use spareval::QueryResults;

/// A query's answer; the order of its rows does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer of an ASK query.
    Boolean(bool),
    /// Names of columns, and rows of terms; `None` if unbound.
    Rows(Vec<String>, Vec<Vec<Option<Term>>>),
}

impl Answer {
    /// The rows as sorted text. Blank nodes of the data keep their labels; labels that the evaluation assigned are
    /// removed.
    pub fn bag(&self) -> Vec<String> {
        match self {
            Self::Boolean(b) => vec![b.to_string()],
            Self::Rows(_, rows) => {
                let mut out: Vec<String> = rows.iter().map(|r| row(r)).collect();
                out.sort();
                out
            }
        }
    }
}

fn row(r: &[Option<Term>]) -> String {
    r.iter()
        .map(|t| t.as_ref().map_or("-".to_owned(), ToString::to_string))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The answer of `spareval` to a query over `quads`.
///
/// # Errors
/// The message of the parser or of `spareval`.
pub fn answer(quads: &[Quad], text: &str) -> Result<Answer, String> {
    let mut query = spargebra::SparqlParser::new()
        .parse_query(text)
        .map_err(|e| e.to_string())?;
    crate::as_specified(&mut query);
    let mut data = Dataset::new();
    for q in quads {
        data.insert(q);
    }
    let results = crate::evaluator()
        .prepare(&query)
        .execute(&data)
        .map_err(|e| e.to_string())?;
    Ok(match results {
        QueryResults::Boolean(b) => Answer::Boolean(b),
        QueryResults::Solutions(s) => {
            let columns = s
                .variables()
                .iter()
                .map(|v| v.as_str().to_owned())
                .collect();
            let rows = s
                .map(|r| r.map(|r| r.values().to_vec()))
                .collect::<Result<_, _>>()
                .map_err(|e| e.to_string())?;
            Answer::Rows(columns, rows)
        }
        QueryResults::Graph(_) => return Err("CONSTRUCT and DESCRIBE are not compared here".into()),
    })
}
