//! Stores for tests, in folders that go with them.

#![allow(dead_code)]

use jindou::{Database, LoadOptions, OpenOptions, Progress, QuadSource, Runtime, Sharding};
use jindou_parse::{Format, Sources};
use std::path::PathBuf;
use tempfile::TempDir;

/// A store and its folder.
pub struct Store {
    pub folder: TempDir,
    pub dir: PathBuf,
    pub db: Database,
}

/// Loads a source.
pub fn load(source: &dyn QuadSource) -> Store {
    load_cut(source, None)
}

/// Loads a source into shards, or one store.
pub fn load_cut(source: &dyn QuadSource, sharding: Option<Sharding>) -> Store {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_threads(2)
        .with_memory(1 << 30)
        .with_sharding(sharding);
    Database::load(&dir, source, &options, &Progress::default()).expect("a load");
    // Helpers whatever the machine has.
    let open = OpenOptions::default().with_runtime(Runtime::builder().threads(4).build());
    let db = Database::open_with(&dir, &open).expect("a store");
    Store { folder, dir, db }
}

/// Loads TriG text.
pub fn of_trig(text: &str) -> Store {
    let sources = Sources::builder()
        .text("test.trig", text.as_bytes().to_vec(), Format::TriG)
        .build()
        .expect("sources");
    load(&sources)
}

/// Loads files.
pub fn of_files(files: &[PathBuf]) -> Store {
    let mut builder = Sources::builder();
    for f in files {
        builder = builder.path(f);
    }
    load(&builder.build().expect("sources"))
}
