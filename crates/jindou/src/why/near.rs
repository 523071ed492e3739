//! IRIs in the store that are similar to a given one: misspelt by a letter, in another namespace, or with `http`
//! instead of `https`.

use super::probe::{ProbedGraphs, Prober};
use jindou_graph::Graph;
use jindou_model::{PredicateId, VertexId, term};
use jindou_syntax::distance;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use rustc_hash::FxHashMap;

/// Largest number of predicates, classes or graphs that are compared.
const MOST: usize = 20_000;
/// Number of IRIs between two checks of the time limit.
const CHECK_EVERY: usize = 256;
/// Longest local name, in bytes, that is compared letter by letter.
const LONGEST: usize = 48;
/// Largest number of IRIs that are suggested.
const SUGGESTED: usize = 2;

/// An IRI of the store that is similar to the wanted one.
pub(super) struct SimilarName {
    pub iri: String,
    /// Number of statements of a predicate, or instances of a class; 0 for a graph.
    pub count: u64,
}

/// The most similar IRIs found so far.
struct NameSearch<'s> {
    wanted: &'s str,
    found: Vec<(u32, SimilarName)>,
}

impl NameSearch<'_> {
    fn look_at(&mut self, iri: &str, count: u64) {
        let Some(rank) = rank(self.wanted, iri) else {
            return;
        };
        if self.found.iter().any(|f| f.1.iri == iri) {
            return;
        }
        let iri = iri.to_owned();
        self.found.push((rank, SimilarName { iri, count }));
        let order = |f: &(u32, SimilarName)| (f.0, std::cmp::Reverse(f.1.count));
        self.found
            .sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.1.iri.cmp(&b.1.iri)));
        self.found.truncate(SUGGESTED);
    }

    fn done(self) -> Vec<SimilarName> {
        let best = self.found.first().map_or(0, |f| f.0);
        // A second suggestion that is much less similar than the first would be confusing.
        let close = self.found.into_iter().filter(|f| f.0 <= best + 1);
        close.map(|f| f.1).collect()
    }
}

/// The namespace and the local name of an IRI.
fn split(iri: &str) -> (&str, &str) {
    let trimmed = iri.trim_end_matches(['/', '#']);
    match trimmed.rfind(['#', '/', ':']) {
        Some(at) => iri.split_at(at + 1),
        None => ("", iri),
    }
}

/// Distance of an IRI from the wanted one, 0 for the nearest; `None` if they are not similar, or equal.
fn rank(wanted: &str, iri: &str) -> Option<u32> {
    if wanted == iri {
        return None;
    }
    let ((space, local), (other_space, other)) = (split(wanted), split(iri));
    if local.is_empty() || other.is_empty() {
        return None;
    }
    if local == other {
        let same = bare(space) == bare(other_space);
        let near =
            || space.len().abs_diff(other_space.len()) <= 2 && distance(space, other_space) <= 2;
        return match () {
            () if same => Some(0),
            () if space.len() <= 2 * LONGEST && near() => Some(1),
            // The same local name in any other namespace, unless the name is very short.
            () if local.chars().count() > 2 => Some(3),
            () => None,
        };
    }
    let farther = match () {
        () if space == other_space => 0,
        () if bare(space) == bare(other_space) => 1,
        () => return None,
    };
    if local.len() > LONGEST || other.len() > LONGEST {
        return None;
    }
    if local.eq_ignore_ascii_case(other) {
        return Some(1 + farther);
    }
    let (a, b) = (local.chars().count(), other.chars().count());
    // Matches Student with GraduateStudent, and label with labelText.
    if a > 3 && farther == 0 && (other.ends_with(local) || other.starts_with(local)) && b > a + 2 {
        return Some(6);
    }
    let most = match a.min(b) {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    if a.abs_diff(b) > most {
        return None;
    }
    let d = distance(&local.to_ascii_lowercase(), &other.to_ascii_lowercase());
    (d <= most).then(|| 1 + farther + u32::try_from(d).unwrap_or(9))
}

/// A namespace without the parts in which spellings often differ: scheme, `www.`, and the last `#` or `/`.
fn bare(space: &str) -> &str {
    let space = space
        .strip_prefix("https://")
        .or_else(|| space.strip_prefix("http://"))
        .unwrap_or(space);
    let space = space.strip_prefix("www.").unwrap_or(space);
    space.trim_end_matches(['#', '/'])
}

/// Other likely spellings of an IRI.
pub(super) fn variants(iri: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |text: String| {
        if text != iri && !out.contains(&text) {
            out.push(text);
        }
    };
    if let Some(rest) = iri.strip_prefix("http://") {
        add(format!("https://{rest}"));
        add(format!("http://www.{rest}"));
        add(format!("https://www.{rest}"));
    }
    if let Some(rest) = iri.strip_prefix("https://") {
        add(format!("http://{rest}"));
        add(format!("https://www.{rest}"));
        add(format!("http://www.{rest}"));
    }
    if let Some((scheme, rest)) = iri.split_once("://www.") {
        add(format!("{scheme}://{rest}"));
        add(format!("http://{rest}"));
        add(format!("https://{rest}"));
    }
    match iri.strip_suffix('/') {
        Some(without) => add(without.to_owned()),
        None => add(format!("{iri}/")),
    }
    let (space, local) = split(iri);
    if let Some(head) = space.strip_suffix('/') {
        add(format!("{head}#{local}"));
    } else if let Some(head) = space.strip_suffix('#') {
        add(format!("{head}/{local}"));
    }
    let mut chars = local.chars();
    if let Some(first) = chars.next() {
        let rest = chars.as_str();
        add(format!("{space}{}{rest}", first.to_uppercase()));
        add(format!("{space}{}{rest}", first.to_lowercase()));
    }
    add(format!("{space}{}", local.to_lowercase()));
    add(format!("{space}{}", local.to_uppercase()));
    add(format!("{space}{}", local.replace(' ', "_")));
    add(format!("{space}{}", local.replace('-', "_")));
    add(format!("{space}{}", local.replace('_', "-")));
    add(format!("{space}{}", local.replace('_', " ")));
    out
}

impl Prober<'_> {
    fn iri_of(&self, v: VertexId, bytes: &mut Vec<u8>) -> Option<String> {
        bytes.clear();
        if !self.snapshot.term(v, bytes) {
            return None;
        }
        match term::decode(bytes) {
            Some(Term::NamedNode(n)) => Some(n.into_string()),
            _ => None,
        }
    }

    /// Number of a predicate's statements in all graphs; 0 for a term that is not a predicate.
    pub(super) fn uses(&self, predicate: &str) -> u64 {
        let node = NamedNode::new_unchecked(predicate);
        let v = self.snapshot.lookup(&term::encode(&node.into()));
        let p = v.and_then(|v| Graph::predicate_of(&self.snapshot, v));
        p.map_or(0, |p| {
            let s = self.snapshot.predicate_statistics(p);
            s.edges.saturating_add(s.named_edges)
        })
    }

    /// Similar predicates that have statements. O(predicates), at most the first 20,000.
    pub(super) fn predicates_like(&self, wanted: &str) -> Vec<SimilarName> {
        let mut search = NameSearch {
            wanted,
            found: vec![],
        };
        let mut bytes = Vec::new();
        for p in 0..self.snapshot.predicate_count().min(MOST as u32) {
            if (p as usize).is_multiple_of(CHECK_EVERY) && !self.goes_on() {
                break;
            }
            let s = self.snapshot.predicate_statistics(PredicateId(p));
            let count = s.edges.saturating_add(s.named_edges);
            if count > 0
                && let Some(iri) = self.iri_of(VertexId(s.vertex), &mut bytes)
            {
                search.look_at(&iri, count);
            }
        }
        search.done()
    }

    /// Similar classes that have instances. O(classes), at most the first 20,000; classes added by updates are found by
    /// a query.
    pub(super) fn classes_like(&self, wanted: &str) -> Vec<SimilarName> {
        let mut search = NameSearch {
            wanted,
            found: vec![],
        };
        let mut bytes = Vec::new();
        let classes = &self.snapshot.base().statistics().classes;
        for (i, &class) in classes.keys().take(MOST).enumerate() {
            if i.is_multiple_of(CHECK_EVERY) && !self.goes_on() {
                break;
            }
            let count = self.snapshot.class_members(VertexId(class)).unwrap_or(0);
            if count > 0
                && let Some(iri) = self.iri_of(VertexId(class), &mut bytes)
            {
                search.look_at(&iri, count);
            }
        }
        if !Graph::is_as_loaded(&self.snapshot) || self.snapshot.is_sharded() {
            for (class, count) in self.asked_classes() {
                search.look_at(&class, count);
            }
        }
        search.done()
    }

    /// Classes with the number of their instances, found by running a query.
    fn asked_classes(&self) -> FxHashMap<String, u64> {
        let text = format!(
            "SELECT ?c (COUNT(*) AS ?n) {{ ?s <{}> ?c }} GROUP BY ?c LIMIT {MOST}",
            rdf::TYPE.as_str()
        );
        let rows = self.select(&text, ProbedGraphs::All);
        let class = |row: Vec<Option<Term>>| match &row[..] {
            [Some(Term::NamedNode(c)), Some(Term::Literal(n))] => {
                Some((c.as_str().to_owned(), n.value().parse().ok()?))
            }
            _ => None,
        };
        rows.into_iter().filter_map(class).collect()
    }

    /// The IRIs of the first `most` named graphs, at most 20,000.
    pub(super) fn graph_names(&self, most: usize) -> Vec<String> {
        let mut bytes = Vec::new();
        let all = self.snapshot.named_graphs();
        let names = all.iter().take(most.min(MOST));
        names
            .filter_map(|&g| self.iri_of(VertexId(g), &mut bytes))
            .collect()
    }

    /// Named graphs with a similar IRI.
    pub(super) fn graphs_like(&self, wanted: &str) -> Vec<SimilarName> {
        let mut search = NameSearch {
            wanted,
            found: vec![],
        };
        for name in self.graph_names(MOST) {
            search.look_at(&name, 0);
        }
        search.done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_told_apart_from_others() {
        for (wanted, iri, expected) in [
            ("http://e/Studnt", "http://e/Student", Some(2)),
            ("http://e/student", "http://e/Student", Some(1)),
            ("https://schema.org/name", "http://schema.org/name", Some(0)),
            ("http://e/name", "http://other/ns#name", Some(3)),
            (
                "http://schema.org/Persn",
                "https://schema.org/Person",
                Some(3),
            ),
            ("http://e/name", "http://e/title", None),
            ("http://e/Student", "http://e/GraduateStudent", Some(6)),
            ("http://e/ab", "http://e/ac", None),
            ("http://e/ab", "http://other/ab", None),
            ("http://e/x#name", "http://e/x/name", Some(0)),
            ("http://e/same", "http://e/same", None),
        ] {
            assert_eq!(rank(wanted, iri), expected, "{wanted} {iri}");
        }
    }

    #[test]
    fn spellings_of_one_iri() {
        let all = variants("http://schema.org/person");
        for one in [
            "https://schema.org/person",
            "http://schema.org/person/",
            "http://schema.org#person",
            "http://schema.org/Person",
        ] {
            assert!(all.iter().any(|v| v == one), "{one}: {all:?}");
        }
        assert!(!all.iter().any(|v| v == "http://schema.org/person"));
    }
}
