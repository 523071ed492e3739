//! Cuts a BGP into parts around core vertices, such that each match of a part lies inside the partition that owns its
//! core.
//!
//! After Huang, Abadi, Ren, VLDB '11, section 4: a part is complete if all of its edges are within the distance from
//! its core up to which partitions replicate. As in the paper, distances are those in the pattern. But an edge that
//! [`super::partition`] does not replicate at its object counts only with its subject. The core is an IRI, or a
//! variable that is the subject of some triple pattern and so is never a literal. Since every match of the core has one
//! owner, and each worker returns only matches whose core it owns, all workers together find each match of a part once.

use super::build::{OWNED, Parts};
use jindou::{Error, Result};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Properties of the partitions on which completeness depends.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub hops: u32,
    /// Predicates whose edges are stored only with their subjects.
    pub one_way: BTreeSet<String>,
    /// True if parts overlap, so that they mark the vertices that they own.
    pub marked: bool,
}

impl Rules {
    pub fn new(parts: &Parts) -> Self {
        Self {
            hops: parts.hops,
            one_way: parts.one_way.clone(),
            marked: parts.is_marked(),
        }
    }

    /// True if edges of this predicate are stored with their objects, too.
    fn is_two_way(&self, p: &TriplePattern) -> bool {
        match &p.predicate {
            NamedNodePattern::NamedNode(n) => self.hops > 0 && !self.one_way.contains(n.as_str()),
            NamedNodePattern::Variable(_) => false,
        }
    }
}

/// A part: a query for every worker, and the names of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartQuery {
    pub text: String,
    /// The query text for a store without marks of ownership, such as the whole store.
    pub unmarked: String,
    pub columns: Vec<String>,
}

impl PartQuery {
    /// The query text with other columns.
    pub fn with_columns(&self, columns: &[String]) -> String {
        let body = self.text.find(" WHERE {").map_or("", |at| &self.text[at..]);
        let names: String = columns.iter().map(|c| format!(" ?{c}")).collect();
        format!("SELECT{names}{body}")
    }
}

/// Names of the variables of a triple pattern, without question marks.
pub fn variables(p: &TriplePattern) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for t in [&p.subject, &p.object] {
        if let TermPattern::Variable(v) = t {
            out.insert(v.as_str().to_owned());
        }
    }
    if let NamedNodePattern::Variable(v) = &p.predicate {
        out.insert(v.as_str().to_owned());
    }
    out
}

/// Cuts a BGP into parts whose natural join has the BGP's solutions with their multiplicity. Each part has the columns
/// of `needed` and those it shares with other parts. Greedy: next comes the core that covers most of the remaining
/// triple patterns. O(cores × patterns × parts).
///
/// # Errors
/// [`Error::Unsupported`] for patterns with triple terms.
pub fn decompose(
    patterns: &[TriplePattern],
    needed: &BTreeSet<String>,
    rules: &Rules,
) -> Result<Vec<PartQuery>> {
    for p in patterns {
        if matches!(p.subject, TermPattern::Triple(_)) || matches!(p.object, TermPattern::Triple(_))
        {
            return Err(Error::Unsupported("triple terms in patterns".into()));
        }
    }
    let cores = cores(patterns);
    let reaches: Vec<Vec<Option<Path>>> = cores.iter().map(|c| reach(c, patterns, rules)).collect();
    let mut covered = vec![false; patterns.len()];
    let mut chosen: Vec<(usize, Vec<bool>)> = vec![];
    while covered.iter().any(|c| !c) {
        let new = |c: &usize| {
            let uncovered = reaches[*c].iter().zip(&covered);
            uncovered.filter(|(r, c)| r.is_some() && !**c).count()
        };
        let size = |c: &usize| {
            connected(&reaches[*c], &covered)
                .iter()
                .filter(|m| **m)
                .count()
        };
        let best = (0..cores.len())
            .max_by_key(|c| {
                let is_constant = cores[*c].starts_with('<');
                (new(c), is_constant, Reverse(size(c)), Reverse(*c))
            })
            .filter(|c| new(c) > 0)
            .ok_or_else(|| Error::Internal("a pattern that is not connected to a core".into()))?;
        let mine = connected(&reaches[best], &covered);
        for (c, r) in covered.iter_mut().zip(&reaches[best]) {
            *c |= r.is_some();
        }
        chosen.push((best, mine));
    }
    // A triple pattern of another part makes this part's answer smaller if it adds no variable.
    for (core, mine) in &mut chosen {
        let bound: BTreeSet<_> = selected(patterns, mine).flat_map(variables).collect();
        for (i, p) in patterns.iter().enumerate() {
            mine[i] |= reaches[*core][i].is_some() && variables(p).is_subset(&bound);
        }
    }
    let bound: Vec<BTreeSet<String>> = chosen
        .iter()
        .map(|(_, mine)| selected(patterns, mine).flat_map(variables).collect())
        .collect();
    let texts = chosen.iter().enumerate().map(|(i, (core, mine))| {
        let columns: Vec<String> = bound[i]
            .iter()
            .filter(|v| {
                let elsewhere = bound
                    .iter()
                    .enumerate()
                    .any(|(j, b)| j != i && b.contains(*v));
                needed.contains(*v) || elsewhere
            })
            .cloned()
            .collect();
        // One column, since not every engine returns rows without columns.
        let columns = match (columns.is_empty(), bound[i].first()) {
            (true, Some(v)) => vec![v.clone()],
            _ => columns,
        };
        let core = rules.marked.then(|| cores[*core].as_str());
        PartQuery {
            text: select(&columns, selected(patterns, mine), core, rules.marked),
            unmarked: select(&columns, selected(patterns, mine), None, false),
            columns,
        }
    });
    Ok(texts.collect())
}

/// The decompositions for the partitions' number of hops and for every smaller one, widest first and without
/// repetition. Wider parts are fewer, but may have many more rows.
pub fn choices(
    patterns: &[TriplePattern],
    needed: &BTreeSet<String>,
    rules: &Rules,
) -> Result<Vec<Vec<PartQuery>>> {
    let mut out = vec![];
    for hops in (0..=rules.hops).rev() {
        let narrower = Rules {
            hops,
            ..rules.clone()
        };
        let parts = decompose(patterns, needed, &narrower)?;
        if !out.contains(&parts) {
            out.push(parts);
        }
    }
    Ok(out)
}

/// The whole BGP as one query for every worker, as in the paper. It misses matches that span partitions, and finds
/// replicated ones more than once.
pub fn naive(patterns: &[TriplePattern], rules: &Rules) -> PartQuery {
    let columns: Vec<String> = patterns
        .iter()
        .flat_map(variables)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    PartQuery {
        text: select(&columns, patterns.iter(), None, rules.marked),
        unmarked: select(&columns, patterns.iter(), None, false),
        columns,
    }
}

fn selected<'a>(
    patterns: &'a [TriplePattern],
    which: &'a [bool],
) -> impl Iterator<Item = &'a TriplePattern> {
    patterns
        .iter()
        .zip(which)
        .filter(|(_, w)| **w)
        .map(|(p, _)| p)
}

fn select<'a>(
    columns: &[String],
    patterns: impl Iterator<Item = &'a TriplePattern>,
    core: Option<&str>,
    marked: bool,
) -> String {
    use std::fmt::Write as _;
    let mut text = "SELECT".to_owned();
    if columns.is_empty() {
        text += " *";
    }
    for c in columns {
        let _ = write!(text, " ?{c}");
    }
    text += " WHERE {";
    let mut open = BTreeSet::new();
    for p in patterns {
        let _ = write!(text, " {p} .");
        if let NamedNodePattern::Variable(v) = &p.predicate {
            open.insert(v.as_str());
        }
    }
    if let Some(core) = core {
        let _ = write!(text, " {core} <{OWNED}> <{OWNED}> .");
    }
    if marked {
        // The marks of ownership are not part of the graph.
        for v in open {
            let _ = write!(text, " FILTER(?{v} != <{OWNED}>)");
        }
    }
    text + " }"
}

/// Terms and variables of the BGP that may be cores, in SPARQL syntax.
fn cores(patterns: &[TriplePattern]) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut add = |t: String| {
        if !out.contains(&t) {
            out.push(t);
        }
    };
    for p in patterns {
        add(p.subject.to_string());
    }
    for p in patterns {
        if let TermPattern::NamedNode(n) = &p.object {
            add(n.to_string());
        }
    }
    out
}

/// Indices of the triple patterns that lead from a core to another vertex.
type Path = Vec<usize>;

/// Selects the triple patterns that are within reach and not yet covered, and those on the paths to them. Without the
/// latter, a match would not be connected to its core, and so would have no single owner.
fn connected(reach: &[Option<Path>], covered: &[bool]) -> Vec<bool> {
    let mut out = vec![false; reach.len()];
    for (i, path) in reach.iter().enumerate() {
        if let Some(path) = path
            && !covered[i]
        {
            out[i] = true;
            for &p in path {
                out[p] = true;
            }
        }
    }
    out
}

/// For each triple pattern whose matches are complete around an owned match of `core`: a shortest path of triple
/// patterns from the core to one of its ends. `None` for the others.
fn reach(core: &str, patterns: &[TriplePattern], rules: &Rules) -> Vec<Option<Path>> {
    let ends: Vec<(String, String)> = patterns
        .iter()
        .map(|p| (p.subject.to_string(), p.object.to_string()))
        .collect();
    let is_entity = |v: &String| v.starts_with('<') || ends.iter().any(|(subject, _)| subject == v);
    let mut inside: BTreeMap<String, Path> = [(core.to_owned(), vec![])].into();
    for _ in 1..rules.hops.max(1) {
        let before = inside.clone();
        for (i, (p, (s, o))) in patterns.iter().zip(&ends).enumerate() {
            if !rules.is_two_way(p) || !is_entity(o) {
                continue;
            }
            for (from, to) in [(s, o), (o, s)] {
                if let Some(path) = before.get(from)
                    && !inside.contains_key(to)
                {
                    let longer = path.iter().copied().chain([i]).collect();
                    inside.insert(to.clone(), longer);
                }
            }
        }
    }
    let of = |(p, (s, o)): (&TriplePattern, &(String, String))| {
        let by_object = || inside.get(o).filter(|_| rules.is_two_way(p));
        inside.get(s).or_else(by_object).cloned()
    };
    patterns.iter().zip(&ends).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou::parse_query;
    use spargebra::Query;
    use spargebra::algebra::GraphPattern;

    fn patterns(text: &str) -> Vec<TriplePattern> {
        let Query::Select { pattern, .. } = Query::from(&parse_query(text).unwrap()) else {
            panic!("not SELECT");
        };
        let GraphPattern::Project { inner, .. } = pattern else {
            panic!("no projection");
        };
        let GraphPattern::Bgp { patterns } = *inner else {
            panic!("not only triple patterns");
        };
        patterns
    }

    fn parts(text: &str, hops: u32) -> Vec<PartQuery> {
        let one_way = ["http://e/type"].map(str::to_owned).into();
        let rules = Rules {
            hops,
            one_way,
            marked: hops > 0,
        };
        decompose(&patterns(text), &["a".to_owned()].into(), &rules).unwrap()
    }

    const CHAIN: &str = "SELECT * { ?a <http://e/p> ?b . ?b <http://e/q> ?c . ?c <http://e/r> ?d . ?d <http://e/type> <http://e/C> }";

    #[test]
    fn without_replication_each_subject_is_a_part() {
        let parts = parts(CHAIN, 0);
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|p| !p.text.contains(OWNED)));
    }

    #[test]
    fn a_hop_joins_the_edges_on_both_sides() {
        let parts = parts(CHAIN, 1);
        // One part around ?b and one around ?d; the edge of rdf:type belongs only to its subject.
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].columns, ["a", "c"]);
        assert_eq!(parts[1].columns, ["c"]);
        assert!(parts[1].text.contains(&format!("?d <{OWNED}>")));
        assert!(parts[1].text.contains("http://e/C"));
    }

    #[test]
    fn two_hops_reach_further_but_not_through_a_literal() {
        assert_eq!(parts(CHAIN, 2).len(), 1);
        // ?v may be a literal, so it is not certain that any worker has both edges.
        let literal = "SELECT * { ?a <http://e/p> ?v . ?b <http://e/p> ?v }";
        assert_eq!(parts(literal, 3).len(), 2);
        // ?v is a subject here, so it cannot be a literal.
        let entity = "SELECT * { ?a <http://e/p> ?v . ?b <http://e/p> ?v . ?v <http://e/q> ?w }";
        assert_eq!(parts(entity, 1).len(), 1);
    }

    #[test]
    fn a_shared_pattern_narrows_a_part_if_it_brings_no_variable() {
        let text = "SELECT * { ?a <http://e/p> ?b . ?b <http://e/q> ?a . ?a <http://e/type> <http://e/C> . ?b <http://e/type> <http://e/D> }";
        let parts = parts(text, 1);
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|p| !p.text.is_empty()));
        assert!(parts[0].text.contains("http://e/q"));
    }

    #[test]
    fn every_part_ties_its_patterns_to_its_core() {
        // One part around ?c, then one around ?e. With two hops other cores cover as many of the remaining triple
        // patterns, but along patterns that the first part has.
        let text = "SELECT * { ?a <http://e/n> ?b . ?b <http://e/o> ?c . ?c <http://e/p> ?d . ?d <http://e/q> ?e . ?e <http://e/r> ?f . ?f <http://e/s> ?g }";
        for hops in 0..4 {
            for p in parts(text, hops) {
                let core = p.text.split(OWNED).next().unwrap();
                let core = core.trim_end_matches('<').trim_end();
                let core = core.rsplit(' ').next().unwrap();
                let of_core = p.unmarked.matches(&format!("{core} ")).count();
                assert!(hops == 0 || of_core > 0, "{core} in {}", p.unmarked);
            }
        }
        assert_eq!(parts(text, 2).len(), 2);
    }

    #[test]
    fn open_predicates_do_not_see_the_marks() {
        let parts = parts("SELECT * { ?a ?p ?b . ?b ?p ?c }", 1);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].text.contains("FILTER(?p !="));
        assert!(parts[0].columns.contains(&"p".to_owned()));
    }
}
