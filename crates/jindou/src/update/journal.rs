//! The journal, which makes transactions durable. The database uses it only through this interface.

use jindou_model::Result;

/// Stores the records of transactions in order. A confirmed record survives any crash.
pub trait Journal: Send + Sync {
    /// Accepts the record of snapshot `number`, which must be one more than the last accepted number, and returns at
    /// once.
    ///
    /// # Errors
    /// The reason why no record can be accepted now.
    fn append(&self, number: u64, record: Vec<u8>) -> Result<Box<dyn Ticket>>;

    /// Resumes after a failed record. `number` is the last durable snapshot; the next record has the next number.
    ///
    /// # Errors
    /// The reason why the journal cannot resume yet.
    fn reset(&self, number: u64) -> Result<()>;

    /// Starts a new file, so that [`Self::forget`] can remove all records accepted so far.
    fn begin_file(&self) {}

    /// Makes all accepted records durable.
    ///
    /// # Errors
    /// The reason why they cannot be made durable now.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Removes the records up to snapshot `upto`, whose data is now stored elsewhere.
    ///
    /// # Errors
    /// The reason why the records could not be removed. No data is lost.
    fn forget(&self, upto: u64) -> Result<()> {
        let _ = upto;
        Ok(())
    }

    /// Ok while no other process can write the journal's storage.
    ///
    /// # Errors
    /// The reason why another process could.
    fn check_alone(&self) -> Result<()> {
        Ok(())
    }

    /// Ok if a record would probably be accepted now.
    ///
    /// # Errors
    /// The reason why a record would not be accepted.
    fn probe(&self) -> Result<()> {
        self.check_alone()
    }

    /// Status of the log; `None` if the journal is not a log.
    fn status(&self) -> Option<jindou_log::Status> {
        None
    }
}

/// A pending record, whose outcome can be waited for.
pub trait Ticket: Send {
    /// Blocks until the record is durable (as defined by the [`crate::Durability`] of the journal) or has failed. When
    /// a record fails, all later records fail too, until [`Journal::reset`].
    ///
    /// # Errors
    /// The reason for the failure.
    fn wait(self: Box<Self>) -> Result<()>;
}

/// A journal that stores nothing, for databases in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullJournal;

impl Journal for NullJournal {
    fn append(&self, _: u64, _: Vec<u8>) -> Result<Box<dyn Ticket>> {
        Ok(Box::new(Self))
    }

    fn reset(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl Ticket for NullJournal {
    fn wait(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
