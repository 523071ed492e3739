//! The journal, which makes transactions last. The database knows it by this seam only.

use jindou_model::Result;

/// Keeps the records of transactions, in order. What it says lasts is there after any crash.
pub trait Journal: Send + Sync {
    /// Takes the record of snapshot `number`, one more than the last taken, and returns at once.
    ///
    /// # Errors
    /// When it cannot take records now; the message says why.
    fn append(&self, number: u32, record: Vec<u8>) -> Result<Box<dyn Ticket>>;

    /// Goes on after snapshot `number` after records failed: that is the last one that lasts.
    ///
    /// # Errors
    /// When it cannot go on yet.
    fn reset(&self, number: u32) -> Result<()>;

    /// The records after those taken so far shall be kept apart from these, so that [`Self::forget`] can forget all of them.
    fn begin_file(&self) {}

    /// Makes durable whatever was taken.
    ///
    /// # Errors
    /// If that is not possible now.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Forgets records up to that of snapshot `upto`, which is kept elsewhere now.
    ///
    /// # Errors
    /// If they cannot be removed; nothing is lost then.
    fn forget(&self, upto: u32) -> Result<()> {
        let _ = upto;
        Ok(())
    }

    /// Ok while nothing else can write what this keeps.
    ///
    /// # Errors
    /// Why someone can.
    fn check_alone(&self) -> Result<()> {
        Ok(())
    }

    /// Ok if a record would probably be accepted now.
    ///
    /// # Errors
    /// Why not.
    fn probe(&self) -> Result<()> {
        self.check_alone()
    }

    /// The present status of the journal, if it is a log.
    fn status(&self) -> Option<jindou_log::Status> {
        None
    }
}

/// The promise of a record to last.
pub trait Ticket: Send {
    /// Blocks until the record lasts, in the sense that the journal was opened for, or failed. When a record failed, all
    /// after it fail too, until [`Journal::reset`].
    ///
    /// # Errors
    /// Why it failed.
    fn wait(self: Box<Self>) -> Result<()>;
}

/// Keeps nothing: for databases in memory, whose changes end with the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullJournal;

impl Journal for NullJournal {
    fn append(&self, _: u32, _: Vec<u8>) -> Result<Box<dyn Ticket>> {
        Ok(Box::new(Self))
    }

    fn reset(&self, _: u32) -> Result<()> {
        Ok(())
    }
}

impl Ticket for NullJournal {
    fn wait(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
