//! Builds one segment from its sorted edges.

use super::finder::{self, FinderArrays};
use super::{KeyFinder, NamedSegment, PackedEdges, Packing, Segment};
use jindou_model::Invariant;

/// The arrays of one segment on the heap.
#[derive(Debug, Clone, Default)]
pub struct SegmentArrays {
    /// The key finder.
    pub finder: FinderArrays,
    /// Number of keys.
    pub key_count: u32,
    /// Start of each key's neighbours; empty when every key has one neighbour.
    pub offsets: Vec<u32>,
    /// Neighbour lists of all keys in key order.
    pub neighbours: Vec<u32>,
    /// Packed edges of a named segment, instead of `offsets` and `neighbours`, which are then empty.
    pub packed: Option<PackedEdges>,
    /// Length of the longest list.
    pub max_degree: u32,
}

impl SegmentArrays {
    /// Bytes of all arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let f = &self.finder;
        (size_of_val(&f.intervals[..])
            + size_of_val(&f.blocks[..])
            + size_of_val(&f.buckets[..])
            + size_of_val(&f.keys[..])
            + size_of_val(&self.offsets[..])
            + size_of_val(&self.neighbours[..])) as u64
            + self.packed.as_ref().map_or(0, PackedEdges::bytes)
    }

    /// Number of distinct edges.
    #[must_use]
    pub fn edges(&self) -> u64 {
        let packed = self.packed.as_ref().map_or(0, |p| p.edges);
        packed + self.neighbours.len() as u64
    }

    fn key_finder(&self) -> KeyFinder<'_> {
        if self.key_count == 0 {
            KeyFinder::Empty
        } else {
            self.finder.view()
        }
    }

    /// The segment in these arrays; empty if they contain a named segment.
    #[must_use]
    pub fn view(&self) -> Segment<'_> {
        if self.packed.is_some() {
            return Segment::EMPTY;
        }
        Segment {
            finder: self.key_finder(),
            key_count: self.key_count,
            offsets: (!self.offsets.is_empty()).then_some(&self.offsets),
            neighbours: &self.neighbours,
        }
    }

    /// The named segment in these arrays; empty if they contain a segment of the default graph. `packing` must be the
    /// one that they were finished with, and `graphs` its graphs.
    #[must_use]
    pub fn named_view<'a>(&'a self, packing: &Packing, graphs: &'a [u32]) -> NamedSegment<'a> {
        let Some(p) = &self.packed else {
            return NamedSegment::EMPTY;
        };
        NamedSegment {
            finder: self.key_finder(),
            key_count: self.key_count,
            edges: p.edges,
            blocks: &p.blocks,
            fields: bytemuck::cast_slice(&p.fields),
            entries: bytemuck::cast_slice(&p.entries),
            vertex_bits: packing.vertex_bits(),
            graph_bits: packing.graph_bits(),
            graphs,
        }
    }
}

/// Builds a segment from edges in ascending order. Duplicate edges are added once.
///
/// Memory: 4 bytes per edge (8 with graphs), and 8 bytes per key.
#[derive(Debug, Default)]
pub struct SegmentBuilder {
    keys: Vec<u32>,
    ends: Vec<u32>,
    neighbours: Vec<u32>,
    graphs: Vec<u32>,
    named: bool,
}

impl SegmentBuilder {
    /// Creates a builder. Edges of a `named` segment have graphs; it is completed by [`Self::finish_named`].
    #[must_use]
    pub fn new(named: bool) -> Self {
        Self {
            named,
            ..Self::default()
        }
    }

    /// Reserves capacity for this many edges.
    pub fn reserve(&mut self, edges: usize) {
        self.neighbours.reserve_exact(edges);
        if self.named {
            self.graphs.reserve_exact(edges);
        }
    }

    /// Adds one edge. It must not be less than an edge already added, in (key, neighbour, graph) order.
    // Inlined since it is called once for each edge of a load, of whose time a function call would take a tenth.
    #[inline(always)]
    pub fn push(&mut self, key: u32, neighbour: u32, graph: u32) {
        if self.keys.last() == Some(&key) {
            if self.neighbours.last() == Some(&neighbour)
                && (!self.named || self.graphs.last() == Some(&graph))
            {
                return;
            }
        } else {
            debug_assert!(self.keys.last().is_none_or(|&k| k < key));
            if !self.keys.is_empty() {
                self.ends.push(self.neighbours.len() as u32);
            }
            self.keys.push(key);
        }
        self.neighbours.push(neighbour);
        if self.named {
            self.graphs.push(graph);
        }
    }

    /// Number of distinct edges so far.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.neighbours.len()
    }

    /// Checks that 32-bit offsets can count the edges.
    ///
    /// # Errors
    /// [`Error::Limit`](jindou_model::Error::Limit) from 2^32 edges on.
    pub fn fits(&self) -> jindou_model::Result<()> {
        if u32::try_from(self.neighbours.len()).is_ok() {
            return Ok(());
        }
        Err(jindou_model::Error::limit(
            jindou_model::Resource::Numbers,
            format!(
                "a predicate has more than {} edges, the maximum of a segment; split it over shards with \
                    `jindou load --shards`",
                u32::MAX
            ),
        ))
    }

    /// Completes the segment. An error if there are 2^32 edges or more: offsets have 32 bits.
    pub fn finish(mut self) -> jindou_model::Result<SegmentArrays> {
        self.fits()?;
        let key_count = self.keys.len() as u32;
        let mut max_degree = 0;
        let offsets = if self.neighbours.len() == self.keys.len() {
            max_degree = u32::from(key_count > 0);
            Vec::new()
        } else {
            self.ends.push(self.neighbours.len() as u32);
            let mut offsets = Vec::with_capacity(self.ends.len() + 1);
            offsets.push(0);
            offsets.append(&mut self.ends);
            for w in offsets.windows(2) {
                max_degree = max_degree.max(w[1] - w[0]);
            }
            offsets
        };
        Ok(SegmentArrays {
            finder: finder::build(self.keys),
            key_count,
            offsets,
            neighbours: self.neighbours,
            packed: None,
            max_degree,
        })
    }

    /// Completes the named segment by packing the edges. `packing` must contain the graphs and vertices of all edges.
    /// Errors as [`Self::finish`].
    pub fn finish_named(mut self, packing: &Packing) -> jindou_model::Result<SegmentArrays> {
        let graphs = std::mem::take(&mut self.graphs);
        let mut arrays = self.finish()?;
        let packed = PackedEdges::new(&arrays.offsets, &arrays.neighbours, &graphs, packing)
            .invariant("the packing has the vertices and graphs of all edges");
        (arrays.offsets, arrays.neighbours) = (Vec::new(), Vec::new());
        arrays.packed = Some(packed);
        Ok(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn lists_are_what_went_in(
            edges in prop::collection::btree_set((1u32..200, 1u32..60, 1u32..4), 0..400),
            hub in 0u32..3000,
            named: bool,
        ) {
            let mut edges = edges;
            // One key has many edges, so that some blocks of offsets need wide fields.
            edges.extend((0..hub).map(|n| (77, n + 1, 2)));
            let packing = Packing::new(4000, vec![1, 2, 3]);
            let mut b = SegmentBuilder::new(named);
            for &(k, n, g) in &edges {
                b.push(k, n, g);
            }
            let arrays = if named { b.finish_named(&packing) } else { b.finish() }.unwrap();
            let s = arrays.view();
            let graphs = packing.graph_ids();
            let n = arrays.named_view(&packing, &graphs);
            for key in 0..202 {
                let want: Vec<(u32, u32)> =
                    edges.iter().filter(|e| e.0 == key).map(|e| (e.1, e.2)).collect();
                if named {
                    for from in [0, 30, 61] {
                        let from_there = want.iter().position(|e| e.0 >= from).unwrap_or(want.len());
                        prop_assert_eq!(
                            n.edges_of(key).from_neighbour(from).collect::<Vec<_>>(),
                            &want[from_there..]);
                    }
                    prop_assert_eq!(n.edges_of(key).collect::<Vec<_>>(), want);
                } else {
                    let want: BTreeSet<u32> = want.into_iter().map(|w| w.0).collect();
                    prop_assert_eq!(s.neighbours_of(key), want.into_iter().collect::<Vec<_>>());
                }
            }
        }
    }
}
