//! Time, cancellation and memory while a query is planned.

use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::cell::RefCell;

/// Limits on planning: its time and its memory.
#[derive(Clone, Copy, Debug)]
pub struct PlanLimits<'a> {
    /// Carries the deadline, too.
    pub cancel: &'a CancelToken,
    /// Charged with what grows faster than the query's text, until there is the plan.
    pub memory: &'a MemoryBudget,
}

/// Looked at between estimates. Once it is over, whatever is still to be planned is left out, and the plan is given up at the end:
/// so that no step of planning needs an error of its own.
pub(crate) struct Watch<'a> {
    cancel: &'a CancelToken,
    charge: RefCell<Charge>,
    error: RefCell<Option<Error>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limits: PlanLimits<'a>) -> Self {
        Self {
            cancel: limits.cancel,
            charge: RefCell::new(Charge::new(Holder::Text, limits.memory)),
            error: RefCell::new(None),
        }
    }

    /// True once time is up or somebody cancelled. About 25 ns.
    pub(crate) fn is_over(&self) -> bool {
        let mut error = self.error.borrow_mut();
        if error.is_none() {
            *error = self.cancel.check().err();
        }
        error.is_some()
    }

    /// Charges so many bytes until the end of planning. Without room for them it is over.
    pub(crate) fn take(&self, bytes: usize) {
        if let Err(refused) = self.charge.borrow_mut().add(bytes as u64) {
            self.error.borrow_mut().get_or_insert(refused);
        }
    }

    /// Ends planning here if it is over.
    ///
    /// # Errors
    /// Those of [`Watch::end`], which this look finds, too.
    pub(crate) fn look(&self) -> Result<()> {
        self.is_over();
        self.end()
    }

    /// # Errors
    /// `Limit` if there was no room for something, `Timeout` or `Cancelled` if it was over whenever somebody looked.
    pub(crate) fn end(&self) -> Result<()> {
        match self.error.take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}
