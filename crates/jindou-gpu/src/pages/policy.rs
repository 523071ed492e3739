//! Replacement policy for blocks in the device's memory: which blocks are evicted for others (ATC '18 §4.2).

use rustc_hash::{FxHashMap, FxHashSet};

/// A block: a part of a segment's index and the same part of its neighbours, which are always uploaded and evicted
/// together (pairwise caching).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Block {
    /// The segment's number.
    pub segment: u32,
    /// The block's number in its segment.
    pub number: u32,
}

#[derive(Clone, Copy)]
struct HeldBlock {
    pages: u64,
    /// Value of [`Policy::clock`] at the last step that needed it.
    used: u64,
}

/// The blocks to evict and to upload for a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockChange {
    /// Blocks to evict, in the order in which they were chosen.
    pub gone: Vec<Block>,
    /// Blocks to upload, in the order in which they are needed.
    pub come: Vec<Block>,
}

/// The blocks on the device, with a limit on the number of their pages.
pub(crate) struct Policy {
    capacity: u64,
    pages: u64,
    there: FxHashMap<Block, HeldBlock>,
    clock: u64,
    /// Value of `clock` at the last call of [`Self::done`]: no kernel reads blocks last used at or before it.
    done: u64,
}

impl Policy {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            pages: 0,
            there: FxHashMap::default(),
            clock: 0,
            done: 0,
        }
    }

    /// Largest number of pages of all blocks together.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Number of pages of all blocks on the device.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The blocks on the device.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.there.keys().copied()
    }

    /// Requests the blocks that a step needs, given with their numbers of pages. `next` returns the number of steps
    /// until the same plan needs a segment again; `None` if it does not.
    ///
    /// Free pages are used first. Then blocks are evicted that no following step needs, the least recently used first;
    /// then those that are needed latest (look-ahead). Returns `None` and changes nothing if the step needs more than
    /// the capacity. O(wanted), and O(n log n) in the number of blocks if some must be evicted.
    pub fn want(
        &mut self,
        wanted: &[(Block, u64)],
        next: &dyn Fn(u32) -> Option<usize>,
    ) -> Option<BlockChange> {
        if wanted.iter().map(|w| w.1).sum::<u64>() > self.capacity {
            return None;
        }
        self.clock += 1;
        let mut change = BlockChange::default();
        let mut more = 0;
        for &(block, pages) in wanted {
            match self.there.get_mut(&block) {
                Some(held) => held.used = self.clock,
                None => {
                    change.come.push(block);
                    more += pages;
                }
            }
        }
        if self.pages + more > self.capacity {
            let stay: FxHashSet<Block> = wanted.iter().map(|w| w.0).collect();
            let mut others: Vec<_> = self
                .there
                .iter()
                .filter(|(block, _)| !stay.contains(block))
                .map(|(&block, held)| {
                    let distance = next(block.segment).unwrap_or(usize::MAX);
                    (std::cmp::Reverse(distance), held.used, block, held.pages)
                })
                .collect();
            others.sort_unstable();
            for (_, _, block, pages) in others {
                if self.pages + more <= self.capacity {
                    break;
                }
                self.there.remove(&block);
                self.pages -= pages;
                change.gone.push(block);
            }
        }
        let come: FxHashSet<Block> = change.come.iter().copied().collect();
        for &(block, pages) in wanted.iter().filter(|w| come.contains(&w.0)) {
            let used = self.clock;
            self.there.insert(block, HeldBlock { pages, used });
            self.pages += pages;
        }
        Some(change)
    }

    /// Records that kernels are done with all blocks requested so far.
    pub fn done(&mut self) {
        self.done = self.clock;
    }

    /// Requests blocks that a later step needs, but evicts only blocks that no step of the plan needs and no kernel may
    /// still read. So an early upload causes no transfer that a late one would not cause. `next` as in [`Self::want`].
    /// The flag is true if all of the blocks are on the device afterwards.
    pub fn early(
        &mut self,
        wanted: &[(Block, u64)],
        next: &dyn Fn(u32) -> Option<usize>,
    ) -> (BlockChange, bool) {
        let mut change = BlockChange::default();
        let missing: Vec<(Block, u64)> = wanted
            .iter()
            .copied()
            .filter(|(block, _)| !self.there.contains_key(block))
            .collect();
        if missing.is_empty() {
            return (change, true);
        }
        self.clock += 1;
        let of_step: FxHashSet<Block> = wanted.iter().map(|w| w.0).collect();
        let mut others: Vec<_> = self
            .there
            .iter()
            .filter(|(block, held)| held.used <= self.done && !of_step.contains(block))
            .filter(|(block, _)| next(block.segment).is_none())
            .map(|(&block, held)| (held.used, block, held.pages))
            .collect();
        others.sort_unstable();
        let mut others = others.into_iter();
        let mut all = true;
        for (block, pages) in missing {
            while self.pages + pages > self.capacity {
                let Some((_, victim, freed)) = others.next() else {
                    break;
                };
                self.there.remove(&victim);
                self.pages -= freed;
                change.gone.push(victim);
            }
            if self.pages + pages > self.capacity {
                all = false;
                break;
            }
            let used = self.clock;
            self.there.insert(block, HeldBlock { pages, used });
            self.pages += pages;
            change.come.push(block);
        }
        (change, all)
    }

    /// Removes a block that was evicted or could not be uploaded.
    pub fn forget(&mut self, block: Block) {
        if let Some(held) = self.there.remove(&block) {
            self.pages -= held.pages;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The segments that each step of a plan reads.
    type Steps = Vec<Vec<u32>>;

    /// The paper's policy, written as in the paper, one victim at a time: free memory if there is some, otherwise the
    /// least recently used block that no following step uses, otherwise a block of the farthest step. Returns the
    /// blocks that each step uploads.
    struct Simulator {
        capacity: usize,
        /// Ordered from the least to the most recently used.
        cache: Vec<Block>,
    }

    impl Simulator {
        fn step(&mut self, sizes: &[u32], steps: &Steps, at: usize) -> Option<Vec<Block>> {
            let blocks =
                |s: u32| (0..sizes[s as usize]).map(move |number| Block { segment: s, number });
            let mut wanted: Vec<Block> = steps[at].iter().flat_map(|&s| blocks(s)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            if wanted.len() > self.capacity {
                return None;
            }
            let there: Vec<Block> = self
                .cache
                .iter()
                .copied()
                .filter(|b| wanted.contains(b))
                .collect();
            self.cache.retain(|b| !there.contains(b));
            let mut moved = vec![];
            for &b in wanted.iter().filter(|b| !there.contains(b)) {
                if self.cache.len() + wanted.len() > self.capacity {
                    let farthest = |b: &Block| {
                        let after = steps[at + 1..].iter();
                        after
                            .clone()
                            .position(|s| s.contains(&b.segment))
                            .unwrap_or(usize::MAX)
                    };
                    let most = self.cache.iter().map(farthest).max().unwrap();
                    let victim = self.cache.iter().position(|b| farthest(b) == most).unwrap();
                    self.cache.remove(victim);
                }
                moved.push(b);
            }
            // No more was evicted than the new blocks need.
            assert!(self.cache.len() + wanted.len() <= self.capacity);
            self.cache.extend(wanted);
            Some(moved)
        }
    }

    proptest! {
        /// The policy uploads the same blocks as the simulator, plan after plan, and never exceeds the capacity.
        #[test]
        fn the_policy_moves_what_a_simulator_moves(
            sizes in prop::collection::vec(1u32..6, 1..6),
            capacity in 3usize..16,
            plans in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u32>(), 1..3), 1..6), 1..8),
        ) {
            let mut policy = Policy::new(capacity as u64);
            let mut simulator = Simulator { capacity, cache: vec![] };
            for plan in plans {
                let steps: Steps = plan
                    .iter()
                    .map(|s| s.iter().map(|x| x % sizes.len() as u32).collect())
                    .collect();
                for at in 0..steps.len() {
                    let blocks = steps[at].iter().flat_map(|&s| all(s, sizes[s as usize]));
                    let mut wanted: Vec<(Block, u64)> = blocks.collect();
                    wanted.sort_unstable();
                    wanted.dedup();
                    let next = |s: u32| steps[at + 1..].iter().position(|w| w.contains(&s));
                    let got = policy.want(&wanted, &next);
                    let want = simulator.step(&sizes, &steps, at);
                    prop_assert_eq!(got.as_ref().map(|c| c.come.len()), want.as_ref().map(Vec::len));
                    if let (Some(got), Some(mut want)) = (got, want) {
                        let mut come = got.come;
                        come.sort_unstable();
                        want.sort_unstable();
                        prop_assert_eq!(come, want);
                    }
                    prop_assert!(policy.pages() <= capacity as u64);
                    prop_assert_eq!(policy.blocks().count() as u64, policy.pages());
                }
            }
        }
    }

    /// The first `n` blocks of a segment, of one page each.
    fn all(segment: u32, n: u32) -> Vec<(Block, u64)> {
        let numbers = 0..n;
        numbers
            .map(|number| (Block { segment, number }, 1))
            .collect()
    }

    #[test]
    fn what_comes_early_takes_no_room_that_is_needed_before() {
        let mut p = Policy::new(4);
        let none = |_: u32| None;
        // The current step reads segment 0; segment 1 was read before.
        p.want(&all(1, 2), &none).unwrap();
        p.done();
        p.want(&all(0, 2), &none).unwrap();
        let next = |s: u32| match s {
            0 => Some(0),
            2 => Some(1),
            _ => None,
        };
        // Kernels may be reading segment 0, since its step is not done; no step needs segment 1.
        let (change, there) = p.early(&all(2, 3), &next);
        let gone: Vec<u32> = change.gone.iter().map(|b| b.segment).collect();
        assert_eq!(
            (gone.as_slice(), change.come.len(), there),
            (&[1, 1][..], 2, false)
        );
        // When segment 2 is needed, the blocks that were uploaded early are on the device, and the missing one replaces
        // a block of segment 0.
        p.done();
        let change = p.want(&all(2, 3), &none).unwrap();
        assert_eq!((change.gone.len(), change.come.len()), (1, 1));
        let (change, there) = p.early(&all(2, 3), &none);
        assert_eq!((change, there), (BlockChange::default(), true));
    }

    #[test]
    fn what_no_step_wants_goes_first_then_what_the_farthest_wants() {
        let mut p = Policy::new(4);
        let none = |_: u32| None;
        for segment in 0..4 {
            assert_eq!(p.want(&all(segment, 1), &none).unwrap().gone, vec![]);
        }
        // Segment 3 is needed two steps later, 0 in the next step, the others never; 1 was used before 2.
        let next = |s: u32| match s {
            3 => Some(1),
            0 => Some(0),
            _ => None,
        };
        let gone = |p: &mut Policy, segment, n| -> Vec<u32> {
            let change = p.want(&all(segment, n), &next).unwrap();
            change.gone.iter().map(|b| b.segment).collect()
        };
        assert_eq!(gone(&mut p, 4, 1), [1]);
        assert_eq!(gone(&mut p, 5, 2), [2, 4]);
        assert_eq!(gone(&mut p, 6, 3), [5, 5, 3]);
        // A request beyond the capacity changes nothing.
        assert!(p.want(&all(7, 5), &next).is_none());
        assert_eq!(p.pages(), 4);
    }
}
