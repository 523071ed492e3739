//! Prefixes, and the abbreviation of IRIs by them.

use jindou_model::prefixes::PrefixTable;
use rustc_hash::FxHashMap;

/// Prefixes with their IRIs, for abbreviating other IRIs.
///
/// ```
/// use jindou::results::Prefixes;
///
/// let mut prefixes = Prefixes::common();
/// prefixes.declare("e", "http://example.org/");
/// assert_eq!(prefixes.shorten("http://example.org/mars").as_deref(), Some("e:mars"));
/// assert_eq!(prefixes.shorten("http://xmlns.com/foaf/0.1/name").as_deref(), Some("foaf:name"));
/// assert_eq!(prefixes.shorten("http://other.org/"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    iris: FxHashMap<String, String>,
    names: FxHashMap<String, String>,
}

impl Prefixes {
    /// An empty list of prefixes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The common prefixes ([`COMMON_PREFIXES`](crate::COMMON_PREFIXES)).
    #[must_use]
    pub fn common() -> Self {
        let mut all = Self::new();
        for (name, iri) in jindou_plan::COMMON_PREFIXES {
            all.iris.insert((*name).into(), (*iri).into());
            // If several common prefixes have the same namespace, the first one is used for it.
            all.names
                .entry((*iri).into())
                .or_insert_with(|| (*name).into());
        }
        all
    }

    /// Adds a prefix, or replaces its IRI.
    pub fn declare(&mut self, name: impl Into<String>, iri: impl Into<String>) {
        let (name, iri) = (name.into(), iri.into());
        if let Some(before) = self.iris.insert(name.clone(), iri.clone())
            && before != iri
            && self.names.get(&before) == Some(&name)
        {
            self.names.remove(&before);
        }
        self.names.insert(iri, name);
    }

    /// Adds the prefixes of a store ([`Database::prefixes`](crate::Database::prefixes)).
    pub fn declare_all(&mut self, store: &PrefixTable) {
        for (name, iri, _) in store.iter() {
            self.declare(name, iri);
        }
    }

    /// Adds the prefixes that a SPARQL text declares. O(length).
    pub fn declare_of(&mut self, text: &str) {
        for (name, iri) in jindou_plan::prefixes_of(text).declared {
            self.declare(name, iri);
        }
    }

    /// True if there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iris.is_empty()
    }

    /// The IRI of a prefix.
    #[must_use]
    pub fn iri(&self, name: &str) -> Option<&str> {
        self.iris.get(name).map(String::as_str)
    }

    /// All prefixes with their IRIs, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iris.iter().map(|(n, i)| (n.as_str(), i.as_str()))
    }

    /// The abbreviation of an IRI by the prefix with the longest namespace. `None` if the IRI begins with no such
    /// namespace of at most 2,048 bytes, or if the remaining text would need an escape. O(length).
    #[must_use]
    pub fn shorten(&self, iri: &str) -> Option<String> {
        let (name, local) = self.split(iri)?;
        Some(format!("{name}:{local}"))
    }

    /// The prefix with exactly this namespace.
    pub(super) fn name_of(&self, namespace: &str) -> Option<&str> {
        self.names.get(namespace).map(String::as_str)
    }

    /// As [`Self::shorten`], as two parts: the prefix, and the text after the colon.
    pub(super) fn split<'i>(&self, iri: &'i str) -> Option<(&str, &'i str)> {
        for namespace in namespaces(iri) {
            if let Some(name) = self.names.get(namespace) {
                let local = &iri[namespace.len()..];
                return is_local(local).then_some((name.as_str(), local));
            }
        }
        None
    }
}

/// Longest namespace that is looked up, in bytes. Without a limit, an IRI with many `_` would have as many candidates
/// as bytes, and looking up all of them would take quadratic time.
const LONGEST: usize = 2048;

/// The beginnings of an IRI that may be a namespace, longest first: the whole IRI, and those that end in `_`, down to
/// the first one that ends in `#`, `/` or `:`. After a shorter beginning, the remaining text would need an escape.
/// O(length), without the caller's work for each.
pub(crate) fn namespaces(iri: &str) -> impl Iterator<Item = &str> {
    const ENDS: [char; 3] = ['#', '/', ':'];
    let mut ended = false;
    let ends = iri.char_indices().rev().filter_map(|(at, c)| {
        let end = at + c.len_utf8();
        (ENDS.contains(&c) || c == '_' || end == iri.len()).then_some(&iri[..end])
    });
    ends.take_while(move |namespace| !std::mem::replace(&mut ended, namespace.ends_with(ENDS)))
        .filter(|namespace| namespace.len() <= LONGEST)
}

/// True for text that can be a local name without escapes. Accepts fewer forms than SPARQL, so some IRIs are not
/// abbreviated.
fn is_local(local: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let ends = |c: char| inner(c) && c != '.';
    local.chars().all(inner)
        && !local.starts_with(['-', '.'])
        && (local.is_empty() || local.ends_with(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_iris_are_read_once() {
        let long = "http://e/".to_owned() + &"b/".repeat(1 << 20);
        let lines = "http://e/".to_owned() + &"_".repeat(1 << 20);
        let mut p = Prefixes::new();
        p.declare("e", "http://e/");
        p.declare("l", &long[..1 << 20]);
        let begun = jindou_testing::Stopwatch::start();
        assert_eq!(p.split(&long), None);
        assert_eq!(p.split(&lines), Some(("e", &lines[9..])));
        // An algorithm that is quadratic in the IRI's length took minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn the_longest_namespace_counts() {
        let mut p = Prefixes::common();
        for (iri, short) in [
            ("http://www.w3.org/2001/XMLSchema#date", Some("xsd:date")),
            ("http://www.wikidata.org/prop/direct/P31", Some("wdt:P31")),
            ("http://www.wikidata.org/prop/P31", Some("p:P31")),
            (
                "http://purl.obolibrary.org/obo/GO_0008150",
                Some("obo:GO_0008150"),
            ),
            ("http://www.wikidata.org/prop/x/P31", None),
            ("http://schema.org/", Some("schema:")),
            ("http://schema.org/a.b", Some("schema:a.b")),
            ("http://schema.org/a.", None),
            ("http://schema.org/-a", None),
            ("http://schema.org/a(b)", None),
            ("http://schema.org/a%20b", None),
            ("urn:x", None),
            ("", None),
        ] {
            assert_eq!(p.shorten(iri).as_deref(), short, "{iri}");
        }
        // A query's own declaration of a prefix replaces the common one, which then abbreviates no IRI.
        p.declare("schema", "http://e/");
        assert_eq!(p.shorten("http://schema.org/a"), None);
        assert_eq!(p.shorten("http://e/a").as_deref(), Some("schema:a"));
        p.declare_of("# PREFIX no: <http://no/>\nPREFIX x: <http://e/x/> prefix : <http://e/d#> SELECT * { ?s x:p 'PREFIX y: <http://y/>' }");
        assert_eq!(p.shorten("http://e/x/a").as_deref(), Some("x:a"));
        assert_eq!(p.shorten("http://e/d#a").as_deref(), Some(":a"));
        assert_eq!((p.iri("no"), p.iri("y")), (None, None));
    }
}
