//! One neighbour list a row: the ways to it, chosen once a query.

use super::{Anchor, Plumb};
use crate::batch::View;
use jindou_model::{Direction, PredicateId, Result};
use jindou_plan::{EdgeList, GraphRef, Operand};
use jindou_store::segment::{EdgeView, KeyFinder, NO_KEY, Patch, Scope, Segment, prefetch};
use std::borrow::Cow;

/// The graphs that a pattern reads: fixed, or a column of the row.
#[derive(Clone, Copy)]
pub(crate) enum RowGraph<'a> {
    Fixed(Scope<'a>),
    Column(usize),
}

impl<'a> RowGraph<'a> {
    pub fn new(graph: &'a GraphRef, plumb: &Plumb<'a>) -> Result<Self> {
        Ok(match graph {
            GraphRef::Slot(s) => Self::Column(plumb.column(*s)?),
            _ => Self::Fixed(graph.scope().unwrap_or(Scope::Default)),
        })
    }

    #[inline]
    pub fn of(&self, input: View<'_>, row: usize) -> Scope<'a> {
        match *self {
            Self::Fixed(scope) => scope,
            Self::Column(c) => Scope::Named(input.column(c).get(row).copied().unwrap_or(0)),
        }
    }
}

enum Form<'a> {
    /// The same list for all rows.
    Constant(Cow<'a, [u32]>),
    /// One segment answers.
    Plain(Segment<'a>),
    /// One segment answers, but for keys that the patch marks.
    Dirty(Segment<'a>, &'a Patch),
    /// Every key is merged from default graph, named graphs and patch.
    Merged,
}

/// The range of rows whose list must be merged.
const MERGED: [u32; 2] = [1, 0];

/// How far ahead offsets are fetched: enough lookups in flight to cover a memory latency.
const AHEAD: usize = 16;

/// Neighbour lists of the rows of a batch.
pub(crate) struct Lists<'a> {
    pub view: EdgeView<'a>,
    pub graph: RowGraph<'a>,
    anchor: Anchor,
    form: Form<'a>,
    keys: Vec<u32>,
    ranges: Vec<[u32; 2]>,
}

impl<'a> Lists<'a> {
    pub fn new(list: &'a EdgeList, plumb: &Plumb<'a>) -> Result<Self> {
        Self::of(
            list.anchor,
            list.predicate,
            list.direction,
            &list.graph,
            plumb,
        )
    }

    pub fn of(
        anchor: Operand,
        predicate: PredicateId,
        direction: Direction,
        graph: &'a GraphRef,
        plumb: &Plumb<'a>,
    ) -> Result<Self> {
        let view = plumb.snapshot.edges(predicate, direction);
        let bind = matches!(graph, GraphRef::Bind(..));
        let graph = RowGraph::new(graph, plumb)?;
        let anchor = plumb.anchor(anchor)?;
        let mut it = Self {
            view,
            graph,
            anchor,
            form: Form::Merged,
            keys: vec![],
            ranges: vec![],
        };
        if let (RowGraph::Fixed(scope), false) = (graph, bind) {
            it.form = match anchor {
                Anchor::Const(v) => Form::Constant(constant_list(view, v, scope)),
                Anchor::Column(_) => match (view.plain(scope), view.plain_but_dirty(scope)) {
                    (Some(s), _) => Form::Plain(s),
                    (None, Some((s, p))) => Form::Dirty(s, p),
                    (None, None) => Form::Merged,
                },
            };
        }
        Ok(it)
    }

    /// The anchor's id in a row.
    #[inline]
    pub fn anchor(&self, input: View<'_>, row: usize) -> u32 {
        self.anchor.of(input, row)
    }

    /// Finds the lists of all rows of a batch: keys first, then bounds. The lists themselves are fetched by the
    /// loops that read them, some rows ahead: fetching them here too made LUBM L7 a tenth slower.
    pub fn prepare(&mut self, input: View<'_>) {
        let Anchor::Column(c) = self.anchor else {
            return;
        };
        match self.form {
            Form::Constant(_) => {}
            Form::Merged => {
                self.ranges.clear();
                self.ranges.resize(input.rows, MERGED);
            }
            Form::Plain(s) => {
                find_keys(s.finder, input.column(c), &mut self.keys);
                if s.offsets.is_some() {
                    find_ranges(s, &self.keys, &mut self.ranges);
                }
            }
            Form::Dirty(s, patch) => {
                find_keys(s.finder, input.column(c), &mut self.keys);
                find_ranges(s, &self.keys, &mut self.ranges);
                for (r, &v) in self.ranges.iter_mut().zip(input.column(c)) {
                    if patch.is_dirty(v) {
                        *r = MERGED;
                    }
                }
            }
        }
    }

    /// After [`Self::prepare`]: the key numbers and neighbours when every key has exactly one neighbour.
    pub fn degree_one(&self) -> Option<(&[u32], &'a [u32])> {
        match self.form {
            Form::Plain(s) if s.offsets.is_none() => Some((&self.keys, s.neighbours)),
            _ => None,
        }
    }

    /// After [`Self::prepare`]: bounds into the segment's neighbours, when every row has one list there.
    pub fn bounds(&self) -> Option<(&[[u32; 2]], &'a [u32])> {
        match self.form {
            Form::Plain(s) if s.offsets.is_some() => Some((&self.ranges, s.neighbours)),
            _ => None,
        }
    }

    /// The list for all rows, if there is one.
    pub fn constant(&self) -> Option<&[u32]> {
        match &self.form {
            Form::Constant(list) => Some(list),
            _ => None,
        }
    }

    /// After [`Self::prepare`]: the row's list, `None` when [`Self::merged`] must make it.
    #[inline]
    pub fn list(&self, row: usize) -> Option<&[u32]> {
        match &self.form {
            Form::Constant(list) => Some(list),
            Form::Plain(s) if s.offsets.is_none() => {
                let k = self.keys.get(row).copied().unwrap_or(NO_KEY) as usize;
                Some(s.neighbours.get(k..k.wrapping_add(1)).unwrap_or(&[]))
            }
            Form::Plain(s) | Form::Dirty(s, _) => {
                let [a, b] = self.ranges.get(row).copied().unwrap_or([0, 0]);
                if a > b {
                    return None;
                }
                Some(s.neighbours.get(a as usize..b as usize).unwrap_or(&[]))
            }
            Form::Merged => None,
        }
    }

    /// Starts fetching what reading the row's list touches first.
    #[inline]
    pub fn prefetch(&self, row: usize) {
        match &self.form {
            Form::Plain(s) if s.offsets.is_none() => {
                if let Some(&k) = self.keys.get(row) {
                    prefetch(s.neighbours, k as usize);
                }
            }
            Form::Plain(s) | Form::Dirty(s, _) => {
                if let Some(&[a, b]) = self.ranges.get(row)
                    && a < b
                {
                    prefetch(s.neighbours, a as usize);
                    prefetch(s.neighbours, b as usize - 1);
                    if b - a > 32 {
                        prefetch(s.neighbours, (a + (b - a) / 2) as usize);
                    }
                }
            }
            Form::Constant(_) | Form::Merged => {}
        }
    }

    /// The row's list, merged, into `out`.
    pub fn merged(&self, input: View<'_>, row: usize, out: &mut Vec<u32>, scratch: &mut Vec<u32>) {
        let list = self
            .view
            .read(self.anchor(input, row), self.graph.of(input, row), scratch);
        out.clear();
        out.extend_from_slice(list);
    }

    /// Bytes of scratch that this holds.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * 4 + self.ranges.capacity() * 8
    }
}

/// `finder.find_many`, but ids that all lie in the run of the first one are found by one subtraction each:
/// starts at an index vertex come in order, and what hangs on them mostly too.
fn find_keys(finder: KeyFinder<'_>, ids: &[u32], keys: &mut Vec<u32>) {
    let (KeyFinder::Intervals(runs), Some(&first)) = (finder, ids.first()) else {
        finder.find_many(ids, keys);
        return;
    };
    if runs.len() > 1
        && let Some(run) = runs.iter().find(|r| (r.start..r.end).contains(&first))
    {
        let width = run.end - run.start;
        let mut outside = false;
        keys.clear();
        keys.extend(ids.iter().map(|&v| {
            let d = v.wrapping_sub(run.start);
            outside |= d >= width;
            run.base.wrapping_add(d)
        }));
        if !outside {
            return;
        }
    }
    finder.find_many(ids, keys);
}

fn find_ranges(s: Segment<'_>, keys: &[u32], ranges: &mut Vec<[u32; 2]>) {
    ranges.clear();
    match s.offsets {
        None => ranges.extend(keys.iter().map(|&k| {
            let (a, b) = s.range(k);
            [a as u32, b as u32]
        })),
        Some(offsets) => ranges.extend(keys.iter().enumerate().map(|(i, &k)| {
            if let Some(&ahead) = keys.get(i + AHEAD) {
                prefetch(offsets, ahead as usize);
            }
            let (a, b) = s.range(k);
            [a as u32, b as u32]
        })),
    }
}

/// The neighbours of a constant: borrowed where nothing has to be merged.
pub(crate) fn constant_list<'a>(view: EdgeView<'a>, v: u32, scope: Scope<'_>) -> Cow<'a, [u32]> {
    if let Some(s) = view.plain(scope) {
        return Cow::Borrowed(s.neighbours_of(v));
    }
    if let Some((s, p)) = view.plain_but_dirty(scope)
        && !p.is_dirty(v)
    {
        return Cow::Borrowed(s.neighbours_of(v));
    }
    let mut scratch = Vec::new();
    Cow::Owned(view.read(v, scope, &mut scratch).to_vec())
}
