//! Sixth phase: edges get their final ids, are sorted in both directions, and become segments.

use super::partition::PartitionedEdges;
use super::read::on_threads;
use super::sort::{self, SortWords};
use crate::directory::SegmentFileWriter;
use jindou_graph::segment::{Packing, SegmentArrays, SegmentBuilder};
use jindou_graph::shard::Blocks;
use jindou_model::sync::lock;
use jindou_model::{Direction, Error, Invariant, Result, private};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

/// Bytes of memory per edge to sort it and build its segment: the edge, its copy in the other buffer, and the segment's
/// neighbour, key and offset.
const BYTES_AN_EDGE: u64 = 32;

/// Constants and operations that differ between edges of the default graph and those of named graphs.
pub(super) trait StoredEdge: SortWords {
    const NAMED: bool;
    /// Indexes of the words by which edges are sorted in a direction, the least significant first: by (key, neighbour,
    /// graph).
    fn words(direction: Direction) -> &'static [usize];
    /// Indexes of the words by which a list sorted for `Out` must be sorted again for `In`.
    const OUT_TO_IN: &'static [usize];
    fn with_ids(self, id_of_lex: &[u32]) -> Self;
    fn subject(self) -> u32;
    fn object(self) -> u32;
    fn graph(self) -> u32;
    /// How the lists of these edges are packed in bits; `None` if they are not packed.
    fn packing(
        edges: &PartitionedEdges<Self>,
        predicates: usize,
        ids: &[u32],
    ) -> Result<Option<Packing>>;

    #[inline(always)]
    fn key(self, direction: Direction) -> u32 {
        match direction {
            Direction::Out => self.subject(),
            Direction::In => self.object(),
        }
    }
}

impl StoredEdge for u64 {
    const NAMED: bool = false;
    const OUT_TO_IN: &'static [usize] = &[0];

    fn words(direction: Direction) -> &'static [usize] {
        match direction {
            Direction::Out => &[0, 1],
            Direction::In => &[1, 0],
        }
    }

    #[inline(always)]
    fn with_ids(self, id_of_lex: &[u32]) -> Self {
        let (s, o) = ((self >> 32) as usize, self as u32 as usize);
        u64::from(id_of_lex[s]) << 32 | u64::from(id_of_lex[o])
    }

    #[inline(always)]
    fn subject(self) -> u32 {
        (self >> 32) as u32
    }

    #[inline(always)]
    fn object(self) -> u32 {
        self as u32
    }

    fn graph(self) -> u32 {
        jindou_model::DEFAULT_GRAPH
    }

    fn packing(_: &PartitionedEdges<Self>, _: usize, _: &[u32]) -> Result<Option<Packing>> {
        Ok(None)
    }
}

impl StoredEdge for [u32; 3] {
    const NAMED: bool = true;
    // A list sorted by (subject, object, graph) keeps the order (subject, graph) within equal objects, since sorting is
    // stable.
    const OUT_TO_IN: &'static [usize] = &[1];

    fn words(direction: Direction) -> &'static [usize] {
        match direction {
            Direction::Out => &[2, 1, 0],
            Direction::In => &[2, 0, 1],
        }
    }

    #[inline(always)]
    fn with_ids(self, id_of_lex: &[u32]) -> Self {
        self.map(|lex| id_of_lex[lex as usize])
    }

    #[inline(always)]
    fn subject(self) -> u32 {
        self[0]
    }

    #[inline(always)]
    fn object(self) -> u32 {
        self[1]
    }

    fn graph(self) -> u32 {
        self[2]
    }

    /// Collects the graphs of all edges, which must be known before the first segment is packed. O(edges).
    fn packing(
        edges: &PartitionedEdges<Self>,
        predicates: usize,
        ids: &[u32],
    ) -> Result<Option<Packing>> {
        let mut seen = vec![0u64; ids.len().div_ceil(64)];
        for p in 0..predicates {
            edges.for_each(p, |part| {
                for e in part {
                    seen[e[2] as usize / 64] |= 1 << (e[2] % 64);
                }
            })?;
        }
        let mut graphs: Vec<u32> = (0..ids.len())
            .filter(|lex| seen[lex / 64] >> (lex % 64) & 1 == 1)
            .map(|lex| ids[lex])
            .collect();
        graphs.sort_unstable();
        Ok(Some(Packing::new(ids.len() as u32, graphs)))
    }
}

/// Distribution of keys over files: for each key, the file that contains its edges, and the key in that file.
pub(super) trait KeySplit: Sync {
    /// The number of the file and the key in it; both ascend with ids.
    fn place(&self, key: u32) -> (usize, u32);
}

/// A single file that contains all keys.
pub(super) struct Unsplit;

impl KeySplit for Unsplit {
    #[inline(always)]
    fn place(&self, key: u32) -> (usize, u32) {
        (0, key)
    }
}

impl KeySplit for Blocks {
    #[inline]
    fn place(&self, key: u32) -> (usize, u32) {
        let place = Self::place(self, key).invariant("every id that a load gives out has a place");
        (place.shard as usize, place.local.0)
    }
}

fn push_all<T: StoredEdge>(
    edges: &[T],
    direction: Direction,
    split: &impl KeySplit,
    to: &mut [SegmentBuilder],
) {
    for &e in edges {
        let (key, neighbour) = match direction {
            Direction::Out => (e.subject(), e.object()),
            Direction::In => (e.object(), e.subject()),
        };
        let (file, key) = split.place(key);
        if let Some(to) = to.get_mut(file) {
            to.push(key, neighbour, e.graph());
        }
    }
}

fn builders<T: StoredEdge>(files: usize, edges: usize) -> Vec<SegmentBuilder> {
    let builder = || {
        let mut b = SegmentBuilder::new(T::NAMED);
        if files == 1 {
            b.reserve(edges);
        }
        b
    };
    (0..files).map(|_| builder()).collect()
}

/// A file of segments that are written in a fixed order, whichever thread finishes first, so that the file does not
/// depend on timing.
struct OrderedWriter<'a> {
    state: Mutex<QueuedSegment>,
    moved: Condvar,
    path: &'a Path,
    /// Number of queued bytes above which threads wait before they continue.
    ahead: u64,
}

struct QueuedSegment {
    writer: Option<SegmentFileWriter<BufWriter<File>>>,
    next: usize,
    waiting: BTreeMap<usize, (u32, SegmentArrays)>,
    bytes: u64,
    failed: bool,
}

impl OrderedWriter<'_> {
    fn create<'a>(
        path: &'a Path,
        predicates: u32,
        packing: Option<&Packing>,
        ahead: u64,
    ) -> Result<OrderedWriter<'a>> {
        let file = private::create_new(path).map_err(|e| Error::io(path, e))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer =
            SegmentFileWriter::new(file, predicates, packing).map_err(|e| Error::io(path, e))?;
        Ok(OrderedWriter {
            state: Mutex::new(QueuedSegment {
                writer: Some(writer),
                next: 0,
                waiting: BTreeMap::new(),
                bytes: 0,
                failed: false,
            }),
            moved: Condvar::new(),
            path,
            ahead,
        })
    }

    /// Waits until few enough bytes are queued. The thread whose segment is next queues it before it waits here, so one
    /// thread can always continue.
    fn wait_for_space(&self) {
        let mut s = lock(&self.state);
        while s.bytes > self.ahead && !s.failed {
            s = self
                .moved
                .wait(s)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn fail(&self) {
        lock(&self.state).failed = true;
        self.moved.notify_all();
    }

    fn enqueue(&self, turn: usize, predicate: u32, arrays: SegmentArrays) -> Result<()> {
        let mut s = lock(&self.state);
        s.bytes += arrays.bytes();
        s.waiting.insert(turn, (predicate, arrays));
        while let Some((p, arrays)) = {
            let next = s.next;
            s.waiting.remove(&next)
        } {
            s.next += 1;
            s.bytes -= arrays.bytes();
            if let Some(w) = &mut s.writer {
                w.append(p, &arrays).map_err(|e| Error::io(self.path, e))?;
            }
        }
        drop(s);
        self.moved.notify_all();
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let s = self
            .state
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(w) = s.writer {
            w.finish().map_err(|e| Error::io(self.path, e))?;
        }
        Ok(())
    }
}

/// Ends the waiting of other threads if this one panics.
struct WakeOnPanic<'a, 'b>(&'a [[OrderedWriter<'b>; 2]]);

impl Drop for WakeOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.as_flattened().iter().for_each(OrderedWriter::fail);
        }
    }
}

/// Both directions, in the order in which a thread writes their segments.
const DIRECTIONS: [Direction; 2] = [Direction::Out, Direction::In];

/// A unit of work: the segments of a predicate in both directions, or in one.
struct PredicateTask {
    /// Position of the predicate in the order in which predicates are written.
    turn: usize,
    predicate: usize,
    directions: &'static [Direction],
}

/// Memory and threads of the phase, and the function that reports its progress.
pub(super) struct PhaseResources<'a> {
    /// Bytes available in addition to the edges themselves.
    pub memory: u64,
    pub threads: usize,
    /// Receives the progress in thousandths.
    pub tick: &'a (dyn Fn(u64) + Sync),
}

/// Writes the segment files of one kind of edges: two for each file of `split`, which contain the keys assigned to it.
pub(super) fn write<T: StoredEdge>(
    edges: &PartitionedEdges<T>,
    predicates: usize,
    id_of_lex: &[u32],
    paths: &[[PathBuf; 2]],
    split: &impl KeySplit,
    resources: &PhaseResources<'_>,
) -> Result<()> {
    let PhaseResources {
        memory, threads, ..
    } = *resources;
    let packing = T::packing(edges, predicates, id_of_lex)?;
    let packing = packing.as_ref();
    let tasks = tasks(edges, predicates, threads);
    let ahead = memory / 4 / paths.len().max(1) as u64;
    let mut files = Vec::with_capacity(paths.len());
    for [out, into] in paths {
        files.push([
            OrderedWriter::create(out, predicates as u32, packing, ahead)?,
            OrderedWriter::create(into, predicates as u32, packing, ahead)?,
        ]);
    }
    let writer = SegmentsWriter {
        edges,
        id_of_lex,
        split,
        packing,
        files,
        sort_bytes: memory / 2 / threads.max(1) as u64,
        total: edges.total().max(1),
        done: AtomicU64::new(0),
        tick: resources.tick,
    };
    let next = AtomicUsize::new(0);
    on_threads(threads.min(tasks.len().max(1)), |_| {
        let mut scratch = Vec::new();
        let _wake = WakeOnPanic(&writer.files);
        loop {
            writer
                .ordered_writers()
                .for_each(OrderedWriter::wait_for_space);
            let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return Ok(());
            };
            let written = writer.write(task, &mut scratch);
            if written.is_err() {
                writer.ordered_writers().for_each(OrderedWriter::fail);
                return written;
            }
        }
    })?;
    let mut files = writer.files.into_iter().flatten();
    files.try_for_each(OrderedWriter::finish)
}

/// The tasks in the order in which threads take them.
fn tasks<T: StoredEdge>(
    edges: &PartitionedEdges<T>,
    predicates: usize,
    threads: usize,
) -> Vec<PredicateTask> {
    let total = edges.total();
    // The largest predicates first; small ones then keep all threads busy at the end.
    let mut order: Vec<usize> = (0..predicates).filter(|&p| edges.count(p) > 0).collect();
    order.sort_by_key(|&p| std::cmp::Reverse(edges.count(p)));
    let tasks_of = |(turn, predicate): (usize, usize)| {
        let is_split = threads > 1 && edges.count(predicate) > total / threads as u64;
        let directions = DIRECTIONS.chunks(if is_split { 1 } else { 2 });
        directions.map(move |directions| PredicateTask {
            turn,
            predicate,
            directions,
        })
    };
    order.into_iter().enumerate().flat_map(tasks_of).collect()
}

/// State that the threads of the phase share.
struct SegmentsWriter<'a, T, S> {
    edges: &'a PartitionedEdges<T>,
    id_of_lex: &'a [u32],
    split: &'a S,
    packing: Option<&'a Packing>,
    files: Vec<[OrderedWriter<'a>; 2]>,
    /// Bytes of memory in which a thread may sort a predicate.
    sort_bytes: u64,
    /// Number of edges.
    total: u64,
    /// Edges that were sorted plus edges that were written, each in two directions.
    done: AtomicU64,
    tick: &'a (dyn Fn(u64) + Sync),
}

impl<T: StoredEdge, S: KeySplit> SegmentsWriter<'_, T, S> {
    fn ordered_writers(&self) -> impl Iterator<Item = &OrderedWriter<'_>> {
        self.files.iter().flatten()
    }

    /// Adds the predicate's edges to `done`, as sorted or as written in one direction.
    fn advance(&self, p: usize) {
        let now = self.done.fetch_add(self.edges.count(p), Ordering::Relaxed) + self.edges.count(p);
        (self.tick)(1000 * now / (4 * self.total));
    }

    /// Sorts a predicate's edges, and queues its segments for writing.
    fn write(&self, task: &PredicateTask, scratch: &mut Vec<T>) -> Result<()> {
        let p = task.predicate;
        if !self.edges.in_memory() && self.edges.count(p) * BYTES_AN_EDGE > self.sort_bytes {
            return self.write_in_ranges(task, scratch);
        }
        let times = DIRECTIONS.len() / task.directions.len();
        let mut list = self.edges.take(p, times)?;
        for e in &mut list {
            *e = e.with_ids(self.id_of_lex);
        }
        let mut words = T::words(task.directions[0]);
        for &direction in task.directions {
            sort::sort(&mut list, scratch, words);
            self.advance(p);
            words = T::OUT_TO_IN;
            let mut parts = builders::<T>(self.files.len(), list.len());
            push_all(&list, direction, self.split, &mut parts);
            self.enqueue(task, direction, parts)?;
            self.advance(p);
        }
        Ok(())
    }

    /// Queues a predicate's segment for each file of the split, including empty ones.
    fn enqueue(
        &self,
        task: &PredicateTask,
        direction: Direction,
        parts: Vec<SegmentBuilder>,
    ) -> Result<()> {
        let predicate = task.predicate as u32;
        for (both, part) in self.files.iter().zip(parts) {
            let segment = finish(part, self.packing)?;
            both[direction as usize].enqueue(task.turn, predicate, segment)?;
        }
        Ok(())
    }

    /// Writes the segments of a predicate that does not fit in memory: one range of keys after the other; for each, all
    /// edges of the predicate are read.
    fn write_in_ranges(&self, task: &PredicateTask, scratch: &mut Vec<T>) -> Result<()> {
        for &direction in task.directions {
            let mut parts = builders::<T>(self.files.len(), 0);
            self.sort_ranges(task.predicate, direction, &mut parts, scratch)?;
            self.enqueue(task, direction, parts)?;
            self.advance(task.predicate);
            self.advance(task.predicate);
        }
        Ok(())
    }

    fn sort_ranges(
        &self,
        p: usize,
        direction: Direction,
        to_parts: &mut [SegmentBuilder],
        scratch: &mut Vec<T>,
    ) -> Result<()> {
        /// Bucket size of a histogram of keys, as log2 of ids.
        const SHIFT: u32 = 12;
        let Self {
            edges, id_of_lex, ..
        } = *self;
        let mut histogram = vec![0u64; (id_of_lex.len() >> SHIFT) + 2];
        edges.for_each(p, |part| {
            for &e in part {
                histogram[(e.with_ids(id_of_lex).key(direction) >> SHIFT) as usize] += 1;
            }
        })?;
        let room = (self.sort_bytes / BYTES_AN_EDGE).max(1 << 16);
        let mut from = 0;
        while from < histogram.len() {
            let mut sum = histogram[from];
            let mut to = from + 1;
            while to < histogram.len() && sum + histogram[to] <= room {
                sum += histogram[to];
                to += 1;
            }
            if sum > 0 {
                let mut list: Vec<T> = Vec::with_capacity(sum as usize);
                let in_range = |e: &T| (from..to).contains(&((e.key(direction) >> SHIFT) as usize));
                edges.for_each(p, |part| {
                    list.extend(part.iter().map(|e| e.with_ids(id_of_lex)).filter(in_range));
                })?;
                sort::sort(&mut list, scratch, T::words(direction));
                push_all(&list, direction, self.split, to_parts);
                // The largest predicates come first, so a load that cannot succeed fails early.
                to_parts.iter().try_for_each(SegmentBuilder::fits)?;
            }
            from = to;
        }
        Ok(())
    }
}

fn finish(b: SegmentBuilder, packing: Option<&Packing>) -> Result<SegmentArrays> {
    match packing {
        Some(p) => b.finish_named(p),
        None => b.finish(),
    }
}
