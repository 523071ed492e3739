//! Time and cancellation while a query is planned.

use jindou_model::{CancelToken, Error, Result};
use std::cell::RefCell;

/// Looked at between estimates. Once it is over, whatever is still to be planned is left out, and the plan is given up at the end:
/// so that no step of planning needs an error of its own.
pub(crate) struct Watch<'a> {
    cancel: &'a CancelToken,
    error: RefCell<Option<Error>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(cancel: &'a CancelToken) -> Self {
        Self {
            cancel,
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

    /// # Errors
    /// `Timeout` or `Cancelled` if it was over whenever somebody looked.
    pub(crate) fn end(&self) -> Result<()> {
        match self.error.take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}
