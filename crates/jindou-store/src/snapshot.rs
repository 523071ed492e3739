//! What a query reads: an immutable base and the patches that lie over it at one snapshot number.

use crate::segment::{EdgeView, Edit, Patch, PatchBuilder};
use crate::sets::CharacteristicSets;
use crate::statistics::Statistics;
use jindou_dictionary::{Dictionary, DictionaryOverlay};
use jindou_model::{Direction, PredicateId, VertexId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The quads of one named graph, grouped: the graph's index vertex.
#[derive(Clone, Copy, Debug)]
pub struct GraphPart<'a> {
    /// Dense predicate id.
    pub predicate: u32,
    /// The subjects that have an edge of this predicate in the graph, ascending, each once.
    pub subjects: &'a [u32],
}

/// The immutable part of a store: what a bulk load made. Shared by all snapshots of one id epoch.
pub struct Base {
    pub(crate) epoch: u64,
    pub(crate) union_default: bool,
    pub(crate) dictionary: Arc<Dictionary>,
    /// `[named][direction]`
    pub(crate) segments: [[crate::directory::SegmentFile; 2]; 2],
    pub(crate) statistics: Statistics,
    /// Dense predicate id by vertex id.
    pub(crate) predicate_of: FxHashMap<u32, u32>,
    pub(crate) index: crate::directory::IndexParts,
}

impl Base {
    /// The id epoch: two bases with different epochs number vertices differently.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Vertices of the base.
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.statistics.vertices
    }

    /// True if the store was loaded to answer queries over the union of all graphs.
    #[must_use]
    pub fn union_default(&self) -> bool {
        self.union_default
    }

    /// The dictionary of the base's terms.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The statistics of the base, patches not counted.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

/// One consistent state of the graph. Cheap to clone; holds its base and patches alive.
#[derive(Clone)]
pub struct Snapshot {
    base: Arc<Base>,
    number: u32,
    /// `[direction]` by dense predicate id.
    patches: Arc<[FxHashMap<u32, Patch>; 2]>,
    touched: Arc<Touched>,
    overlay: Arc<DictionaryOverlay>,
    edits: Arc<Vec<QuadEdit>>,
    /// Vertices of the predicates that updates brought; they follow the base's.
    new_predicates: Arc<Vec<u32>>,
}

/// Vertices whose characteristic sets a patch widened, and the graphs it brought.
#[derive(Default)]
struct Touched {
    out: FxHashMap<u32, Vec<u32>>,
    into: FxHashMap<u32, Vec<u32>>,
    /// Predicates that any edit names.
    predicates: Vec<u32>,
    /// Subjects by (graph, predicate), added by edits; ascending.
    graphs: FxHashMap<u32, Vec<(u32, Vec<u32>)>>,
}

/// One change of one quad, in ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuadEdit {
    /// Subject.
    pub subject: u32,
    /// Dense predicate id; must be a predicate of the base.
    pub predicate: u32,
    /// Object.
    pub object: u32,
    /// Graph, or `DEFAULT_GRAPH`.
    pub graph: u32,
    /// First snapshot that sees it.
    pub snapshot: u32,
    /// Added or removed.
    pub added: bool,
}

impl Snapshot {
    /// The base alone: snapshot 0.
    #[must_use]
    pub fn of_base(base: Arc<Base>) -> Self {
        Self {
            base,
            number: 0,
            patches: Arc::default(),
            touched: Arc::default(),
            overlay: Arc::new(DictionaryOverlay::tail()),
            edits: Arc::default(),
            new_predicates: Arc::default(),
        }
    }

    /// This snapshot with the net effect of a transaction laid over it.
    pub(crate) fn with_net(&self, net: crate::delta::Net, number: u32) -> Self {
        let mut edits = self.edits.to_vec();
        for (quads, added) in [(&net.removed, false), (&net.added, true)] {
            edits.extend(
                quads
                    .iter()
                    .map(|&[graph, predicate, subject, object]| QuadEdit {
                        subject,
                        predicate,
                        object,
                        graph,
                        snapshot: number,
                        added,
                    }),
            );
        }
        // Of several edits of one quad the last counts.
        edits.reverse();
        let quad = |e: &QuadEdit| (e.predicate, e.subject, e.object, e.graph);
        edits.sort_by_key(quad);
        edits.dedup_by_key(|e| quad(e));
        let mut overlay = (*self.overlay).clone();
        for t in &net.terms {
            // Room was made sure of when the net effect was found.
            let _ = overlay.insert(t);
        }
        let mut predicates = self.new_predicates.to_vec();
        predicates.extend(&net.predicates);
        Self {
            new_predicates: Arc::new(predicates),
            ..Self::with_edits(Arc::clone(&self.base), number, &edits, Arc::new(overlay))
        }
    }

    /// Terms that updates brought.
    pub(crate) fn tail_len(&self) -> u32 {
        self.overlay.len()
    }

    /// The id of a term that an update brought.
    pub(crate) fn tail_lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.overlay.lookup(canonical)
    }

    /// The base with edits laid over it, seen at snapshot `number`. O(edits log edits).
    #[must_use]
    pub fn with_edits(
        base: Arc<Base>,
        number: u32,
        edits: &[QuadEdit],
        overlay: Arc<DictionaryOverlay>,
    ) -> Self {
        let mut builders: [FxHashMap<u32, PatchBuilder>; 2] = Default::default();
        let mut touched = Touched::default();
        for e in edits {
            for (direction, key, neighbour) in [
                (Direction::Out, e.subject, e.object),
                (Direction::In, e.object, e.subject),
            ] {
                builders[direction as usize]
                    .entry(e.predicate)
                    .or_default()
                    .push(
                        key,
                        Edit {
                            neighbour,
                            graph: e.graph,
                            snapshot: e.snapshot,
                            added: e.added,
                        },
                    );
            }
            if e.added {
                touched.out.entry(e.subject).or_default().push(e.predicate);
                touched.into.entry(e.object).or_default().push(e.predicate);
                if e.graph != jindou_model::DEFAULT_GRAPH {
                    let parts = touched.graphs.entry(e.graph).or_default();
                    match parts.iter_mut().find(|p| p.0 == e.predicate) {
                        Some(p) => p.1.push(e.subject),
                        None => parts.push((e.predicate, vec![e.subject])),
                    }
                }
            }
            touched.predicates.push(e.predicate);
        }
        touched.predicates.sort_unstable();
        touched.predicates.dedup();
        for (map, sets) in [
            (&mut touched.out, Direction::Out),
            (&mut touched.into, Direction::In),
        ] {
            for (&v, list) in map.iter_mut() {
                list.extend_from_slice(base.index.sets().list_of(v, sets));
                list.sort_unstable();
                list.dedup();
            }
        }
        for parts in touched.graphs.values_mut() {
            parts.sort_unstable_by_key(|p| p.0);
            for p in parts {
                p.1.sort_unstable();
                p.1.dedup();
            }
        }
        let [out, into] = builders;
        let finish =
            |m: FxHashMap<u32, PatchBuilder>| m.into_iter().map(|(p, b)| (p, b.finish())).collect();
        Self {
            base,
            number,
            patches: Arc::new([finish(out), finish(into)]),
            touched: Arc::new(touched),
            overlay,
            edits: Arc::new(edits.to_vec()),
            new_predicates: Arc::default(),
        }
    }

    /// The base under this snapshot.
    #[must_use]
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The snapshot number; 0 is the base alone.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// True if any edit lies over the base.
    #[must_use]
    pub fn is_patched(&self) -> bool {
        !self.touched.predicates.is_empty()
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> u32 {
        (self.base.statistics.predicates.len() + self.new_predicates.len()) as u32
    }

    /// The dense id of a predicate's term.
    #[must_use]
    pub fn predicate_of(&self, v: VertexId) -> Option<PredicateId> {
        let known = self.base.predicate_of.get(&v.0).copied();
        known
            .or_else(|| {
                let at = self.new_predicates.iter().position(|&p| p == v.0)?;
                Some((self.base.statistics.predicates.len() + at) as u32)
            })
            .map(PredicateId)
    }

    /// The term of a predicate; vertex 0 for an unknown number.
    #[must_use]
    pub fn vertex_of(&self, p: PredicateId) -> VertexId {
        let known = &self.base.statistics.predicates;
        let at = p.0 as usize;
        VertexId(match known.get(at) {
            Some(s) => s.vertex,
            None => self
                .new_predicates
                .get(at.wrapping_sub(known.len()))
                .copied()
                .unwrap_or(0),
        })
    }

    /// The edges of a predicate in one direction.
    #[must_use]
    pub fn edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_> {
        let d = direction as usize;
        EdgeView {
            default: self.base.segments[0][d].segment(p.0),
            named: self.base.segments[1][d].named(p.0),
            patch: self.patches[d].get(&p.0),
            snapshot: self.number,
        }
    }

    /// The statistics of the base.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.base.statistics
    }

    /// The dense predicates of edges that leave (`Out`) or enter (`In`) a vertex in any graph: ascending; a
    /// superset where a patch removed edges. O(log runs).
    #[must_use]
    pub fn predicates_of(&self, v: u32, direction: Direction) -> &[u32] {
        let touched = match direction {
            Direction::Out => &self.touched.out,
            Direction::In => &self.touched.into,
        };
        if !touched.is_empty()
            && let Some(list) = touched.get(&v)
        {
            return list;
        }
        self.base.index.sets().list_of(v, direction)
    }

    /// True if an edit touched a predicate's edges.
    #[must_use]
    pub fn is_predicate_patched(&self, p: PredicateId) -> bool {
        self.touched.predicates.binary_search(&p.0).is_ok()
    }

    /// The characteristic sets of the base. Edits widen those of some vertices: [`Self::widened_vertices`].
    #[must_use]
    pub fn base_sets(&self) -> CharacteristicSets<'_> {
        self.base.index.sets()
    }

    /// The vertices whose predicate lists in a direction edits widened, ascending, each with its whole list as
    /// [`Self::predicates_of`] gives it. O(n log n) for n of them.
    #[must_use]
    pub fn widened_vertices(&self, direction: Direction) -> Vec<(u32, &[u32])> {
        let touched = match direction {
            Direction::Out => &self.touched.out,
            Direction::In => &self.touched.into,
        };
        let mut out: Vec<(u32, &[u32])> = touched.iter().map(|(&v, l)| (v, &l[..])).collect();
        out.sort_unstable_by_key(|w| w.0);
        out
    }

    /// Predicate lists of the vertices that edits widened: each a superset of the vertex' out-predicates.
    /// The planner must add them to the base's characteristic sets before it calls anything empty.
    pub fn widened_sets(&self) -> impl Iterator<Item = &[u32]> {
        self.touched.out.values().map(Vec::as_slice)
    }

    /// The instances of a class in the **base** (default and named graphs merged) as intervals, if they are few. Exact for
    /// vertices that no edit of `rdf:type` touches; those must be looked up in the segment.
    #[must_use]
    pub fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]> {
        self.base.index.class_intervals(class.0)
    }

    /// Named graphs that hold a quad (a superset where a patch removed the last one): ascending.
    #[must_use]
    pub fn named_graphs(&self) -> Vec<u32> {
        let mut out = self.base.index.graph_ids().to_vec();
        if !self.touched.graphs.is_empty() {
            out.extend(self.touched.graphs.keys());
            out.sort_unstable();
            out.dedup();
        }
        out
    }

    /// The subjects of one graph with a predicate, without looking at any other graph: ascending; a superset
    /// where a patch removed edges.
    pub fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        out.clear();
        if let Some(part) = self.base.index.graph_part(graph, predicate.0) {
            out.extend_from_slice(part.subjects);
        } else {
            let named = self.base.segments[1][0].named(predicate.0);
            let small = self.base.index.small_graph_subjects(graph).iter();
            out.extend(small.filter(|&&s| named.has(s, graph)));
        }
        if let Some(parts) = self.touched.graphs.get(&graph)
            && let Some(p) = parts.iter().find(|p| p.0 == predicate.0)
        {
            out.extend_from_slice(&p.1);
            out.sort_unstable();
            out.dedup();
        }
    }

    /// The predicates that occur in one graph: ascending, each once.
    #[must_use]
    pub fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let parts = self.base.index.graph_parts(graph);
        let mut out: Vec<u32> = parts.map(|p| p.predicate).collect();
        for &s in self.base.index.small_graph_subjects(graph) {
            for &p in self.base.index.sets().out_predicates(s) {
                if !out.contains(&p) {
                    let named = self.base.segments[1][0].named(p);
                    if named.has(s, graph) {
                        out.push(p);
                    }
                }
            }
        }
        out.sort_unstable();
        if let Some(parts) = self.touched.graphs.get(&graph) {
            out.extend(parts.iter().map(|p| p.0));
            out.sort_unstable();
            out.dedup();
        }
        out
    }

    /// The id of a term, given its canonical bytes.
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.base
            .dictionary
            .lookup(canonical)
            .or_else(|| self.overlay.lookup(canonical))
    }

    /// Appends the canonical bytes of a base or tail term; false for an unknown id.
    pub fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        if v.0 >= jindou_model::FIRST_TAIL_ID {
            self.overlay
                .term(v)
                .map(|t| out.extend_from_slice(t))
                .is_some()
        } else {
            self.base.dictionary.term(v, out)
        }
    }

    /// Terms that came after the load.
    #[must_use]
    pub fn overlay(&self) -> &DictionaryOverlay {
        &self.overlay
    }
}

impl<'a> CharacteristicSets<'a> {
    fn list_of(self, v: u32, direction: Direction) -> &'a [u32] {
        match direction {
            Direction::Out => self.out_predicates(v),
            Direction::In => self.in_predicates(v),
        }
    }
}
