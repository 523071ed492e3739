//! Words in all normal forms and scripts, in stores with an index and without, loaded and added by updates, whole and
//! split into shards; and an index whose words were folded by another version.

use super::support::{World, names, opened, options, search, texts};
use jindou::complete::{Completer, Request};
use jindou::index::{Dictionary, Index, IndexFile, IndexWriter, OpenIndex, Terms};
use jindou::parse::{Format, Sources};
use jindou::search::Text;
use jindou::{
    Database, Indexes, LoadOptions, Placement, Progress, ReclusterOptions, Result, Sharding,
    UpdateOptions,
};
use std::sync::Arc;
use std::time::Duration;

/// Name, label, and words by which the label is found.
const LABELS: [(&str, &str, &[&str]); 11] = [
    (
        "korea",
        "한국",
        &["한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"],
    ),
    (
        "athens",
        "Αθήνα",
        &["Αθήνα", "Αθη\u{301}να", "αθηνα", "ΑΘΗΝΑ"],
    ),
    ("may", "Май", &["Май", "Маи\u{306}", "май"]),
    ("fir", "Ёлка", &["Ёлка", "Е\u{308}лка", "елка"]),
    ("glass", "ガラス", &["ガラス", "カ\u{3099}ラス", "ｶﾞﾗｽ"]),
    ("crow", "カラス", &["カラス"]),
    ("peace", "שָׁלוֹם", &["שלום", "שָׁלוֹם"]),
    ("name", "مُحَمَّد", &["محمد", "مُحَمَّد"]),
    ("street", "Straße", &["STRASSE", "straße"]),
    // A label in form D is found by words in form C.
    (
        "formd",
        "Zu\u{308}rich Ε\u{301}δεσσα",
        &["Zürich", "Έδεσσα", "εδεσσα zurich"],
    ),
    ("hindi", "हिन्दी", &["हिन्दी"]),
];

fn quads() -> String {
    let mut text = String::new();
    for (name, label, _) in LABELS {
        text += &format!(
            "<http://e/{name}> <http://www.w3.org/2000/01/rdf-schema#label> \"{label}\" .\n"
        );
    }
    text + "<http://e/page?id=77> a <http://e/Page> .\n"
}

fn compare(db: &Database, what: &str) {
    for (name, _, asked) in LABELS {
        for words in asked {
            let found = search(db, words, true);
            assert_eq!(names(&found), [name], "{what}: {words}");
        }
    }
    for words in ["77", "id", "page id"] {
        let found = search(db, words, true);
        assert_eq!(names(&found), ["page?id=77"], "{what}: {words}");
    }
    // Vowel signs of Indic scripts are not ignored.
    assert!(search(db, "हन्द", true).found.is_empty(), "{what}");
}

#[test]
fn labels_are_found_in_all_normal_forms() {
    for indexed in [true, false] {
        let world = World::new(&quads(), indexed);
        compare(&opened(&world.store()), &format!("indexed: {indexed}"));
        let sharding = Sharding::new(3)
            .with_placement(Placement::Hash)
            .with_block_shift(Some(0));
        let cut = World::cut(&quads(), indexed, sharding);
        compare(&opened(&cut.store()), &format!("cut, indexed: {indexed}"));
    }
    let db = Database::in_memory();
    let insert = format!("INSERT DATA {{ {} }}", quads());
    db.update(&insert, &UpdateOptions::default()).unwrap();
    compare(&db, "in memory");
    let completer = Completer::new(db);
    let of = |word: &str| {
        let text = format!("SELECT * {{ ?s <http://www.w3.org/2000/01/rdf-schema#label> {word}");
        let request = Request {
            patience: Duration::from_secs(20),
            ..Request::new(&text, "")
        };
        let items = completer.complete(&request).unwrap().items;
        let texts: Vec<String> = items.into_iter().map(|i| i.text).collect();
        texts
    };
    for (word, want) in [
        ("αθην", "\"Αθήνα\""),
        ("елк", "\"Ёлка\""),
        ("zur", "Zu\u{308}rich"),
    ] {
        assert!(of(word).iter().any(|t| t.contains(want)), "{word}");
    }
}

/// The index as an earlier version would have built it.
struct Older;

impl Index for Older {
    fn name(&self) -> &str {
        Text.name()
    }

    fn version(&self) -> u32 {
        Text.version() - 1
    }

    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
        Text.build(terms, file)
    }

    fn open(&self, file: Option<Arc<IndexFile>>, d: &Dictionary) -> Result<Box<dyn OpenIndex>> {
        Text.open(file, d)
    }
}

#[test]
fn an_index_with_words_of_another_version_is_not_searched_and_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let load = LoadOptions::default().with_indexes(Indexes::new().with(Older).unwrap());
    let sources = Sources::builder()
        .text("test.ttl", quads().into_bytes(), Format::Turtle)
        .build()
        .unwrap();
    Database::load(&store, &sources, &load, &Progress::default()).unwrap();
    let state = Database::info_with(&store, &texts()).unwrap().indexes;
    assert!(state[0].1.contains("another version"), "{state:?}");
    let db = Database::open_with(&store, &options()).unwrap();
    compare(&db, "an older index");
    assert!(!search(&db, "елка", true).indexed);
    let recluster = ReclusterOptions::default().with_memory(256 << 20);
    db.recluster(&recluster, &Progress::default()).unwrap();
    compare(&db, "a newer index");
    assert!(search(&db, "елка", true).indexed);
}
