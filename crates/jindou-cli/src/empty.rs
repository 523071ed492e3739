//! Explanations of empty answers, on standard error.

use jindou::{Database, QueryOptions, Reason, ReasonKind};
use std::io::IsTerminal;

/// Explains why an answer is empty, if standard error is a terminal. An answer of one row may be empty, too: `COUNT` of
/// no rows gives one row with 0.
pub(crate) fn say_why(db: &Database, text: &str, options: &QueryOptions, rows: u64) {
    if std::io::stderr().is_terminal() {
        say(db, text, options, rows);
    }
}

/// Explains why an answer is empty, whether or not standard error is a terminal.
pub(crate) fn say(db: &Database, text: &str, options: &QueryOptions, rows: u64) {
    if !may_be_empty(text, rows) {
        return;
    }
    // The answer is complete; a missing explanation does not make it an error.
    let Ok(reasons) = db.why_empty(text, options) else {
        return;
    };
    for (n, reason) in reasons.iter().enumerate() {
        let rows = match (n, rows) {
            (0, 0) => "0 rows: ",
            (0, _) => "Nothing found: ",
            _ => "",
        };
        eprintln!("{rows}{}", told(reason));
    }
}

/// True if the answer has no rows, or one row that may be the result of an aggregate over no rows.
fn may_be_empty(text: &str, rows: u64) -> bool {
    let has = |word: &[u8]| {
        let mut found = text.as_bytes().windows(word.len());
        found.any(|w| w.eq_ignore_ascii_case(word))
    };
    rows == 0 || rows == 1 && [&b"count"[..], b"sum", b"avg", b"ask"].into_iter().any(has)
}

/// The reason's message, with advice in terms of the command's options.
fn told(reason: &Reason) -> String {
    let advice = match reason.kind {
        ReasonKind::EmptyDefaultGraph if !reason.message.starts_with("the store") => {
            Some("--graphs all looks into all graphs")
        }
        ReasonKind::OtherGraphs
            if ["nothing in the default graph", "over all graphs"]
                .iter()
                .any(|start| reason.message.starts_with(start)) =>
        {
            Some("--graphs all looks into all graphs")
        }
        _ => None,
    };
    let mut line = reason.to_string();
    if let Some(advice) = advice {
        line.push_str("; ");
        line.push_str(advice);
    }
    if !line.ends_with(['?', '.']) {
        line.push('.');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_may_be_of_nothing_are_looked_at() {
        assert!(may_be_empty("SELECT * { ?s ?p ?o }", 0));
        assert!(may_be_empty("SELECT (Count(*) AS ?n) { ?s ?p ?o }", 1));
        assert!(may_be_empty("ASK { ?s ?p ?o }", 1));
        assert!(!may_be_empty("SELECT * { ?s ?p ?o }", 1));
        assert!(!may_be_empty("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", 2));
    }
}
