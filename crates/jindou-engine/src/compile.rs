//! Builds pipelines from operators: their leaves and stages. If an operator needs all rows of an input first, that
//! input is run here. Each operator adds its own stages ([`crate::operators`]).

use crate::batch::Batch;
use crate::execute::Exec;
use crate::executor::PulledRows;
use crate::explore::Halt;
use crate::offload::Streamed;
use crate::operators::{END, Link, Overflow, SliceState, Sorter, StageSpec};
use crate::row_buffer::RowBuffer;
use jindou_model::Result;
use jindou_plan::{Exploration, Operator, Slot};
use std::sync::{Arc, Mutex};

/// The source of a leaf's rows.
pub(crate) enum LeafSource<'a> {
    Explore(&'a Exploration),
    RowBuffer(RowBuffer),
    /// Rows that another executor produces while they are consumed.
    Pulled(Arc<dyn PulledRows>),
    /// Rows that another executor produces once the pipeline runs.
    Streamed(Box<Streamed<'a>>),
    /// Rows in columns of any length.
    Whole(Batch),
    /// Rows that are sorted when they are read. They stay in order, since one worker reads all of them.
    Sorted(Box<Mutex<Sorter>>),
    /// Groups in files.
    Grouped(Box<dyn Overflow + 'a>),
    /// The outer rows of an apply, with these of their columns.
    Outer(Vec<usize>),
}

pub(crate) struct Leaf<'a> {
    pub source: LeafSource<'a>,
    pub first: StageInput,
    pub node: usize,
}

/// The stage that gets the rows of a leaf or of another stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageInput {
    /// Position of the stage, or [`END`].
    pub stage: usize,
    /// Number of the input, for a stage that distinguishes several inputs.
    pub input: usize,
}

impl StageInput {
    /// The pipeline's end, after the last stage.
    pub const END: Self = Self {
        stage: END,
        input: 0,
    };
}

/// A pipeline: leaves and stages that lead to one end.
pub(crate) struct Pipe<'a> {
    pub leaves: Vec<Leaf<'a>>,
    pub links: Vec<Link<'a>>,
    /// Slots of the rows at the end.
    pub layout: Vec<Slot>,
}

impl Pipe<'_> {
    /// Largest number of columns that rows have between stages.
    pub fn widest(&self) -> usize {
        let inputs = self.links.iter().map(|l| l.input.len());
        inputs.fold(self.layout.len(), usize::max)
    }

    /// The slices (LIMIT, OFFSET) that rows pass through from this stage on.
    pub fn slices(&self, first: StageInput) -> impl Iterator<Item = &SliceState> {
        let mut at = first.stage;
        std::iter::from_fn(move || {
            let link = self.links.get(at)?;
            at = link.next.stage;
            Some(link)
        })
        .filter_map(|l| l.spec.slice())
    }

    /// Returns true if the order of rows matters.
    pub fn is_ordered(&self) -> bool {
        self.leaves
            .iter()
            .any(|l| matches!(l.source, LeafSource::Sorted(_)))
    }

    /// Returns true if the last stage is a slice, so that the whole pipeline can end once the slice has enough rows.
    pub fn ends_in_slice(&self) -> bool {
        self.links
            .last()
            .is_some_and(|l| l.next == StageInput::END && l.spec.slice().is_some())
    }
}

/// A leaf or stage whose rows are not directed to a stage yet.
#[derive(Clone, Copy)]
pub(crate) enum OpenPipe {
    Leaf(usize),
    Link(usize),
}

/// The outer rows that `Operator::Outer` reads.
pub(crate) enum OuterRows {
    /// The single row of [`Exec::outer`].
    One,
    /// A batch of rows with these slots, which are numbered in the hidden slot.
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

    /// Builds the pipeline of an operator. Inputs whose rows are needed all at once have been run when this returns.
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

    /// Adds a stage that gets the rows of all open leaves and stages. If none is open there are no rows, and nothing is
    /// added.
    pub fn link(&mut self, spec: impl StageSpec + 'a, input: &[Slot], node: usize) {
        if self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        self.direct(open, 0);
        self.put(spec, input, node);
    }

    /// Adds a stage to which [`Self::direct`] has already directed rows.
    pub fn put(&mut self, spec: impl StageSpec + 'a, input: &[Slot], node: usize) {
        self.links.push(Link {
            spec: Box::new(spec),
            input: input.to_vec(),
            next: StageInput::END,
            node,
        });
        self.open.push(OpenPipe::Link(self.links.len() - 1));
    }

    /// Directs the rows of open leaves and stages to an input of the stage that is added next.
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

    /// Removes all leaves and stages except the first `leaves` and `links`, since their rows are not needed. If they
    /// stayed open, their rows would reach the sink.
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
