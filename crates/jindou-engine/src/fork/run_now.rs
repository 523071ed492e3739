//! Light queries in parts: one shard executes the whole exploration while it handles one message, because it owns the
//! vertex that the exploration starts from.

use super::line::layouts;
use super::message::{Columns, ShippedTerms};
use crate::batch::View;
use crate::eval::EvalContext;
use crate::explore::{Consumer, Flow, Halt, Pipeline, QueryContext};
use crate::options::{DEFAULT_BATCH_ROWS, Spawned};
use crate::terms::QueryTerms;
use crate::worker::guarded;
use jindou_graph::Graph;
use jindou_model::{CancelToken, Error, MemoryBudget, Result, VertexId};
use jindou_plan::{Exploration, Step};
use std::sync::atomic::AtomicBool;

/// Largest number of ids in an answer; a query with more is not light, and the shard declines it.
const MOST_IDS: usize = 1 << 18;
/// Largest number of rows without columns.
const MOST_BARE: u64 = 1 << 40;

struct CollectColumns {
    rows: Columns,
    too_many: bool,
}

impl Consumer for CollectColumns {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        self.rows.rows += rows.rows as u64;
        for (c, to) in self.rows.columns.iter_mut().enumerate() {
            to.extend_from_slice(rows.column(c));
        }
        let ids: usize = self.rows.columns.iter().map(Vec::len).sum();
        if ids > MOST_IDS || self.rows.rows > MOST_BARE {
            self.too_many = true;
            return Err(Halt::Stop);
        }
        Ok(())
    }
}

/// Limits for the terms that are sent with an answer: number of terms, and approximate bytes.
const MOST_TERMS: usize = 256;
const MOST_TEXT: usize = 32 << 10;

/// The terms of those ids in the rows that this shard owns, if there are few rows. The coordinator probably needs them
/// to write the result; sending them with the rows saves a round trip.
pub(crate) fn own_terms(graph: &dyn Graph, rows: &Columns) -> ShippedTerms {
    let mut terms = ShippedTerms::default();
    let Some(sharded) = graph.as_sharded() else {
        return terms;
    };
    if rows.rows > MOST_TERMS as u64 {
        return terms;
    }
    let all = rows.columns.iter().flatten().copied();
    // The coordinator has the terms that updates added since the last merge, which no shard owns yet.
    let mut ids: Vec<u32> = all.filter(|&id| sharded.owns(id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(MOST_TERMS);
    let vocabulary = graph.vocabulary();
    for &id in &ids {
        if terms.bytes.len() >= MOST_TEXT {
            break;
        }
        vocabulary.term(VertexId(id), &mut terms.bytes);
        terms.ends.push(terms.bytes.len() as u32);
    }
    ids.truncate(terms.ends.len());
    terms.ids = ids;
    terms
}

/// Executes an exploration. Returns its rows and the number of rows after each step; `None` if there are too many.
///
/// # Errors
/// Those of the token and the budget, and of reading other shards.
pub(crate) fn run_now(
    graph: &dyn Graph,
    steps: &[Step],
    cancel: &CancelToken,
    memory: &MemoryBudget,
) -> Result<Option<(Columns, Vec<u64>)>> {
    let width = layouts(steps).last().map_or(0, Vec::len);
    let (terms, stop) = (QueryTerms::new(), AtomicBool::new(false));
    let ctx = QueryContext {
        eval: EvalContext {
            vocabulary: graph.vocabulary(),
            terms: &terms,
            cancel,
            scope: None,
            budget: memory,
            stop: &stop,
        },
        snapshot: graph,
        batch_rows: DEFAULT_BATCH_ROWS,
        first_batch: DEFAULT_BATCH_ROWS,
        profile: false,
        live: None,
        threads: 1,
        heavy: false,
        service: None,
        pool: &Spawned,
        temp: None,
    };
    let exploration = Exploration {
        steps: steps.to_vec(),
        empty: None,
    };
    let mut out = CollectColumns {
        rows: Columns {
            rows: 0,
            columns: vec![Vec::new(); width],
        },
        too_many: false,
    };
    let counts = guarded(|| {
        let mut pipeline = Pipeline::new(&exploration, &ctx)?;
        let source = Pipeline::source(&exploration, &ctx);
        let (all, len) = (pipeline.steps(), source.len());
        let mut flow = pipeline.morsel(&ctx, &source, 0..len, all, &mut out);
        if flow.is_ok() {
            flow = pipeline.flush(&ctx, 0..all, &mut out);
        }
        match flow {
            Ok(()) | Err(Halt::Stop) => {}
            Err(Halt::Failed(e)) => return Err(e),
        }
        // After a failed read, the rows are incomplete and must not be returned.
        cancel.check()?;
        Ok::<_, Error>(pipeline.stats().iter().map(|s| s.rows_out).collect())
    })?;
    Ok((!out.too_many).then_some((out.rows, counts)))
}
