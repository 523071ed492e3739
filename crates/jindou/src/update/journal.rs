//! The journal, which makes transactions durable. The database accesses it only through this interface.

use jindou_model::Result;

/// Keeps the records of transactions, in order. A record that it has confirmed survives any crash.
pub trait Journal: Send + Sync {
    /// Accepts the record of snapshot `number`, one more than the last accepted, and returns at once.
    ///
    /// # Errors
    /// If it cannot accept records now; the message gives the reason.
    fn append(&self, number: u64, record: Vec<u8>) -> Result<Box<dyn Ticket>>;

    /// Continues after snapshot `number`, the last durable one, once records have failed.
    ///
    /// # Errors
    /// If it cannot continue yet.
    fn reset(&self, number: u64) -> Result<()>;

    /// Separates the records accepted so far from later ones, so that [`Self::forget`] can remove all of them.
    fn begin_file(&self) {}

    /// Makes all accepted records durable.
    ///
    /// # Errors
    /// If that is not possible now.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Removes records up to that of snapshot `upto`, which is now stored elsewhere.
    ///
    /// # Errors
    /// If they cannot be removed; no data is lost.
    fn forget(&self, upto: u64) -> Result<()> {
        let _ = upto;
        Ok(())
    }

    /// Ok while nothing else can write the journal's storage.
    ///
    /// # Errors
    /// The reason why something else can.
    fn check_alone(&self) -> Result<()> {
        Ok(())
    }

    /// Ok if a record would probably be accepted now.
    ///
    /// # Errors
    /// The reason why it would not.
    fn probe(&self) -> Result<()> {
        self.check_alone()
    }

    /// The current status of the journal, if it is a log.
    fn status(&self) -> Option<jindou_log::Status> {
        None
    }
}

/// The promise that a record will be durable.
pub trait Ticket: Send {
    /// Blocks until the record is durable, in the sense for which the journal was opened, or has failed. When a record
    /// fails, all records after it fail too, until [`Journal::reset`].
    ///
    /// # Errors
    /// The reason for the failure.
    fn wait(self: Box<Self>) -> Result<()>;
}

/// A journal that keeps nothing: for databases in memory, whose changes end with the process.
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
