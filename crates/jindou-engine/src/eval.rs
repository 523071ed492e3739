//! The part of a running query that expressions and filters depend on.

use crate::terms::QueryTerms;
use jindou_graph::Vocabulary;
use jindou_model::{CancelToken, Error, MemoryBudget, Result, Scope};
use std::sync::atomic::{AtomicBool, Ordering};

/// The part of a running query's state that evaluating expressions and conditions needs: terms, memory, cancellation.
#[derive(Clone, Copy)]
pub(crate) struct EvalContext<'r> {
    /// The snapshot's terms.
    pub vocabulary: Vocabulary<'r>,
    /// The query-local terms.
    pub terms: &'r QueryTerms,
    pub budget: &'r MemoryBudget,
    pub cancel: &'r CancelToken,
    /// Scope in which the memory of the query's threads is measured.
    pub scope: Option<&'r Scope>,
    /// Set when another worker failed, or when no more rows are needed.
    pub stop: &'r AtomicBool,
}

impl EvalContext<'_> {
    /// Returns an error if the query should end. Cheap enough for once per batch, but not for once per row.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            // Users never see this error: the worker that set the flag has reported the reason.
            return Err(Error::Cancelled);
        }
        if let Some(scope) = self.scope
            && scope.was_over()
        {
            scope.look()?;
        }
        self.cancel.check()
    }
}
