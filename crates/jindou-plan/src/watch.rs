//! Looks at the limits of planning between estimates.

use jindou_model::{Result, scope};

/// The limits of the scope that the thread is inside. Once it is over, whatever is still to be planned is left out, and the plan is given up at
/// the end: so that no step of planning needs an error of its own.
pub(crate) struct Watch;

impl Watch {
    /// True once time or memory is up or somebody cancelled. About 25 ns.
    pub(crate) fn is_over(&self) -> bool {
        scope::is_over()
    }

    /// Ends planning here if it is over.
    ///
    /// # Errors
    /// Those of [`scope::look`].
    pub(crate) fn look(&self) -> Result<()> {
        scope::look()
    }
}
