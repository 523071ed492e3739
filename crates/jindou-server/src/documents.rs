//! JSON documents that the server and the command line share.

use jindou::PrefixOrigin;
use jindou::search::{Found, Searched};
use serde_json::{Value, json};
use std::time::Duration;

/// Advice for a search that reached its time limit because the store has no index of words ([`Searched::indexed`]).
pub const NO_WORD_INDEX: &str = "The store has no index of words, so a search looks through all labels and IRIs. Build one with `jindou recluster --text`, or load the data again with `--text`.";

/// The document for the result of a search; `took` is the time that the search took.
#[must_use]
pub fn searched(searched: &Searched, took: Duration) -> Value {
    let results: Vec<Value> = searched.found.iter().map(found).collect();
    let mut made = json!({
        "results": results,
        "complete": searched.complete,
        "indexed": searched.indexed,
        "ms": crate::millis(took),
    });
    if !searched.complete && !searched.indexed {
        made["hint"] = json!(NO_WORD_INDEX);
    }
    made
}

fn found(found: &Found) -> Value {
    let mut made = json!({ "iri": found.iri, "matched": found.matched });
    if let Some(label) = &found.label {
        made["label"] = json!(label.text);
        if let Some(language) = &label.language {
            made["lang"] = json!(language);
        }
    }
    if let Some(class) = &found.class {
        made["class"] = json!(class);
    }
    made
}

/// The document for prefixes with their IRIs and origins.
#[must_use]
pub fn prefixes(prefixes: &[(&str, &str, PrefixOrigin)]) -> Value {
    let one = |(name, iri, origin): &(&str, &str, PrefixOrigin)| json!({ "prefix": name, "iri": iri, "from": origin.name() });
    json!({ "prefixes": prefixes.iter().map(one).collect::<Vec<_>>() })
}
