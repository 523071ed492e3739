//! Revisions: numbers that identify the content of a graph, and of the whole store. Equal revisions of a graph mean
//! equal quads, in this store and in every copy of it: a revision is a hash of the loaded data and of every change up
//! to the last one that touched the graph. So a store that is restored or loaded again does not use a number for
//! different content, and servers that apply the same records compute the same revisions.

use crate::delta::NetChanges;
use crate::snapshot::Snapshot;
use jindou_graph::segment::CowTree;
use jindou_model::DEFAULT_GRAPH;
use xxhash_rust::xxh3::Xxh3;

/// The revisions of a snapshot. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Revisions {
    /// Revision of every graph that no update has changed.
    loaded: u64,
    /// Revision of the whole store.
    all: u64,
    /// `[graph, revision]` of each graph that updates changed; the default graph is 0.
    changed: CowTree<[u64; 2]>,
}

impl Revisions {
    /// The revisions of a store whose files are identified by these numbers.
    pub(crate) fn of_files(numbers: impl Iterator<Item = u64>) -> Self {
        let mut hash = Xxh3::new();
        numbers.for_each(|n| hash.update(&n.to_le_bytes()));
        Self {
            loaded: hash.digest(),
            all: hash.digest(),
            changed: CowTree::default(),
        }
    }

    /// The revision of the whole store.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// True if an update has changed some graph.
    pub(crate) fn any_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The revision of one graph. O(log changed graphs).
    pub(crate) fn of_graph(&self, graph: u32) -> u64 {
        self.entry(graph.into())
            .map_or(self.loaded, |entry| entry[1])
    }

    fn entry(&self, graph: u64) -> Option<[u64; 2]> {
        let entry = self.changed.first_from(&[graph, 0]);
        entry.filter(|entry| entry[0] == graph)
    }

    /// Bytes on the heap, including those shared with other snapshots.
    pub(crate) fn bytes(&self) -> usize {
        self.changed.bytes()
    }

    /// Updates the revisions by the net effect of an operation. O(its size).
    pub(crate) fn change(&mut self, net: &NetChanges) {
        let mut graphs: Vec<u64> = Vec::new();
        for quad in net.removed.iter().chain(&net.added) {
            if graphs.last() != Some(&u64::from(quad[0])) {
                graphs.push(quad[0].into());
            }
        }
        if graphs.is_empty() {
            return;
        }
        graphs.sort_unstable();
        graphs.dedup();
        self.all = self.after(net);
        let before: Vec<[u64; 2]> = graphs
            .iter()
            .filter_map(|&graph| self.entry(graph))
            .collect();
        let now: Vec<[u64; 2]> = graphs.iter().map(|&graph| [graph, self.all]).collect();
        self.changed.apply(&now, &before);
    }

    /// Removes the entries of empty graphs whose ids, given as runs `[first, end)`, will be assigned to other terms.
    /// These graphs then have the revision of graphs that no update has changed.
    pub(crate) fn forget(&mut self, runs: &[[u32; 2]]) {
        let mut gone: Vec<[u64; 2]> = Vec::new();
        for &[first, end] in runs {
            let entries = self.changed.range([first.into(), 0], [end.into(), 0]);
            gone.extend(entries.flatten().filter(|e| e[0] < u64::from(end)));
        }
        self.changed.apply(&[], &gone);
    }

    fn after(&self, net: &NetChanges) -> u64 {
        let mut hash = Xxh3::with_seed(self.all);
        let counts = [net.terms.len(), net.removed.len(), net.added.len()];
        for count in counts {
            hash.update(&(count as u64).to_le_bytes());
        }
        for term in &net.terms {
            hash.update(&(term.len() as u64).to_le_bytes());
            hash.update(term);
        }
        hash.update(bytemuck::cast_slice(net.reused.as_flattened()));
        hash.update(bytemuck::cast_slice(&net.predicates));
        for quads in [&net.removed, &net.added] {
            hash.update(bytemuck::cast_slice(quads.as_flattened()));
        }
        hash.digest()
    }

    /// Encodes the revisions for [`Self::from_numbers`].
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut out = vec![self.loaded, self.all];
        out.extend(self.changed.iter().flatten());
        out
    }

    /// Decodes the output of [`Self::numbers`]; `None` for invalid input, and if `is_known` is false for a graph.
    pub(crate) fn from_numbers(numbers: &[u64], is_known: impl Fn(u32) -> bool) -> Option<Self> {
        let (pairs, []) = numbers.as_chunks::<2>() else {
            return None;
        };
        let (&[loaded, all], changed) = pairs.split_first()?;
        let ascending = changed.windows(2).all(|w| w[0][0] < w[1][0]);
        let known = |&[graph, _]: &[u64; 2]| u32::try_from(graph).is_ok_and(&is_known);
        if !ascending || !changed.iter().all(known) {
            return None;
        }
        let mut out = Self {
            loaded,
            all,
            ..Self::default()
        };
        out.changed.apply(changed, &[]);
        Some(out)
    }
}

impl Snapshot {
    /// The revision of the whole store. Different content of the store, or of a copy of it, has a different revision.
    /// O(1).
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.delta().revisions.all()
    }

    /// The revision of a graph, given its name's canonical bytes; of the default graph for `None`. The revision changes
    /// when the graph does, and only then. Graphs without quads have a revision, too.
    #[must_use]
    pub fn graph_revision(&self, name: Option<&[u8]>) -> u64 {
        let revisions = &self.delta().revisions;
        match name {
            None => revisions.of_graph(DEFAULT_GRAPH),
            // Without changed graphs no lookup is needed; in a sharded store a lookup would send requests.
            Some(name) if revisions.any_changed() => {
                revisions.of_graph(self.lookup(name).map_or(u32::MAX, |id| id.0))
            }
            Some(_) => revisions.of_graph(u32::MAX),
        }
    }
}
