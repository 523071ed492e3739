//! Named graphs' segments: the same structure as segments of the default graph, with fields of as few bits as possible.
//!
//! Readers of named graphs merge lists and test the graph of each edge, so they do not need arrays that they can
//! borrow, and can unpack edges one by one. Packing saves more than half of the bytes. Segments of the default graph
//! are not packed, since loops borrow their arrays.
//!
//! ```text
//! edges     entry i at bit i × (v + g): neighbour (v bits), number of its graph (g bits)
//! graphs    ids by number, ascending; one table per file
//! offsets   blocks of 64 keys { base u32, place u32 }, and one more; key 64 b + j begins at edge
//!           base + j + (field j of the words from `place` on), fields as wide as the block has words
//! ```
//!
//! Most subjects have few edges of a predicate. A field stores how many edges earlier keys of the block have beyond one
//! per key, which is a small number: a key needs about 6 bits instead of 32. A block with a vertex of a million edges
//! has wider fields, but other blocks do not.

use super::finder::{self, FinderArrays, KeyFinder, NO_KEY};
use jindou_model::mapped::contradicts;
use std::sync::Arc;

/// Number of keys in a block of offsets, whose fields are relative to the same base.
pub(crate) const BLOCK_KEYS: u32 = 64;

/// Number of bytes after the last entry, so that every field can be read as part of an 8-byte word.
pub const SLACK: usize = 8;

/// Number of bits needed for the numbers up to `most`.
pub(crate) fn bits_for(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// Reads the field of `width` (at most 32) bits at bit `at`; 0 if it is out of range.
#[inline(always)]
fn field(bytes: &[u8], at: u64, width: u32) -> u32 {
    let byte = (at / 8) as usize;
    match bytes.get(byte..).and_then(|b| b.first_chunk::<8>()) {
        Some(b) => (u64::from_le_bytes(*b) >> (at % 8) & ((1u64 << (width & 63)) - 1)) as u32,
        None => 0,
    }
}

/// Appends bit fields to an array of words.
#[derive(Debug, Default, Clone)]
pub struct BitWriter {
    /// The words so far.
    pub words: Vec<u64>,
    used: u32,
}

impl BitWriter {
    /// Appends the low `width` (at most 32) bits of a value. Its other bits must be 0.
    #[inline]
    pub fn push(&mut self, value: u32, width: u32) {
        if width == 0 {
            return;
        }
        let value = u64::from(value);
        if self.used == 0 {
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= value << self.used;
        }
        let end = self.used + width;
        if end > 64 {
            self.words.push(value >> (64 - self.used));
        }
        self.used = end % 64;
    }

    /// Starts the next field at a new word.
    pub fn align(&mut self) {
        self.used = 0;
    }
}

/// A block of 64 keys: the number of its first key's first edge, and the index of the word where its fields start.
pub type OffsetBlock = [u32; 2];

/// The widths of the fields in the segments of a file, and the numbers of its graphs.
#[derive(Debug, Clone)]
pub struct Packing {
    vertex_bits: u32,
    graphs: Arc<FinderArrays>,
    count: u32,
}

impl Packing {
    /// Creates the packing for vertices up to `vertices`, and for these graphs: ascending, distinct ids.
    #[must_use]
    pub fn new(vertices: u32, graphs: Vec<u32>) -> Self {
        Self {
            vertex_bits: bits_for(vertices),
            count: graphs.len() as u32,
            graphs: Arc::new(finder::build(graphs)),
        }
    }

    /// Number of bits of a neighbour.
    #[inline]
    #[must_use]
    pub fn vertex_bits(&self) -> u32 {
        self.vertex_bits
    }

    /// Number of bits of a graph's number.
    #[inline]
    #[must_use]
    pub fn graph_bits(&self) -> u32 {
        bits_for(self.count.saturating_sub(1))
    }

    /// The number of a graph; `None` if the packing does not contain the graph.
    #[must_use]
    pub fn number(&self, graph: u32) -> Option<u32> {
        Some(self.graphs.view().find(graph)).filter(|&k| k != NO_KEY)
    }

    /// The ids of all graphs, ascending.
    #[must_use]
    pub fn graph_ids(&self) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.count as usize);
        self.graphs.view().keys_into(0, self.count, &mut out);
        out
    }
}

/// The arrays of one named segment on the heap, without its finder.
#[derive(Debug, Clone, Default)]
pub struct PackedEdges {
    /// Number of edges.
    pub edges: u64,
    /// Blocks of offsets; empty when every key has one edge.
    pub blocks: Vec<OffsetBlock>,
    /// Fields of the offsets.
    pub fields: Vec<u64>,
    /// For each edge, the neighbour and the number of the graph.
    pub entries: Vec<u64>,
}

/// Packs offsets into blocks and fields. `offsets` may be empty: every key has one edge.
#[must_use]
pub fn pack_offsets(offsets: &[u32]) -> (Vec<OffsetBlock>, Vec<u64>) {
    let mut blocks = Vec::new();
    let mut fields = BitWriter::default();
    if let Some((&end, _)) = offsets.split_last() {
        for block in offsets.chunks(BLOCK_KEYS as usize) {
            let base = block[0];
            let beyond = |j: usize| block[j] - base - j as u32;
            blocks.push([base, fields.words.len() as u32]);
            // The last field of the last block is the end of the last key's edges.
            let width = bits_for(beyond(block.len() - 1));
            (0..block.len()).for_each(|j| fields.push(beyond(j), width));
            fields
                .words
                .resize(blocks[blocks.len() - 1][1] as usize + width as usize, 0);
            fields.align();
        }
        blocks.push([end, fields.words.len() as u32]);
        fields.words.push(0);
    }
    (blocks, fields.words)
}

impl PackedEdges {
    /// Packs neighbours with the numbers of their graphs; `None` if one is too large for its field. `offsets` may be
    /// empty: every key has one edge.
    #[must_use]
    pub fn new(
        offsets: &[u32],
        neighbours: &[u32],
        graphs: &[u32],
        packing: &Packing,
    ) -> Option<Self> {
        let (v, g) = (packing.vertex_bits, packing.graph_bits());
        let mut entries = BitWriter::default();
        entries
            .words
            .reserve(neighbours.len() * (v + g) as usize / 64 + 2);
        for (&n, &graph) in neighbours.iter().zip(graphs) {
            if bits_for(n) > v {
                return None;
            }
            entries.push(n, v);
            entries.push(packing.number(graph)?, g);
        }
        entries.words.push(0);
        let (blocks, fields) = pack_offsets(offsets);
        Some(Self {
            edges: neighbours.len() as u64,
            blocks,
            fields,
            entries: entries.words,
        })
    }

    /// Bytes of all arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.blocks[..])
            + size_of_val(&self.fields[..])
            + size_of_val(&self.entries[..])) as u64
    }
}

/// A segment of named graphs, borrowed from mapped memory. The content may be damaged: reading then returns wrong or
/// empty lists, but never out-of-bounds memory.
#[derive(Clone, Copy, Debug)]
pub struct NamedSegment<'a> {
    /// Finds keys.
    pub finder: KeyFinder<'a>,
    /// Number of keys.
    pub key_count: u32,
    /// Number of edges.
    pub edges: u64,
    /// Offsets of the edges, 64 keys per block; empty when every key has one edge.
    pub blocks: &'a [OffsetBlock],
    /// Fields of the offsets.
    pub fields: &'a [u8],
    /// For each edge, the neighbour and the number of the graph.
    pub entries: &'a [u8],
    /// Number of bits of a neighbour.
    pub vertex_bits: u32,
    /// Number of bits of a graph's number.
    pub graph_bits: u32,
    /// The ids of graphs by number, ascending.
    pub graphs: &'a [u32],
}

impl<'a> NamedSegment<'a> {
    /// A segment without edges.
    pub const EMPTY: NamedSegment<'static> = NamedSegment {
        finder: KeyFinder::Empty,
        key_count: 0,
        edges: 0,
        blocks: &[],
        fields: &[],
        entries: &[],
        vertex_bits: 0,
        graph_bits: 0,
        graphs: &[],
    };

    /// Number of edges; an edge counts once for each graph that has it.
    #[must_use]
    pub fn edge_count(&self) -> u64 {
        self.edges
    }

    /// Returns true if there are no edges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges == 0
    }

    /// Number of blocks of offsets for this many keys. Offsets have a field for the start of each key's edges, and one
    /// for the end of the last key's edges. One more block marks the end of the fields.
    #[must_use]
    pub fn block_count(keys: u32) -> u64 {
        u64::from(keys) / u64::from(BLOCK_KEYS) + 2
    }

    /// Number of bytes of the entries of this many edges; `None` if the number overflows.
    #[must_use]
    pub fn entry_bytes(edges: u64, vertex_bits: u32, graph_bits: u32) -> Option<u64> {
        let bits = edges.checked_mul(u64::from(vertex_bits + graph_bits))?;
        Some(bits.div_ceil(64) * 8 + SLACK as u64)
    }

    /// The number of the first edge of key number `k`; for `k = key_count` the number of edges. `None` for invalid
    /// offsets.
    #[inline]
    fn start(&self, k: u32) -> Option<u64> {
        let (b, j) = ((k / BLOCK_KEYS) as usize, k % BLOCK_KEYS);
        let &[[base, place], [_, next]] = self.blocks.get(b..)?.first_chunk::<2>()?;
        let width = next.wrapping_sub(place).min(u32::BITS);
        let at = u64::from(place) * 64 + u64::from(j * width);
        Some(u64::from(base) + u64::from(j) + u64::from(field(self.fields, at, width)))
    }

    /// The edges of key number `k`, as a range of edge numbers. Empty for `NO_KEY` and for invalid offsets.
    #[inline]
    #[must_use]
    pub fn range(&self, k: u32) -> std::ops::Range<u64> {
        if k >= self.key_count {
            return 0..0;
        }
        if self.blocks.is_empty() {
            let k = u64::from(k);
            return if k < self.edges { k..k + 1 } else { 0..0 };
        }
        match (self.start(k), self.start(k + 1)) {
            (Some(a), Some(b)) if a <= b && b <= self.edges => a..b,
            _ => {
                contradicts(self.entries);
                0..0
            }
        }
    }

    /// The neighbour of edge number `i`; 0 if there is no such edge.
    #[inline]
    #[must_use]
    pub fn neighbour(&self, i: u64) -> u32 {
        let width = u64::from(self.vertex_bits + self.graph_bits);
        field(self.entries, i.wrapping_mul(width), self.vertex_bits)
    }

    /// The number of the graph of edge number `i`; 0 if there is no such edge.
    #[inline]
    #[must_use]
    pub fn graph_number(&self, i: u64) -> u32 {
        let width = u64::from(self.vertex_bits + self.graph_bits);
        let at = i.wrapping_mul(width).wrapping_add(self.vertex_bits.into());
        field(self.entries, at, self.graph_bits)
    }

    /// The id of the graph of edge number `i`; 0 for an invalid number, which marks the file as damaged.
    #[inline]
    #[must_use]
    pub fn graph(&self, i: u64) -> u32 {
        match self.graphs.get(self.graph_number(i) as usize) {
            Some(&graph) => graph,
            None => {
                contradicts(self.entries);
                0
            }
        }
    }

    /// The edges of key number `k`, sorted by (neighbour, graph).
    #[inline]
    #[must_use]
    pub fn list(&self, k: u32) -> NamedList<'a> {
        let range = self.range(k);
        NamedList {
            segment: *self,
            next: range.start,
            end: range.end,
        }
    }

    /// The edges of a vertex, sorted by (neighbour, graph); empty if the vertex is not a key.
    #[inline]
    #[must_use]
    pub fn edges_of(&self, v: u32) -> NamedList<'a> {
        self.list(self.finder.find(v))
    }

    /// Returns true if the vertex has an edge in the graph. O(degree).
    #[must_use]
    pub fn has(&self, v: u32, graph: u32) -> bool {
        self.edges_of(v).any(|e| e.1 == graph)
    }

    /// Appends the keys with numbers `from .. to` to `out`, ascending.
    pub fn keys_into(&self, from: u32, to: u32, out: &mut Vec<u32>) {
        self.finder.keys_into(from, to.min(self.key_count), out);
    }
}

/// Iterator over the edges of a key as (neighbour, graph), sorted. Cheap to copy.
#[derive(Clone, Debug)]
pub struct NamedList<'a> {
    segment: NamedSegment<'a>,
    next: u64,
    end: u64,
}

impl<'a> NamedList<'a> {
    /// The neighbours without graphs: ascending, once for each graph.
    pub fn neighbours(self) -> impl Iterator<Item = u32> + 'a {
        (self.next..self.end).map(move |i| self.segment.neighbour(i))
    }

    /// The edges from the first one on whose neighbour is at least `neighbour`. O(log length).
    #[must_use]
    pub fn from_neighbour(mut self, neighbour: u32) -> Self {
        let (mut low, mut high) = (self.next, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.segment.neighbour(middle) < neighbour {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.next = low;
        self
    }
}

impl Iterator for NamedList<'_> {
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.next >= self.end {
            return None;
        }
        let i = self.next;
        self.next += 1;
        Some((self.segment.neighbour(i), self.segment.graph(i)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.end.saturating_sub(self.next) as usize;
        (n, Some(n))
    }
}

impl ExactSizeIterator for NamedList<'_> {}
