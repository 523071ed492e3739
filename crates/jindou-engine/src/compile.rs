//! Operators → pipelines: leaves, stages, and what had to be run first because it sees all rows.

mod leaves;

use crate::batch::Batch;
use crate::execute::Exec;
use crate::executor::columns_after;
use crate::explore::Halt;
use crate::operators::{
    ApplySpec, Attach, END, EachSpec, End, EndSpec, EqualSpec, JoinTable, Link, Shape,
    SharedDistinct, SliceState, Sorter, Spec,
};
use crate::row_buffer::RowBuffer;
use crate::tree::{common, with};
use jindou_model::{Error, Holder, Result};
use jindou_plan::operator;
use jindou_plan::{ApplyKind, Exploration, FIRST_HIDDEN, JoinKey, JoinKind, Operator, Slot};
use std::sync::{Arc, Mutex};

/// Where rows come from.
pub(crate) enum Source<'a> {
    Explore(&'a Exploration),
    RowBuffer(RowBuffer),
    /// Columns of any length.
    Whole(Batch),
    /// Sorted when they are read; the order holds as long as one worker reads.
    Sorted(Box<Mutex<Sorter>>),
    /// The outer rows of an apply, these columns of them.
    Outer(Vec<usize>),
}

pub(crate) struct Leaf<'a> {
    pub source: Source<'a>,
    /// The first stage, or [`END`].
    pub first: usize,
    pub node: usize,
}

/// Leaves and stages that end in one place.
pub(crate) struct Pipe<'a> {
    pub leaves: Vec<Leaf<'a>>,
    pub links: Vec<Link<'a>>,
    /// Slots of the rows that come out.
    pub layout: Vec<Slot>,
}

impl Pipe<'_> {
    /// The slices that rows of a leaf pass.
    pub fn slices(&self, leaf: usize) -> impl Iterator<Item = &SliceState> {
        let mut at = self.leaves.get(leaf).map_or(END, |l| l.first);
        std::iter::from_fn(move || {
            let link = self.links.get(at)?;
            at = link.next;
            Some(link)
        })
        .filter_map(|l| match &l.spec {
            Spec::Slice(s) => Some(&**s),
            _ => None,
        })
    }

    /// True if the order of rows must be kept.
    pub fn is_ordered(&self) -> bool {
        self.leaves
            .iter()
            .any(|l| matches!(l.source, Source::Sorted(_)))
    }

    /// True if the last stage of all is a slice: once it is done, so is everything.
    pub fn ends_in_slice(&self) -> bool {
        self.links
            .last()
            .is_some_and(|l| l.next == END && matches!(l.spec, Spec::Slice(_)))
    }
}

/// A leaf or stage whose rows go nowhere yet.
#[derive(Clone, Copy)]
enum Open {
    Leaf(usize),
    Link(usize),
}

/// The outer rows that `Outer` stands for.
enum Outer {
    /// The one of [`Exec::outer`], if any.
    One,
    /// A batch of rows with these columns, numbered in the hidden slot.
    Many(Vec<Slot>, Slot),
}

pub(crate) struct Builder<'e, 'a> {
    exec: &'e Exec<'a>,
    leaves: Vec<Leaf<'a>>,
    links: Vec<Link<'a>>,
    open: Vec<Open>,
    outer: Outer,
    /// Applies around this one.
    level: u16,
}

impl<'e, 'a> Builder<'e, 'a> {
    pub fn new(exec: &'e Exec<'a>) -> Self {
        Self {
            exec,
            leaves: vec![],
            links: vec![],
            open: vec![],
            outer: Outer::One,
            level: 0,
        }
    }

    /// The pipeline of an operator. Whatever below it sees all rows has been run when this returns.
    pub fn pipe(mut self, op: &'a Operator, node: usize) -> Result<Pipe<'a>, Halt> {
        let layout = self.op(op, node)?;
        Ok(Pipe {
            leaves: self.leaves,
            links: self.links,
            layout,
        })
    }

    fn leaf(&mut self, source: Source<'a>, node: usize) {
        self.open.push(Open::Leaf(self.leaves.len()));
        self.leaves.push(Leaf {
            source,
            first: END,
            node,
        });
    }

    /// Puts a stage behind all open ends; without any there are no rows, and no stage.
    fn link(&mut self, spec: Spec<'a>, input: &[Slot], node: usize) {
        if self.open.is_empty() {
            return;
        }
        let at = self.links.len();
        for open in self.open.drain(..) {
            match open {
                Open::Leaf(l) => self.leaves[l].first = at,
                Open::Link(l) => self.links[l].next = at,
            }
        }
        self.links.push(Link {
            spec,
            input: input.to_vec(),
            next: END,
            node,
        });
        self.open.push(Open::Link(at));
    }

    /// Adds an operator; returns the slots of its rows.
    fn op(&mut self, op: &'a Operator, node: usize) -> Result<Vec<Slot>, Halt> {
        let below = node + 1;
        Ok(match op {
            Operator::Explore(e) => {
                if e.empty.is_some() {
                    return Ok(vec![]);
                }
                let there = match self.exec.offload {
                    Some(offload) => offload.rows(self.exec, e, node)?,
                    None => None,
                };
                if let Some((held, slots, first)) = there {
                    self.leaf(Source::RowBuffer(held), node);
                    let rest = e.steps.get(first..).unwrap_or(&[]);
                    if rest.is_empty() {
                        return Ok(slots);
                    }
                    self.link(Spec::Steps(rest), &slots, node);
                    return Ok(columns_after(&slots, rest));
                }
                self.leaf(Source::Explore(e), node);
                columns_after(&[], &e.steps)
            }
            Operator::Outer(operator::Outer { slots }) => self.outer(slots, node)?,
            // No rows: what is above needs no stage, and may read slots that only rows would have.
            Operator::Values(operator::Values { slots, rows }) if rows.is_empty() => slots.clone(),
            Operator::Values(operator::Values { slots, rows }) => {
                let held = self.values(slots.len(), rows)?;
                self.leaf(Source::RowBuffer(held), node);
                slots.clone()
            }
            Operator::Service(service) => {
                let (held, slots) = self.service(service)?;
                self.leaf(Source::RowBuffer(held), node);
                slots
            }
            Operator::Steps(operator::Steps { input, steps }) => {
                let slots = self.op(input, below)?;
                self.link(Spec::Steps(steps), &slots, node);
                columns_after(&slots, steps)
            }
            Operator::Path(path) => {
                let slots = self.op(&path.input, below)?;
                let new = path.new_slots();
                self.link(Spec::Path(path), &slots, node);
                with(slots, new)
            }
            Operator::Filter(operator::Filter { input, condition }) if condition.is_false() => {
                input.layout(self.outer_slots())
            }
            Operator::Filter(operator::Filter { input, condition }) => {
                let slots = self.op(input, below)?;
                self.link(Spec::Filter(condition), &slots, node);
                slots
            }
            Operator::Extend(operator::Extend { input, to, value }) => {
                let slots = self.op(input, below)?;
                let slots = self.without(*to, slots, node);
                self.link(Spec::Extend(value), &slots, node);
                with(slots, [*to])
            }
            Operator::Union(operator::Union { inputs: list }) => self.union(list, node)?,
            Operator::Join(_) => self.join(op, node)?,
            Operator::Apply(_) => self.apply(op, node)?,
            Operator::Reduced(operator::Reduced { input, slots }) => {
                let input = self.op(input, below)?;
                let kept = common(slots, &input);
                let columns = kept
                    .iter()
                    .filter_map(|s| input.iter().position(|i| i == s))
                    .collect();
                self.link(Spec::Reduced(columns), &input, node);
                kept
            }
            Operator::Distinct(operator::Distinct { input, slots }) => {
                let input = self.op(input, below)?;
                let kept = common(slots, &input);
                let shared = SharedDistinct::new(&input, &kept, &self.exec.run);
                self.link(Spec::Distinct(shared), &input, node);
                kept
            }
            Operator::Slice(operator::Slice {
                input,
                offset,
                limit,
            }) => {
                let slots = match &**input {
                    Operator::OrderBy(operator::OrderBy {
                        input: rows,
                        keys: by,
                    }) => {
                        let most = limit.map(|l| offset.saturating_add(l));
                        self.sorted(rows, by, most, below)?
                    }
                    _ => self.op(input, below)?,
                };
                let state = Arc::new(SliceState::new(*offset, *limit));
                self.link(Spec::Slice(state), &slots, node);
                slots
            }
            Operator::OrderBy(operator::OrderBy {
                input: rows,
                keys: by,
            }) => self.sorted(rows, by, None, node)?,
            Operator::Group(operator::Group {
                input,
                by,
                aggregates,
            }) => {
                let end = self
                    .exec
                    .run_into(input, below, EndSpec::Group(by, aggregates), node)?;
                let End::Group(group) = end.0 else {
                    return Err(internal("ends in something else"));
                };
                let rows = group.finish(&self.exec.run)?;
                self.leaf(Source::Whole(rows), node);
                by.iter()
                    .copied()
                    .chain(aggregates.iter().map(|a| a.to))
                    .collect()
            }
            Operator::Count(operator::GroupCount {
                input,
                group,
                counts,
            }) => {
                let end = self
                    .exec
                    .run_into(input, below, EndSpec::Count(group, counts), node)?;
                let End::Count(count) = end.0 else {
                    return Err(internal("ends in something else"));
                };
                let rows = count.finish(&self.exec.run)?;
                self.leaf(Source::Whole(rows), node);
                group
                    .iter()
                    .copied()
                    .chain(counts.iter().map(|c| c.to))
                    .collect()
            }
        })
    }

    /// Drops a column that is about to be bound: rows may have it without a value in any (a group by what is never bound).
    fn without(&mut self, slot: Slot, slots: Vec<Slot>, node: usize) -> Vec<Slot> {
        if !slots.contains(&slot) {
            return slots;
        }
        let columns = (0..slots.len())
            .filter(|&c| slots.get(c) != Some(&slot))
            .map(Some)
            .collect();
        self.link(Spec::Project(columns), &slots, node);
        slots.into_iter().filter(|s| *s != slot).collect()
    }

    /// Takes back the leaves and stages behind the first so many, whose rows nothing takes: an open end that no stage is put
    /// behind would give its rows to the sink.
    fn forget(&mut self, (leaves, links): (usize, usize)) {
        self.leaves.truncate(leaves);
        self.links.truncate(links);
        self.open.clear();
    }

    fn sorted(
        &mut self,
        rows: &'a Operator,
        by: &'a [(Slot, bool)],
        most: Option<u64>,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let end = self
            .exec
            .run_into(rows, node + 1, EndSpec::Order(by, most), node)?;
        let (End::Order(sorter), slots) = end else {
            return Err(internal("ends in something else"));
        };
        self.leaf(Source::Sorted(Box::new(Mutex::new(*sorter))), node);
        Ok(slots)
    }

    fn union(&mut self, list: &'a [Operator], node: usize) -> Result<Vec<Slot>, Halt> {
        let before = std::mem::take(&mut self.open);
        debug_assert!(before.is_empty(), "a union begins where nothing is open");
        let mut parts: Vec<(Vec<Slot>, Vec<Open>)> = Vec::with_capacity(list.len());
        let mut at = node + 1;
        for input in list {
            let slots = self.op(input, at)?;
            parts.push((slots, std::mem::take(&mut self.open)));
            at = self.exec.nodes.after(at);
        }
        let all = parts.iter().fold(vec![], |all: Vec<Slot>, (slots, open)| {
            if open.is_empty() {
                all
            } else {
                with(all, slots.iter().copied())
            }
        });
        let mut done = Vec::new();
        for (slots, open) in parts {
            self.open = open;
            if slots != all {
                let columns = all
                    .iter()
                    .map(|s| slots.iter().position(|t| t == s))
                    .collect();
                self.link(Spec::Project(columns), &slots, node);
            }
            done.append(&mut self.open);
        }
        self.open = done;
        Ok(all)
    }

    fn join(&mut self, op: &'a Operator, node: usize) -> Result<Vec<Slot>, Halt> {
        let Operator::Join(operator::Join {
            kind,
            left,
            right,
            on,
            condition,
            equal,
        }) = op
        else {
            return Err(internal("calls something else a join"));
        };
        let (kind, left_node) = (*kind, node + 1);
        let right_node = self.exec.nodes.after(left_node);
        let (held, right_slots) = self.exec.held(right, right_node, Holder::HashJoin)?;
        if held.rows() == 0 {
            match kind {
                JoinKind::Inner => {
                    // No rows: nothing of the left side needs to run.
                    let left = left.layout(self.outer_slots());
                    return Ok(with(left, right_slots));
                }
                JoinKind::Semi => return Ok(left.layout(self.outer_slots())),
                JoinKind::Left | JoinKind::Anti | JoinKind::Minus => {}
            }
        }
        let made = (self.leaves.len(), self.links.len());
        let mut left_slots = self.op(left, left_node)?;
        let mut keys = on.clone();
        if let Some((l, r)) = *equal {
            let columns = (
                left_slots.iter().position(|s| *s == l),
                right_slots.iter().position(|s| *s == r),
            );
            let (Some(column), Some(of)) = columns else {
                // Unbound in all rows of a side: never equal.
                self.forget(made);
                return Ok(with(left_slots, right_slots));
            };
            if !self.open.is_empty() {
                let first = kind == JoinKind::Semi;
                let spec = EqualSpec::new(column, &held, of, first, &self.exec.run)?;
                self.exec.holds(node, spec.bytes());
                self.link(Spec::Equal(Box::new(spec)), &left_slots, node);
            }
            left_slots = with(left_slots, [r]);
            keys.push(JoinKey {
                slot: r,
                left_bound: true,
                right_bound: true,
            });
        }
        let shape = Shape::new(kind, &left_slots, &right_slots, &keys, condition.as_ref())?;
        let output = shape.output.clone();
        if self.open.is_empty() {
            return Ok(output);
        }
        let table = JoinTable::build(shape, held, &self.exec.run)?;
        self.exec.holds(node, table.bytes());
        self.link(Spec::Probe(Box::new(table)), &left_slots, node);
        if let (Some((_, r)), JoinKind::Semi) = (equal, kind) {
            // The left side's rows as they were.
            return Ok(self.without(*r, output, node));
        }
        Ok(output)
    }

    fn outer_slots(&self) -> &[Slot] {
        match &self.outer {
            Outer::One => self.exec.outer.map_or(&[][..], |o| &o.slots),
            Outer::Many(slots, _) => slots,
        }
    }

    fn apply(&mut self, op: &'a Operator, node: usize) -> Result<Vec<Slot>, Halt> {
        let Operator::Apply(operator::Apply {
            input,
            inner,
            kind,
            each_row,
        }) = op
        else {
            return Err(internal("calls something else an apply"));
        };
        let (kind, input_node) = (*kind, node + 1);
        let inner_node = self.exec.nodes.after(input_node);
        if kind.needs_inner() && inner.is_never() {
            // No rows, which then need not have the slots that operators above read.
            return Ok(op.layout(self.outer_slots()));
        }
        let mut outer = self.op(input, input_node)?;
        if self.open.is_empty() {
            // No outer rows, which then need not have the slots that the inner part reads.
            return Ok(op.layout(self.outer_slots()));
        }
        let booleans = match kind {
            ApplyKind::Mark(to) => {
                outer = self.without(to, outer, node);
                [self.boolean("false")?, self.boolean("true")?]
            }
            _ => [0; 2],
        };
        let output = |inner: &[Slot]| match kind {
            ApplyKind::Inner | ApplyKind::Left => {
                let new = inner.iter().copied().filter(|s| *s < FIRST_HIDDEN);
                with(outer.clone(), new)
            }
            ApplyKind::Semi | ApplyKind::Anti => outer.clone(),
            ApplyKind::Mark(to) => with(outer.clone(), [to]),
        };
        if *each_row || !inner.is_row_wise() {
            let output = output(&inner.layout(&outer));
            let reads = inner
                .outer_slots()
                .into_iter()
                .filter_map(|s| Some((s, outer.iter().position(|o| *o == s)?)))
                .collect();
            let spec = EachSpec {
                kind,
                inner,
                node: inner_node,
                exec: *self.exec,
                outer: outer.clone(),
                output: output.clone(),
                reads,
                booleans,
            };
            self.link(Spec::Each(Box::new(spec)), &outer, node);
            return Ok(output);
        }
        let number = FIRST_HIDDEN
            .checked_add(self.level)
            .filter(|_| self.level < 255)
            .ok_or_else(|| {
                Error::Limit("the query nests OPTIONAL and EXISTS deeper than 255 levels".into())
            })?;
        let mut builder = Builder {
            outer: Outer::Many(outer.clone(), number),
            level: self.level + 1,
            ..Builder::new(self.exec)
        };
        let inner_slots = builder.op(inner, inner_node)?;
        let leaves: Vec<(Vec<usize>, usize)> = builder
            .leaves
            .into_iter()
            .filter_map(|l| match l.source {
                Source::Outer(columns) => Some((columns, l.first)),
                _ => None,
            })
            .collect();
        // Slots that every inner row has from its outer row, and from nowhere else, cannot contradict it.
        let made = inner.made_slots();
        let read: Vec<Slot> = outer
            .iter()
            .enumerate()
            .filter(|(c, s)| !made.contains(s) && leaves.iter().all(|l| l.0.contains(c)))
            .map(|(_, s)| *s)
            .collect();
        let output = output(&inner_slots);
        let spec = ApplySpec {
            kind,
            links: builder.links,
            leaves,
            // Without a leaf there are no inner rows to have a number.
            number: inner_slots.iter().position(|s| *s == number).unwrap_or(0),
            attach: Attach::new(&outer, &inner_slots, &output, &read),
            widths: (outer.len(), output.len()),
            booleans,
        };
        self.link(Spec::Apply(Box::new(spec)), &outer, node);
        Ok(output)
    }
}

#[cold]
fn internal(what: &str) -> Halt {
    Error::Internal(format!("the plan {what}")).into()
}
