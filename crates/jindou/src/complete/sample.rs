//! Sampling of the subjects that match the patterns so far, within a time limit.

use super::Counts;
use super::data::CandidateSearch;
use super::star::SubjectStar;
use crate::results::{AnswerSink, Rows};
use crate::{Error, Result, Snapshot};
use jindou_graph::Graph;
use jindou_model::{Direction, PredicateId, VertexId};
use jindou_syntax::place::Pattern;
use oxrdf::Triple;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write as _;

/// Largest number of subjects in a sample.
pub(crate) const SIZE: usize = 1000;
/// Largest number of patterns in the query that finds a sample, since planning more takes too long.
pub(crate) const MOST_PATTERNS: usize = 24;
/// Largest number of edges of a predicate whose keys are listed to draw a sample; a list takes 4 bytes per key.
const MOST_LISTED: u64 = 2_000_000;
/// Largest number of intervals of ids from which a sample is drawn.
const MOST_RUNS: usize = 200_000;

/// Vertices that match patterns: all of them, or a sample.
#[derive(Default)]
pub(crate) struct Sample {
    pub ids: Vec<u32>,
    /// True if the sample has all vertices that match the patterns.
    pub whole: bool,
    /// True if time ran out before the sample was complete.
    pub partial: bool,
}

impl Sample {
    /// A sample that contains all vertices that match the patterns.
    pub(crate) fn whole(ids: Vec<u32>) -> Self {
        Self {
            ids,
            whole: true,
            partial: false,
        }
    }

    /// The meaning of counts over this sample.
    pub(crate) fn counts(&self) -> Counts {
        if self.whole {
            Counts::Exact
        } else {
            Counts::Sample(self.ids.len())
        }
    }

    /// The meaning of counts if only the first `n` vertices were counted, and whether the time limit left some out.
    pub(crate) fn counted(&self, n: usize) -> (Counts, bool) {
        if n == self.ids.len() {
            (self.counts(), self.partial)
        } else {
            (Counts::Sample(n), true)
        }
    }
}

/// A sample of the subjects that match the patterns, found by running a query.
pub(crate) fn subjects(look: &CandidateSearch<'_>, subject: &str, about: &[&Pattern]) -> Sample {
    let select = format!("SELECT DISTINCT {subject}");
    run(look, &select, about, "")
}

/// A sample of the targets of a path from the subjects that match the patterns. A target is listed once for each way in
/// which it is reached.
pub(crate) fn ends(
    look: &CandidateSearch<'_>,
    subject: &str,
    path: &str,
    about: &[&Pattern],
) -> Sample {
    // Neither `?_from` nor `?_to` occurs in a pattern: variables created by the parser are named by underscores and a
    // number, or by `b` and a label.
    let subject = if subject.len() > 1 { subject } else { "?_from" };
    let graph = look.place.graph.as_deref();
    let step = group(&format!("{subject} {path} ?_to ."), graph);
    run(look, "SELECT ?_to", about, &step)
}

fn group(pattern: &str, graph: Option<&str>) -> String {
    match graph {
        Some(g) => format!("GRAPH {g} {{ {pattern} }} "),
        None => format!("{pattern} "),
    }
}

fn run(look: &CandidateSearch<'_>, select: &str, about: &[&Pattern], more: &str) -> Sample {
    let limit = look.left();
    if limit.is_zero() {
        return Sample {
            partial: true,
            ..Sample::default()
        };
    }
    let mut text = String::new();
    let place = look.place;
    if let Some(base) = &place.base {
        let _ = write!(text, "BASE <{base}> ");
    }
    for (name, iri) in &place.prefixes {
        let _ = write!(text, "PREFIX {name}: <{iri}> ");
    }
    text.push_str(select);
    for (word, graphs) in ["FROM", "FROM NAMED"].iter().zip(&place.dataset) {
        for graph in graphs {
            let _ = write!(text, " {word} {graph}");
        }
    }
    text.push_str(" WHERE { ");
    for p in about {
        let pattern = format!("{} {} {} .", p.subject, p.predicate, p.object);
        text.push_str(&group(&pattern, p.graph.as_deref()));
    }
    let _ = write!(text, "{more}}} LIMIT {SIZE}");
    let options = look.request.options.clone();
    let options = options
        .with_timeout(limit)
        .with_threads(1)
        .with_common_prefixes(true);
    let mut taken = SampledVertices {
        snapshot: look.snapshot,
        ids: Vec::new(),
    };
    // The plan is not cached, since it would evict plans of users' queries.
    let ran = look.db.plan_uncached(&text, &options).and_then(|planned| {
        let options = options.with_timeout(look.left());
        look.db.run_planned(&planned, &options, &mut taken)
    });
    Sample {
        whole: ran.is_ok() && taken.ids.len() < SIZE,
        ids: taken.ids,
        partial: matches!(
            ran,
            Err(Error::Timeout(_) | Error::Limit(_) | Error::Busy(_))
        ),
    }
}

/// Collects the vertices in an answer's first column.
struct SampledVertices<'s> {
    snapshot: &'s Snapshot,
    ids: Vec<u32>,
}

impl AnswerSink for SampledVertices<'_> {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        for r in 0..rows.rows {
            if let Some(Some(term)) = rows.row(r).next()
                && let Some(v) = self.snapshot.lookup(term)
            {
                self.ids.push(v.0);
            }
        }
        Ok(())
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        Ok(())
    }

    fn graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn triple(&mut self, _: &Triple) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Evenly spaced subjects of a star: the members of characteristic sets and classes are intervals of ids. Only for a
/// snapshot without updates.
pub(crate) fn of_star(snapshot: &Snapshot, star: &SubjectStar) -> Sample {
    let sets = Graph::predicates(snapshot).sets();
    if sets.runs.len() > MOST_RUNS {
        return Sample::default();
    }
    let mut has: FxHashMap<u32, bool> = FxHashMap::default();
    let ends = sets.runs.iter().skip(1).map(|r| r.start);
    let ends = ends.chain([Graph::statistics(snapshot).vertices.saturating_add(1)]);
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for (run, end) in sets.runs.iter().zip(ends) {
        let mut test = || {
            let list = sets.list(run.out_set);
            let all = star.predicates.iter();
            !list.is_empty() && { all }.all(|p| list.binary_search(p).is_ok())
        };
        if *has.entry(run.out_set).or_insert_with(&mut test) && end > run.start {
            runs.push([run.start, end]);
        }
    }
    for &class in &star.classes {
        match Graph::class_intervals(snapshot, VertexId(class)) {
            Some(intervals) => runs = both(&runs, intervals),
            None => return Sample::default(),
        }
    }
    evenly(&runs)
}

/// The intersection of two ascending lists of disjoint intervals.
fn both(a: &[[u32; 2]], b: &[[u32; 2]]) -> Vec<[u32; 2]> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let common = [x[0].max(y[0]), x[1].min(y[1])];
        if common[0] < common[1] {
            out.push(common);
        }
        if x[1] < y[1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Evenly spaced numbers from ascending half-open intervals.
fn evenly(intervals: &[[u32; 2]]) -> Sample {
    let length = |i: &[u32; 2]| u64::from(i[1].saturating_sub(i[0]));
    let all: u64 = intervals.iter().map(length).sum();
    let step = all.div_ceil(SIZE as u64).max(1);
    let mut out = Vec::new();
    let mut next = 0;
    for interval in intervals {
        let n = length(interval);
        while next < n {
            out.push(interval[0] + u32::try_from(next).unwrap_or(0));
            next += step;
        }
        next -= n;
    }
    Sample {
        ids: out,
        whole: step == 1,
        partial: false,
    }
}

/// Evenly spaced keys of a predicate's segment: its subjects, or its objects for the other direction. Empty for a
/// predicate with more than [`MOST_LISTED`] edges of which some are in named graphs.
pub(crate) fn of_predicate(
    look: &CandidateSearch<'_>,
    p: PredicateId,
    direction: Direction,
) -> Sample {
    let edges = Graph::edges(look.snapshot, p, direction);
    let mut seen = FxHashSet::default();
    let mut keys = Vec::new();
    let scope = look.graphs.scope();
    let simple = edges
        .plain(scope)
        .or_else(|| edges.plain_but_dirty(scope).map(|s| s.0));
    match simple.filter(|s| !s.is_empty()) {
        Some(segment) => {
            for range in evenly(&[[0, segment.key_count]]).ids {
                segment.keys_into(range, range + 1, &mut keys);
            }
        }
        // Listing all keys would take too long, so the completion has no counts.
        None if edges.default_edges() + edges.named_edges() > MOST_LISTED => {
            return Sample {
                partial: true,
                ..Sample::default()
            };
        }
        None => {
            edges.candidate_keys(scope, &mut keys);
            let step = keys.len().div_ceil(SIZE).max(1);
            keys = keys.into_iter().step_by(step).collect();
        }
    }
    keys.retain(|k| seen.insert(*k));
    Sample {
        ids: keys,
        ..Sample::default()
    }
}
