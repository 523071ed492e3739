//! A file of segments: section 1 has the arrays of all segments one after the other (small segments share pages and
//! blocks), section 2 one fixed-size record per predicate.

use super::{Bytes, SectionFile, SectionWriter};
use bytemuck::{Pod, Zeroable};
use jindou_graph::segment::{
    FinderArrays, FinderKind, Interval, KeyFinder, NamedSegment, Packing, SLACK, Segment,
    SegmentArrays,
};
use jindou_model::mapped::contradicts;
use jindou_model::{Error, Invariant, Result};
use std::io::{Seek, Write};

const MAGIC: [u8; 8] = *b"JDSEGMT\n";
const ARRAYS: u32 = 1;
const RECORDS: u32 = 2;
/// Section of files of named graphs: number of bits of a vertex, and of a graph's number.
const WIDTHS: u32 = 3;
/// Section of files of named graphs: ids of the graphs, ascending.
const GRAPHS: u32 = 4;
/// Section of merged files: the predicates that the file contains, ascending. Their records here replace those in older
/// files.
const HELD: u32 = 5;
/// Section of merged files: the folded id of the tail's first id, for folded finders.
const FOLD: u32 = 6;

/// Locations of one segment's arrays, as byte offsets from the start of the file. 0 means "no such array".
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentRecord {
    /// Number of edges.
    pub edges: u64,
    /// Start of the intervals (12 B each), rank blocks (16 B) or bucket starts (4 B).
    pub finder_at: u64,
    /// Start of the sorted keys (4 B each); only for directories.
    pub keys_at: u64,
    /// Start of the `keys + 1` offsets (4 B each), or, in named segments, of blocks of 64 keys (8 B). 0 if every key
    /// has one neighbour.
    pub offsets_at: u64,
    /// Start of the neighbours (4 B each); in named segments neighbours and numbers of graphs, packed.
    pub neighbours_at: u64,
    /// Start of the fields of the blocks at `offsets_at`; only in named segments.
    pub fields_at: u64,
    /// Number of keys.
    pub keys: u32,
    /// Number of entries at `finder_at`.
    pub finder_len: u32,
    /// The first key, or the id of bit 0.
    pub first: u32,
    /// log2 of the number of ids in a bucket; only for directories.
    pub shift: u32,
    /// A [`FinderKind`] as a number.
    pub kind: u32,
    /// Length of the longest neighbour list.
    pub max_degree: u32,
}

impl SegmentRecord {
    /// Position in the file of the segment's first array; `None` if it has no arrays.
    #[must_use]
    pub fn first_byte(&self) -> Option<u64> {
        let arrays = [
            self.finder_at,
            self.keys_at,
            self.offsets_at,
            self.neighbours_at,
            self.fields_at,
        ];
        arrays.into_iter().filter(|&at| at > 0).min()
    }
}

/// Counts, sizes and shape of a segment, for `info`.
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo {
    /// Number of edges.
    pub edges: u64,
    /// Number of keys.
    pub keys: u32,
    /// Kind of finder for the keys.
    pub kind: FinderKind,
    /// True if every key has one neighbour, so that there are no offsets.
    pub degree_one: bool,
    /// Length of the longest neighbour list.
    pub max_degree: u32,
    /// Bytes of finder and keys.
    pub finder_bytes: u64,
    /// Bytes of offsets, neighbours and numbers of graphs.
    pub edge_bytes: u64,
}

impl SegmentInfo {
    /// Information about an absent segment.
    pub const EMPTY: Self = Self {
        edges: 0,
        keys: 0,
        kind: FinderKind::Empty,
        degree_one: false,
        max_degree: 0,
        finder_bytes: 0,
        edge_bytes: 0,
    };
}

/// An opened file of segments.
#[derive(Debug)]
pub struct SegmentFile {
    file: SectionFile,
    /// Location of the records, kept here since each lookup of a predicate reads one.
    records: (u64, u64),
    /// Number of bits of a vertex and of a graph's number; `None` in files of the default graph and in damaged ones.
    widths: Option<[u32; 2]>,
}

impl SegmentFile {
    /// Checks the header; arrays are checked when they are used.
    pub fn open(bytes: Bytes, name: &str) -> Result<Self> {
        let file = SectionFile::open(bytes, &MAGIC, name)?;
        let size = size_of::<SegmentRecord>() as u64;
        let records = file.place(RECORDS).filter(|r| r.1.is_multiple_of(size));
        let (at, len) = records.ok_or_else(|| {
            Error::damaged(
                name,
                "damaged (it has no records); run `jindou check`, then load the store again",
            )
        })?;
        let widths = file.array::<u32>(WIDTHS).first_chunk::<2>().copied();
        Ok(Self {
            records: (at, len / size),
            widths: widths.filter(|w| w.iter().all(|&w| w <= u32::BITS)),
            file,
        })
    }

    /// As [`Self::open`], for a file of named graphs.
    pub fn open_named(bytes: Bytes, name: &str) -> Result<Self> {
        let file = Self::open(bytes, name)?;
        if file.widths.is_none() && file.records().iter().any(|r| r.edges > 0) {
            return Err(Error::damaged(
                name,
                "damaged (its packing is not recorded); run `jindou check`, then load the store again",
            ));
        }
        Ok(file)
    }

    /// Checks that the file still had its original content whenever it was read.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) with the file, once it has shrunk or could not be read.
    #[inline]
    pub fn check_file(&self) -> Result<()> {
        self.file.check_file()
    }

    /// Returns true if [`Self::check_file`] succeeds. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.file.is_whole()
    }

    /// The records, one per predicate.
    #[must_use]
    #[inline]
    pub fn records(&self) -> &[SegmentRecord] {
        let (at, n) = self.records;
        let records = self.file.bytes().array(at, n);
        records.invariant("sections are inside the file, and aligned")
    }

    /// The segment of a predicate. Empty if the file does not have the predicate or is one of named graphs; empty if it
    /// is damaged, which marks the file. O(1).
    #[must_use]
    pub fn segment(&self, p: u32) -> Segment<'_> {
        let Some(r) = self.records().get(p as usize) else {
            return Segment::EMPTY;
        };
        match self.view(r) {
            Some(segment) => segment,
            None => {
                mark_damaged(r);
                Segment::EMPTY
            }
        }
    }

    /// The segment of a predicate in a file of named graphs. Empty if the file does not have the predicate; empty if it
    /// is damaged, which marks the file. O(1).
    #[inline]
    #[must_use]
    pub fn named(&self, p: u32) -> NamedSegment<'_> {
        match self.records().get(p as usize) {
            // Most predicates have no edges in named graphs.
            Some(r) if r.kind != FinderKind::Empty as u32 => match self.named_view(r) {
                Some(segment) => segment,
                None => {
                    mark_damaged(r);
                    NamedSegment::EMPTY
                }
            },
            _ => NamedSegment::EMPTY,
        }
    }

    /// The graphs of a file of named graphs, ascending.
    #[must_use]
    pub fn graph_ids(&self) -> &[u32] {
        self.file.array(GRAPHS)
    }

    /// The predicates that a merged file contains, ascending; empty for the file of a load, which contains all of its
    /// own.
    #[must_use]
    pub fn held(&self) -> &[u32] {
        self.file.array(HELD)
    }

    fn fold(&self) -> Option<u32> {
        self.file.array::<u32>(FOLD).first().copied()
    }

    /// The range of the file with arrays of segments; the other bytes are tables.
    #[must_use]
    pub fn arrays(&self) -> std::ops::Range<u64> {
        let (at, len) = self.file.place(ARRAYS).unwrap_or_default();
        at..at + len
    }

    /// Path of the file, if it is mapped.
    #[must_use]
    pub fn path(&self) -> Option<&std::path::Path> {
        self.file.bytes().path()
    }

    /// The bytes of the file with all segments, for devices and transports that register the memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.file.bytes().as_slice()
    }

    fn finder(&self, r: &SegmentRecord) -> Option<KeyFinder<'_>> {
        let b = self.file.bytes();
        let n = u64::from(r.finder_len);
        Some(match FinderKind::from_byte(u8::try_from(r.kind).ok()?)? {
            FinderKind::Empty => KeyFinder::Empty,
            FinderKind::Intervals => {
                let runs: &[Interval] = b.array(r.finder_at, n)?;
                // The runs are checked, since a damaged one could claim billions of keys, and a scan would visit all of
                // them.
                let mut keys = 0;
                for run in runs {
                    if run.base != keys || run.end <= run.start {
                        return None;
                    }
                    keys = keys.checked_add(run.end - run.start)?;
                }
                if keys != r.keys {
                    return None;
                }
                KeyFinder::Intervals(runs)
            }
            FinderKind::Bitmap => KeyFinder::Bitmap {
                first: r.first,
                blocks: b.array(r.finder_at, n)?,
            },
            FinderKind::Directory => KeyFinder::Directory {
                first: r.first,
                shift: r.shift.min(31),
                buckets: b.array(r.finder_at, n)?,
                keys: b.array(r.keys_at, u64::from(r.keys))?,
            },
            FinderKind::FoldedBitmap => KeyFinder::FoldedBitmap {
                fold: self.fold()?,
                first: r.first,
                blocks: b.array(r.finder_at, n)?,
            },
            FinderKind::FoldedDirectory => KeyFinder::FoldedDirectory {
                fold: self.fold()?,
                first: r.first,
                shift: r.shift.min(31),
                buckets: b.array(r.finder_at, n)?,
                keys: b.array(r.keys_at, u64::from(r.keys))?,
            },
            // A kind of finder that only later versions write.
            _ => return None,
        })
    }

    fn view(&self, r: &SegmentRecord) -> Option<Segment<'_>> {
        let b = self.file.bytes();
        let finder = self.finder(r)?;
        if matches!(finder, KeyFinder::Empty) || self.widths.is_some() {
            return Some(Segment::EMPTY);
        }
        let offsets = match r.offsets_at {
            // Segments without offsets have one edge per key. With more keys, readers would allocate memory for them.
            0 if u64::from(r.keys) != r.edges => return None,
            0 => None,
            at => Some(b.array(at, u64::from(r.keys) + 1)?),
        };
        let neighbours = b.array(r.neighbours_at, r.edges)?;
        Some(Segment {
            finder,
            key_count: r.keys,
            offsets,
            neighbours,
        })
    }

    fn named_view(&self, r: &SegmentRecord) -> Option<NamedSegment<'_>> {
        let b = self.file.bytes();
        let finder = self.finder(r)?;
        if matches!(finder, KeyFinder::Empty) {
            return Some(NamedSegment::EMPTY);
        }
        let [vertex_bits, graph_bits] = self.widths?;
        let (blocks, fields): (&[[u32; 2]], &[u8]) = match r.offsets_at {
            0 if u64::from(r.keys) != r.edges => return None,
            0 => (&[], &[]),
            at => {
                let blocks: &[[u32; 2]] = b.array(at, NamedSegment::block_count(r.keys))?;
                let words = u64::from(blocks.last()?[1]);
                (blocks, b.array(r.fields_at, words * 8 + SLACK as u64)?)
            }
        };
        let bytes = NamedSegment::entry_bytes(r.edges, vertex_bits, graph_bits)?;
        Some(NamedSegment {
            finder,
            key_count: r.keys,
            edges: r.edges,
            blocks,
            fields,
            entries: b.array(r.neighbours_at, bytes)?,
            vertex_bits,
            graph_bits,
            graphs: self.graph_ids(),
        })
    }

    /// Shape and size of every segment, by predicate.
    pub fn infos(&self) -> impl Iterator<Item = SegmentInfo> {
        let widths = self.widths;
        self.records().iter().map(move |r| {
            let kind = FinderKind::from_byte(r.kind as u8).unwrap_or(FinderKind::Empty);
            let entry = kind.entry_bytes();
            let keys = u64::from(r.keys);
            SegmentInfo {
                edges: r.edges,
                keys: r.keys,
                kind,
                degree_one: r.offsets_at == 0,
                max_degree: r.max_degree,
                finder_bytes: u64::from(r.finder_len) * entry
                    + if r.keys_at == 0 { 0 } else { keys * 4 },
                edge_bytes: match widths {
                    None => r
                        .edges
                        .saturating_mul(4)
                        .saturating_add(if r.offsets_at == 0 { 0 } else { (keys + 1) * 4 }),
                    Some(_) => {
                        let s = self.named_view(r).unwrap_or(NamedSegment::EMPTY);
                        let parts = [s.entries.len(), s.fields.len(), size_of_val(s.blocks)];
                        parts.iter().sum::<usize>() as u64
                    }
                },
            }
        })
    }
}

/// Marks the file that contains a record as damaged.
#[cold]
fn mark_damaged(record: &SegmentRecord) {
    contradicts(std::slice::from_ref(record));
}

/// Data about itself that a merged file contains in addition to its segments.
#[derive(Clone, Copy, Debug)]
pub struct MergedFileInfo<'a> {
    /// The predicates that the file contains, ascending, including those without edges.
    pub held: &'a [u32],
    /// The folded id of the tail's first id, for folded finders.
    pub fold: u32,
}

/// Writes a file of segments; segments may come in any order of predicates.
pub struct SegmentFileWriter<W: Write + Seek> {
    out: SectionWriter<W>,
    records: Vec<SegmentRecord>,
}

/// A segment's arrays except for its finder and the content of its lists.
pub(crate) struct ListArrays {
    pub edges: u64,
    pub max_degree: u32,
    pub offsets_at: u64,
    pub fields_at: u64,
    pub neighbours_at: u64,
}

impl<W: Write + Seek> SegmentFileWriter<W> {
    /// Starts a file for `predicates` segments, which are empty until [`Self::append`]. For a file of named graphs,
    /// `packing` must be the one with which its segments are made.
    pub fn new(out: W, predicates: u32, packing: Option<&Packing>) -> std::io::Result<Self> {
        Self::merged(out, predicates, packing, None)
    }

    /// As [`Self::new`], for a merged file.
    pub fn merged(
        out: W,
        predicates: u32,
        packing: Option<&Packing>,
        merged: Option<&MergedFileInfo<'_>>,
    ) -> std::io::Result<Self> {
        let sections = if merged.is_some() { 6 } else { 4 };
        let mut out = SectionWriter::new(out, MAGIC, sections)?;
        if let Some(p) = packing {
            out.section(WIDTHS, &[p.vertex_bits(), p.graph_bits()])?;
            out.section(GRAPHS, &p.graph_ids())?;
        }
        if let Some(m) = merged {
            out.section(HELD, m.held)?;
            out.section(FOLD, &[m.fold])?;
        }
        out.begin(ARRAYS)?;
        Ok(Self {
            out,
            records: vec![SegmentRecord::default(); predicates as usize],
        })
    }

    /// Writes one segment's arrays.
    pub fn append(&mut self, p: u32, s: &SegmentArrays) -> std::io::Result<()> {
        if s.key_count == 0 {
            return Ok(());
        }
        let mut lists = ListArrays {
            edges: s.edges(),
            max_degree: s.max_degree,
            offsets_at: 0,
            fields_at: 0,
            neighbours_at: 0,
        };
        let finder = self.finder(&s.finder)?;
        if !s.offsets.is_empty() {
            lists.offsets_at = self.array(&s.offsets)?;
        }
        if let Some(p) = &s.packed {
            if !p.blocks.is_empty() {
                lists.offsets_at = self.array(&p.blocks)?;
                lists.fields_at = self.array(&p.fields)?;
            }
            lists.neighbours_at = self.array(&p.entries)?;
        } else {
            lists.neighbours_at = self.array(&s.neighbours)?;
        }
        self.record(p, s.key_count, finder, &lists);
        Ok(())
    }

    /// Begins an array of unknown length; [`Self::part`] appends to it.
    pub(crate) fn begin_array(&mut self) -> std::io::Result<u64> {
        self.out.pad(64)
    }

    pub(crate) fn part<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> std::io::Result<()> {
        self.out.write(bytemuck::cast_slice(values)).map(drop)
    }

    /// Writes the arrays of a key finder; returns a record with their locations.
    pub(crate) fn finder(&mut self, f: &FinderArrays) -> std::io::Result<SegmentRecord> {
        let mut r = SegmentRecord {
            first: f.first,
            shift: f.shift,
            kind: u32::from(f.kind),
            ..SegmentRecord::default()
        };
        (r.finder_at, r.finder_len) = match FinderKind::from_byte(f.kind) {
            Some(FinderKind::Intervals) => (self.array(&f.intervals)?, f.intervals.len() as u32),
            Some(FinderKind::Bitmap | FinderKind::FoldedBitmap) => {
                (self.array(&f.blocks)?, f.blocks.len() as u32)
            }
            Some(FinderKind::Directory | FinderKind::FoldedDirectory) => {
                r.keys_at = self.array(&f.keys)?;
                (self.array(&f.buckets)?, f.buckets.len() as u32)
            }
            Some(FinderKind::Empty) | None => (0, 0),
            Some(kind) => {
                let what = format!("no layout for a finder of kind {}", kind.name());
                return Err(std::io::Error::other(what));
            }
        };
        Ok(r)
    }

    /// Records the locations of a segment's arrays.
    pub(crate) fn record(&mut self, p: u32, keys: u32, finder: SegmentRecord, lists: &ListArrays) {
        if let Some(slot) = self.records.get_mut(p as usize) {
            *slot = SegmentRecord {
                edges: lists.edges,
                offsets_at: lists.offsets_at,
                fields_at: lists.fields_at,
                neighbours_at: lists.neighbours_at,
                max_degree: lists.max_degree,
                keys,
                ..finder
            };
        }
    }

    pub(crate) fn array<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> std::io::Result<u64> {
        // An array of several cache lines starts at a line; smaller ones are packed.
        self.out
            .pad(if size_of_val(values) >= 256 { 64 } else { 8 })?;
        self.out.write(bytemuck::cast_slice(values))
    }

    /// Writes the records; returns the file.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.out.end();
        self.out.section(RECORDS, &self.records)?;
        self.out.finish()
    }
}
