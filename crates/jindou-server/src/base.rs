//! The base that a query's relative IRIs stand under when it has none of its own: the address it was sent to (SPARQL 1.1
//! Protocol, section 2.1.7; RFC 3986, section 5.1.3).

use jindou::{Error, Result};

/// Plans a text under a base with `plan`: the text itself where no base matters, so that one plan serves all addresses. The
/// error is that of the text as it came, so that its position is right.
pub(crate) fn under<T>(
    text: &str,
    base: Option<&str>,
    mut plan: impl FnMut(&str) -> Result<T>,
) -> Result<T> {
    let Some(base) = base else {
        return plan(text);
    };
    let based = || format!("BASE <{base}> {text}");
    if makes_iris(text) {
        return match plan(&based()) {
            Err(Error::Query(_) | Error::Sparql(_)) => plan(text),
            planned => planned,
        };
    }
    match plan(text) {
        Err(error @ (Error::Query(_) | Error::Sparql(_))) => plan(&based()).map_err(|_| error),
        planned => planned,
    }
}

/// True if the text may call `IRI` or `URI`, which resolve when the query runs.
fn makes_iris(text: &str) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let before = text.as_bytes()[..at].trim_ascii_end();
        let name = before.len().checked_sub(3).map(|from| &before[from..]);
        name.is_some_and(|n| n.eq_ignore_ascii_case(b"iri") || n.eq_ignore_ascii_case(b"uri"))
    })
}

/// A text without the mark that some editors put in front of it.
pub(crate) fn unmarked(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_seen_in_any_spelling() {
        for text in ["IRI(?x)", "BIND(uri (?x) AS ?y)", "Iri\n(", "isIRI(?x)"] {
            assert!(makes_iris(text), "{text}");
        }
        for text in ["SELECT (?x AS ?y) {}", "(", "ri(", ""] {
            assert!(!makes_iris(text), "{text}");
        }
    }
}
