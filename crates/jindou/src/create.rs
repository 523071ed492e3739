//! Creation of empty stores.

use crate::database::Database;
use jindou_model::{Error, Progress, QuadSink, QuadSource, Result};
use jindou_store::{LoadOptions, LoadReport};
use std::path::Path;

/// A source without quads.
struct NoQuads;

impl QuadSource for NoQuads {
    fn run(&self, _: usize, _: usize, _: &mut dyn QuadSink, _: &Progress) -> Result<()> {
        Ok(())
    }
}

/// Creates an empty store unless one exists.
///
/// # Errors
/// As [`Database::create`], except that an existing store is not an error.
pub(crate) fn unless_there(dir: &Path, options: &LoadOptions) -> Result<()> {
    match Database::create(dir, options) {
        // Another process has created the store in the meantime.
        Ok(_) | Err(Error::StoreExists { .. }) => Ok(()),
        Err(e) => Err(e),
    }
}

impl Database {
    /// Creates an empty store directory, all or nothing, at a path that does not exist or is an empty folder.
    /// [`OpenOptions::create`](crate::OpenOptions::create) does the same when a store is opened.
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
    /// [`Error::StoreExists`]; [`Error::NotAStore`] for a file and for a folder with any other content; [`Error::Io`].
    pub fn create(dir: impl AsRef<Path>, options: &LoadOptions) -> Result<LoadReport> {
        Self::load(dir, &NoQuads, options, &Progress::default())
    }
}
