//! Exploration steps as bytes, for servers that carry out a plan together (Wukong, OSDI '16 §5).
//!
//! A tag byte for each variant, little-endian numbers, lists as a 32-bit length and their members. [`put_steps`] and
//! [`steps`] agree on what may be sent (`check.rs`): a plan that cannot be sent is detected where it was made, and an
//! invalid message is refused. Lengths are compared with the remaining bytes before anything is allocated, and bytes
//! that are left over are an error.
//!
//! [`is_exploration`] checks that the steps fit one another; the engine relies on it.
//! [`Step::why`] is not sent: it is for EXPLAIN, which the planning server answers.

mod check;
mod code;

pub use check::{Flaw, Unsendable};

use crate::slots::{layout_of, reads};
use crate::{Step, StepKind};

/// Deepest nesting of conditions. The planner makes 66 levels at most: see `condition.rs`.
pub const MAX_DEPTH: usize = 72;

/// Largest number of conditions in all steps of a message, nested ones included. For each the engine holds some bytes
/// for each row of a batch, which are not charged.
pub const MAX_CONDITIONS: usize = 4096;

/// Appends steps.
///
/// # Errors
/// A step that cannot be sent. Then nothing is appended.
pub fn put_steps(steps: &[Step], out: &mut Vec<u8>) -> Result<(), Unsendable> {
    check::all(steps)?;
    code::put(steps, out);
    Ok(())
}

/// Reads the steps that [`put_steps`] wrote, except for [`Step::why`], which is empty; `None` for other bytes. Takes at
/// most some 25 times as much memory as there are bytes, and 256 KiB.
#[must_use]
pub fn steps(bytes: &[u8]) -> Option<Vec<Step>> {
    code::take(bytes).filter(|steps| check::all(steps).is_ok())
}

/// Returns true if [`put_steps`] accepts the step by itself. Several such steps may have more than [`MAX_CONDITIONS`]
/// together.
#[must_use]
pub fn is_sendable(step: &Step) -> bool {
    let mut room = MAX_CONDITIONS;
    check::one(step, &mut room).is_ok()
}

/// Returns true if the steps can run one after another: only the first is a start, and each reads only slots that are
/// still columns. O(steps × columns).
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
