//! Operators with their estimates, and ways to combine them.

use super::*;
use crate::cost::HASH_PROBE;
use crate::operator;

/// Slots whose values are nodes of graphs (subjects or objects of an edge there), each with these graphs.
pub(crate) type Nodes = Vec<(PatternGraphTerm, Slot)>;

/// Operators with the known properties of their rows.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub op: Operator,
    /// Slots bound in every row.
    pub certain: SlotSet,
    /// Slots that a row may bind.
    pub possible: SlotSet,
    /// Slots whose value is, in every row, a subject or object of an edge in the given graphs.
    pub nodes: Nodes,
    /// Slots whose value, if bound, is an IRI, a blank node, or a string of type `xsd:string` or with a language tag,
    /// so that `=` between two of them holds only for the same term. (A string also equals literals of types derived
    /// from `xsd:string`.)
    pub texts: SlotSet,
    pub rows: f64,
    /// Estimated cost, roughly in nanoseconds of one core, inputs included.
    pub cost: f64,
}

impl Built {
    pub(crate) fn with(
        self,
        op: impl FnOnce(Box<Operator>) -> Operator,
        rows: Option<f64>,
        cost: f64,
    ) -> Self {
        Self {
            op: op(Box::new(self.op)),
            rows: rows.unwrap_or(self.rows),
            cost: cost.max(self.cost),
            certain: self.certain,
            possible: self.possible,
            nodes: self.nodes,
            texts: self.texts,
        }
    }
}

/// [`Built::texts`] of joined rows: the value of a slot that both inputs have may come from either.
fn texts_of_both(a: &Built, b: &Built) -> SlotSet {
    let others = |x: &Built, y: &Built| x.texts.minus(&y.possible.minus(&y.texts));
    others(a, b).or(&others(b, a))
}

/// One empty row.
pub(crate) fn unit() -> Built {
    let step = Step::unit("one empty row");
    Built {
        op: Operator::Explore(Exploration {
            steps: vec![step],
            empty: None,
        }),
        certain: SlotSet::default(),
        possible: SlotSet::default(),
        nodes: vec![],
        texts: SlotSet::default(),
        rows: 1.0,
        cost: 0.0,
    }
}

pub(super) fn is_unit(b: &Built) -> bool {
    matches!(&b.op, Operator::Explore(e) if matches!(e.steps.as_slice(),
        [Step { kind: StepKind::Start { source: StartSource::Unit, .. }, filters, .. }] if filters.is_empty()))
}

pub(crate) fn nothing(why: String) -> Built {
    Built {
        op: Operator::Explore(Exploration {
            steps: vec![],
            empty: Some(why),
        }),
        certain: SlotSet::default(),
        possible: SlotSet::default(),
        nodes: vec![],
        texts: SlotSet::default(),
        rows: 0.0,
        cost: 0.0,
    }
}

/// The input's rows as the inner part of an `Apply` sees them, restricted to `slots`.
pub(crate) fn row_of(input: &Built, slots: &SlotSet) -> Built {
    Built {
        op: Operator::Outer(operator::Outer {
            slots: slots.to_vec(),
        }),
        certain: slots.and(&input.certain),
        possible: slots.clone(),
        nodes: input.nodes.clone(),
        texts: slots.and(&input.texts),
        rows: input.rows,
        cost: 0.0,
    }
}

pub(super) fn on_steps(input: Built, more: Vec<Step>, rows: f64, cost: f64) -> Built {
    let cost = input.cost + cost;
    // Steps that extend the rows of steps become one list.
    match input.op {
        Operator::Explore(Exploration { mut steps, empty }) if empty.is_none() => {
            steps.extend(more);
            Built {
                op: Operator::Explore(Exploration { steps, empty }),
                rows,
                cost,
                ..input
            }
        }
        Operator::Steps(operator::Steps {
            input: i,
            mut steps,
        }) => {
            steps.extend(more);
            Built {
                op: operator::Steps { input: i, steps }.into(),
                rows,
                cost,
                ..input
            }
        }
        _ => input.with(
            |input| operator::Steps { input, steps: more }.into(),
            Some(rows),
            cost,
        ),
    }
}

pub(crate) fn apply_op(input: Built, inner: Built, kind: ApplyKind, each_row: bool) -> Built {
    let (mut certain, mut possible) = (input.certain.clone(), input.possible.clone());
    let mut nodes = input.nodes.clone();
    let texts = match kind {
        ApplyKind::Inner | ApplyKind::Left => texts_of_both(&input, &inner),
        _ => input.texts.clone(),
    };
    // `inner.rows` and `inner.cost` are per outer row if the inner part runs for each row, otherwise for all rows
    // together.
    let times = if each_row { input.rows.max(1.0) } else { 1.0 };
    let found = inner.rows * times;
    let rows = match kind {
        ApplyKind::Inner => {
            certain.add(&inner.certain);
            possible.add(&inner.possible);
            add_nodes(&mut nodes, inner.nodes);
            found
        }
        ApplyKind::Left => {
            possible.add(&inner.possible);
            found.max(input.rows)
        }
        ApplyKind::Semi => input.rows.min(found),
        ApplyKind::Anti => (input.rows - found).max(input.rows * 0.05),
        ApplyKind::Mark(s) => {
            certain.insert(s);
            possible.insert(s);
            input.rows
        }
    };
    let cost = input.cost + inner.cost * times + (input.rows + found) * OUT * 4.0;
    Built {
        op: Operator::Apply(operator::Apply {
            input: Box::new(input.op),
            inner: Box::new(inner.op),
            kind,
            each_row,
        }),
        certain,
        possible,
        nodes,
        texts,
        rows,
        cost,
    }
}

/// Joins both sides on all slots that both have.
pub(crate) fn hash_join(
    left: Built,
    right: Built,
    kind: JoinKind,
    condition: Option<Condition>,
) -> Built {
    match_join(left, right, kind, JoinMatches::default(), condition)
}

/// Comparisons of the two sides of a join.
#[derive(Default)]
pub(crate) struct JoinMatches {
    /// All of them must be true.
    pub all: Vec<Match>,
    /// At least one of them must be true, unless the list is empty.
    pub either: Vec<Match>,
}

/// Joins both sides on all slots that both have, and by comparisons.
pub(crate) fn match_join(
    left: Built,
    right: Built,
    kind: JoinKind,
    matches: JoinMatches,
    condition: Option<Condition>,
) -> Built {
    let JoinMatches {
        all: matches,
        either,
    } = matches;
    let shared = left.possible.and(&right.possible);
    let on: Vec<JoinKey> = shared
        .iter()
        .map(|slot| JoinKey {
            slot,
            left_bound: left.certain.has(slot),
            right_bound: right.certain.has(slot),
        })
        .collect();
    let compared = (&matches[..], either.len());
    let (rows, own) = cost::matching(kind, left.rows, right.rows, on.len(), compared);
    let cost = left.cost + right.cost + own;
    let texts = match kind {
        JoinKind::Inner | JoinKind::Left => texts_of_both(&left, &right),
        _ => left.texts.clone(),
    };
    let (mut certain, mut possible) = (left.certain.clone(), left.possible.clone());
    let mut nodes = left.nodes.clone();
    match kind {
        JoinKind::Inner => {
            certain.add(&right.certain);
            possible.add(&right.possible);
            for m in &matches {
                certain.insert(m.left);
                certain.insert(m.right);
            }
            add_nodes(&mut nodes, right.nodes);
        }
        JoinKind::Left => possible.add(&right.possible),
        JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => {}
        JoinKind::Mark(slot) => {
            certain.insert(slot);
            possible.insert(slot);
        }
    }
    Built {
        op: Operator::Join(operator::Join {
            kind,
            left: Box::new(left.op),
            right: Box::new(right.op),
            on,
            condition,
            matches,
            either,
        }),
        certain,
        possible,
        nodes,
        texts,
        rows,
        cost,
    }
}

pub(crate) fn filtered(b: Built, c: Condition) -> Built {
    let each = cost::condition(&c);
    let rows = b.rows * condition::selectivity(&c);
    let cost = b.cost + b.rows * each;
    match b.op {
        // A condition that nothing passes stays a filter of its own, so that operators above recognize it: they may
        // read slots that this input lacks.
        Operator::Filter(operator::Filter { input: i, .. }) if c.is_false() => {
            let condition = c;
            let op = Operator::Filter(operator::Filter {
                input: i,
                condition,
            });
            Built {
                op,
                rows,
                cost,
                ..b
            }
        }
        Operator::Filter(operator::Filter {
            input: i,
            condition: Condition::And(mut list),
        }) => {
            list.push(c);
            let op = Operator::Filter(operator::Filter {
                input: i,
                condition: Condition::And(list),
            });
            Built {
                op,
                rows,
                cost,
                ..b
            }
        }
        _ => b.with(
            |op| {
                operator::Filter {
                    input: op,
                    condition: c,
                }
                .into()
            },
            Some(rows),
            cost,
        ),
    }
}

pub(super) fn union(built: Vec<Built>) -> Built {
    let mut parts = built.iter();
    let Some(first) = parts.next() else {
        return nothing("a union of nothing".into());
    };
    let (mut certain, mut possible) = (first.certain.clone(), first.possible.clone());
    let (mut rows, mut cost) = (first.rows, first.cost);
    let mut nodes = first.nodes.clone();
    let mut others = SlotSet::default();
    for b in &built {
        others.add(&b.possible.minus(&b.texts));
    }
    for b in parts {
        nodes.retain(|n| b.nodes.contains(n));
        certain = certain.and(&b.certain);
        possible.add(&b.possible);
        rows += b.rows;
        cost += b.cost;
    }
    Built {
        op: Operator::Union(operator::Union {
            inputs: built.into_iter().map(|b| b.op).collect(),
        }),
        certain,
        texts: possible.minus(&others),
        possible,
        nodes,
        rows,
        cost,
    }
}

pub(super) fn group(inner: Built, by: &[Slot], aggregates: &[Aggregate]) -> Built {
    let rows = if by.is_empty() {
        1.0
    } else {
        inner.rows.sqrt()
    };
    let is_plain = |a: &Aggregate| {
        matches!(
            a.function,
            AggregateFunction::Count | AggregateFunction::CountRows
        ) && a.of.is_none_or(|s| inner.certain.has(s))
            && a.row.iter().all(|s| inner.certain.has(*s))
    };
    let mut certain: SlotSet = by
        .iter()
        .copied()
        .filter(|s| inner.certain.has(*s))
        .collect();
    let mut possible: SlotSet = by
        .iter()
        .copied()
        .filter(|s| inner.possible.has(*s))
        .collect();
    for a in aggregates {
        possible.insert(a.to);
        if matches!(
            a.function,
            AggregateFunction::Count | AggregateFunction::CountRows
        ) {
            certain.insert(a.to);
        }
    }
    let counts_only = !aggregates.is_empty()
        && aggregates.iter().all(is_plain)
        && by.iter().all(|s| inner.certain.has(*s));
    let each = if by.is_empty() && aggregates.iter().all(|a| !a.distinct) {
        OUT
    } else {
        GROUP
    };
    let cost = inner.cost + inner.rows * each;
    let (by, aggregates) = (by.to_vec(), aggregates.to_vec());
    let out = inner.with(
        |input| {
            if counts_only {
                let counts = aggregates
                    .into_iter()
                    .map(|a| Count {
                        to: a.to,
                        of: a.of,
                        distinct: a.distinct,
                        row: a.row,
                    })
                    .collect();
                Operator::Count(operator::GroupCount {
                    input,
                    group: by,
                    counts,
                })
            } else {
                Operator::Group(operator::Group {
                    input,
                    by,
                    aggregates,
                })
            }
        },
        Some(rows),
        cost,
    );
    Built {
        certain,
        possible,
        ..out
    }
}

/// The distinct rows of `b`, compared by the slots of `slots` that may be bound.
pub(super) fn distinct(b: Built, slots: &[Slot]) -> Built {
    let slots = kept(slots, &b.possible);
    let cost = b.cost + b.rows * HASH_PROBE;
    b.with(
        |input| operator::Distinct { input, slots }.into(),
        None,
        cost,
    )
}

/// The rows of `b`, of which equal ones may be left out.
pub(super) fn reduced(b: Built, slots: &[Slot]) -> Built {
    let slots = kept(slots, &b.possible);
    let cost = b.cost + b.rows * OUT;
    b.with(
        |input| operator::Reduced { input, slots }.into(),
        None,
        cost,
    )
}

pub(super) fn slice(b: Built, offset: u64, limit: Option<u64>) -> Built {
    let (mut rows, mut cost) = (b.rows, b.cost);
    if let Some(limit) = limit {
        let share = (offset.saturating_add(limit) as f64 / rows.max(1.0)).min(1.0);
        rows *= share;
        if b.op.is_streaming() {
            // The pipeline stops when it has enough rows.
            cost *= share;
        }
    }
    Built {
        op: Operator::Slice(operator::Slice {
            input: Box::new(b.op),
            offset,
            limit,
        }),
        rows,
        cost,
        ..b
    }
}

/// Largest number of slots that are recorded as holding nodes. For a slot that is left out, the operators check each
/// value.
const MOST_NODES: usize = 64;

/// Adds slots, without duplicates: the inner part of an `Apply` repeats those of its outer row.
pub(super) fn add_nodes(nodes: &mut Nodes, more: Nodes) {
    for n in more {
        if nodes.len() >= MOST_NODES {
            return;
        }
        if !nodes.contains(&n) {
            nodes.push(n);
        }
    }
}
