//! The edge lists that a step reads, one per input row. How to find them is chosen once per query.

use super::{Anchor, StepLayout};
use crate::batch::View;
use jindou_graph::Edges;
use jindou_graph::segment::{GraphScope, KeyFinder, Patch, PatchFinger, Segment, prefetch};
use jindou_graph::shard::EVERYTHING;
use jindou_model::{Direction, Invariant, PredicateId};
use jindou_plan::{EdgeList, GraphRef, Operand};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// The graphs that a pattern reads: fixed, or the one in a column of the row.
#[derive(Clone, Copy)]
pub(crate) enum RowGraph<'a> {
    Fixed(GraphScope<'a>),
    Column(usize),
}

impl<'a> RowGraph<'a> {
    pub fn new(graph: &'a GraphRef, layout: &StepLayout<'a, '_>) -> Self {
        match graph {
            GraphRef::Slot(s) => Self::Column(layout.column(*s)),
            _ => Self::Fixed(graph.scope().invariant("only a slot's graph is not known")),
        }
    }

    #[inline]
    pub fn scope_at(&self, input: View<'_>, row: usize) -> GraphScope<'a> {
        match *self {
            Self::Fixed(scope) => scope,
            Self::Column(c) => GraphScope::Named(input.column(c)[row]),
        }
    }
}

/// An edge list that is the same for all rows.
pub(crate) enum ConstantList<'a> {
    /// A slice of the segment.
    Borrowed(&'a [u32]),
    /// A merged list that the patch has cached.
    Shared(Arc<[u32]>),
    /// A list that was merged for this query.
    Owned(Vec<u32>),
}

impl Deref for ConstantList<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Borrowed(l) => l,
            Self::Shared(l) => l,
            Self::Owned(l) => l,
        }
    }
}

impl<'a> ConstantList<'a> {
    pub fn into_cow(self) -> Cow<'a, [u32]> {
        match self {
            Self::Borrowed(l) => Cow::Borrowed(l),
            Self::Shared(l) => Cow::Owned(l.to_vec()),
            Self::Owned(l) => Cow::Owned(l),
        }
    }
}

/// Positions of the rows' lists.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'p> {
    /// For each row, the range of its list in `array`. Ranges after the end of `array` are in `more`, whose positions
    /// count from there.
    pub ranges: &'p [[u32; 2]],
    pub array: &'p [u32],
    /// Merged lists of this batch, of keys that a patch changed.
    pub more: &'p [u32],
}

impl<'p> Bounds<'p> {
    /// The array that contains a row's list, and the list's range in that array.
    #[inline(always)]
    pub fn place(&self, [a, b]: [u32; 2]) -> (&'p [u32], [u32; 2]) {
        let end = self.array.len();
        if (a as usize) < end {
            (self.array, [a, b])
        } else {
            (self.more, [a - end as u32, b - end as u32])
        }
    }

    #[inline(always)]
    pub fn list(&self, range: [u32; 2]) -> &'p [u32] {
        let (array, [a, b]) = self.place(range);
        array.get(a as usize..b as usize).unwrap_or(&[])
    }
}

enum ListForm<'a> {
    /// The same list for all rows.
    Constant(ConstantList<'a>),
    /// All lists are in one segment.
    Plain(Segment<'a>),
    /// All lists are in one segment, except those of keys that the patch marks as possibly changed.
    Dirty(Segment<'a>, &'a Patch),
    /// Every list is merged from default graph, named graphs and patch.
    Merged,
    /// Sharded store: the batch's lists are in this shard's array, or were fetched from the shards that own them (into
    /// `more`).
    Laid(&'a [u32]),
}

/// Estimated cost of finding a list that must be merged, as a number of ids read.
pub(super) const MERGING: usize = 64;

/// Stands for the range of a list that must be merged.
const MERGED: [u32; 2] = [1, 0];

/// How many keys ahead offsets are prefetched: enough lookups in flight to hide the latency of memory.
const AHEAD: usize = 16;

/// Finds the edge list of each row of a batch.
pub(crate) struct NeighbourLists<'a> {
    pub view: Edges<'a>,
    pub graph: RowGraph<'a>,
    anchor: Anchor,
    form: ListForm<'a>,
    /// Half-open interval of neighbours that are needed; shards need not send others.
    within: [u32; 2],
    keys: Vec<u32>,
    ranges: Vec<[u32; 2]>,
    /// Merged lists of a batch, for rows that the patch marks.
    more: Vec<u32>,
    /// True if every row of the batch has a range.
    whole: bool,
    /// True if, in addition, all ranges are in the segment: no key of the batch that the patch marks is really changed.
    clean: bool,
    finger: PatchFinger<'a>,
    /// Number of lists of marked keys that were read so far.
    merged: u64,
}

/// Largest number of ids in lists that are merged in advance for a batch; further lists are merged when their row
/// comes.
const MOST_MERGED: usize = 1 << 20;

impl<'a> NeighbourLists<'a> {
    pub fn new(list: &'a EdgeList, layout: &StepLayout<'a, '_>) -> Self {
        Self::for_anchor(
            list.anchor,
            list.predicate,
            list.direction,
            &list.graph,
            layout,
        )
    }

    pub fn for_anchor(
        anchor: Operand,
        predicate: PredicateId,
        direction: Direction,
        graph: &'a GraphRef,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        let view = layout.snapshot.edges(predicate, direction);
        let bind = matches!(graph, GraphRef::Bind(..));
        let graph = RowGraph::new(graph, layout);
        let anchor = layout.anchor(anchor);
        let mut it = Self {
            view,
            graph,
            anchor,
            form: ListForm::Merged,
            within: EVERYTHING,
            keys: vec![],
            ranges: vec![],
            more: vec![],
            whole: false,
            clean: false,
            finger: PatchFinger::default(),
            merged: 0,
        };
        if let (RowGraph::Fixed(scope), false) = (graph, bind) {
            it.form = match anchor {
                Anchor::Const(v) => ListForm::Constant(constant_list(&view, v, scope)),
                Anchor::Column(_) => match (view.plain(scope), &view) {
                    (Some(s), _) => ListForm::Plain(s),
                    (None, Edges::Sharded(_)) => ListForm::Laid(&[]),
                    (None, Edges::Here(view)) => match view.plain_but_dirty(scope) {
                        Some((s, p)) => ListForm::Dirty(s, p),
                        None => ListForm::Merged,
                    },
                },
            };
        }
        it
    }

    /// Declares that only neighbours in this half-open interval are needed, so that other shards do not send the rest.
    pub fn needs_only(&mut self, within: [u32; 2]) {
        self.within = within;
    }

    /// The id in a row whose list is read.
    #[inline]
    pub fn anchor(&self, input: View<'_>, row: usize) -> u32 {
        self.anchor.id_at(input, row)
    }

    /// Finds the lists of all rows of a batch: first the keys, then the ranges. The loops that read the lists prefetch
    /// their content, some rows ahead; prefetching it here as well made LUBM L7 a tenth slower.
    pub fn prepare(&mut self, input: View<'_>) {
        let Anchor::Column(c) = self.anchor else {
            return;
        };
        match self.form {
            ListForm::Constant(_) => {}
            ListForm::Merged => {
                self.ranges.clear();
                self.ranges.resize(input.rows, MERGED);
                self.fetch(input);
            }
            ListForm::Laid(_) => {
                if let (RowGraph::Fixed(scope), Edges::Sharded(edges)) = (self.graph, &self.view) {
                    let ids = input.column(c);
                    let needed = (scope, self.within);
                    let array = edges.collect_lists(ids, needed, &mut self.ranges, &mut self.more);
                    self.form = ListForm::Laid(array);
                }
            }
            ListForm::Plain(s) => {
                find_keys(s.finder, input.column(c), &mut self.keys);
                if s.offsets.is_some() {
                    find_ranges(s, &self.keys, &mut self.ranges);
                }
            }
            ListForm::Dirty(s, patch) => {
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

    /// On a sharded store, fetches the lists of a batch that will be read row by row from the shards that own them.
    pub fn fetch(&self, input: View<'_>) {
        if self.view.is_sharded() {
            let row = |row| (self.anchor(input, row), self.graph.scope_at(input, row));
            self.view.fetch((0..input.rows).map(row));
        }
    }

    /// Tests on a sharded store whether the edges of a batch exist, with one request per shard; writes the results to
    /// `there`. Returns false if the edges must be looked up row by row instead.
    pub fn contains_many(
        &self,
        input: View<'_>,
        other: impl Fn(usize) -> u32 + Clone,
        there: &mut Vec<bool>,
    ) -> bool {
        match self.graph {
            RowGraph::Fixed(scope) if self.constant().is_none() => {
                let Edges::Sharded(edges) = &self.view else {
                    return false;
                };
                let edge = |row| (self.anchor(input, row), other(row));
                edges.contains_many((0..input.rows).map(edge), scope, there);
                true
            }
            _ => false,
        }
    }

    /// After [`Self::prepare_whole`]: the rows' key numbers and the neighbours by key number, if every key has exactly
    /// one neighbour.
    pub fn degree_one(&self) -> Option<(&[u32], &'a [u32])> {
        match self.form {
            ListForm::Plain(s) if s.offsets.is_none() => Some((&self.keys, s.neighbours)),
            ListForm::Dirty(s, _) if s.offsets.is_none() && self.clean => {
                Some((&self.keys, s.neighbours))
            }
            _ => None,
        }
    }

    /// As [`Self::prepare`], but also merges the lists of keys that the patch marks, for loops that need a range for
    /// each row.
    pub fn prepare_whole(&mut self, input: View<'_>) {
        self.more.clear();
        (self.whole, self.clean) = (false, false);
        self.prepare(input);
        if matches!(self.form, ListForm::Laid(_)) {
            self.whole = !self.ranges.contains(&MERGED);
            return;
        }
        let (ListForm::Dirty(s, _), RowGraph::Fixed(scope), Anchor::Column(c)) =
            (&self.form, self.graph, self.anchor)
        else {
            return;
        };
        let end = s.neighbours.len();
        if end + 2 * MOST_MERGED > u32::MAX as usize {
            return;
        }
        let mut last = None;
        let mut merged = 0;
        let mut clean = true;
        for (range, &v) in self.ranges.iter_mut().zip(input.column(c)) {
            if *range != MERGED {
                continue;
            }
            // Rows with the same id are mostly adjacent.
            if let Some((of, known)) = last
                && of == v
            {
                *range = known;
                continue;
            }
            let from = self.more.len();
            if self
                .view
                .append_touched(v, scope, &mut self.finger, &mut self.more, &mut merged)
            {
                if self.more.len() > MOST_MERGED {
                    self.more.truncate(from);
                    return;
                }
                *range = [(end + from) as u32, (end + self.more.len()) as u32];
                clean = false;
            } else {
                let (a, b) = s.range(s.finder.find(v));
                *range = [a as u32, b as u32];
            }
            last = Some((v, *range));
        }
        self.note_merged(merged);
        (self.whole, self.clean) = (true, clean);
    }

    /// Reports to the graph that lists of keys that the patch marks were read, whether merged or searched.
    pub fn note_merged(&mut self, lists: u64) {
        if lists > 0 {
            self.merged += lists;
            self.view.note_merged(lists, self.merged);
        }
    }

    /// After [`Self::prepare_whole`]: the ranges of the lists, if every row has one.
    pub fn bounds(&self) -> Option<Bounds<'_>> {
        match self.form {
            ListForm::Plain(s) if s.offsets.is_some() => Some(Bounds {
                ranges: &self.ranges,
                array: s.neighbours,
                more: &[],
            }),
            ListForm::Dirty(s, _) if self.whole => Some(Bounds {
                ranges: &self.ranges,
                array: s.neighbours,
                more: &self.more,
            }),
            ListForm::Laid(array) if self.whole => Some(Bounds {
                ranges: &self.ranges,
                array,
                more: &self.more,
            }),
            _ => None,
        }
    }

    /// The list that all rows share, if there is one.
    pub fn constant(&self) -> Option<&[u32]> {
        match &self.form {
            ListForm::Constant(list) => Some(list),
            _ => None,
        }
    }

    /// After [`Self::prepare`]: the row's list; `None` if it must be merged by [`Self::merged`].
    // Called once per row. Without inlining, LUBM L7 takes a hundredth longer.
    #[inline(always)]
    pub fn list(&self, row: usize) -> Option<&[u32]> {
        // `ranged` is called at one place for all arrays; with two calls this function is no longer inlined into the
        // loops.
        let array = match &self.form {
            ListForm::Constant(list) => return Some(list),
            ListForm::Plain(s) if s.offsets.is_none() => {
                let k = self.keys[row] as usize;
                return Some(s.neighbours.get(k..k.wrapping_add(1)).unwrap_or(&[]));
            }
            ListForm::Plain(s) | ListForm::Dirty(s, _) => s.neighbours,
            ListForm::Laid(array) => array,
            ListForm::Merged => return None,
        };
        self.ranged(row, array)
    }

    #[inline(always)]
    fn ranged<'l>(&'l self, row: usize, array: &'l [u32]) -> Option<&'l [u32]> {
        let [a, b] = self.ranges[row];
        if a > b {
            return None;
        }
        let bounds = Bounds {
            ranges: &[],
            array,
            more: &self.more,
        };
        Some(bounds.list([a, b]))
    }

    /// Prefetches the memory that is read first for the row's list.
    #[inline]
    pub fn prefetch(&self, row: usize) {
        match &self.form {
            ListForm::Plain(s) if s.offsets.is_none() => {
                if let Some(&k) = self.keys.get(row) {
                    prefetch(s.neighbours, k as usize);
                }
            }
            ListForm::Plain(s) | ListForm::Dirty(s, _) => {
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
            ListForm::Constant(_) | ListForm::Merged | ListForm::Laid(_) => {}
        }
    }

    /// Merges the row's list into `out`. Returns the cost as a number of ids read.
    pub fn merged(
        &self,
        input: View<'_>,
        row: usize,
        out: &mut Vec<u32>,
        scratch: &mut Vec<u32>,
    ) -> usize {
        let mut looked = MERGING;
        let list = self.view.read_counting(
            self.anchor(input, row),
            self.graph.scope_at(input, row),
            scratch,
            &mut looked,
        );
        out.clear();
        out.extend_from_slice(list);
        looked
    }

    /// Bytes of scratch memory held.
    pub fn bytes(&self) -> usize {
        (self.keys.capacity() + self.more.capacity()) * 4 + self.ranges.capacity() * 8
    }
}

/// As `finder.find_many`, but first assumes that all ids are in the same interval as the first one: then a key number
/// takes one subtraction. Starts at an index vertex yield ascending ids, and so do most of their neighbours.
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

/// The neighbours of a constant; borrowed if nothing has to be merged.
pub(crate) fn constant_list<'a>(
    view: &Edges<'a>,
    v: u32,
    scope: GraphScope<'_>,
) -> ConstantList<'a> {
    if let Some(s) = view.plain(scope) {
        return ConstantList::Borrowed(s.neighbours_of(v));
    }
    if let Some((s, p)) = view.plain_but_dirty(scope)
        && !p.is_dirty(v)
    {
        return ConstantList::Borrowed(s.neighbours_of(v));
    }
    if let Some(kept) = view.shared_list(v, scope) {
        return ConstantList::Shared(kept);
    }
    let mut scratch = Vec::new();
    ConstantList::Owned(view.read(v, scope, &mut scratch).to_vec())
}
