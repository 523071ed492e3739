//! Stores with an index that counts its calls.

use super::words::{HAS_WORD, Words, has_word};
use jindou::index::{
    Dictionary, Estimate, Index, IndexFile, IndexWriter, Indexes, OpenIndex, Probe, Question,
    Terms, Verdict,
};
use jindou::parse::Format;
use jindou::testing::source;
use jindou::{
    Access, Database, Durability, Functions, LoadOptions, OpenOptions, Progress, QueryOptions,
    Result, Runtime,
};
use oxrdf::Literal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const PREFIXES: &str = "PREFIX : <http://e/> PREFIX fn: <http://example.org/fn#> ";

/// Turtle with texts of three words each: one that no other text has, one that a fiftieth of the texts have, and one
/// that all have.
pub fn texts(count: usize) -> String {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..count {
        text += &format!(
            ":s{i} :text \"Number{i} common{} all\" ; :n {i} .\n",
            i % 50
        );
    }
    text
}

/// Numbers of batches that were tested, of ids in them, and of lists of ids that were returned.
#[derive(Clone, Default)]
pub struct Counts {
    pub tests: Arc<AtomicU64>,
    pub tested: Arc<AtomicU64>,
    pub starts: Arc<AtomicU64>,
}

/// The index [`Words`], with its calls counted.
struct Counted(Counts);

impl Index for Counted {
    fn name(&self) -> &str {
        "words"
    }

    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
        Words.build(terms, file)
    }

    fn open(&self, file: Option<Arc<IndexFile>>, d: &Dictionary) -> Result<Box<dyn OpenIndex>> {
        Ok(Box::new(CountedOpen(Words.open(file, d)?, self.0.clone())))
    }
}

struct CountedOpen(Box<dyn OpenIndex>, Counts);

impl OpenIndex for CountedOpen {
    fn probe<'a>(&'a self, q: &Question<'_>, d: &'a Dictionary) -> Option<Box<dyn Probe + 'a>> {
        Some(Box::new(CountedProbe(self.0.probe(q, d)?, self.1.clone())))
    }

    fn check(&self, d: &Dictionary, damage: &mut dyn FnMut(String)) {
        self.0.check(d, damage);
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

struct CountedProbe<'a>(Box<dyn Probe + 'a>, Counts);

impl Probe for CountedProbe<'_> {
    fn estimate(&self) -> Estimate {
        self.0.estimate()
    }

    fn explain(&self) -> String {
        self.0.explain()
    }

    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]) {
        self.1.tests.fetch_add(1, Ordering::Relaxed);
        self.1.tested.fetch_add(ids.len() as u64, Ordering::Relaxed);
        self.0.test_many(ids, out);
    }

    fn ids(&mut self, limit: usize) -> Option<Vec<u32>> {
        let ids = self.0.ids(limit)?;
        assert!(ids.len() <= limit);
        self.1.starts.fetch_add(1, Ordering::Relaxed);
        Some(ids)
    }
}

/// The set of indexes, with the word index if `indexed`, and its counters.
pub fn counted(indexed: bool) -> (Indexes, Counts) {
    let counts = Counts::default();
    let mut indexes = Indexes::new();
    if indexed {
        indexes.register(Arc::new(Counted(counts.clone()))).unwrap();
    }
    (indexes, counts)
}

pub struct World(tempfile::TempDir);

pub fn load(dir: &Path, turtle: &str, indexes: &Indexes, memory: u64) -> Result<()> {
    let options = LoadOptions::default()
        .with_threads(2)
        .with_memory(memory)
        .with_indexes(indexes.clone());
    let source = source(turtle, Format::Turtle);
    Database::load(dir, &source, &options, &Progress::default()).map(drop)
}

impl World {
    pub fn new(turtle: &str, indexes: &Indexes) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        load(&world.store(), turtle, indexes, 256 << 20).unwrap();
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }
}

pub fn options(indexes: &Indexes) -> OpenOptions {
    OpenOptions::default()
        .with_access(Access::Any)
        .with_durability(Durability::None)
        .with_indexes(indexes.clone())
        .with_runtime(Runtime::builder().threads(2).build())
}

pub fn opened(dir: &Path, indexes: &Indexes) -> Database {
    Database::open_with(dir, &options(indexes)).expect("the store")
}

/// The set of functions with the one that the index supports.
pub fn functions() -> Functions {
    Functions::new()
        .with(HAS_WORD, 2..=2, |arguments| {
            let [Some(text), Some(word)] = arguments else {
                return None;
            };
            Some(Literal::from(has_word(text.text()?, word.text()?)?).into())
        })
        .unwrap()
}

/// The local names in the first column, sorted.
pub fn rows(db: &Database, text: &str) -> Vec<String> {
    let options = QueryOptions::default().with_functions(functions());
    let answer = db.query_with(&(PREFIXES.to_owned() + text), &options);
    let answer = answer.unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut names: Vec<String> = answer
        .solutions()
        .iter()
        .map(|row| match &row[0] {
            Some(oxrdf::Term::NamedNode(n)) => {
                n.as_str().trim_start_matches("http://e/").to_owned()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    names.sort();
    names
}
