//! Property paths with `?`, `*` and `+`.

use super::built::add_nodes;
use super::counted::constant_rows;
use super::rows::{is_nullable, keeps_any};
use super::*;
use crate::operator;

/// No rows, but with the path's slots: for a path in a graph that does not exist.
fn without_rows(input: Built, p: &PathNode) -> Built {
    let mut none = filtered(input, Condition::Or(vec![]));
    let ends = [&p.subject, &p.object];
    for s in ends.into_iter().filter_map(PatternTerm::slot) {
        none.certain.insert(s);
        none.possible.insert(s);
    }
    none
}

impl PlanBuilder<'_> {
    pub(super) fn path(&mut self, mut input: Built, p: &PathNode) -> Built {
        let graph = match &p.place {
            PatternGraphTerm::Default => self.dataset.default.clone(),
            PatternGraphTerm::Named(name) => match self.dataset.graph(name, self.snapshot) {
                Some(g) => GraphRef::Named(g),
                None => return without_rows(input, p),
            },
            PatternGraphTerm::Slot(g) => {
                if !input.possible.has(*g) {
                    let graphs = LogicalNode::graphs(*g);
                    input = if is_unit(&input) {
                        self.graphs(*g)
                    } else {
                        self.go_on(input, &graphs)
                    };
                }
                GraphRef::Slot(*g)
            }
        };
        let path = self.path_of(&p.path);
        let ends = [&p.subject, &p.object];
        let constants = ends.iter().filter(|e| !self.is_variable(e)).count();
        let leaves_graph = is_nullable(&p.path) && keeps_any(&p.path, constants);
        let nodes = is_nullable(&p.path)
            && !leaves_graph
            && ends.iter().any(|end| match end {
                PatternTerm::Slot(s) => {
                    let is_node = |n: &(PatternGraphTerm, Slot)| n.0 == p.place && n.1 == *s;
                    input.certain.has(*s) && !input.nodes.iter().any(is_node)
                }
                PatternTerm::Term(_) => true,
            });
        let ([subject, object], unknown) = self.path_ends(ends, &input.certain);
        for (s, bytes) in unknown {
            let values = constant_rows(vec![s], vec![vec![Cell::Term(bytes)]]);
            input = if is_unit(&input) {
                values
            } else {
                hash_join(input, values, JoinKind::Inner, None)
            };
        }
        let (each, visited) = self.reach(&path, &graph, subject, object);
        let rows = input.rows * each;
        let cost = input.cost + input.rows * visited * PATH;
        let mut out = input.with(
            |input| {
                Operator::Path(operator::FollowPath {
                    input,
                    subject,
                    path,
                    object,
                    graph,
                    nodes,
                    each,
                    visited,
                })
            },
            Some(rows),
            cost,
        );
        for end in [subject, object] {
            if let FarEnd::Bind(s) = end {
                out.certain.insert(s);
                out.possible.insert(s);
            }
        }
        if !leaves_graph {
            for s in ends.into_iter().filter_map(PatternTerm::slot) {
                add_nodes(&mut out.nodes, vec![(p.place.clone(), s)]);
            }
        }
        out
    }

    /// The two ends of a path that extends rows which bind `certain`. A zero-length path also matches a term that the
    /// store lacks: such an end becomes a new slot. The second value lists these slots with their terms.
    fn path_ends(
        &mut self,
        ends: [&PatternTerm; 2],
        certain: &SlotSet,
    ) -> ([FarEnd; 2], Vec<(Slot, Canonical)>) {
        let mut unknown = vec![];
        let ends = ends.map(|end| match end {
            PatternTerm::Slot(s) if certain.has(*s) => FarEnd::Known(Operand::Slot(*s)),
            PatternTerm::Slot(s) => FarEnd::Bind(*s),
            PatternTerm::Term(bytes) => match self.snapshot.lookup(bytes) {
                Some(VertexId(v)) => FarEnd::Known(Operand::Const(v)),
                None => {
                    let s = self.slots.len().min(usize::from(Slot::MAX)) as Slot;
                    self.slots.push(format!("term {s}"));
                    unknown.push((s, bytes.clone()));
                    FarEnd::Known(Operand::Slot(s))
                }
            },
        });
        (ends, unknown)
    }

    /// Returns true for an end that is a variable, not a term or a value that an EXISTS substitutes.
    fn is_variable(&self, end: &PatternTerm) -> bool {
        let is_free = |s| !self.outer.possible.has(s) && !self.constants.has(s);
        end.slot().is_some_and(is_free)
    }

    pub(super) fn path_of(&self, p: &PropertyPathExpression) -> Path {
        use PropertyPathExpression as P;
        let predicate = |n: &NamedNode| {
            let v = self.snapshot.lookup(&n.canonical())?;
            self.snapshot.predicate_of(v)
        };
        match p {
            P::NamedNode(n) => Path::Predicate(predicate(n)),
            P::Reverse(p) => Path::Inverse(Box::new(self.path_of(p))),
            P::Sequence(a, b) => {
                let mut parts = vec![];
                for p in [a, b] {
                    match self.path_of(p) {
                        Path::Sequence(more) => parts.extend(more),
                        one => parts.push(one),
                    }
                }
                Path::Sequence(parts)
            }
            P::Alternative(a, b) => {
                let mut parts = vec![];
                for p in [a, b] {
                    match self.path_of(p) {
                        Path::Alternative(more) => parts.extend(more),
                        one => parts.push(one),
                    }
                }
                Path::Alternative(parts)
            }
            P::ZeroOrMore(p) => Path::ZeroOrMore(Box::new(self.path_of(p))),
            P::OneOrMore(p) => Path::OneOrMore(Box::new(self.path_of(p))),
            P::ZeroOrOne(p) => Path::ZeroOrOne(Box::new(self.path_of(p))),
            P::NegatedPropertySet(list) => {
                Path::Except(list.iter().filter_map(predicate).collect())
            }
        }
    }
}
