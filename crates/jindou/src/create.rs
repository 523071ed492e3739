//! Stores that begin empty.

use crate::database::Database;
use jindou_model::{Error, Progress, QuadSink, QuadSource, Result};
use jindou_store::{LoadOptions, LoadReport};
use std::path::Path;

/// A source without a quad.
struct NoQuads;

impl QuadSource for NoQuads {
    fn run(&self, _: usize, _: usize, _: &mut dyn QuadSink, _: &Progress) -> Result<()> {
        Ok(())
    }
}

/// Makes an empty store where there is none.
///
/// # Errors
/// As [`Database::create`], except that a store may be there.
pub(crate) fn unless_there(dir: &Path, options: &LoadOptions) -> Result<()> {
    match Database::create(dir, options) {
        // Another process was faster.
        Ok(_) | Err(Error::StoreExists { .. }) => Ok(()),
        Err(e) => Err(e),
    }
}

impl Database {
    /// Makes an empty store directory, all or nothing, where there is nothing or an empty folder.
    /// [`OpenOptions::create`](crate::OpenOptions::create) does so when a store is opened.
    ///
    /// ```
    /// use jindou::{Access, Database, OpenOptions, UpdateOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let dir = folder.path().join("new.store");
    /// let options = OpenOptions::default().with_access(Access::Write).with_create(true);
    /// let db = Database::open_with(&dir, &options)?;
    /// assert_eq!(db.quads(), 0);
    /// let text = "INSERT DATA { <http://e/mars> a <http://e/Planet> }";
    /// db.update(text, &UpdateOptions::default())?;
    /// drop(db);
    /// assert_eq!(Database::open_with(&dir, &options)?.quads(), 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::StoreExists`]; [`Error::NotAStore`] for a file and for a folder that has anything else in it; [`Error::Io`].
    pub fn create(dir: impl AsRef<Path>, options: &LoadOptions) -> Result<LoadReport> {
        Self::load(dir, &NoQuads, options, &Progress::default())
    }
}
