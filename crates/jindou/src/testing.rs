//! Small stores for tests, made by a real load.

use crate::parse::{Format, Sources};
use crate::{
    Database, LoadOptions, OpenOptions, Progress, QuadSink, QuadSource, Result, Runtime, Sharding,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A store in a temporary folder.
pub struct Store {
    /// The temporary folder, deleted when this is dropped.
    pub folder: TempDir,
    /// The store directory inside the folder.
    pub dir: PathBuf,
    /// The open store.
    pub db: Database,
}

impl Store {
    /// Loads a source.
    ///
    /// # Panics
    /// When the load fails.
    #[must_use]
    pub fn load(source: &dyn QuadSource) -> Self {
        Self::load_sharded(source, None)
    }

    /// Loads a source, into shards if `sharding` is given.
    ///
    /// # Panics
    /// When the load fails.
    #[must_use]
    pub fn load_sharded(source: &dyn QuadSource, sharding: Option<Sharding>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dir = folder.path().join("store");
        let options = LoadOptions::default()
            .with_threads(2)
            .with_memory(1 << 30)
            .with_sharding(sharding);
        Database::load(&dir, source, &options, &Progress::default()).expect("a load");
        // Four threads on any machine, so that helper threads run as well.
        let open = OpenOptions::default().with_runtime(Runtime::builder().threads(4).build());
        let db = Database::open_with(&dir, &open).expect("a store");
        Self { folder, dir, db }
    }

    /// Loads TriG text.
    ///
    /// # Panics
    /// When the load fails.
    #[must_use]
    pub fn of_trig(text: &str) -> Self {
        Self::load(&source(text, Format::TriG))
    }

    /// Loads files.
    ///
    /// # Panics
    /// When the load fails.
    #[must_use]
    pub fn of_files(files: &[PathBuf]) -> Self {
        let mut builder = Sources::builder();
        for f in files {
            builder = builder.path(f);
        }
        Self::load(&builder.build().expect("sources"))
    }
}

/// A source with the quads of a text.
///
/// # Panics
/// When the source cannot be made.
#[must_use]
pub fn source(text: &str, format: Format) -> Sources {
    let builder = Sources::builder().text("test", text.as_bytes(), format);
    builder.build().expect("a source")
}

/// A source without quads.
pub struct Nothing;

impl QuadSource for Nothing {
    fn run(&self, _: usize, _: usize, _: &mut dyn QuadSink, _: &Progress) -> Result<()> {
        Ok(())
    }
}

/// Loads N-Quads text into a store directory.
///
/// # Errors
/// When the load fails.
pub fn load_nquads(dir: &Path, nquads: &str) -> Result<()> {
    load_nquads_cut(dir, nquads, None)
}

/// As [`load_nquads`], into shards.
///
/// # Errors
/// When the load fails.
pub fn load_nquads_cut(dir: &Path, nquads: &str, sharding: Option<Sharding>) -> Result<()> {
    let options = LoadOptions::default()
        .with_threads(1)
        .with_memory(1 << 28)
        .with_sharding(sharding);
    let progress = Progress::default();
    if nquads.is_empty() {
        Database::load(dir, &Nothing, &options, &progress)?;
    } else {
        let source = source(nquads, Format::NQuads);
        Database::load(dir, &source, &options, &progress)?;
    }
    Ok(())
}
