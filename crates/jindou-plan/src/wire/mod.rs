//! Exploration steps as bytes, for servers that execute a plan together (Wukong, OSDI '16 §5).
//!
//! The format has a tag byte for each variant, little-endian numbers, and lists as a 32-bit length and their members.
//! [`put_steps`] and [`steps`] make the same checks (`check.rs`): the planning server notices that a plan cannot be
//! sent, and a receiver rejects invalid messages. Lengths are compared with the remaining bytes before anything is
//! allocated, and bytes after the last step are an error.
//!
//! [`is_exploration`] checks that the steps fit one another, which the engine relies on. [`Step::why`] is not sent,
//! since only the planning server answers EXPLAIN.

mod check;
mod code;

pub use check::{Flaw, Unsendable};

use crate::slots::{layout_of, reads};
use crate::{Step, StepKind};

/// Deepest nesting of conditions. The planner creates at most 66 levels (`MAX_INLINE` in `condition.rs`).
pub const MAX_DEPTH: usize = 72;

/// Largest number of conditions in all steps of a message, nested ones included. For each condition the engine
/// allocates a few bytes per row of a batch, which it does not charge to the query.
pub const MAX_CONDITIONS: usize = 4096;

/// Appends the encoding of steps.
///
/// # Errors The first step that cannot be sent, and the reason. Then nothing is appended.
pub fn put_steps(steps: &[Step], out: &mut Vec<u8>) -> Result<(), Unsendable> {
    check::all(steps)?;
    code::put(steps, out);
    Ok(())
}

/// Decodes the steps that [`put_steps`] wrote; their [`Step::why`] is empty. `None` for other bytes. Allocates at most
/// 256 KiB and some 25 times as much memory as there are bytes.
#[must_use]
pub fn steps(bytes: &[u8]) -> Option<Vec<Step>> {
    code::take(bytes).filter(|steps| check::all(steps).is_ok())
}

/// Returns true if [`put_steps`] accepts the step alone. Several such steps together may still have more than
/// [`MAX_CONDITIONS`].
#[must_use]
pub fn is_sendable(step: &Step) -> bool {
    let mut room = MAX_CONDITIONS;
    check::one(step, &mut room).is_ok()
}

/// Returns true if the steps can run one after another: the first and no other is a start, and each reads only slots
/// that are columns at that point. O(steps × columns).
#[must_use]
pub fn is_exploration(steps: &[Step]) -> bool {
    let mut columns = Vec::new();
    let mut fits = |(at, step): (usize, &Step)| {
        let mut fits = matches!(step.kind, StepKind::Start { .. }) == (at == 0);
        reads(&step.kind, &mut |slot| fits &= columns.contains(&slot));
        columns = layout_of(&columns, step);
        fits
    };
    !steps.is_empty() && steps.iter().enumerate().all(&mut fits)
}

#[cfg(test)]
mod tests;
