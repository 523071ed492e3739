//! The shape of an operator tree: numbers of nodes, and lists of slots.

use jindou_model::{Error, Resource, Result};
use jindou_plan::{Operator, Slot};

/// Deepest tree that is run.
const MAX_DEPTH: usize = 20_000;

/// A tree's nodes in preorder.
pub(crate) struct Nodes {
    /// Nodes of the subtree, itself included, by node.
    sizes: Vec<u32>,
    pub depth: usize,
}

impl Nodes {
    /// # Errors
    /// `Limit` for a tree deeper than any sensible query's.
    pub fn of(root: &Operator) -> Result<Self> {
        if let Operator::Explore(_) = root {
            // A light query is shorter than looking closer takes.
            return Ok(Self {
                sizes: vec![1],
                depth: 1,
            });
        }
        let mut depths: Vec<u32> = Vec::new();
        let mut depth = 0;
        let mut open = vec![(root, 1u32)];
        while let Some((op, d)) = open.pop() {
            depths.push(d);
            depth = depth.max(d as usize);
            if depth > MAX_DEPTH {
                return Err(Error::limit(
                    Resource::Form,
                    format!(
                        "the query's plan nests deeper than {MAX_DEPTH} operators; split the query"
                    ),
                ));
            }
            let first = open.len();
            op.each_input(&mut |_, i| open.push((i, d + 1)));
            open[first..].reverse();
        }
        let mut sizes = vec![1u32; depths.len()];
        for at in (0..depths.len()).rev() {
            let mut child = at + 1;
            while depths.get(child).is_some_and(|d| *d == depths[at] + 1) {
                sizes[at] += sizes[child];
                child += sizes[child] as usize;
            }
        }
        Ok(Self { sizes, depth })
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The node after the subtree of `node`: the next input of the same operator, if there is one.
    pub fn after(&self, node: usize) -> usize {
        node + self.sizes.get(node).map_or(1, |s| *s as usize)
    }
}

/// The slots of `wanted` that `there` has, each once, in the order of `wanted`.
pub(crate) fn common(wanted: &[Slot], there: &[Slot]) -> Vec<Slot> {
    let kept = wanted.iter().copied().filter(|s| there.contains(s));
    with(vec![], kept)
}

/// The slots, those of `more` that are not there yet behind.
pub(crate) fn with(mut slots: Vec<Slot>, more: impl IntoIterator<Item = Slot>) -> Vec<Slot> {
    for s in more {
        if !slots.contains(&s) {
            slots.push(s);
        }
    }
    slots
}
