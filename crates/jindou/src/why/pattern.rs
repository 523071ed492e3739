//! Reasons why a triple pattern or a path has no match.

use super::near::variants;
use super::probe::{ProbedGraphs, within};
use super::walk::{Inside, PartVerdict, PatternWalk};
use super::words::{constant, counted, list, pattern_of};
use super::{ReasonKind as K, Suggestion};
use jindou_model::{PredicateId, VertexId, term};
use jindou_plan::extension_of_iri;
use jindou_plan::sparql::{
    GraphPattern, PropertyPathExpression, TermPattern, TriplePattern, Variable,
};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use std::ops::Range;
use std::sync::Arc;

/// Largest number of IRIs that a message lists.
const LISTED: usize = 3;

/// Position of a term in a triple pattern or elsewhere in the query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TermRole {
    Subject,
    Predicate,
    Object,
    /// The object of `rdf:type`.
    Class,
    /// In a condition, in VALUES, or at an end of a path.
    Anywhere,
}

/// A variable that does not occur in the query.
fn any(n: usize) -> TermPattern {
    Variable::new_unchecked(format!("jindou_any_{n}")).into()
}

pub(super) fn one(t: TriplePattern) -> Arc<GraphPattern> {
    Arc::new(GraphPattern::Bgp { patterns: vec![t] })
}

fn with_predicate(subject: TermPattern, p: &TermPattern, object: TermPattern) -> Arc<GraphPattern> {
    let predicate = match p {
        TermPattern::NamedNode(n) => n.clone().into(),
        TermPattern::Variable(v) => v.clone().into(),
        _ => Variable::new_unchecked("jindou_any_p").into(),
    };
    one(TriplePattern {
        subject,
        predicate,
        object,
    })
}

fn is_type(p: &TermPattern) -> bool {
    matches!(p, TermPattern::NamedNode(n) if n.as_str() == rdf::TYPE.as_str())
}

impl PatternWalk<'_, '_> {
    /// Determines whether a triple pattern has a match; if not, reports why.
    pub(super) fn triple(&mut self, t: &TriplePattern, graph: Inside<'_>) -> PartVerdict {
        let range = self.text.recorded.triple(t);
        let predicate = TermPattern::from(t.predicate.clone());
        let object = if is_type(&predicate) {
            TermRole::Class
        } else {
            TermRole::Object
        };
        let parts = [
            (&predicate, TermRole::Predicate),
            (&t.subject, TermRole::Subject),
            (&t.object, object),
        ];
        let mut unknown = false;
        for (part, role) in parts {
            if let Some(term) = constant(part)
                && !self.probe.knows(&term)
            {
                unknown = true;
                self.unknown(&term, part, role, Some(t), range.as_ref());
            }
        }
        if unknown {
            return PartVerdict::Empty;
        }
        let pattern = one(t.clone());
        match self
            .probe
            .has(&within(Arc::clone(&pattern), graph), ProbedGraphs::Own)
        {
            Some(true) => return PartVerdict::Some,
            None => return PartVerdict::Unknown,
            Some(false) => {}
        }
        match self.probe.has(&pattern, ProbedGraphs::All) {
            Some(true) => self.other_graphs(&pattern, graph, range.as_ref()),
            Some(false) => self.no_match(t, &predicate, object, range.as_ref()),
            None => {}
        }
        PartVerdict::Empty
    }

    /// Reports that a term does not occur in the store, and suggests similar ones.
    pub(super) fn unknown(
        &mut self,
        t: &Term,
        part: &TermPattern,
        role: TermRole,
        of: Option<&TriplePattern>,
        near: Option<&Range<usize>>,
    ) {
        let range = self.text.recorded.term(part, near);
        let told = self.text.told(t, range.as_ref());
        if let Term::Literal(_) = t {
            self.other_literal(t, part, of, range.as_ref());
            return;
        }
        if let Term::NamedNode(n) = t
            && let Some(extension) = extension_of_iri(n.as_str())
        {
            let message = format!(
                "{told} does not occur in this store: {}; {}",
                extension.message(),
                extension.instead
            );
            self.report(K::UnknownTerm, message, range.as_ref());
            return;
        }
        let message = format!("{told} does not occur in this store");
        let mut reason = self.text.reason(K::UnknownTerm, message, range.as_ref());
        if let Term::NamedNode(n) = t {
            reason.suggestions = self.like(n.as_str(), role, of, range.as_ref());
        }
        self.push(reason);
    }

    /// Suggestions of IRIs that are similar to this one.
    fn like(
        &self,
        iri: &str,
        role: TermRole,
        of: Option<&TriplePattern>,
        range: Option<&Range<usize>>,
    ) -> Vec<Suggestion> {
        let mut found = match role {
            TermRole::Predicate => self.probe.predicates_like(iri),
            TermRole::Class => self.probe.classes_like(iri),
            TermRole::Subject | TermRole::Object | TermRole::Anywhere => Vec::new(),
        };
        let unit = if role == TermRole::Predicate {
            "use"
        } else {
            "instance"
        };
        if role == TermRole::Anywhere {
            found = self.probe.classes_like(iri);
        }
        let mut all: Vec<(String, Option<String>)> = found
            .into_iter()
            .map(|f| (f.iri, Some(counted(f.count, unit))))
            .collect();
        if all.is_empty() {
            let known = |iri: &String| self.occurs_like(iri, role, of);
            let spelt = variants(iri).into_iter().filter(known).take(2);
            all.extend(spelt.map(|iri| (iri, None)));
        }
        let suggestion = |(iri, told): (String, Option<String>)| {
            let text = self.text.iri(&iri);
            let told = told.map_or(String::new(), |told| format!(" ({told})"));
            let suggestion = Suggestion::new(format!("did you mean {text}{told}?"));
            match range {
                Some(range) => suggestion.replacing(range.clone(), text),
                None => suggestion,
            }
        };
        all.into_iter().map(suggestion).collect()
    }

    /// True if an IRI occurs in the position of the similar one in the query: as `role` of the pattern `of`.
    fn occurs_like(&self, iri: &str, role: TermRole, of: Option<&TriplePattern>) -> bool {
        let t = Term::from(NamedNode::new_unchecked(iri));
        if !self.probe.knows(&t) {
            return false;
        }
        let Some(part) = pattern_of(&t) else {
            return false;
        };
        let predicate = of.map_or(any(1), |t| t.predicate.clone().into());
        let pattern = match role {
            TermRole::Predicate => with_predicate(any(0), &part, any(2)),
            TermRole::Subject => with_predicate(part, &predicate, any(2)),
            TermRole::Object | TermRole::Class => with_predicate(any(0), &predicate, part),
            TermRole::Anywhere => return self.positions(&part).is_some_and(|p| p.contains(&true)),
        };
        self.probe.has(&pattern, ProbedGraphs::All) == Some(true)
    }

    /// For subject, predicate and object: true if any quad has the term in that position. `None` if time ran out.
    pub(super) fn positions(&self, part: &TermPattern) -> Option<[bool; 3]> {
        let has = |p| self.probe.has(&p, ProbedGraphs::All);
        let is_object = has(with_predicate(any(0), &any(1), part.clone()))?;
        if !matches!(part, TermPattern::NamedNode(_)) {
            return Some([false, false, is_object]);
        }
        Some([
            has(with_predicate(part.clone(), &any(1), any(2)))?,
            has(with_predicate(any(0), part, any(2)))?,
            is_object,
        ])
    }

    /// Text that says in which positions a term occurs instead; `None` if it does not occur.
    fn elsewhere(&self, t: &Term, positions: [bool; 3]) -> Option<String> {
        let names = ["subject", "predicate", "object"];
        let all = names.iter().zip(positions).filter(|(_, is)| *is);
        let all: Vec<String> = all.map(|(name, _)| format!("as {name}")).collect();
        if !all.is_empty() {
            return Some(format!("only {}", list(&all)));
        }
        let v = self.probe.snapshot.lookup(&term::encode(t))?;
        let is_graph = jindou_graph::Graph::has_graph(&self.probe.snapshot, v.0);
        is_graph.then(|| "only as the name of a graph".to_owned())
    }

    /// Reports why a pattern has no match in any graph, although each of its terms occurs in the store.
    fn no_match(
        &mut self,
        t: &TriplePattern,
        predicate: &TermPattern,
        object_role: TermRole,
        range: Option<&Range<usize>>,
    ) {
        let none = |p: &Arc<GraphPattern>| self.probe.has(p, ProbedGraphs::All) == Some(false);
        if matches!(predicate, TermPattern::NamedNode(_))
            && none(&with_predicate(any(0), predicate, any(2)))
        {
            self.misplaced(predicate, TermRole::Predicate, t, range);
            return;
        }
        let subject_given = constant(&t.subject).is_some();
        let object_given = constant(&t.object).is_some();
        let subject_fails =
            subject_given && none(&with_predicate(t.subject.clone(), predicate, any(2)));
        let object_fails =
            object_given && none(&with_predicate(any(0), predicate, t.object.clone()));
        if subject_fails {
            self.misplaced(&t.subject, TermRole::Subject, t, range);
        }
        if object_fails {
            self.misplaced(&t.object, object_role, t, range);
        }
        if !subject_fails && !object_fails {
            let told = self.text.triple(t);
            self.report(K::NoMatch, format!("no triple matches {told}"), range);
        }
    }

    /// Reports that a term of the store does not occur in the position that it has in the pattern `of`.
    fn misplaced(
        &mut self,
        part: &TermPattern,
        role: TermRole,
        of: &TriplePattern,
        near: Option<&Range<usize>>,
    ) {
        let Some(t) = constant(part) else { return };
        let range = self.text.recorded.term(part, near);
        let range = range.as_ref();
        if let Term::Literal(_) = t {
            self.other_literal(&t, part, Some(of), range);
            return;
        }
        let Some(positions) = self.positions(part) else {
            return;
        };
        let Some(elsewhere) = self.elsewhere(&t, positions) else {
            // The term is still in the dictionary, but all quads with it were removed.
            self.unknown(&t, part, role, Some(of), near);
            return;
        };
        let told = self.text.told(&t, range);
        let predicate = TermPattern::from(of.predicate.clone());
        let predicate_told = self.text.part(&predicate);
        let is_any = constant(&predicate).is_none();
        let message = match role {
            TermRole::Predicate => {
                format!("{told} is not a predicate in this store: it occurs {elsewhere}")
            }
            TermRole::Class => {
                format!("{told} is not a class in this store: nothing has it as rdf:type")
            }
            _ if is_any => format!("{told} occurs {elsewhere}"),
            TermRole::Subject => {
                let has = self.predicates_beside(&of.subject, true);
                let has = match has.is_empty() {
                    true => format!("; it occurs {elsewhere}"),
                    false => format!("; it has {}", list(&has)),
                };
                format!("{told} has no {predicate_told}{has}")
            }
            TermRole::Object | TermRole::Anywhere => {
                let has = self.predicates_beside(&of.object, false);
                let has = match has.is_empty() {
                    true => format!("; it occurs {elsewhere}"),
                    false => format!("; it is one of {}", list(&has)),
                };
                format!("{told} is never the object of {predicate_told}{has}")
            }
        };
        let mut reason = self.text.reason(K::OtherPosition, message, range);
        // If the pattern with subject and object exchanged has a match, suggests that.
        let reversed = with_predicate(of.object.clone(), &predicate, of.subject.clone());
        let at = self.text.recorded.term(&predicate, near);
        if !is_any
            && !matches!(of.object, TermPattern::Literal(_))
            && self.probe.has(&reversed, ProbedGraphs::All) == Some(true)
        {
            let mut turned = Suggestion::new(format!(
                "it has matches the other way round: ^{predicate_told}"
            ));
            if let Some(at) = at {
                let written = self.text.text.get(at.clone()).unwrap_or_default();
                turned = turned.replacing(at, format!("^{written}"));
            }
            reason.suggestions.push(turned);
        }
        if let Term::NamedNode(n) = &t {
            let like = self.like(n.as_str(), role, Some(of), range);
            reason.suggestions.extend(like);
        }
        self.push(reason);
    }

    /// Some predicates of edges that leave a term (`from`), or that enter it.
    fn predicates_beside(&self, part: &TermPattern, from: bool) -> Vec<String> {
        let Some(t) = constant(part) else {
            return Vec::new();
        };
        let Some(v) = self.probe.snapshot.lookup(&term::encode(&t)) else {
            return Vec::new();
        };
        let direction = match from {
            true => jindou_model::Direction::Out,
            false => jindou_model::Direction::In,
        };
        let graph = &self.probe.snapshot;
        let all = jindou_graph::Graph::predicates_of(graph, v.0, direction);
        let mut out = Vec::new();
        for &p in all.iter() {
            if out.len() > LISTED {
                break;
            }
            let vertex = jindou_graph::Graph::vertex_of(graph, PredicateId(p));
            let Some(iri) = self.iri(vertex) else {
                continue;
            };
            let Some(predicate) = pattern_of(&NamedNode::new_unchecked(&iri).into()) else {
                continue;
            };
            // The list of predicates may include edges that a patch removed, so the edge itself is looked up.
            let pattern = match from {
                true => with_predicate(part.clone(), &predicate, any(2)),
                false => with_predicate(any(0), &predicate, part.clone()),
            };
            if self.probe.has(&pattern, ProbedGraphs::All) == Some(true) {
                out.push(self.text.iri(&iri));
            }
        }
        if out.len() > LISTED {
            out.truncate(LISTED);
            out.push("others".into());
        }
        out
    }

    fn iri(&self, v: VertexId) -> Option<String> {
        let mut bytes = Vec::new();
        if !self.probe.snapshot.term(v, &mut bytes) {
            return None;
        }
        match term::decode(&bytes) {
            Some(Term::NamedNode(n)) => Some(n.into_string()),
            _ => None,
        }
    }

    /// Determines whether a path has a match; if not, reports why.
    pub(super) fn path(&mut self, pattern: &Arc<GraphPattern>, graph: Inside<'_>) -> PartVerdict {
        let GraphPattern::Path {
            subject,
            path,
            object,
        } = &**pattern
        else {
            return PartVerdict::Unknown;
        };
        let range = self.text.recorded.path(subject, path, object);
        match self
            .probe
            .has(&within(Arc::clone(pattern), graph), ProbedGraphs::Own)
        {
            Some(true) => return PartVerdict::Some,
            None => return PartVerdict::Unknown,
            Some(false) => {}
        }
        let before = self.reasons.len();
        let mut needed = Vec::new();
        required(path, &mut needed, 0);
        for n in needed {
            let part = TermPattern::from(n.clone());
            if self.probe.uses(n.as_str()) == 0
                && let Some(t) = constant(&part)
            {
                if self.probe.knows(&t) {
                    let at = self.text.recorded.term(&part, range.as_ref());
                    let told = self.text.told(&t, at.as_ref());
                    let message = format!("{told} is not a predicate in this store");
                    let mut reason = self.text.reason(K::OtherPosition, message, at.as_ref());
                    reason.suggestions =
                        self.like(n.as_str(), TermRole::Predicate, None, at.as_ref());
                    self.push(reason);
                } else {
                    self.unknown(&t, &part, TermRole::Predicate, None, range.as_ref());
                }
            }
        }
        for end in [subject, object] {
            if let Some(t) = constant(end)
                && !self.probe.knows(&t)
            {
                self.unknown(&t, end, TermRole::Anywhere, None, range.as_ref());
            }
        }
        if self.reasons.len() == before {
            match self.probe.has(pattern, ProbedGraphs::All) {
                Some(true) => self.other_graphs(pattern, graph, range.as_ref()),
                None => {}
                Some(false) => {
                    let message = format!("no path matches {}", self.text.pattern(pattern));
                    self.report(K::NoMatch, message, range.as_ref());
                }
            }
        }
        PartVerdict::Empty
    }
}

/// Collects the predicates whose absence explains why a path has no match: all that are not in an optional part.
/// Recurses as deep as the path nests, up to a limit.
fn required<'p>(
    path: &'p PropertyPathExpression,
    out: &mut Vec<&'p jindou_plan::sparql::NamedNode>,
    depth: usize,
) {
    use PropertyPathExpression as P;
    if depth > 32 || out.len() > 16 {
        return;
    }
    match path {
        P::NamedNode(n) => out.push(n),
        P::Reverse(p) | P::OneOrMore(p) => required(p, out, depth + 1),
        P::Sequence(a, b) | P::Alternative(a, b) => {
            required(a, out, depth + 1);
            required(b, out, depth + 1);
        }
        P::ZeroOrMore(_) | P::ZeroOrOne(_) | P::NegatedPropertySet(_) => {}
    }
}
