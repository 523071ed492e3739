//! A plan's heap bytes, depth and destruction, all without recursion.

use crate::operator::Walk;
use crate::{
    Condition, EdgeList, Form, GeneralExpression, IdFilter, Operator, Path, Plan, StartSource,
    Step, StepKind, TemplateTerm, expression,
};
use jindou_syntax::algebra::{Canonical, Expression};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Mean overhead of the allocator per allocation, in bytes.
pub(crate) const PIECE: u64 = 16;

/// Length in bytes from which a text that several parts of a plan share is counted only once.
const LONG: usize = 128;

/// Addresses of shared texts and parts that are already counted.
#[derive(Debug, Default)]
pub struct CountedTexts {
    seen: FxHashSet<usize>,
}

impl CountedTexts {
    /// Bytes to count for a shared text; 0 if it is counted already.
    pub(crate) fn bytes(&mut self, text: &[u8]) -> u64 {
        if text.len() >= LONG && !self.seen.insert(text.as_ptr() as usize) {
            return 0;
        }
        text.len() as u64 + 2 * PIECE
    }

    /// Returns true if a shared part of a plan is not counted yet, and marks it as counted.
    pub(crate) fn is_new<T>(&mut self, part: &Arc<T>) -> bool {
        self.seen.insert(Arc::as_ptr(part) as usize)
    }

    pub(crate) fn canonical(&mut self, term: &Canonical) -> u64 {
        self.bytes(term)
    }
}

impl Plan {
    /// Approximate bytes on the heap that a plan occupies in a cache or a prepared query. O(plan).
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let mut held = CountedTexts::default();
        let mut bytes = size_of::<Self>() as u64;
        for name in self.slots.iter().chain(&self.columns) {
            bytes += name.capacity() as u64 + PIECE + size_of::<String>() as u64;
        }
        bytes += list::<crate::Slot>(self.output.len());
        match &self.form {
            Form::Construct(template) => {
                bytes += list::<[TemplateTerm; 3]>(template.len());
                let mut open: Vec<&TemplateTerm> = template.iter().flatten().collect();
                while let Some(t) = open.pop() {
                    match t {
                        TemplateTerm::Term(b) => bytes += held.canonical(b),
                        TemplateTerm::Triple(parts) => {
                            bytes += size_of::<[TemplateTerm; 3]>() as u64 + PIECE;
                            open.extend(parts.iter());
                        }
                        TemplateTerm::Column(_) | TemplateTerm::Blank(_) => {}
                    }
                }
            }
            Form::Describe(Some(dataset)) => {
                let named = dataset.named.iter().flatten();
                for n in dataset.default.iter().chain(named) {
                    bytes += held.bytes(n.as_str().as_bytes()) + size_of::<String>() as u64;
                }
            }
            Form::Select | Form::Ask | Form::Describe(None) => {}
        }
        self.root.walk(&mut |op| {
            bytes += size_of::<Operator>() as u64 + PIECE + op.facts().own_bytes(&mut held);
            Walk::Into
        });
        bytes
    }

    /// Number of levels of the tree of operators. O(operators).
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut open = vec![(&self.root, 1)];
        while let Some((op, depth)) = open.pop() {
            deepest = deepest.max(depth);
            op.each_input(&mut |_, i| open.push((i, depth + 1)));
        }
        deepest
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.root.dismantle();
    }
}

pub(crate) fn list<T>(n: usize) -> u64 {
    (n * size_of::<T>()) as u64 + PIECE
}

pub(crate) fn steps(all: &[Step], held: &mut CountedTexts) -> u64 {
    all.iter().map(|s| step(s, held)).sum()
}

fn step(step: &Step, held: &mut CountedTexts) -> u64 {
    let lists = |lists: &[EdgeList]| list::<EdgeList>(lists.len());
    let (kind, within) = match &step.kind {
        StepKind::Start { within, source, .. } | StepKind::Cross { within, source, .. } => {
            let graphs = match source {
                StartSource::Graphs(Some(g)) => list::<u32>(g.len()),
                _ => 0,
            };
            (graphs, within.as_ref())
        }
        StepKind::Expand {
            lists: l, within, ..
        } => (lists(l), within.as_ref()),
        StepKind::Restrict { within, .. } => (0, Some(within)),
        StepKind::Check { .. } | StepKind::ExpandAny { .. } | StepKind::ScanAll { .. } => (0, None),
    };
    size_of::<Step>() as u64
        + kind
        + within.map_or(0, intervals)
        + list::<crate::Slot>(step.live.len())
        + step.why.capacity() as u64
        + PIECE
        + step
            .filters
            .iter()
            .map(|c| size_of::<Condition>() as u64 + condition(c, held))
            .sum::<u64>()
}

fn intervals(w: &IdFilter) -> u64 {
    let members = w.members.iter();
    list::<[u32; 2]>(w.intervals.len())
        + members
            .map(|m| list::<[u32; 2]>(m.intervals.len()) + 64)
            .sum::<u64>()
}

pub(crate) fn general(g: &GeneralExpression, held: &mut CountedTexts) -> u64 {
    let mut bytes = size_of::<GeneralExpression>() as u64;
    for (variable, _) in g.variables.iter() {
        bytes += held.bytes(variable.as_str().as_bytes()) + 32;
    }
    if let Some(base) = &g.base_iri {
        bytes += held.bytes(base.as_bytes());
    }
    if held.is_new(&g.expression) {
        bytes += expression_bytes(&g.expression, held);
    }
    bytes + g.asked.as_ref().map_or(0, |a| a.call.heap_bytes() + 64)
}

/// Approximate heap bytes of an expression without EXISTS.
fn expression_bytes(e: &Expression, held: &mut CountedTexts) -> u64 {
    let mut bytes = 0;
    expression::walk(e, &mut |part| {
        bytes += size_of::<Expression>() as u64 + PIECE;
        bytes += match part {
            Expression::NamedNode(n) => held.bytes(n.as_str().as_bytes()),
            Expression::Literal(l) => held.bytes(l.canonical()),
            Expression::Variable(v) | Expression::Bound(v) => held.bytes(v.as_str().as_bytes()),
            _ => 0,
        };
    });
    bytes
}

pub(crate) fn condition(c: &Condition, held: &mut CountedTexts) -> u64 {
    let mut bytes = 0;
    let mut open = vec![c];
    while let Some(c) = open.pop() {
        match c {
            Condition::Same(..) | Condition::Kind(..) | Condition::Bound(_) => {}
            Condition::Compare(_, _, constant) => bytes += held.canonical(constant),
            Condition::And(all) | Condition::Or(all) => {
                bytes += list::<Condition>(all.capacity());
                open.extend(all);
            }
            Condition::Not(c) => {
                bytes += size_of::<Condition>() as u64 + PIECE;
                open.push(c);
            }
            Condition::General(g) => bytes += general(g, held),
        }
    }
    bytes
}

pub(crate) fn path(p: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![p];
    while let Some(p) = open.pop() {
        bytes += size_of::<Path>() as u64 + PIECE;
        match p {
            Path::Sequence(all) | Path::Alternative(all) => open.extend(all),
            Path::Inverse(p) | Path::ZeroOrOne(p) | Path::ZeroOrMore(p) | Path::OneOrMore(p) => {
                open.push(p)
            }
            Path::Except(list) => bytes += (list.len() * 8) as u64,
            Path::Predicate(_) => {}
        }
    }
    bytes
}
