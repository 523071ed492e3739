//! Helpers: stores, searches and random numbers.

use jindou::parse::{Format, Sources};
use jindou::search::{LabelOptions, Search, Searched, Text};
use jindou::{
    Access, Database, Durability, Indexes, LoadOptions, OpenOptions, Progress, QueryOptions,
    Result, Runtime, Sharding,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The full-text index as the set of known kinds of indexes.
pub fn texts() -> Indexes {
    Indexes::new().with(Text).unwrap()
}

pub struct World(tempfile::TempDir);

pub fn load(dir: &Path, trig: &str, indexed: bool, memory: u64) -> Result<()> {
    load_sharded(dir, trig, indexed, memory, None)
}

/// Loads a store, split into shards if `sharding` is given.
pub fn load_sharded(
    dir: &Path,
    trig: &str,
    indexed: bool,
    memory: u64,
    sharding: Option<Sharding>,
) -> Result<()> {
    let indexes = if indexed { texts() } else { Indexes::new() };
    let options = LoadOptions::default()
        .with_threads(2)
        .with_memory(memory)
        .with_indexes(indexes)
        .with_sharding(sharding);
    let sources = Sources::builder()
        .text("test.trig", trig.as_bytes().to_vec(), Format::TriG)
        .build()?;
    Database::load(dir, &sources, &options, &Progress::default()).map(drop)
}

impl World {
    pub fn new(trig: &str, indexed: bool) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        load(&world.store(), trig, indexed, 256 << 20).unwrap();
        world
    }

    /// A store that is split into shards.
    pub fn cut(trig: &str, indexed: bool, sharding: Sharding) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        load_sharded(&world.store(), trig, indexed, 256 << 20, Some(sharding)).unwrap();
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }
}

pub fn options() -> OpenOptions {
    OpenOptions::default()
        .with_access(Access::Any)
        .with_durability(Durability::None)
        .with_indexes(texts())
        .with_runtime(Runtime::builder().threads(2).memory(1 << 30).build())
}

pub fn opened(dir: &Path) -> Database {
    Database::open_with(dir, &options()).expect("the store")
}

/// Searches without a time limit that matters.
pub fn search(db: &Database, words: &str, union: bool) -> Searched {
    let query = QueryOptions::default().with_union_default(union);
    let labels = LabelOptions::default().with_query(query);
    let asked = Search::new(words)
        .with_limit(200)
        .with_patience(Duration::from_secs(60))
        .with_labels(labels);
    db.search(&asked).unwrap()
}

/// The local names of the found resources.
pub fn names(found: &Searched) -> Vec<&str> {
    let found = found.found.iter();
    found
        .map(|f| f.iri.trim_start_matches("http://e/"))
        .collect()
}

/// Waits until the index is verified, so that searches begin at once.
pub fn prepared(db: &Database) {
    let begun = Instant::now();
    while !db.is_search_prepared() {
        db.prepare_search();
        assert!(begun.elapsed().as_secs() < 120, "the index is not made");
        std::thread::sleep(Duration::from_millis(5));
    }
}
