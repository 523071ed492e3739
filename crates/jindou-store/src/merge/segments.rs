//! Merged segments: the base and the patch of each predicate are read in order, and the result is written at once.
//! Memory holds only the keys of a predicate, not its edges.

use super::output::{Out, Pace};
use crate::base::Base;
use crate::directory::{ListArrays, MergedFileInfo, SegmentFileWriter};
use crate::shard::ShardInfo;
use crate::snapshot::Snapshot;
use jindou_graph::segment::{
    BitWriter, EdgeView, GraphScope, NamedSegment, Packing, Patch, Segment, build_folded,
    fold_behind, pack_offsets,
};
use jindou_model::{Direction, FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX};
use std::borrow::Cow;
use std::io::{Error, ErrorKind, Result};

/// Number of keys that are enumerated at a time.
const PART: u32 = 1 << 16;
/// Number of neighbours that are collected before they are written.
const ROW_BUFFER: usize = 1 << 14;
/// Bytes in memory for each key of the predicate being written: the key, its list's end, and its part of the finder.
pub(super) const BYTES_A_KEY: u64 = 16;

/// Inputs of a file of merged segments.
pub(super) struct MergeJob<'a> {
    pub snapshot: &'a Snapshot,
    /// The base that is merged: the snapshot's, or that of one of its shards.
    pub old: &'a Base,
    /// Data about the shard in the new base; `None` for an unsharded store.
    pub shard: Option<&'a ShardInfo>,
    /// Predicates to write, ascending.
    pub held: &'a [u32],
    pub direction: Direction,
    /// The packing for edges of named graphs; `None` for edges of the default graph.
    pub packing: Option<&'a Packing>,
}

/// The range of keys of the new segments.
#[derive(Clone, Copy)]
enum MergedKeys {
    /// Keys are ids. Finders fold ids of the tail: this is the folded id of the first one.
    Folded(u32),
    /// Keys are a shard's dense keys, all below this number.
    Below(u32),
}

impl MergedKeys {
    fn has(self, key: u32) -> bool {
        key != NO_VERTEX
            && match self {
                Self::Folded(fold) => (key < fold || key >= FIRST_TAIL_ID) && key < FIRST_QUERY_ID,
                Self::Below(end) => key < end,
            }
    }

    fn fold(self) -> Option<u32> {
        match self {
            Self::Folded(fold) => Some(fold),
            Self::Below(_) => None,
        }
    }
}

fn damaged() -> Error {
    Error::new(
        ErrorKind::InvalidData,
        "a segment is not in order or holds unknown ids; run `jindou check` on the store",
    )
}

impl MergeJob<'_> {
    /// Writes the file of merged segments.
    pub fn write<'p>(
        &self,
        out: Out<'p>,
        pace: &Pace<'_>,
        done: &(dyn Fn(u64) + Sync),
    ) -> Result<Out<'p>> {
        let predicates = self.snapshot.predicate_count();
        let fold = fold_behind(self.old.vertices());
        let merged = MergedFileInfo {
            held: self.held,
            fold,
        };
        let keys = match self.shard {
            None => MergedKeys::Folded(fold),
            Some(shard) => MergedKeys::Below(shard.blocks.keys_end(shard.number)),
        };
        let mut file = SegmentFileWriter::merged(out, predicates, self.packing, Some(&merged))?;
        for &p in self.held {
            pace.cancel.check().map_err(Error::other)?;
            let (default, named) = self.old.segments(p, self.direction);
            let patch = self.patch(p);
            let view = EdgeView::new(default, named, patch.as_deref());
            let rows = SegmentOutput::begin(&mut file, keys)?;
            let edges = match self.packing {
                None => rows.default(&view, p)?,
                Some(packing) => rows.named(&view, p, packing)?,
            };
            done(edges);
        }
        file.finish()
    }

    /// The edits of a predicate. For a shard, only those of the vertices that it owns, under its own keys.
    fn patch(&self, p: u32) -> Option<Cow<'_, Patch>> {
        let all = self.snapshot.patch(p, self.direction)?;
        Some(match self.shard {
            None => Cow::Borrowed(all),
            Some(shard) => Cow::Owned(all.with_keys(|v| shard.key(v).map(|key| key.0))),
        })
    }
}

/// A segment while it is being written.
struct SegmentOutput<'f, 'p> {
    file: &'f mut SegmentFileWriter<Out<'p>>,
    at: u64,
    allowed: MergedKeys,
    keys: Vec<u32>,
    /// End of each key's list.
    ends: Vec<u32>,
    edges: u64,
    max_degree: u32,
}

impl<'f, 'p> SegmentOutput<'f, 'p> {
    fn begin(file: &'f mut SegmentFileWriter<Out<'p>>, allowed: MergedKeys) -> Result<Self> {
        let at = file.begin_array()?;
        Ok(Self {
            file,
            at,
            allowed,
            keys: Vec::new(),
            ends: Vec::new(),
            edges: 0,
            max_degree: 0,
        })
    }

    /// Adds a key whose list was written.
    fn key(&mut self, key: u32, degree: usize) -> Result<()> {
        if !self.allowed.has(key) || self.keys.last().is_some_and(|&last| last >= key) {
            return Err(damaged());
        }
        self.edges += degree as u64;
        let end = u32::try_from(self.edges).map_err(|_| {
            let most = "a predicate has 2^32 edges or more, too many for a segment";
            Error::new(ErrorKind::InvalidInput, most)
        })?;
        self.keys.push(key);
        self.ends.push(end);
        self.max_degree = self.max_degree.max(degree as u32);
        Ok(())
    }

    fn default(mut self, view: &EdgeView<'_>, p: u32) -> Result<u64> {
        let mut buffer: Vec<u32> = Vec::with_capacity(ROW_BUFFER);
        default_lists(view, &mut |key, list| {
            if list.is_empty() {
                return Ok(());
            }
            self.key(key, list.len())?;
            if buffer.len() + list.len() > ROW_BUFFER {
                self.file.part(&buffer)?;
                buffer.clear();
            }
            if list.len() > ROW_BUFFER {
                self.file.part(list)?;
            } else {
                buffer.extend_from_slice(list);
            }
            Ok(())
        })?;
        self.file.part(&buffer)?;
        let offsets = self.offsets();
        let offsets_at = match &offsets {
            Some(o) => self.file.array(o)?,
            None => 0,
        };
        self.end(p, offsets_at, 0)
    }

    fn named(mut self, view: &EdgeView<'_>, p: u32, packing: &Packing) -> Result<u64> {
        let (v, g) = (packing.vertex_bits(), packing.graph_bits());
        let mut entries = BitWriter::default();
        named_lists(view, &mut |key, list| {
            if list.is_empty() {
                return Ok(());
            }
            self.key(key, list.len())?;
            for &(n, graph) in list {
                let number = packing.number(graph).ok_or_else(damaged)?;
                if n.checked_shr(v).unwrap_or(0) != 0 {
                    return Err(damaged());
                }
                entries.push(n, v);
                entries.push(number, g);
            }
            // The last word is kept, since more bits may be added to it.
            if entries.words.len() > ROW_BUFFER
                && let Some(last) = entries.words.pop()
            {
                self.file.part(&entries.words)?;
                entries.words.clear();
                entries.words.push(last);
            }
            Ok(())
        })?;
        entries.words.push(0);
        self.file.part(&entries.words)?;
        let (mut offsets_at, mut fields_at) = (0, 0);
        if let Some(offsets) = self.offsets() {
            let (blocks, fields) = pack_offsets(&offsets);
            offsets_at = self.file.array(&blocks)?;
            fields_at = self.file.array(&fields)?;
        }
        self.end(p, offsets_at, fields_at)
    }

    /// Offsets of all keys, and the end; `None` if every key has one edge.
    fn offsets(&mut self) -> Option<Vec<u32>> {
        let mut ends = std::mem::take(&mut self.ends);
        if self.edges == self.keys.len() as u64 {
            return None;
        }
        ends.insert(0, 0);
        Some(ends)
    }

    fn end(mut self, p: u32, offsets_at: u64, fields_at: u64) -> Result<u64> {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return Ok(0);
        }
        let count = keys.len() as u32;
        let finder = self.file.finder(&build_folded(keys, self.allowed.fold()))?;
        let lists = ListArrays {
            edges: self.edges,
            max_degree: self.max_degree,
            offsets_at,
            fields_at,
            neighbours_at: self.at,
        };
        self.file.record(p, count, finder, &lists);
        Ok(self.edges)
    }
}

/// Calls `f` with each key of a segment and its number, and with keys that only the patch may have, in ascending order.
fn each_key(
    count: u32,
    keys_into: impl Fn(u32, u32, &mut Vec<u32>),
    touched: Vec<u32>,
    f: &mut dyn FnMut(u32, Option<u32>) -> Result<()>,
) -> Result<()> {
    let mut touched = touched.into_iter().peekable();
    let mut keys = Vec::new();
    for from in (0..count).step_by(PART as usize) {
        let to = from.saturating_add(PART).min(count);
        keys.clear();
        keys_into(from, to, &mut keys);
        for (k, &key) in (from..).zip(&keys) {
            while let Some(t) = touched.next_if(|&t| t < key) {
                f(t, None)?;
            }
            let number = touched.next_if_eq(&key).map_or(Some(k), |_| None);
            f(key, number)?;
        }
    }
    touched.try_for_each(|t| f(t, None))
}

type OnDefault<'f> = &'f mut dyn FnMut(u32, &[u32]) -> Result<()>;

/// Calls `f` with every key of the default graph and its neighbours, in ascending order; some keys have no neighbours.
fn default_lists(view: &EdgeView<'_>, f: OnDefault<'_>) -> Result<()> {
    let segment: Segment<'_> = view.default;
    let patch = view.patch.filter(|p| p.has_default());
    let touched = patch.map(|p| p.keys()).unwrap_or_default();
    let mut scratch = Vec::new();
    let keys_into = |from, to, out: &mut Vec<u32>| segment.keys_into(from, to, out);
    each_key(
        segment.key_count,
        keys_into,
        touched,
        &mut |key, number| match number {
            Some(k) => f(key, segment.list(k)),
            None => f(key, view.read(key, GraphScope::Default, &mut scratch)),
        },
    )
}

type OnNamed<'f> = &'f mut dyn FnMut(u32, &[(u32, u32)]) -> Result<()>;

/// Calls `f` with every key of named graphs and its (neighbour, graph) pairs, in ascending order.
fn named_lists(view: &EdgeView<'_>, f: OnNamed<'_>) -> Result<()> {
    let segment: NamedSegment<'_> = view.named;
    let patch = view.patch.filter(|p| p.has_named());
    let touched = patch.map(|p| p.keys()).unwrap_or_default();
    let mut list = Vec::new();
    let keys_into = |from, to, out: &mut Vec<u32>| segment.keys_into(from, to, out);
    each_key(segment.key_count, keys_into, touched, &mut |key, number| {
        list.clear();
        match number {
            Some(k) => list.extend(segment.list(k)),
            None => view.for_each(key, GraphScope::AnyNamed, |n, g| list.push((n, g))),
        }
        f(key, &list)
    })
}
