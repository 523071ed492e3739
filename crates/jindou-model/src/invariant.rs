//! Conditions that hold unless the code is wrong, and the handling of work in which one is violated.
//!
//! [`invariant!`](crate::invariant!) and [`Invariant::invariant`] panic, and so does indexing out of range. [`guarded`]
//! encloses the work of each query, update and request: it turns a panic into an [`Error::Internal`] with the panic's
//! message and source location, and counts it. A server's panic hook also writes the backtrace to the log.
//!
//! A property of data read from a file is never an invariant: the file may be damaged, and pages that cannot be read
//! contain zeros until the query is ended.

use crate::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static ENDED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Source location of this thread's last panic.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics unless the condition holds, which the code should guarantee: `invariant!(a <= b, "runs ascend")`. The message
/// states the condition.
#[macro_export]
macro_rules! invariant {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            $crate::invariant::violated(format_args!($($what)+));
        }
    };
}

/// Panics with the caller's source location.
#[cold]
#[inline(never)]
#[track_caller]
#[doc(hidden)]
pub fn violated(what: fmt::Arguments<'_>) -> ! {
    panic!("internal invariant violated: {what}")
}

/// Optional values that exist unless the code is wrong.
pub trait Invariant {
    /// The type of the value.
    type Value;

    /// The value; panics if there is none. The message `what` states the condition that was violated.
    #[track_caller]
    fn invariant(self, what: &str) -> Self::Value;
}

impl<T> Invariant for Option<T> {
    type Value = T;

    #[inline(always)]
    fn invariant(self, what: &str) -> T {
        match self {
            Some(value) => value,
            None => violated(format_args!("{what}")),
        }
    }
}

/// Runs the work of one query, update or request. If it panics, only this work ends, with an [`Error::Internal`].
///
/// The first call installs a panic hook in the process, which records the source location and calls the previous hook.
///
/// # Errors
/// The errors of `work`; [`Error::Internal`] if it panics.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    note_places();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error_of(&*panic)))
}

/// The error for a caught panic, with its message, and its source location if it happened on this thread. Also counts
/// it.
#[must_use]
pub fn error_of(panic: &(dyn Any + Send)) -> Error {
    ENDED.fetch_add(1, Ordering::Relaxed);
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("a panic without a message");
    let place = PLACE.try_with(|p| p.borrow_mut().take()).ok().flatten();
    let at = place.map(|p| format!(" at {p}")).unwrap_or_default();
    Error::Internal(format!(
        "{text}{at}; `jindou check` tells whether files of the store are damaged"
    ))
}

/// Number of panics in this process that ended a query, an update or a request.
#[must_use]
pub fn ended() -> u64 {
    ENDED.load(Ordering::Relaxed)
}

/// Installs the hook that records source locations of panics, once.
#[inline]
fn note_places() {
    static HOOK: Once = Once::new();
    // Setting a hook on a thread that is panicking would panic again.
    if HOOK.is_completed() || std::thread::panicking() {
        return;
    }
    HOOK.call_once(set_hook);
}

#[cold]
fn set_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        // A thread that is ending may have dropped the variable already.
        let _ = PLACE.try_with(|p| p.try_borrow_mut().map(|mut p| *p = place));
        before(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(work: impl FnOnce() -> Result<u8>) -> String {
        match guarded(work) {
            Err(Error::Internal(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn errors_have_the_text_and_the_place() {
        let before = ended();
        let none: Option<u8> = None;
        let line = line!() + 1;
        let said = text(|| Ok(none.invariant("a table has a column")));
        let place = format!("{}:{line}:", file!());
        assert!(
            said.contains("internal invariant violated: a table has a column"),
            "{said}"
        );
        assert!(said.contains(&place), "{said}");

        let list = [1, 2, 3];
        let at = list.len() + usize::from(before > u64::MAX / 2);
        let said = text(|| Ok(list[at]));
        assert!(said.contains("index out of bounds"), "{said}");
        assert!(said.contains(file!()), "{said}");

        let (a, b) = (2, 1);
        let said = text(|| {
            crate::invariant!(a <= b, "{a} is at most {b}");
            Ok(0)
        });
        assert!(said.contains("2 is at most 1"), "{said}");
        assert!(ended() >= before + 3);
    }

    #[test]
    fn what_goes_well_is_left_alone() {
        assert_eq!(
            guarded(|| Ok(Some(7).invariant("it is there"))).ok(),
            Some(7)
        );
        assert!(matches!(
            guarded::<u8>(|| Err(Error::Cancelled)),
            Err(Error::Cancelled)
        ));
    }

    #[test]
    fn a_panic_of_another_thread_keeps_its_text() {
        let panic = std::thread::spawn(|| panic!("over there"))
            .join()
            .unwrap_err();
        let text = error_of(&*panic).to_string();
        assert!(
            text.contains("over there") && !text.contains(".rs"),
            "{text}"
        );
    }
}
