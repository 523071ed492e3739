//! Operators → pipelines: leaves, stages, and the parts that must run first because an operator needs all their rows.
//! Each operator adds its own stages ([`crate::operators`]).

use crate::batch::Batch;
use crate::execute::Exec;
use crate::executor::PulledRows;
use crate::explore::Halt;
use crate::offload::Streamed;
use crate::operators::{END, Link, SliceState, Sorter, StageSpec};
use crate::row_buffer::RowBuffer;
use jindou_model::Result;
use jindou_plan::{Exploration, Operator, Slot};
use std::sync::{Arc, Mutex};

/// Sources of rows.
pub(crate) enum LeafSource<'a> {
    Explore(&'a Exploration),
    RowBuffer(RowBuffer),
    /// Rows that another executor produces concurrently.
    Pulled(Arc<dyn PulledRows>),
    /// Rows that another executor produces once the pipeline is running.
    Streamed(Box<Streamed<'a>>),
    /// Columns of any length.
    Whole(Batch),
    /// Sorted when they are read; the order holds as long as one worker reads.
    Sorted(Box<Mutex<Sorter>>),
    /// The outer rows of an apply: these columns of them.
    Outer(Vec<usize>),
}

pub(crate) struct Leaf<'a> {
    pub source: LeafSource<'a>,
    pub first: StageInput,
    pub node: usize,
}

/// Destination of rows from a leaf or a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageInput {
    /// A stage, or [`END`].
    pub stage: usize,
    /// Number of the stage's input, for stages that distinguish their inputs.
    pub input: usize,
}

impl StageInput {
    /// The end, after the last stage.
    pub const END: Self = Self {
        stage: END,
        input: 0,
    };
}

/// Leaves and stages that lead to one end.
pub(crate) struct Pipe<'a> {
    pub leaves: Vec<Leaf<'a>>,
    pub links: Vec<Link<'a>>,
    /// Slots of the output rows.
    pub layout: Vec<Slot>,
}

impl Pipe<'_> {
    /// Number of columns of the widest rows between stages.
    pub fn widest(&self) -> usize {
        let inputs = self.links.iter().map(|l| l.input.len());
        inputs.fold(self.layout.len(), usize::max)
    }

    /// The slices that rows of a leaf pass through.
    pub fn slices(&self, leaf: usize) -> impl Iterator<Item = &SliceState> {
        let mut at = self.leaves[leaf].first.stage;
        std::iter::from_fn(move || {
            let link = self.links.get(at)?;
            at = link.next.stage;
            Some(link)
        })
        .filter_map(|l| l.spec.slice())
    }

    /// Returns true if the order of rows must be kept.
    pub fn is_ordered(&self) -> bool {
        self.leaves
            .iter()
            .any(|l| matches!(l.source, LeafSource::Sorted(_)))
    }

    /// Returns true if the last stage is a slice: once it is done, everything is.
    pub fn ends_in_slice(&self) -> bool {
        self.links
            .last()
            .is_some_and(|l| l.next == StageInput::END && l.spec.slice().is_some())
    }
}

/// A leaf or stage whose rows have no destination yet.
#[derive(Clone, Copy)]
pub(crate) enum OpenPipe {
    Leaf(usize),
    Link(usize),
}

/// The outer rows that `OuterRows` refers to.
pub(crate) enum OuterRows {
    /// The one of [`Exec::outer`], if any.
    One,
    /// A batch of rows with these columns, numbered in the hidden slot.
    Many(Vec<Slot>, Slot),
}

pub(crate) struct PipelineBuilder<'e, 'a> {
    pub exec: &'e Exec<'a>,
    pub leaves: Vec<Leaf<'a>>,
    pub links: Vec<Link<'a>>,
    pub open: Vec<OpenPipe>,
    pub outer: OuterRows,
    /// Number of enclosing applies.
    pub level: u16,
}

impl<'e, 'a> PipelineBuilder<'e, 'a> {
    pub fn new(exec: &'e Exec<'a>) -> Self {
        Self {
            exec,
            leaves: vec![],
            links: vec![],
            open: vec![],
            outer: OuterRows::One,
            level: 0,
        }
    }

    /// Builds the pipeline of an operator. Everything below it that needs all rows first has run when this returns.
    pub fn pipe(mut self, op: &'a Operator, node: usize) -> Result<Pipe<'a>, Halt> {
        let layout = self.op(op, node)?;
        Ok(Pipe {
            leaves: self.leaves,
            links: self.links,
            layout,
        })
    }

    pub fn leaf(&mut self, source: LeafSource<'a>, node: usize) {
        self.open.push(OpenPipe::Leaf(self.leaves.len()));
        self.leaves.push(Leaf {
            source,
            first: StageInput::END,
            node,
        });
    }

    /// Puts a stage after all open ends; without open ends there are no rows, and no stage is added.
    pub fn link(&mut self, spec: impl StageSpec + 'a, input: &[Slot], node: usize) {
        if self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        self.direct(open, 0);
        self.put(spec, input, node);
    }

    /// Adds a stage that rows are already directed to.
    pub fn put(&mut self, spec: impl StageSpec + 'a, input: &[Slot], node: usize) {
        self.links.push(Link {
            spec: Box::new(spec),
            input: input.to_vec(),
            next: StageInput::END,
            node,
        });
        self.open.push(OpenPipe::Link(self.links.len() - 1));
    }

    /// Directs open ends to an input of the stage that is added next.
    pub fn direct(&mut self, open: Vec<OpenPipe>, input: usize) {
        let to = StageInput {
            stage: self.links.len(),
            input,
        };
        for open in open {
            match open {
                OpenPipe::Leaf(l) => self.leaves[l].first = to,
                OpenPipe::Link(l) => self.links[l].next = to,
            }
        }
    }

    /// Removes the leaves and stages after this many, whose rows have no consumer. Without that, an open end without a
    /// following stage would pass its rows to the sink.
    pub fn forget(&mut self, (leaves, links): (usize, usize)) {
        self.leaves.truncate(leaves);
        self.links.truncate(links);
        self.open.clear();
    }

    pub fn outer_slots(&self) -> &[Slot] {
        match &self.outer {
            OuterRows::One => self.exec.outer.map_or(&[][..], |o| &o.slots),
            OuterRows::Many(slots, _) => slots,
        }
    }
}
