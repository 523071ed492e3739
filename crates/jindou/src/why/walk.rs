//! Walk through a query's algebra that finds the part without solutions.

use super::pattern::{TermRole, one};
use super::probe::{ProbedGraphs, Prober, within};
use super::words::list;
use super::{MOST, QueryText, Reason, ReasonKind as K};
use jindou_model::term;
use jindou_plan::sparql::{
    Expression, GraphPattern, NamedNodePattern, Query, TermPattern, TriplePattern, Variable,
};
use std::ops::Range;
use std::sync::Arc;

/// Largest number of operands of a join, and of branches of a UNION, that are examined.
const PARTS: usize = 64;
/// Largest nesting depth of the algebra that is examined.
const DEPTH: usize = 100;
/// Largest number of operands of a join for which the set without common solutions is minimised.
const FEW: usize = 16;

/// The name or variable of the GRAPH that contains a part; `None` outside of GRAPH.
pub(super) type Inside<'g> = Option<&'g NamedNodePattern>;

/// Knowledge about the solutions of a part of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartVerdict {
    /// No solution exists.
    Empty,
    /// A solution exists.
    Some,
    /// Unknown, because the limits were reached.
    Unknown,
}

/// An operand of a join.
enum JoinOperand {
    Triple(TriplePattern),
    Other(Arc<GraphPattern>),
}

impl JoinOperand {
    fn pattern(&self) -> Arc<GraphPattern> {
        match self {
            Self::Triple(t) => one(t.clone()),
            Self::Other(p) => Arc::clone(p),
        }
    }
}

pub(super) struct PatternWalk<'w, 't> {
    pub probe: &'w Prober<'w>,
    pub text: &'w QueryText<'t>,
    pub reasons: Vec<Reason>,
    /// True once an empty default graph has been reported.
    pub default_graph_reported: bool,
    /// True once reading named graphs has been suggested.
    pub wrapped: bool,
    /// The pattern of the whole query.
    pub root: Option<Arc<GraphPattern>>,
}

impl<'w, 't> PatternWalk<'w, 't> {
    pub(super) fn new(probe: &'w Prober<'w>, text: &'w QueryText<'t>) -> Self {
        Self {
            probe,
            text,
            reasons: Vec::new(),
            default_graph_reported: false,
            wrapped: false,
            root: None,
        }
    }

    pub(super) fn push(&mut self, reason: Reason) {
        let said = |r: &Reason| r.message == reason.message && r.kind == reason.kind;
        if self.reasons.len() < MOST && !self.reasons.iter().any(said) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn report(
        &mut self,
        kind: K,
        message: impl Into<String>,
        range: Option<&Range<usize>>,
    ) {
        let reason = self.text.reason(kind, message.into(), range);
        self.push(reason);
    }

    /// Reports why a query has no answer.
    pub(super) fn query(&mut self, query: &Query) -> PartVerdict {
        let verdict = self.parts(query);
        if verdict == PartVerdict::Empty {
            self.over_all_graphs(query.pattern());
        }
        verdict
    }

    fn parts(&mut self, query: &Query) -> PartVerdict {
        let root = query.pattern();
        self.root = Some(Arc::clone(root));
        self.from();
        self.empty_default(root);
        if self.default_graph_reported && self.probe.snapshot.quads() == 0 {
            return PartVerdict::Unknown;
        }
        if let Query::Describe { .. } = query
            && let Some(verdict) = self.described(root)
        {
            return verdict;
        }
        let mut p = root;
        loop {
            match &**p {
                GraphPattern::Project { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner }
                | GraphPattern::OrderBy { inner, .. }
                | GraphPattern::Extend { inner, .. } => p = inner,
                // An aggregate without GROUP BY has a row even over no solutions; explain its input.
                GraphPattern::Group {
                    inner, variables, ..
                } if variables.is_empty() => return self.explain(inner, None, 0),
                _ => return self.explain(p, None, 0),
            }
        }
    }

    /// Reports the IRIs of a DESCRIBE that are not the subject of any triple; `None` if the DESCRIBE has variables.
    fn described(&mut self, root: &Arc<GraphPattern>) -> Option<PartVerdict> {
        let mut named = Vec::new();
        let mut p = root;
        loop {
            match &**p {
                GraphPattern::Project { inner, .. } | GraphPattern::Distinct { inner } => p = inner,
                GraphPattern::Extend {
                    inner, expression, ..
                } => {
                    if let Expression::NamedNode(n) = &**expression {
                        named.push(TermPattern::from(n.clone()));
                    }
                    p = inner;
                }
                GraphPattern::Bgp { patterns } if patterns.is_empty() => break,
                _ => return None,
            }
        }
        for part in named.iter().take(MOST) {
            let object = Variable::new_unchecked("jindou_any_o");
            let triple = TriplePattern {
                subject: part.clone(),
                predicate: Variable::new_unchecked("jindou_any_p").into(),
                object: object.into(),
            };
            if self.triple(&triple, None) != PartVerdict::Empty {
                return Some(PartVerdict::Some);
            }
        }
        Some(match named.len() {
            0 => PartVerdict::Unknown,
            n if n > MOST => PartVerdict::Unknown,
            _ => PartVerdict::Empty,
        })
    }

    /// Reports why a pattern has no solutions. If it turns out to have solutions, reports about its parts are removed.
    pub(super) fn explain(
        &mut self,
        p: &Arc<GraphPattern>,
        graph: Inside<'_>,
        depth: usize,
    ) -> PartVerdict {
        if depth > DEPTH {
            return PartVerdict::Unknown;
        }
        let before = self.reasons.len();
        let verdict = self.look_at(p, graph, depth);
        if verdict == PartVerdict::Some {
            self.reasons.truncate(before);
        }
        verdict
    }

    fn look_at(&mut self, p: &Arc<GraphPattern>, graph: Inside<'_>, depth: usize) -> PartVerdict {
        match &**p {
            GraphPattern::Bgp { .. }
            | GraphPattern::Join { .. }
            | GraphPattern::LeftJoin { .. } => self.join(p, graph, depth),
            GraphPattern::Path { .. } => self.path(p, graph),
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Extend { inner, .. } => self.explain(inner, graph, depth + 1),
            GraphPattern::Group {
                inner, variables, ..
            } => match variables.is_empty() {
                true => PartVerdict::Some,
                false => self.explain(inner, graph, depth + 1),
            },
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => {
                if *length == Some(0) {
                    return self.nothing_asked("LIMIT 0 asks for no row");
                }
                let verdict = self.explain(inner, graph, depth + 1);
                if verdict == PartVerdict::Empty || *start == 0 {
                    return verdict;
                }
                let has = self.has_solution(p, graph);
                if has == Some(false) {
                    self.nothing_asked(format!("OFFSET {start} skips all solutions"));
                }
                verdict_of(has)
            }
            GraphPattern::Filter { expr, inner } => {
                let verdict = self.explain(inner, graph, depth + 1);
                if verdict == PartVerdict::Empty {
                    return verdict;
                }
                let has = self.has_solution(p, graph);
                if has == Some(false) {
                    self.filter(expr, inner, graph, depth);
                }
                verdict_of(has)
            }
            GraphPattern::Union { .. } => self.union(p, graph, depth),
            GraphPattern::Graph { name, inner } => {
                let before = self.reasons.len();
                if self.no_graph(name) {
                    // A part without triple patterns, such as a BIND, may have a solution even without a graph.
                    let verdict = verdict_of(self.probe.has(p, ProbedGraphs::Own));
                    if verdict == PartVerdict::Some {
                        self.reasons.truncate(before);
                    }
                    return verdict;
                }
                self.explain(inner, Some(name), depth + 1)
            }
            GraphPattern::Minus { left, .. } => {
                let verdict = self.explain(left, graph, depth + 1);
                if verdict == PartVerdict::Empty {
                    return verdict;
                }
                let has = self.has_solution(p, graph);
                if has == Some(false) {
                    self.report(K::Minus, "MINUS removes every solution", None);
                }
                verdict_of(has)
            }
            GraphPattern::Lateral { left, .. } => {
                let verdict = self.explain(left, graph, depth + 1);
                match verdict {
                    PartVerdict::Empty => verdict,
                    _ => verdict_of(self.has_solution(p, graph)),
                }
            }
            GraphPattern::Values { bindings, .. } => {
                if !bindings.is_empty() {
                    return PartVerdict::Some;
                }
                self.nothing_asked("VALUES has no row")
            }
            GraphPattern::Service { .. } => PartVerdict::Unknown,
        }
    }

    /// True if a pattern has a solution; `None` if that is unknown because the limits were reached.
    fn has_solution(&self, p: &Arc<GraphPattern>, graph: Inside<'_>) -> Option<bool> {
        let p = within(Arc::clone(p), graph);
        self.probe.has(&p, ProbedGraphs::Own)
    }

    /// Reports that a part of the query leaves no row, whatever the data is.
    fn nothing_asked(&mut self, message: impl Into<String>) -> PartVerdict {
        self.report(K::NothingAsked, message, None);
        PartVerdict::Empty
    }

    /// Examines a UNION, which has no solutions if all branches have none.
    fn union(&mut self, p: &Arc<GraphPattern>, graph: Inside<'_>, depth: usize) -> PartVerdict {
        let mut open = vec![p];
        let mut branches = Vec::new();
        while let Some(p) = open.pop() {
            match &**p {
                GraphPattern::Union { left, right } => open.extend([right, left]),
                _ => branches.push(p),
            }
            if branches.len() > PARTS {
                break;
            }
        }
        let mut verdict = match branches.len() > PARTS {
            true => PartVerdict::Unknown,
            false => PartVerdict::Empty,
        };
        for branch in branches.into_iter().take(PARTS) {
            match self.explain(branch, graph, depth + 1) {
                PartVerdict::Empty => {}
                PartVerdict::Unknown => verdict = PartVerdict::Unknown,
                PartVerdict::Some => return PartVerdict::Some,
            }
        }
        verdict
    }

    /// Examines a join, which has no solutions if an operand has none, or if some operands have none in common.
    fn join(&mut self, p: &Arc<GraphPattern>, graph: Inside<'_>, depth: usize) -> PartVerdict {
        let (parts, whole) = parts_of(p);
        let mut verdict = PartVerdict::Some;
        for part in &parts {
            let of_part = match part {
                JoinOperand::Triple(t) => self.triple(t, graph),
                JoinOperand::Other(p) => self.explain(p, graph, depth + 1),
            };
            verdict = match (verdict, of_part) {
                (PartVerdict::Empty, _) | (_, PartVerdict::Empty) => PartVerdict::Empty,
                (PartVerdict::Unknown, _) | (_, PartVerdict::Unknown) => PartVerdict::Unknown,
                _ => PartVerdict::Some,
            };
            if verdict == PartVerdict::Empty
                && (self.reasons.len() >= MOST || !self.probe.goes_on())
            {
                break;
            }
        }
        if verdict == PartVerdict::Empty || parts.is_empty() && whole {
            return verdict;
        }
        if parts.len() == 1 && whole {
            return verdict;
        }
        let has = self
            .probe
            .has(&within(Arc::clone(p), graph), ProbedGraphs::Own);
        if has != Some(true) && parts.len() > 1 && self.find_disjoint(&parts, graph, verdict) {
            return PartVerdict::Empty;
        }
        verdict_of(has)
    }

    /// Reports operands that have no common solution; `each` tells whether all of them have solutions on their own.
    /// Returns false if no such operands were found.
    fn find_disjoint(
        &mut self,
        parts: &[JoinOperand],
        graph: Inside<'_>,
        each: PartVerdict,
    ) -> bool {
        let all: Vec<&JoinOperand> = parts.iter().collect();
        let is_empty = |list: &[&JoinOperand]| {
            self.probe
                .has(&within(joined(list), graph), ProbedGraphs::Own)
                == Some(false)
        };
        // A longer prefix has no more solutions than a shorter one, so binary search finds the shortest prefix without
        // any.
        let (mut some, mut none) = (1, all.len());
        if !is_empty(&all) {
            // Testing the join of all operands may exceed the limits; then only the first few are joined.
            none = all.len().min(4);
            if none == all.len() || !is_empty(&all[..none]) {
                return false;
            }
        }
        while none - some > 1 {
            let middle = some + (none - some) / 2;
            if is_empty(&all[..middle]) {
                none = middle;
            } else {
                some = middle;
            }
        }
        let mut kept: Vec<&JoinOperand> = all[..none].to_vec();
        if kept.len() <= FEW {
            let mut at = 0;
            while kept.len() > 2 && at + 1 < kept.len() {
                let mut fewer = kept.clone();
                fewer.remove(at);
                if is_empty(&fewer) {
                    kept = fewer;
                } else {
                    at += 1;
                }
            }
        }
        self.report_disjoint(&kept, each == PartVerdict::Some);
        true
    }

    /// Reports that these operands have no common solution. `each_matches` is true if each is known to have solutions
    /// on its own.
    fn report_disjoint(&mut self, kept: &[&JoinOperand], each_matches: bool) {
        let patterns: Vec<Arc<GraphPattern>> = kept.iter().map(|p| p.pattern()).collect();
        let told: Vec<String> = patterns.iter().map(|p| self.text.pattern(p)).collect();
        let message = match (told.as_slice(), &patterns[..]) {
            _ if !each_matches && told.len() <= FEW => {
                format!("these have no match together: {}", list(&told))
            }
            ([a, b], [p, q]) => {
                let shared = match common(p, q).as_slice() {
                    [one] => format!(": no {one} has both"),
                    _ => String::new(),
                };
                format!("{a} and {b} each have matches, but none together{shared}")
            }
            _ if told.len() <= FEW => format!(
                "each of these has matches, but all together have none: {}",
                list(&told)
            ),
            _ => format!(
                "the first {} patterns have no match together; no row is left after {}",
                told.len(),
                told.last().map_or("", String::as_str)
            ),
        };
        let place = kept.last().and_then(|p| self.place(p));
        self.report(K::Join, message, place.as_ref());
        for p in &patterns {
            if let GraphPattern::Values { bindings, .. } = &**p {
                self.unknown_values(bindings);
            }
        }
    }

    /// Reports the terms in VALUES that do not occur in the store.
    fn unknown_values(&mut self, bindings: &[Vec<Option<jindou_plan::sparql::GroundTerm>>]) {
        use jindou_plan::sparql::GroundTerm;
        for ground in bindings.iter().flatten().flatten().take(20) {
            let part = match ground {
                GroundTerm::NamedNode(n) => TermPattern::from(n.clone()),
                GroundTerm::Literal(l) => TermPattern::from(l.clone()),
                GroundTerm::Triple(_) => continue,
            };
            if let Some(t) = super::words::constant(&part)
                && self.probe.snapshot.lookup(&term::encode(&t)).is_none()
            {
                self.unknown(&t, &part, TermRole::Anywhere, None, None);
            }
        }
    }

    fn place(&self, part: &JoinOperand) -> Option<Range<usize>> {
        match part {
            JoinOperand::Triple(t) => self.text.recorded.triple(t),
            JoinOperand::Other(p) => match &**p {
                GraphPattern::Path {
                    subject,
                    path,
                    object,
                } => self.text.recorded.path(subject, path, object),
                _ => None,
            },
        }
    }
}

fn verdict_of(has: Option<bool>) -> PartVerdict {
    match has {
        Some(true) => PartVerdict::Some,
        Some(false) => PartVerdict::Empty,
        None => PartVerdict::Unknown,
    }
}

/// The first operands of a join, without optional ones, and true if no operand was left out.
fn parts_of(p: &Arc<GraphPattern>) -> (Vec<JoinOperand>, bool) {
    let mut open = vec![p];
    let mut whole = true;
    let mut parts = Vec::new();
    while let Some(p) = open.pop() {
        match &**p {
            GraphPattern::Join { left, right } => open.extend([right, left]),
            GraphPattern::LeftJoin { left, .. } => {
                whole = false;
                open.push(left);
            }
            GraphPattern::Bgp { patterns } => {
                let room = (PARTS + 1).saturating_sub(parts.len());
                parts.extend(patterns.iter().take(room).cloned().map(JoinOperand::Triple));
            }
            _ => parts.push(JoinOperand::Other(Arc::clone(p))),
        }
        if parts.len() > PARTS {
            whole = false;
            parts.truncate(PARTS);
            break;
        }
    }
    (parts, whole)
}

/// The join of these operands, with their triple patterns in one group.
fn joined(parts: &[&JoinOperand]) -> Arc<GraphPattern> {
    let mut patterns = Vec::new();
    let mut others = Vec::new();
    for part in parts {
        match part {
            JoinOperand::Triple(t) => patterns.push(t.clone()),
            JoinOperand::Other(p) => others.push(Arc::clone(p)),
        }
    }
    let mut out: Option<Arc<GraphPattern>> = None;
    if !patterns.is_empty() {
        out = Some(Arc::new(GraphPattern::Bgp { patterns }));
    }
    for right in others {
        out = Some(match out {
            None => right,
            Some(left) => Arc::new(GraphPattern::Join { left, right }),
        });
    }
    out.unwrap_or_default()
}

/// The variables that both patterns have.
fn common(a: &GraphPattern, b: &GraphPattern) -> Vec<Variable> {
    let mut of_a = Vec::new();
    a.on_in_scope_variable(|v| of_a.push(v.clone()));
    let mut out: Vec<Variable> = Vec::new();
    b.on_in_scope_variable(|v| {
        if of_a.contains(v) && !out.contains(v) {
            out.push(v.clone());
        }
    });
    out
}
