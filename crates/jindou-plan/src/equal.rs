//! Filters that equate two variables, and so connect patterns that share no variable.
//!
//! `sameTerm(?a, ?b)` merges the two slots into one, so that the search explores through it. So does `?a = ?b` where it
//! holds only for the same term ([`unified`]): if one of the variables is certainly an IRI or blank node (a subject,
//! say), or if both are certainly strings, since all objects of their predicates are. Any other `?a = ?b` between
//! groups of patterns without a shared slot ([`components`]) becomes a join on values.

use crate::Slot;
use crate::build::Built;
use crate::expression::Expr;
use crate::keyed;
use crate::logical::{Bgp, LogicalPattern, PatternGraphTerm, PatternTerm};
use crate::operator::MatchBy;
use crate::set::SlotSet;
use jindou_graph::{Graph, ObjectTerms};
use jindou_syntax::algebra::{Expression, Variable};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The two different slots that the filter equates, if it has that form; the third field is true for `sameTerm`.
pub(crate) fn pair(f: &Expr) -> Option<(Slot, Slot, bool)> {
    let (a, b, by) = keyed::sides(&f.expression)?;
    let same = match by {
        MatchBy::Value => false,
        MatchBy::Term => true,
        MatchBy::Order(_) => return None,
    };
    let (Expression::Variable(a), Expression::Variable(b)) = (a, b) else {
        return None;
    };
    let (a, b) = (f.slot(a)?, f.slot(b)?);
    (a != b && !f.per_row).then_some((a, b, same))
}

/// A group with merged slots, the removed slots with expressions for their values, and the conditions that still have
/// to be tested.
type Given = (Bgp, Copies, Vec<Arc<Expr>>);

/// Slots that were removed from a group, each with the expression for its value.
type Copies = Vec<(Slot, Arc<Expr>)>;

/// Merges two slots of a group wherever a filter requires both to hold the same term; also returns the removed slots
/// with their values. `None` if there is no such filter.
pub(crate) fn unified(group: &Bgp, snapshot: &dyn Graph) -> Option<(Bgp, Copies)> {
    let mut out: Option<(Bgp, Copies)> = None;
    loop {
        let at = out.as_ref().map_or(group, |o| &o.0);
        if !at.filters.iter().any(|f| pair(f).is_some()) {
            return out;
        }
        let identical = identical(&at.patterns, snapshot, None);
        let bound: SlotSet = at.patterns.iter().flat_map(LogicalPattern::slots).collect();
        // Slots of predicates and graphs cannot be removed, since patterns treat them specially.
        let fixed: SlotSet = at.patterns.iter().flat_map(fixed).collect();
        let next = at.filters.iter().enumerate().find_map(|(i, f)| {
            let (a, b, same) = pair(f)?;
            let one_term = same || identical.decides(a, b);
            if !one_term || !bound.has(a) || !bound.has(b) {
                return None;
            }
            let (keep, gone) = if fixed.has(b) { (b, a) } else { (a, b) };
            (!fixed.has(gone)).then_some((i, keep, gone))
        });
        let Some((filter, keep, gone)) = next else {
            return out;
        };
        let (group, copies) = out.get_or_insert_with(|| (group.clone(), vec![]));
        group.filters.remove(filter);
        rename(group, gone, keep);
        copies.iter_mut().for_each(|c| read(&mut c.1, gone, keep));
        copies.push((gone, Arc::new(copy(keep))));
    }
}

/// Replaces slots of the group by slots of the rows that it extends, wherever a condition requires both to hold the
/// same term. `None` if there is no such condition.
pub(crate) fn given(
    group: &Bgp,
    conditions: &[Arc<Expr>],
    rows: &Built,
    snapshot: &dyn Graph,
) -> Option<Given> {
    if !conditions.iter().any(|f| pair(f).is_some()) {
        return None;
    }
    let identical = identical(&group.patterns, snapshot, None);
    let mut bound: SlotSet = group
        .patterns
        .iter()
        .flat_map(LogicalPattern::slots)
        .collect();
    let fixed: SlotSet = group.patterns.iter().flat_map(fixed).collect();
    let mut out: Option<Given> = None;
    let mut rest = vec![];
    for f in conditions {
        let of = |(a, b, same): (Slot, Slot, bool)| {
            let one = |row: Slot, own: Slot| {
                let ends = rows.certain.has(row) && !bound.has(row);
                let own_alone = bound.has(own) && !fixed.has(own) && !rows.possible.has(own);
                let one_term = same
                    || identical.nodes.has(own)
                    || identical.texts.has(own) && rows.texts.has(row);
                (ends && own_alone && one_term).then_some((row, own))
            };
            one(a, b).or_else(|| one(b, a))
        };
        let Some((row, own)) = pair(f).and_then(of) else {
            rest.push(f.clone());
            continue;
        };
        let (group, copies, _) = out.get_or_insert_with(|| (group.clone(), vec![], vec![]));
        rename(group, own, row);
        copies.push((own, Arc::new(copy(row))));
        // From here on, `row` is a slot of the group: no second one may be replaced by it.
        bound.remove(own);
        bound.insert(row);
    }
    out.map(|(group, copies, _)| (group, copies, rest))
}

/// Replaces slot `gone` by `keep` at the ends of patterns and in filters.
fn rename(group: &mut Bgp, gone: Slot, keep: Slot) {
    for p in &mut group.patterns {
        for end in [&mut p.subject, &mut p.object] {
            if *end == PatternTerm::Slot(gone) {
                *end = PatternTerm::Slot(keep);
            }
        }
    }
    for i in (1..group.patterns.len()).rev() {
        if group.patterns[..i].contains(&group.patterns[i]) {
            group.patterns.remove(i);
        }
    }
    group.filters.iter_mut().for_each(|f| read(f, gone, keep));
}

fn read(f: &mut Arc<Expr>, gone: Slot, keep: Slot) {
    if f.variables.iter().any(|v| v.1 == gone) {
        *f = Arc::new(f.renamed(|s| if s == gone { keep } else { s }));
    }
}

/// An expression whose value is the term in slot `of`.
pub(crate) fn copy(of: Slot) -> Expr {
    let v = Variable::new_unchecked("same");
    Expr::plain(v.clone().into(), [(v, of)])
}

fn fixed(p: &LogicalPattern) -> impl Iterator<Item = Slot> {
    p.predicate.slot().into_iter().chain(p.place.slot())
}

/// Slots for which the patterns guarantee which kinds of terms they hold.
pub(crate) struct Identical {
    /// Slots of IRIs and blank nodes, which equal only the same term.
    nodes: SlotSet,
    /// Slots of IRIs, blank nodes, and strings of type `xsd:string` or with a language tag: two of them are equal only
    /// if they are the same term.
    pub texts: SlotSet,
}

impl Identical {
    /// True if `=` between two slots holds only for the same term.
    fn decides(&self, a: Slot, b: Slot) -> bool {
        self.nodes.has(a) || self.nodes.has(b) || self.texts.has(a) && self.texts.has(b)
    }
}

/// Classifies the slots of patterns. Objects are considered only if they are in `asked`, or all if it is `None`.
pub(crate) fn identical(
    patterns: &[LogicalPattern],
    snapshot: &dyn Graph,
    asked: Option<&SlotSet>,
) -> Identical {
    let sure = |p| fixed(p).chain(p.subject.slot());
    let mut nodes: SlotSet = patterns.iter().flat_map(sure).collect();
    let mut texts = nodes.clone();
    for p in patterns {
        let (Some(object), PatternTerm::Term(predicate)) = (p.object.slot(), &p.predicate) else {
            continue;
        };
        if asked.is_some_and(|a| !a.has(object)) {
            continue;
        }
        let known = snapshot.lookup(predicate);
        let kind = known
            .and_then(|v| snapshot.predicate_of(v))
            .map(|p| snapshot.object_terms(p));
        if kind >= Some(ObjectTerms::Texts) {
            texts.insert(object);
        }
        if kind == Some(ObjectTerms::Resources) {
            nodes.insert(object);
        }
    }
    Identical { nodes, texts }
}

/// Splits a group into parts that share no slot, each with the filters that read only its slots; also returns the
/// filters over several parts. With `by_graph`, patterns with the same graph variable count as connected.
pub(crate) fn components(group: &Bgp, by_graph: bool) -> (Vec<Bgp>, Vec<Arc<Expr>>) {
    // A disjoint-set forest over the patterns. The root of a tree is its last pattern, which determines the order of
    // parts.
    let mut parents: Vec<usize> = (0..group.patterns.len()).collect();
    let mut first_with: FxHashMap<Slot, usize> = FxHashMap::default();
    for (i, p) in group.patterns.iter().enumerate() {
        let graph = match p.place {
            PatternGraphTerm::Slot(g) if !by_graph => Some(g),
            _ => None,
        };
        let ends = [&p.subject, &p.predicate, &p.object];
        let is_end = |s: Slot| ends.iter().any(|e| **e == PatternTerm::Slot(s));
        for s in p.slots().filter(|s| graph != Some(*s) || is_end(*s)) {
            let other = *first_with.entry(s).or_insert(i);
            let (a, b) = (root(&mut parents, other), root(&mut parents, i));
            parents[a.min(b)] = a.max(b);
        }
    }
    let mut parts: Vec<Bgp> = vec![];
    let mut part_of = vec![0; parents.len()];
    for i in 0..parents.len() {
        if parents[i] == i {
            part_of[i] = parts.len();
            parts.push(Bgp::new(vec![], vec![]));
        }
    }
    for (i, p) in group.patterns.iter().enumerate() {
        let part = part_of[root(&mut parents, i)];
        part_of[i] = part;
        parts[part].patterns.push(p.clone());
    }
    let mut over = vec![];
    for f in &group.filters {
        let slots = f.slots();
        let mut known = slots
            .iter()
            .map(|s| first_with.get(&s).map(|p| part_of[*p]));
        // A filter that reads no slot goes to the first part.
        let part = known.next().unwrap_or(Some(0));
        match part.filter(|_| known.all(|k| k == part)) {
            Some(part) if part < parts.len() => parts[part].filters.push(f.clone()),
            _ => over.push(f.clone()),
        }
    }
    (parts, over)
}

/// The root of a pattern's tree (union-find with path halving).
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}
