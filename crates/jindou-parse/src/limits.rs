//! Limits on reading a document: time, and memory for the text that parsers hold between two statements.

use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::cell::{Cell, RefCell};
use std::io;

/// Limits of a source. There are none by default.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Token that ends the reading when it is cancelled.
    pub cancel: CancelToken,
    /// Budget to which tokens, lines and windows of decompressors are charged while they are in memory.
    pub memory: MemoryBudget,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cancel: CancelToken::new(),
            memory: MemoryBudget::unlimited(),
        }
    }
}

/// Bytes of text that a statement may have without a charge.
const FREE: u64 = 1 << 20;
/// Number of copies of a token in memory: in a buffer that doubles, in a string, and in a batch of quads.
const COPIES: u64 = 4;

/// Number of nested brackets that a document may have without a charge.
const FREE_LEVELS: u64 = 1 << 10;
/// Bytes that a parser keeps per level of brackets.
const LEVEL: u64 = 1000;

/// Bounds the memory of a parser by counting the text since the last statement, which is the most that the parser can
/// hold: all of it, if it is one long literal or comment. Open brackets take memory regardless of statements.
pub(crate) struct Meter {
    limits: Limits,
    since: Cell<u64>,
    levels: Cell<u64>,
    charge: RefCell<Charge>,
    failed: RefCell<Option<Error>>,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            since: Cell::new(0),
            levels: Cell::new(0),
            charge: RefCell::new(Charge::new(Holder::Text, &limits.memory)),
            failed: RefCell::new(None),
        }
    }

    /// Counts bytes that were read. Fails if a limit is exceeded.
    pub(crate) fn read(&self, bytes: usize) -> io::Result<()> {
        let since = self.since.get() + bytes as u64;
        self.since.set(since);
        let checked = self.limits.cancel.check().and_then(|()| {
            let levels = self.levels.get();
            let text = beyond(since, FREE) * COPIES;
            let open = beyond(levels, FREE_LEVELS) * LEVEL;
            let all = text + open;
            if all == 0 {
                return Ok(());
            }
            let refused = |e| match all {
                _ if open > text => because(e, format!("{levels} brackets are open")),
                _ => no_room(e, since),
            };
            self.charge.borrow_mut().set(all).map_err(refused)
        });
        checked.map_err(|e| {
            *self.failed.borrow_mut() = Some(e);
            io::Error::new(io::ErrorKind::InvalidData, "a limit is reached")
        })
    }

    /// Records the number of open brackets.
    pub(crate) fn levels(&self, open: u64) {
        self.levels.set(open);
    }

    /// Records the end of a statement.
    #[inline]
    pub(crate) fn statement(&self) {
        if self.since.replace(0) > FREE {
            let mut charge = self.charge.borrow_mut();
            let open = beyond(self.levels.get(), FREE_LEVELS) * LEVEL;
            // Releasing memory is never refused.
            let less = open.min(charge.bytes());
            let _ = charge.set(less);
        }
    }

    /// The reason why reading failed, if that was a limit. Returned once.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.borrow_mut().take()
    }
}

/// The error of an exceeded budget, with a note on the text that was too long.
pub(crate) fn no_room(error: Error, bytes: u64) -> Error {
    let long = format!(
        "a literal, comment, line or name has {} MiB and has not ended yet",
        bytes >> 20
    );
    because(error, long)
}

/// The error of an exceeded budget, with a note on what did not fit.
fn because(error: Error, what: String) -> Error {
    match error {
        Error::Limit(why) => Error::Limit(why.told(|why| format!("{what}: {why}"))),
        other => other,
    }
}

/// `n` if it exceeds what is free of charge, otherwise 0.
fn beyond(n: u64, free: u64) -> u64 {
    if n > free { n } else { 0 }
}

/// The error inside of a reader's error, if a limit caused it.
pub(crate) fn unwrapped(error: io::Error) -> Result<Error, io::Error> {
    error.downcast::<Error>()
}
