//! Reasons about graphs: they are empty, do not exist, or are not read.

use super::probe::{ProbedGraphs, within};
use super::walk::{Inside, PatternWalk};
use super::words::{counted, list};
use super::{ReasonKind as K, Suggestion};
use jindou_graph::Graph;
use jindou_model::units::grouped;
use jindou_model::{PredicateId, term};
use jindou_plan::extension_of_iri;
use jindou_plan::sparql::{GraphPattern, NamedNodePattern, Variable};
use oxrdf::{NamedNode, Term};
use std::ops::Range;
use std::sync::Arc;

/// Largest number of graphs that a message lists.
const LISTED: usize = 3;
/// Largest number of graphs for which FROM is suggested.
const NAMED: usize = 5;

impl PatternWalk<'_, '_> {
    /// True if the query's default graph is the store's default graph, rather than a union of graphs.
    fn sees_default_only(&self) -> bool {
        !self.probe.union
            && self
                .probe
                .dataset
                .as_ref()
                .is_none_or(|d| d.default.iter().any(|n| n.as_str().is_empty()))
    }

    /// Number of triples in the store's default graph.
    fn default_triples(&self) -> u64 {
        let snapshot = &self.probe.snapshot;
        (0..snapshot.predicate_count()).fold(0, |n, p| {
            n.saturating_add(snapshot.predicate_statistics(PredicateId(p)).edges)
        })
    }

    /// The number of named graphs, and a text that lists the first ones.
    fn list_of_graphs(&self) -> (usize, String) {
        let all = self.probe.snapshot.named_graphs().len();
        let names = self.probe.graph_names(LISTED);
        let mut told: Vec<String> = names.iter().map(|g| self.text.iri(g)).collect();
        if told.len() < all {
            let others = (all - told.len()) as u64;
            told.push(format!("{} more", grouped(others)));
        }
        (all, list(&told))
    }

    fn has_graph(&self, iri: &str) -> bool {
        let t = Term::from(NamedNode::new_unchecked(iri));
        let v = self.probe.snapshot.lookup(&term::encode(&t));
        v.is_some_and(|v| Graph::has_graph(&self.probe.snapshot, v.0))
    }

    /// Reports that the default graph is empty, if the query reads it.
    pub(super) fn empty_default(&mut self, root: &Arc<GraphPattern>) {
        if !self.sees_default_only() || !looks_into_default(root) || self.default_triples() > 0 {
            return;
        }
        let (graphs, told) = self.list_of_graphs();
        if graphs == 0 {
            self.report(K::EmptyDefaultGraph, "the store is empty", None);
            self.default_graph_reported = true;
            return;
        }
        let quads = self.probe.snapshot.quads();
        let are = if quads == 1 { "is" } else { "are" };
        let message = format!(
            "the default graph is empty; {} {are} in {}: {told}",
            counted(quads, "quad"),
            counted(graphs as u64, "named graph"),
        );
        let mut reason = self.text.reason(K::EmptyDefaultGraph, message, None);
        reason.suggestions = self.suggest_named_graphs(root);
        self.push(reason);
        self.default_graph_reported = true;
    }

    /// Reports that the query would have answers over the union of all graphs, if it reads the default graph and no
    /// reason about graphs was reported yet.
    pub(super) fn over_all_graphs(&mut self, root: &Arc<GraphPattern>) {
        let about_graphs = [K::EmptyDefaultGraph, K::OtherGraphs, K::UnknownGraph];
        if !self.sees_default_only()
            || self.reasons.iter().any(|r| about_graphs.contains(&r.kind))
            || self.probe.snapshot.named_graphs().is_empty()
            || !looks_into_default(root)
            || self.probe.has(&inner_of(root), ProbedGraphs::All) != Some(true)
        {
            return;
        }
        let message =
            "over all graphs together there are answers; the default graph alone has none";
        let mut reason = self.text.reason(K::OtherGraphs, message.into(), None);
        reason.suggestions = self.suggest_named_graphs(root);
        self.reasons.insert(0, reason);
    }

    /// Suggestions that make the whole query read named graphs.
    fn suggest_named_graphs(&self, root: &Arc<GraphPattern>) -> Vec<Suggestion> {
        let mut out = Vec::new();
        let text = self.text.text;
        let body = self.text.recorded.body.as_ref();
        let written = body.and_then(|b| text.get(b.clone()));
        let name = ["g", "graph", "inGraph"]
            .into_iter()
            .find(|n| !text.contains(&format!("?{n}")) && !text.contains(&format!("${n}")));
        if let (Some(body), Some(written), Some(name)) = (body, written, name) {
            let graph = NamedNodePattern::from(Variable::new_unchecked(name));
            // GRAPH is suggested only if it leads to an answer; it does not if matching triples are in different
            // graphs.
            if self
                .probe
                .has(&within(inner_of(root), Some(&graph)), ProbedGraphs::Own)
                == Some(true)
            {
                let words = format!("search all named graphs: GRAPH ?{name} {{ … }}");
                let with = format!("{{ GRAPH ?{name} {written} }}");
                out.push(Suggestion::new(words).replacing(body.clone(), with));
            }
        }
        let graphs = self.probe.snapshot.named_graphs().len();
        if graphs <= NAMED
            && self.probe.dataset.is_none()
            && let Some(body) = body
            && self
                .probe
                .has_from(&inner_of(root), &self.probe.graph_names(NAMED))
        {
            let before = text.get(..body.start).unwrap_or_default().trim_end();
            let at = match before.len().checked_sub(5) {
                Some(at)
                    if before.is_char_boundary(at)
                        && before[at..].eq_ignore_ascii_case("where") =>
                {
                    at
                }
                _ => body.start,
            };
            let from: String = self
                .probe
                .graph_names(NAMED)
                .iter()
                .map(|g| format!("FROM {} ", self.text.iri(g)))
                .collect();
            let words = match graphs {
                1 => "merge the graph into the default graph: FROM".to_owned(),
                n => format!("merge all {n} graphs into the default graph: FROM"),
            };
            out.push(Suggestion::new(words).replacing(at..at, from));
        }
        out
    }

    /// Reports the graphs of FROM and FROM NAMED that the store does not contain.
    pub(super) fn from(&mut self) {
        let Some(dataset) = &self.probe.dataset else {
            return;
        };
        let named = dataset.named.iter().flatten();
        let all: Vec<String> = dataset
            .default
            .iter()
            .chain(named)
            .take(16)
            .map(|n| n.as_str().to_owned())
            .filter(|iri| !iri.is_empty())
            .collect();
        for iri in all {
            if !self.has_graph(&iri) {
                self.unknown_graph(&iri);
            }
        }
    }

    /// Reports that the store does not contain this graph.
    fn unknown_graph(&mut self, iri: &str) {
        let part = jindou_plan::sparql::NamedNode::new_unchecked(iri).into();
        let range = self.text.recorded.term(&part, None);
        let t = Term::from(NamedNode::new_unchecked(iri));
        let told = self.text.told(&t, range.as_ref());
        let near = self.probe.graphs_like(iri);
        let message = match self.list_of_graphs() {
            (0, _) => format!("the store has no graph {told}, nor any other named graph"),
            (n, names) => format!(
                "the store has no graph {told}; it has {}: {names}",
                counted(n as u64, "named graph")
            ),
        };
        if let Some(extension) = extension_of_iri(iri) {
            let (message, instead) = (extension.message(), extension.instead);
            let message = format!("the store has no graph {told}: {message}; {instead}");
            self.report(K::UnknownGraph, message, range.as_ref());
            return;
        }
        let mut reason = self.text.reason(K::UnknownGraph, message, range.as_ref());
        for near in near {
            let text = self.text.iri(&near.iri);
            let suggestion = Suggestion::new(format!("did you mean {text}?"));
            reason.suggestions.push(match &range {
                Some(range) => suggestion.replacing(range.clone(), text),
                None => suggestion,
            });
        }
        self.push(reason);
    }

    /// Reports why a GRAPH part has no graph to read. Returns false if there is a graph.
    pub(super) fn no_graph(&mut self, name: &NamedNodePattern) -> bool {
        let named = self.probe.dataset.as_ref().map(|d| d.named.as_deref());
        match name {
            NamedNodePattern::NamedNode(n) => {
                if !self.has_graph(n.as_str()) {
                    self.unknown_graph(n.as_str());
                    return true;
                }
                let chosen = named.flatten().unwrap_or_default();
                if named.is_some() && !chosen.iter().any(|c| c == n) {
                    let part = n.clone().into();
                    let range = self.text.recorded.term(&part, None);
                    let told = self.text.iri(n.as_str());
                    let message = format!("GRAPH {told} is not among the graphs of FROM NAMED");
                    self.report(K::OtherGraphs, message, range.as_ref());
                    return true;
                }
                false
            }
            NamedNodePattern::Variable(v) => {
                if named.is_some_and(|n| n.is_none_or(<[_]>::is_empty)) {
                    let message = format!(
                        "GRAPH {v} matches no graph, since the query has FROM but no FROM NAMED"
                    );
                    self.report(K::OtherGraphs, message, None);
                    return true;
                }
                if self.probe.snapshot.named_graphs().is_empty() {
                    let quads = counted(self.probe.snapshot.quads(), "quad");
                    let message = format!(
                        "the store has no named graph for GRAPH {v}; all of its {quads} are in the default graph"
                    );
                    self.report(K::NoNamedGraphs, message, None);
                    return true;
                }
                false
            }
        }
    }

    /// Reports that a pattern has matches only in graphs that it does not read.
    pub(super) fn other_graphs(
        &mut self,
        pattern: &Arc<GraphPattern>,
        graph: Inside<'_>,
        range: Option<&Range<usize>>,
    ) {
        if graph.is_none() && self.default_graph_reported {
            return;
        }
        let told = self.text.pattern(pattern);
        let variable = Variable::new_unchecked("jindou_any_g");
        let any = NamedNodePattern::from(variable.clone());
        let found = within(Arc::clone(pattern), Some(&any));
        let Some(found) = self
            .probe
            .values(&found, &variable, LISTED + 1, ProbedGraphs::All)
        else {
            return;
        };
        let mut names: Vec<String> = found.iter().map(|g| self.text.term(g)).collect();
        if names.len() > LISTED {
            names.truncate(LISTED);
            names.push("others".into());
        }
        let place = match graph {
            None if self.sees_default_only() => "in the default graph".to_owned(),
            None => "in the graphs of FROM".to_owned(),
            Some(NamedNodePattern::NamedNode(n)) => {
                format!("in the graph {}", self.text.iri(n.as_str()))
            }
            Some(NamedNodePattern::Variable(v)) => format!("in the graphs of GRAPH {v}"),
        };
        let elsewhere = match names.is_empty() {
            true => "in the default graph".to_owned(),
            false => format!("in {}", list(&names)),
        };
        let message = format!("nothing {place} matches {told}, but there are matches {elsewhere}");
        let mut reason = self.text.reason(K::OtherGraphs, message, range);
        if graph.is_none() && self.sees_default_only() && !self.wrapped {
            self.wrapped = true;
            if let Some(root) = self.root.clone() {
                reason.suggestions = self.suggest_named_graphs(&root);
            }
        }
        self.push(reason);
    }
}

/// The pattern without operators that cannot be the reason for an empty answer: projection, order, slices, groups.
pub(super) fn inner_of(root: &Arc<GraphPattern>) -> Arc<GraphPattern> {
    let mut p = root;
    loop {
        match &**p {
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Extend { inner, .. }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Group { inner, .. } => p = inner,
            _ => return Arc::clone(p),
        }
    }
}

/// True if a triple pattern or path is outside GRAPH, so that it reads the default graph. Of a very large query only
/// the first 10,000 parts are checked.
fn looks_into_default(root: &GraphPattern) -> bool {
    let mut open = vec![root];
    let mut looked = 0;
    while let Some(p) = open.pop() {
        looked += 1;
        if looked > 10_000 {
            return false;
        }
        match p {
            GraphPattern::Bgp { patterns } if !patterns.is_empty() => return true,
            GraphPattern::Path { .. } => return true,
            GraphPattern::Bgp { .. }
            | GraphPattern::Values { .. }
            | GraphPattern::Graph { .. }
            | GraphPattern::Service { .. } => {}
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right } => open.extend([&**right, &**left]),
            GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => {
                open.push(left);
            }
            GraphPattern::Filter { inner, .. }
            | GraphPattern::Extend { inner, .. }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Group { inner, .. } => open.push(inner),
        }
    }
    false
}
