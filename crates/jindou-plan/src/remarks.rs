//! Remarks on queries that are valid but probably do not do what their author wants.

use crate::parse::failed;
use jindou_model::Result;
use jindou_model::diagnostic::place;
use jindou_syntax::algebra::TermPattern;
use jindou_syntax::{ParserOptions, PatternCall, extension_of_iri, parse_recorded, pattern_calls};
use jindou_values::pattern::{Pattern, PatternReplacement};

/// Longest text, in bytes, that is searched for calls. A longer query was not written by hand.
const LONGEST: usize = 1 << 20;
/// Largest number of calls whose patterns are checked.
const MOST: usize = 100;

/// Remarks on a query, a sentence each, about extensions of other engines, which are ordinary IRIs here, and about
/// constant patterns of REGEX and REPLACE that are invalid. SPARQL makes a call with an invalid pattern an error in
/// each row; a FILTER drops the rows, so that the query runs and returns nothing.
///
/// # Errors
/// As [`crate::parse_with`].
pub fn remarks(text: &str, options: &ParserOptions) -> Result<Vec<String>> {
    if text.len() > LONGEST {
        return Ok(Vec::new());
    }
    let mut out = extensions(text, options)?;
    if !may_call(text) {
        return Ok(out);
    }
    let calls = pattern_calls(text, options).map_err(failed)?;
    let faults = calls.iter().take(MOST).filter_map(|call| {
        let fault = fault(call)?;
        let name = if call.replaces { "REPLACE" } else { "REGEX" };
        Some(format!(
            "line {}, column {}: {name}: {fault}; the call is an error in each row, and a FILTER with it drops every row",
            call.line, call.column
        ))
    });
    out.extend(faults);
    Ok(out)
}

/// Remarks on the extensions of other engines whose IRIs occur in the query, one for each extension.
fn extensions(text: &str, options: &ParserOptions) -> Result<Vec<String>> {
    let (_, found) = parse_recorded(text, options).map_err(failed)?;
    let mut out = vec![];
    let mut said = vec![];
    for (term, range) in &found.terms {
        let TermPattern::NamedNode(iri) = term else {
            continue;
        };
        let Some(extension) = extension_of_iri(iri.as_str()) else {
            continue;
        };
        if said.contains(&extension.name) || said.len() == MOST {
            continue;
        }
        said.push(extension.name);
        let (line, column) = place(text, range.start);
        out.push(format!(
            "line {line}, column {column}: {}; {}",
            extension.message(),
            extension.instead
        ));
    }
    Ok(out)
}

/// Returns false if the text certainly calls neither REGEX nor REPLACE.
fn may_call(text: &str) -> bool {
    let has = |word: &[u8]| {
        let mut found = text.as_bytes().windows(word.len());
        found.any(|w| w.eq_ignore_ascii_case(word))
    };
    // An escape may stand for a letter of these names.
    has(b"regex") || has(b"replace") || has(b"\\u")
}

/// Reason why a call is an error whatever its text is; `None` if it is valid.
fn fault(call: &PatternCall) -> Option<String> {
    let pattern = match Pattern::new(&call.pattern, &call.flags, call.replaces) {
        Ok(pattern) => pattern,
        Err(e) => return Some(e.to_string()),
    };
    if !call.replaces {
        return None;
    }
    if pattern.matches_empty() {
        return Some("the pattern matches the empty text, expected one that matches at least a character (FORX0003)".into());
    }
    let text = call.replacement.as_ref()?;
    let replacement = PatternReplacement::new(text, pattern.groups(), pattern.is_quoted());
    replacement.is_none().then(|| {
        "the replacement has a `$` without a number behind it, or a `\\` with neither `\\` nor `$` behind it (FORX0004)".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks_of(text: &str) -> Vec<String> {
        remarks(text, &ParserOptions::default()).unwrap()
    }

    #[test]
    fn extensions_of_other_engines_are_said_once() {
        let all = remarks_of(
            "PREFIX bif: <bif:>\nSELECT * { ?s ?p ?o . ?o bif:contains 'a' . ?p bif:contains 'b' }",
        );
        assert_eq!(
            all,
            [
                "line 2, column 26: bif:contains, full-text search, is an extension of Virtuoso that Jindou does not have; write FILTER(CONTAINS(LCASE(?text), \"word\")) or FILTER(REGEX(?text, \"word\", \"i\"))"
            ]
        );
        let all = remarks_of(
            "SELECT * { ?s <http://jena.apache.org/text#query> 'x' SERVICE SILENT <http://wikiba.se/ontology#label> { } }",
        );
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[1].contains("the label service"), "{all:?}");
    }
}
