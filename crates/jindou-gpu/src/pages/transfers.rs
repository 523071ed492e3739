//! Computes how many bytes plans transfer when segments are paged, without executing kernels: blocks are uploaded and
//! evicted as they would be before and during each step.

use super::{PagedSegment, describe};
use crate::compile::compile;
use crate::execute::GpuExecutor;
use crate::resident::alone;
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{CancelToken, Direction, Error, PredicateId, Result};
use jindou_plan::Plan;
use std::sync::Arc;

/// Bytes of the segments that a plan reads, and how many bytes its runs transfer.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// Bytes of all segments that the plan reads, each counted once.
    pub query: u64,
    /// Bytes of the segments that each device step reads.
    pub steps: Vec<u64>,
    /// Bytes and number of blocks uploaded in each run. Empty if a step's segments do not fit, since the CPU then
    /// executes the plan.
    pub runs: Vec<(u64, u64)>,
}

/// Bytes of segments, each counted once.
fn bytes_of<'s>(segments: impl Iterator<Item = &'s Arc<PagedSegment>>) -> u64 {
    let mut all: Vec<(u32, u64)> = segments.map(|s| (s.number, s.bytes())).collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(|s| s.1).sum()
}

impl GpuExecutor {
    /// The bytes of all segments of the default graph, in both directions.
    ///
    /// # Errors
    /// `Store` for a segment that cannot be on a device.
    pub fn graph_bytes(&self, snapshot: &dyn Graph) -> Result<u64> {
        let mut bytes = 0;
        for p in 0..snapshot.predicate_count() {
            for d in [Direction::Out, Direction::In] {
                let view = snapshot.edges(PredicateId(p), d);
                let segment = alone(&view, GraphScope::Default)?;
                let index = describe(&segment)?.index_bytes();
                bytes += (index + 4 * segment.neighbours.len()) as u64;
            }
        }
        Ok(bytes)
    }

    /// Bytes that a plan of one exploration reads, and bytes that `runs` consecutive runs of it transfer, assuming that
    /// each step processes one table.
    ///
    /// # Errors
    /// `Unsupported` for other plans and for devices that cannot map pages; the device's errors.
    pub fn transfers(&self, plan: &Plan, snapshot: &dyn Graph, runs: usize) -> Result<Transfers> {
        let unsupported = || Error::Unsupported("transfers of this plan".into());
        let exploration = plan.exploration().ok_or_else(unsupported)?;
        let (device, cache, pager) = self.parts();
        let pager = pager.ok_or_else(unsupported)?;
        let steps = &exploration.steps;
        let program = compile((device, cache), Some(pager), snapshot, steps, false)?;
        let Some(paging) = &program.paging else {
            return Err(unsupported());
        };
        let mut found = Transfers {
            query: bytes_of(paging.steps.iter().flatten()),
            steps: paging.steps.iter().map(|s| bytes_of(s.iter())).collect(),
            runs: Vec::new(),
        };
        if program.stopped.is_some() {
            return Ok(found);
        }
        for _ in 0..runs {
            let (mut bytes, mut blocks) = (0, 0);
            for k in 0..paging.steps.len() {
                let came = paging.page_in(k, &CancelToken::new())?;
                // In a real run, kernels would run at this point. The first step's kernels are not waited for before
                // the next step.
                let early = paging.ahead(k)?;
                if k > 0 {
                    paging.pager.done();
                }
                bytes += came.come + early.come;
                blocks += came.blocks + early.blocks;
            }
            found.runs.push((bytes, blocks));
        }
        Ok(found)
    }
}
