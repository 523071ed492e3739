//! The step `Expand`: binds a variable to the neighbours of a known vertex, or to the intersection of several edge
//! lists.

use super::lists::{Bounds, MERGING, NeighbourLists};
use super::{Emit, QueryContext, StepLayout};
use crate::batch::{View, is_run};
use crate::id_test::IdTest;
#[cfg(target_arch = "x86_64")]
use crate::intersect::intersect_in_registers;
use crate::intersect::{Placed, intersect, intersect_inside, retain_in};
use jindou_graph::segment::{GraphScope, prefetch};
use jindou_model::{Invariant, Result};
use jindou_plan::{EdgeList, GraphRef};
use std::ops::Range;
use std::sync::Arc;

/// Number of ids that loops read between two checks of the deadline and the cancel flag.
pub(crate) const WORK_PER_CHECK: usize = 1 << 18;

/// Lists up to this length are tested id by id. Longer ones are first clipped to the needed interval by binary search.
const SHORT: usize = 12;

/// How many rows ahead lists are prefetched.
const AHEAD: usize = 16;

/// Number of rows that `fill_pair` processes between two checks.
const PAIRS: usize = 256;

/// Neighbours for keys that have exactly one each: if the key numbers are consecutive, their neighbours are a slice.
#[inline]
fn neighbours_of_run<'n>(keys: &[u32], neighbours: &'n [u32]) -> Option<&'n [u32]> {
    let first = *keys.first().filter(|_| is_run(keys))? as usize;
    neighbours.get(first..first + keys.len())
}

/// Fills `index` with consecutive row numbers from `first` on.
#[inline]
fn number_rows(index: &mut [u32], first: usize) {
    for (i, row) in index.iter_mut().zip(first as u32..) {
        *i = row;
    }
}

/// Appends a row for each key with a neighbour that is `inside`, where keys have at most one neighbour. `first` is the
/// row number of the first key. Returns the number of rows.
#[inline]
fn fill_single(
    keys: &[u32],
    neighbours: &[u32],
    first: usize,
    to: &mut [u32],
    index: &mut [u32],
    inside: impl Fn(u32) -> bool,
) -> usize {
    let mut w = 0;
    for (i, &k) in keys.iter().enumerate() {
        if let Some(&ahead) = keys.get(i + 2 * AHEAD) {
            prefetch(neighbours, ahead as usize);
        }
        let n = neighbours.get(k as usize).copied();
        let v = n.unwrap_or(0);
        to[w] = v;
        index[w] = (first + i) as u32;
        w += usize::from(n.is_some() & inside(v));
    }
    w
}

/// The two shortest of a row's lists with their positions in `lists`, the shorter one first; `None` if one of the lists
/// must be merged first.
#[inline]
fn two_shortest<'l>(
    lists: &'l [NeighbourLists],
    row: usize,
    work: &mut usize,
) -> Option<[(usize, &'l [u32]); 2]> {
    let mut best: [(usize, &[u32]); 2] = [(usize::MAX, &[]); 2];
    for (i, l) in lists.iter().enumerate() {
        let list = l.list(row)?;
        *work += 8 + list.len().min(64);
        if best[0].0 == usize::MAX || list.len() < best[0].1.len() {
            best[1] = best[0];
            best[0] = (i, list);
        } else if best[1].0 == usize::MAX || list.len() < best[1].1.len() {
            best[1] = (i, list);
        }
    }
    Some(best)
}

/// The two lists of each row, for rows that intersect two lists, and the interval `start..start + width` of needed ids.
struct Pairs<'p> {
    a: Bounds<'p>,
    b: Bounds<'p>,
    start: u32,
    width: u32,
}

impl Pairs<'_> {
    /// Intersects the two lists of each row, writing from position `w` of `to` on, until a result might not fit.
    /// Returns the row to continue with, and the end of the results in `to`.
    fn run(
        &self,
        rows: Range<usize>,
        to: &mut [u32],
        index: &mut [u32],
        w: usize,
    ) -> (usize, usize) {
        #[cfg(target_arch = "x86_64")]
        if crate::processor::has_avx2() {
            // SAFETY: the processor has AVX2, as tested just before.
            return unsafe { self.run_avx2(rows, to, index, w) };
        }
        self.run_with(rows, to, index, w, |_, _, _| None)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_avx2(
        &self,
        rows: Range<usize>,
        to: &mut [u32],
        index: &mut [u32],
        w: usize,
    ) -> (usize, usize) {
        self.run_with(rows, to, index, w, |x, y, out| {
            intersect_in_registers(x, y, self.start, self.width, out)
        })
    }

    /// As [`Self::run`]. `fast` intersects two lists if it can, and otherwise returns `None`.
    #[inline(always)]
    fn run_with(
        &self,
        rows: Range<usize>,
        to: &mut [u32],
        index: &mut [u32],
        mut w: usize,
        fast: impl Fn(Placed<'_>, Placed<'_>, &mut [u32]) -> Option<usize>,
    ) -> (usize, usize) {
        let bounds = self.a.ranges[rows.clone()].iter();
        let bounds = bounds.zip(&self.b.ranges[rows.clone()]);
        for (row, (&ra, &rb)) in rows.clone().zip(bounds) {
            if let (Some(&ahead_a), Some(&ahead_b)) = (
                self.a.ranges.get(row + AHEAD),
                self.b.ranges.get(row + AHEAD),
            ) {
                let (in_a, ahead_a) = self.a.place(ahead_a);
                let (in_b, ahead_b) = self.b.place(ahead_b);
                prefetch_list(in_a, ahead_a);
                prefetch_list(in_b, ahead_b);
            }
            let ((in_a, ra), (in_b, rb)) = (self.a.place(ra), self.b.place(rb));
            let (x, y) = (Placed::new(in_a, ra), Placed::new(in_b, rb));
            let most = x.len.min(y.len);
            let Some(target) = to.get_mut(w..w + most) else {
                return (row, w);
            };
            let n = match fast(x, y, target) {
                Some(n) => n,
                None => intersect_inside(x.list(), y.list(), self.start, self.width, target),
            };
            for o in &mut index[w..w + n] {
                *o = row as u32;
            }
            w += n;
        }
        (rows.end, w)
    }
}

/// Prefetches a list: all of a short one, and of a long one the positions that a binary search reads first. This saves
/// a quarter of the time of intersecting long lists (LUBM L1), whose binary searches otherwise wait for memory at every
/// step.
#[inline(always)]
fn prefetch_list(array: &[u32], bounds: [u32; 2]) {
    /// Ids in a cache line.
    const LINE: usize = 16;
    /// Lists of up to this many cache lines are prefetched whole.
    const LINES: usize = 8;
    let (from, to) = (bounds[0] as usize, bounds[1] as usize);
    let len = to.saturating_sub(from);
    if len <= LINE * LINES {
        for at in (from..to).step_by(LINE) {
            prefetch(array, at);
        }
    } else {
        for i in 0..=LINES {
            prefetch(array, from + len * i / LINES);
        }
    }
}

pub(crate) struct ExpandStep<'a> {
    lists: Vec<NeighbourLists<'a>>,
    within: IdTest<'a>,
    /// Output columns of the neighbour and of the graph; `None` for one that no later step reads.
    to: Option<usize>,
    graph: Option<usize>,
    bind: bool,
    /// Where to continue after the output was full: the row, and the position in its list.
    row: usize,
    place: usize,
    /// True while `list` contains the current row's list, because that had to be merged or did not fit into the output.
    made: bool,
    list: Vec<u32>,
    graphs: Vec<u32>,
    scratch: Vec<u32>,
    work: usize,
    pub touched: u64,
}

impl<'a> ExpandStep<'a> {
    pub fn new(
        to: Option<usize>,
        lists: &'a [EdgeList],
        within: Option<&'a jindou_plan::IdFilter>,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        let bind = lists.iter().find_map(|l| match &l.graph {
            GraphRef::Bind(slot, _) => Some(layout.output(*slot)),
            _ => None,
        });
        let within = IdTest::new(within, layout.snapshot);
        let (from, end) = within.hull();
        let lists = lists.iter().map(|l| {
            let mut list = NeighbourLists::new(l, layout);
            list.needs_only([from, end]);
            list
        });
        Self {
            lists: lists.collect(),
            within,
            to,
            graph: bind.flatten(),
            bind: bind.is_some(),
            row: 0,
            place: 0,
            made: false,
            list: vec![],
            graphs: vec![],
            scratch: vec![],
            work: 0,
            touched: 0,
        }
    }

    pub fn begin(&mut self, input: View<'_>) {
        (self.row, self.place, self.made) = (0, 0, false);
        for l in &mut self.lists {
            if self.bind {
                l.prepare(input);
            } else {
                l.prepare_whole(input);
            }
        }
    }

    /// Number of output rows of a whole batch, for callers that need only the number. `None` unless the lengths of one
    /// list per row determine it.
    pub fn count(&mut self, input: View<'_>) -> Option<usize> {
        let [list] = &self.lists[..] else { return None };
        if self.bind || self.is_loose() {
            return None;
        }
        if let Some(l) = list.constant() {
            return Some(self.within.clip(l).len() * input.rows);
        }
        let bounds = list.bounds()?;
        let mut n = 0;
        if self.within.is_all() {
            for r in bounds.ranges {
                n += (r[1] - r[0]) as usize;
            }
        } else {
            for r in bounds.ranges {
                n += self.within.clip(bounds.list(*r)).len();
            }
        }
        self.touched += bounds.ranges.len() as u64 * 8;
        Some(n)
    }

    /// Returns true if clipping to an interval is not enough, so that each id must be tested as well.
    fn is_loose(&self) -> bool {
        matches!(self.within, IdTest::Many(_) | IdTest::Except(_))
    }

    /// Appends output rows. Returns true if the output is full and the input is not finished.
    pub fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        if self.bind {
            return self.fill_graphs(ctx, input, out);
        }
        if self.lists.len() > 1 {
            return self.fill_shared(ctx, input, out);
        }
        match &self.within {
            IdTest::All => self.fill_one(ctx, input, out, |_| true),
            &IdTest::One(start, width) => {
                self.fill_one(ctx, input, out, move |v| v.wrapping_sub(start) < width)
            }
            IdTest::Many(runs) => {
                let runs = Arc::clone(runs);
                self.fill_one(ctx, input, out, |v| runs.contains(v))
            }
            IdTest::Except(_) => {
                let within = self.within.clone();
                self.fill_one(ctx, input, out, |v| within.contains(v))
            }
        }
    }

    fn fill_one(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
        inside: impl Fn(u32) -> bool,
    ) -> Result<bool> {
        let Some(lists) = self.lists.first() else {
            return Ok(false);
        };
        let (to, index, rows) = out.columns(self.to);
        let mut w = *rows;
        if let Some((keys, neighbours)) = lists.degree_one() {
            let end = keys.len().min(self.row + (to.len() - w));
            let chunk = &keys[self.row..end];
            let (to, index) = (&mut to[w..], &mut index[w..]);
            let run = match self.within.is_all() {
                true => neighbours_of_run(chunk, neighbours),
                false => None,
            };
            *rows += match run {
                Some(list) => {
                    to[..list.len()].copy_from_slice(list);
                    number_rows(&mut index[..list.len()], self.row);
                    list.len()
                }
                None => fill_single(chunk, neighbours, self.row, to, index, inside),
            };
            self.touched += chunk.len() as u64 * 4;
            self.row = end;
            return Ok(self.row < keys.len());
        }
        let within = &self.within;
        let clip = !within.is_all();
        while self.row < input.rows {
            lists.prefetch(self.row + AHEAD);
            let list = match lists.list(self.row) {
                Some(l) => l,
                None => {
                    if !self.made {
                        self.work +=
                            lists.merged(input, self.row, &mut self.list, &mut self.scratch);
                        self.made = true;
                    }
                    &self.list
                }
            };
            let list = if clip && list.len() > SHORT {
                within.clip(list)
            } else {
                list
            };
            let rest = list.get(self.place..).unwrap_or(&[]);
            let n = rest.len().min(to.len() - w);
            let row = self.row as u32;
            if clip {
                // Within bounds: `w` is increased at most `n` times, and `n` rows fit.
                for &v in &rest[..n] {
                    to[w] = v;
                    index[w] = row;
                    w += usize::from(inside(v));
                }
            } else if n <= SHORT {
                let places = to[w..].iter_mut().zip(index[w..].iter_mut());
                for (&v, (t, i)) in rest[..n].iter().zip(places) {
                    *t = v;
                    *i = row;
                }
                w += n;
            } else {
                to[w..w + n].copy_from_slice(&rest[..n]);
                index[w..w + n].fill(row);
                w += n;
            }
            self.work += n;
            if n < rest.len() {
                self.place += n;
                *rows = w;
                return Ok(true);
            }
            if self.work >= WORK_PER_CHECK {
                self.touched += 4 * self.work as u64;
                self.work = 0;
                ctx.check()?;
            }
            self.row += 1;
            self.place = 0;
            self.made = false;
            if w == to.len() && self.row < input.rows {
                *rows = w;
                return Ok(true);
            }
        }
        self.touched += 4 * self.work as u64;
        self.work = 0;
        *rows = w;
        Ok(false)
    }

    /// Checks the deadline and the cancel flag if enough ids were read since the last check.
    #[inline]
    fn check_work(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        if self.work >= WORK_PER_CHECK {
            self.touched += 4 * self.work as u64;
            self.work = 0;
            ctx.check()?;
        }
        Ok(())
    }

    fn fill_shared(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        if !self.made && self.fill_pair(ctx, out)? {
            return Ok(self.row < input.rows);
        }
        let (to, index, rows) = out.columns(self.to);
        let mut w = *rows;
        let many = self.is_loose();
        while self.row < input.rows {
            if self.made {
                let rest = &self.list[self.place..];
                let n = rest.len().min(to.len() - w);
                to[w..w + n].copy_from_slice(&rest[..n]);
                index[w..w + n].fill(self.row as u32);
                w += n;
                if n < rest.len() {
                    self.place += n;
                    *rows = w;
                    return Ok(true);
                }
                (self.row, self.place, self.made) = (self.row + 1, 0, false);
                continue;
            }
            for l in &self.lists {
                l.prefetch(self.row + AHEAD);
            }
            let Some(shortest) = two_shortest(&self.lists, self.row, &mut self.work) else {
                self.share_merged(input);
                self.check_work(ctx)?;
                continue;
            };
            let [(i, a), (j, b)] = shortest;
            if a.is_empty() {
                self.row += 1;
                continue;
            }
            let a = if a.len() > SHORT {
                self.within.clip(a)
            } else {
                a
            };
            let b = if b.len() > SHORT {
                self.within.clip(b)
            } else {
                b
            };
            let most = a.len().min(b.len());
            let direct = most <= to.len() - w;
            let target = if direct {
                &mut to[w..w + most]
            } else if w > 0 {
                *rows = w;
                return Ok(true);
            } else {
                self.list.clear();
                self.list.resize(most, 0);
                &mut self.list[..]
            };
            let mut n = intersect(a, b, target);
            for (k, l) in self.lists.iter().enumerate() {
                if k != i && k != j && n > 0 {
                    let list = l.list(self.row).invariant("merged lists are shared before");
                    n = retain_in(&mut target[..n], list);
                }
            }
            if many || n > 0 && a.len().min(b.len()) <= SHORT {
                n = self.within.retain(&mut target[..n]);
            }
            if direct {
                for x in &mut index[w..w + n] {
                    *x = self.row as u32;
                }
                w += n;
                self.row += 1;
            } else {
                self.list.truncate(n);
                self.made = true;
            }
            self.work += most;
            self.check_work(ctx)?;
        }
        self.touched += 4 * self.work as u64;
        self.work = 0;
        *rows = w;
        Ok(false)
    }

    /// The fast case of [`Self::fill_shared`] for two lists per row, as in most triangle queries: has fewer branches
    /// per row. Continues until the output might be too small. Returns false if the general loop must process the next
    /// row.
    fn fill_pair(&mut self, ctx: &QueryContext<'_>, out: &mut Emit<'_>) -> Result<bool> {
        let [first, second] = &self.lists[..] else {
            return Ok(false);
        };
        let (Some(a), Some(b)) = (first.bounds(), second.bounds()) else {
            return Ok(false);
        };
        let (first, last) = self.within.hull();
        let (start, width) = (first, last - first);
        let loose = self.is_loose();
        let (to, index, rows) = out.columns(self.to);
        let end = a.ranges.len().min(b.ranges.len());
        let pairs = Pairs { a, b, start, width };
        let (mut w, mut row) = (*rows, self.row);
        while row < end {
            let (from, before) = (row, w);
            (row, w) = pairs.run(row..end.min(row + PAIRS), to, index, w);
            if loose {
                let n = self
                    .within
                    .retain_rows(&mut to[before..w], &mut index[before..w]);
                w = before + n;
            }
            self.work += 32 * (row - from);
            if self.work >= WORK_PER_CHECK {
                self.touched += 4 * self.work as u64;
                self.work = 0;
                ctx.check()?;
            }
            if row < end && row < from + PAIRS {
                break;
            }
        }
        self.touched += 4 * self.work as u64;
        self.work = 0;
        let done = row > self.row;
        self.row = row;
        *rows = w;
        Ok(done || row >= end)
    }

    /// Stores the intersection of the current row's lists in `list`, where some of them must be merged, since named
    /// graphs or a patch contribute to them.
    fn share_merged(&mut self, input: View<'_>) {
        let mut acc = std::mem::take(&mut self.list);
        let mut other = std::mem::take(&mut self.graphs);
        for (i, l) in self.lists.iter().enumerate() {
            if i == 0 {
                match l.list(self.row) {
                    Some(list) => {
                        acc.clear();
                        acc.extend_from_slice(list);
                    }
                    None => self.work += l.merged(input, self.row, &mut acc, &mut self.scratch),
                }
                let n = self.within.retain(&mut acc);
                acc.truncate(n);
                continue;
            }
            let n = match l.list(self.row) {
                Some(list) => retain_in(&mut acc, list),
                None => {
                    self.work += l.merged(input, self.row, &mut other, &mut self.scratch);
                    retain_in(&mut acc, &other)
                }
            };
            acc.truncate(n);
        }
        self.work += acc.len();
        self.list = acc;
        self.graphs = other;
        self.made = true;
    }

    /// As [`Self::fill`], for a step that binds a graph variable: appends a row for each neighbour and graph of the
    /// edge.
    fn fill_graphs(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        let Some(lists) = self.lists.first() else {
            return Ok(false);
        };
        while self.row < input.rows {
            if !self.made {
                self.list.clear();
                self.graphs.clear();
                let scope = lists.graph.scope_at(input, self.row);
                let key = lists.anchor(input, self.row);
                if matches!(scope, GraphScope::Set(_)) {
                    self.work += lists.view.named_degree(key) as usize;
                }
                lists
                    .view
                    .read_with_graphs(key, scope, &mut self.list, &mut self.graphs);
                self.made = true;
                self.work += MERGING + self.list.len();
                if self.work >= WORK_PER_CHECK {
                    self.work = 0;
                    ctx.check()?;
                }
            }
            while let (Some(&v), Some(&g)) =
                (self.list.get(self.place), self.graphs.get(self.place))
            {
                if out.is_full() {
                    return Ok(true);
                }
                self.place += 1;
                if self.within.contains(v) {
                    out.row(self.row, &[(self.to, v), (self.graph, g)]);
                }
            }
            (self.row, self.place, self.made) = (self.row + 1, 0, false);
        }
        Ok(false)
    }

    pub fn bytes(&self) -> usize {
        self.lists.iter().map(NeighbourLists::bytes).sum::<usize>()
            + 4 * (self.list.capacity() + self.graphs.capacity() + self.scratch.capacity())
    }
}
