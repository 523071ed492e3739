//! The base IRI of queries without a BASE: the address to which the query was sent (SPARQL 1.1 Protocol, section 2.1.7;
//! RFC 3986, section 5.1.3).

use jindou::{DiagnosticKind, Diagnostics, Error, Result};

/// Calls `plan` with a text, with a BASE in front of it if the text needs one. A text that needs none is planned
/// unchanged, so that all addresses share its cached plan. Positions in errors refer to the text as it was sent.
pub(crate) fn under<T>(
    text: &str,
    base: impl Fn() -> Option<String>,
    mut plan: impl FnMut(&str) -> Result<T>,
) -> Result<T> {
    let based = || Some(format!("BASE <{}> {text}", base()?));
    if makes_iris(text) {
        let Some(based) = based() else {
            return plan(text);
        };
        return match plan(&based) {
            Err(Error::Sparql(with)) => Err(Error::Sparql(Box::new(with.moved(text, &based)))),
            Err(with @ Error::Query(_)) => {
                plan(text).map_err(|without| told(without, with, text, &based))
            }
            planned => planned,
        };
    }
    match plan(text) {
        // If no error is about an IRI, a base would not help, and a long text need not be parsed twice.
        Err(Error::Sparql(without)) if !lacks_base(&without) => Err(Error::Sparql(without)),
        Err(without @ (Error::Query(_) | Error::Sparql(_))) => match based() {
            Some(based) => plan(&based).map_err(|with| told(without, with, text, &based)),
            None => Err(without),
        },
        planned => planned,
    }
}

/// True if one of the errors is about an IRI, which may be a relative one that needs a base.
fn lacks_base(faults: &Diagnostics) -> bool {
    faults.all().iter().any(|d| d.kind == DiagnosticKind::Iri)
}

/// Calls `find` with the texts that [`under`] would plan, in the same order, until one is found, for example in a
/// cache.
pub(crate) fn known<T>(
    text: &str,
    base: impl Fn() -> Option<String>,
    find: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let based = || find(&format!("BASE <{}> {text}", base()?));
    if makes_iris(text) {
        return based().or_else(|| find(text));
    }
    find(text).or_else(based)
}

/// Chooses the error to report, from the errors of the text without the base and with it.
fn told(without: Error, with: Error, text: &str, based: &str) -> Error {
    match (without, with) {
        // The text only lacked a base, so the errors with the base are reported.
        (Error::Sparql(without), Error::Sparql(with)) if lacks_base(&without) => {
            Error::Sparql(Box::new(with.moved(text, based)))
        }
        (without, Error::Query(_) | Error::Sparql(_)) => without,
        // The second attempt ended for another reason (time, memory or cancellation), so it is unknown whether the base
        // helps.
        (_, with) => with,
    }
}

/// True if the text may call `IRI` or `URI`, which resolve relative IRIs when the query runs.
fn makes_iris(text: &str) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let before = text.as_bytes()[..at].trim_ascii_end();
        let name = before.len().checked_sub(3).map(|from| &before[from..]);
        name.is_some_and(|n| n.eq_ignore_ascii_case(b"iri") || n.eq_ignore_ascii_case(b"uri"))
    })
}

/// The text without the byte order mark with which some editors begin a file.
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
    fn a_limit_is_no_fault_of_the_text() {
        let db = jindou::Database::in_memory();
        let lacks = |text: &str| db.plan(text, &jindou::QueryOptions::default()).map(|_| ());
        let base = || Some("http://e/".to_owned());
        let plan = |text: &str| match text.starts_with("BASE") {
            true => Err(Error::Cancelled),
            false => lacks(text),
        };
        let ended = under("ASK { <s> <p> 1 }", base, plan);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        let mut texts = 0;
        let wrong = under("ASK { ?s ?p }", base, |text| {
            texts += 1;
            lacks(text)
        });
        assert!(matches!(wrong, Err(Error::Sparql(_))) && texts == 1);
        assert!(under("ASK { <s> <p> 1 }", base, lacks).is_ok());
    }

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
