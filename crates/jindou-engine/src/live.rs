//! Counts that other threads can read while a plan runs. Workers update them once per batch, and only if a client
//! watches the query.

use crate::options::{NodeProfile, Profile, StepProfile};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows and time of one execution of a plan so far, summed over all workers. Bytes are known only at the end.
#[derive(Debug, Default)]
pub struct LiveProfile {
    begun: OnceLock<(Instant, Box<[LiveNode]>)>,
}

#[derive(Debug, Default)]
pub(crate) struct LiveNode {
    own: LiveCounts,
    steps: OnceLock<Box<[LiveCounts]>>,
}

/// Counts of a step or an operator.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    rows_in: AtomicU64,
    rows_out: AtomicU64,
    nanos: AtomicU64,
}

impl LiveCounts {
    pub(crate) fn add(&self, rows_in: usize, rows_out: usize, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.rows_in.fetch_add(rows_in as u64, Ordering::Relaxed);
        self.rows_out.fetch_add(rows_out as u64, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn step(&self) -> StepProfile {
        StepProfile {
            rows_in: self.rows_in.load(Ordering::Relaxed),
            rows_out: self.rows_out.load(Ordering::Relaxed),
            time: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            ..StepProfile::default()
        }
    }
}

impl LiveProfile {
    /// Called when the plan begins, with the number of its operators.
    pub(crate) fn begin(&self, nodes: usize) {
        let made = || {
            let nodes = (0..nodes).map(|_| LiveNode::default()).collect();
            (Instant::now(), nodes)
        };
        self.begun.get_or_init(made);
    }

    pub(crate) fn node(&self, node: usize) -> Option<&LiveNode> {
        self.begun.get()?.1.get(node)
    }

    /// Counts so far; `None` before the plan begins.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        let (begun, nodes) = self.begun.get()?;
        let nodes: Vec<NodeProfile> = nodes.iter().map(LiveNode::profile).collect();
        Some(Profile {
            rows: nodes.first().map_or(0, |n| n.rows_out),
            nodes,
            elapsed: begun.elapsed(),
            ..Profile::default()
        })
    }
}

impl LiveNode {
    pub(crate) fn counts(&self) -> &LiveCounts {
        &self.own
    }

    /// The counts of the `n` steps of an operator.
    pub(crate) fn steps(&self, n: usize) -> &[LiveCounts] {
        let made = || (0..n).map(|_| LiveCounts::default()).collect();
        self.steps.get_or_init(made)
    }

    fn profile(&self) -> NodeProfile {
        let own = self.own.step();
        let steps = self.steps.get().map_or(&[][..], |s| s);
        let steps: Vec<StepProfile> = steps.iter().map(LiveCounts::step).collect();
        let (first, last) = (steps.first().copied(), steps.last().copied());
        // An exploration that is a leaf counts only in its steps; other operators count themselves.
        let leaf = own == StepProfile::default();
        NodeProfile {
            rows_in: first.filter(|_| leaf).map_or(own.rows_in, |s| s.rows_in),
            rows_out: last.filter(|_| leaf).map_or(own.rows_out, |s| s.rows_out),
            time: if leaf {
                steps.iter().map(|s| s.time).sum()
            } else {
                own.time
            },
            steps,
            ..NodeProfile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_its_steps() {
        let live = LiveProfile::default();
        assert!(live.profile().is_none());
        live.begin(2);
        let ms = Duration::from_millis;
        live.node(0).unwrap().counts().add(7, 5, ms(3));
        let steps = live.node(1).unwrap().steps(2);
        steps[0].add(10, 9, ms(1));
        steps[1].add(9, 7, ms(2));
        let profile = live.profile().unwrap();
        assert_eq!(profile.rows, 5);
        let rows = |n: &NodeProfile| (n.rows_in, n.rows_out, n.time, n.steps.len());
        assert_eq!(rows(&profile.nodes[0]), (7, 5, ms(3), 0));
        assert_eq!(rows(&profile.nodes[1]), (10, 7, ms(3), 2));
        assert!(live.node(2).is_none());
    }
}
