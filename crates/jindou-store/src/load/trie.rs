//! Construction of characteristic sets. A set of labels is a node of a trie; a vertex stores its node, and another
//! label moves it one level down. Edges need not be sorted for this.

/// Distinct sets of ascending labels, as paths from the root. Node 0 is the empty set.
#[derive(Debug)]
pub(super) struct Trie {
    /// (parent, label) of each node.
    nodes: Vec<(u32, u32)>,
}

impl Trie {
    /// Writes the labels of a node, ascending, to `out`.
    pub fn list(&self, node: u32, out: &mut Vec<u32>) {
        out.clear();
        let mut at = node;
        while at != 0 {
            let (parent, label) = self.nodes[at as usize];
            out.push(label);
            at = parent;
        }
        out.reverse();
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// Assigns labels to vertices; labels must come in ascending order.
#[derive(Debug)]
pub(super) struct Labelling {
    trie: Trie,
    /// Node of each vertex.
    state: Vec<u32>,
    /// Child of each node for the current label; 0 if it was not created yet.
    child: Vec<u32>,
    /// Nodes whose `child` is set.
    touched: Vec<u32>,
    label: u32,
    /// The first node created for the current label: a vertex at this node or a later one already has the label.
    first: u32,
    /// Number of vertices that have the current label.
    members: u64,
}

impl Labelling {
    /// Starts with empty sets for this many vertices.
    pub fn new(vertices: usize) -> Self {
        Self {
            trie: Trie {
                nodes: vec![(0, 0)],
            },
            state: jindou_model::memory::huge_zeroed(vertices),
            child: vec![0],
            touched: Vec::new(),
            label: 0,
            first: 1,
            members: 0,
        }
    }

    /// Moves on to the next label. Returns the number of vertices with the previous one.
    pub fn begin(&mut self, label: u32) -> u64 {
        for node in self.touched.drain(..) {
            self.child[node as usize] = 0;
        }
        self.child.resize(self.trie.len(), 0);
        self.first = self.trie.len() as u32;
        self.label = label;
        std::mem::take(&mut self.members)
    }

    /// Gives the vertex the current label. Repeating this changes nothing.
    #[inline(always)]
    pub fn add(&mut self, vertex: u32) {
        let state = &mut self.state[vertex as usize];
        if *state >= self.first {
            return;
        }
        self.members += 1;
        let child = self.child[*state as usize];
        if child != 0 {
            *state = child;
            return;
        }
        let node = self.trie.nodes.len() as u32;
        self.trie.nodes.push((*state, self.label));
        self.child[*state as usize] = node;
        self.touched.push(*state);
        *state = node;
    }

    /// The trie, the node of each vertex, and the number of members of the last label.
    pub fn finish(self) -> (Trie, Vec<u32>, u64) {
        (self.trie, self.state, self.members)
    }
}

/// Position of each node in the order of sets. Sets are compared lexicographically, as lists of labels in the order of
/// `rank` (0 first); the empty set is last. Only nodes selected by `used` get a meaningful position. O(total size ×
/// log).
pub(super) fn order(trie: &Trie, used: &[bool], rank: &[u32]) -> Vec<u32> {
    let mut flat = Vec::new();
    let mut lists: Vec<(usize, usize, u32)> = Vec::new();
    let mut one = Vec::new();
    for (node, _) in used.iter().enumerate().filter(|u| *u.1) {
        trie.list(node as u32, &mut one);
        for label in &mut one {
            *label = rank[*label as usize];
        }
        one.sort_unstable();
        lists.push((flat.len(), flat.len() + one.len(), node as u32));
        flat.extend_from_slice(&one);
    }
    lists.sort_unstable_by(|a, b| {
        let (x, y) = (&flat[a.0..a.1], &flat[b.0..b.1]);
        x.is_empty().cmp(&y.is_empty()).then_with(|| x.cmp(y))
    });
    let mut place = vec![0; trie.len()];
    for (i, l) in lists.iter().enumerate() {
        place[l.2 as usize] = i as u32;
    }
    place
}

/// Ranks by descending frequency; labels of equal frequency keep their order.
pub(super) fn rank_by_frequency(frequency: &[u64]) -> Vec<u32> {
    let mut by: Vec<u32> = (0..frequency.len() as u32).collect();
    by.sort_by_key(|&i| std::cmp::Reverse(frequency[i as usize]));
    let mut rank = vec![0; frequency.len()];
    for (r, &i) in by.iter().enumerate() {
        rank[i as usize] = r as u32;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn every_vertex_ends_with_its_set(
            edges in prop::collection::vec((0u32..20, 0u32..40), 0..300),
        ) {
            let mut want: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            let mut l = Labelling::new(40);
            let mut frequency = [0; 21];
            for label in 0..20 {
                let before = l.begin(label);
                if label > 0 {
                    frequency[label as usize - 1] = before;
                }
                for &(_, v) in edges.iter().filter(|e| e.0 == label) {
                    l.add(v);
                    want.entry(v).or_default().insert(label);
                }
            }
            let (trie, state, last) = l.finish();
            frequency[19] = last;
            let mut got = vec![];
            for v in 0..40 {
                trie.list(state[v as usize], &mut got);
                let list: Vec<u32> = want.get(&v).into_iter().flatten().copied().collect();
                prop_assert_eq!(&got, &list);
            }
            for label in 0..20u32 {
                let n = want.values().filter(|s| s.contains(&label)).count() as u64;
                prop_assert_eq!(frequency[label as usize], n);
            }
            let mut used = vec![false; trie.len()];
            for &s in &state { used[s as usize] = true; }
            let rank: Vec<u32> = (0..20).collect();
            let place = order(&trie, &used, &rank);
            for a in 0..40usize {
                for b in 0..40usize {
                    let (mut x, mut y) = (vec![], vec![]);
                    trie.list(state[a], &mut x);
                    trie.list(state[b], &mut y);
                    let want = x.is_empty().cmp(&y.is_empty()).then(x.cmp(&y));
                    prop_assert_eq!(place[state[a] as usize].cmp(&place[state[b] as usize]), want);
                }
            }
        }
    }
}
