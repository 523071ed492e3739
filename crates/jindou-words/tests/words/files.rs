//! Files of an index that are damaged, cut or lost.

use super::model::{Model, WORDS};
use super::support::{Rng, World, counted, functions, opened, options, rows};
use jindou::{Database, Error, QueryOptions, Verify};
use std::time::Duration;

const FILE: &str = "index-words.jd";

fn questions() -> Vec<String> {
    let words = WORDS.iter();
    words
        .map(|w| format!("SELECT ?s {{ ?s :text ?t FILTER(fn:word(?t, \"{w}\")) }}"))
        .chain(["SELECT ?s { ?s ?p ?t FILTER(CONTAINS(?t, \"e plum g\")) }".to_owned()])
        .collect()
}

#[test]
fn flipped_bits_are_found_and_never_crash_a_query() {
    flipped(100);
}

#[test]
#[ignore = "a quarter of a minute; see docs/testing.md"]
fn many_flipped_bits_are_found_and_never_crash_a_query() {
    flipped(1000);
}

fn flipped(flips: usize) {
    let mut rng = Rng(21);
    let model = Model::random(&mut rng, 250);
    let (indexes, _) = counted(true);
    let world = World::new(&model.trig(), &indexes);
    let path = world.store().join(FILE);
    let sound = std::fs::read(&path).unwrap();
    let asked = QueryOptions::default()
        .with_functions(functions())
        .with_timeout(Duration::from_secs(20));
    let mut answered = 0;
    for flip in 0..flips {
        let mut bad = sound.clone();
        // Half of them in the head and the ends of words and lists, which say where to read.
        let at = match flip % 2 {
            0 => rng.below(1024.min(bad.len())),
            _ => rng.below(bad.len()),
        };
        bad[at] ^= 1 << rng.below(8);
        std::fs::write(&path, &bad).unwrap();
        let report = Database::check_with(world.store(), &indexes).unwrap();
        let named = report.damages.iter().any(|d| d.file == FILE);
        assert!(named, "byte {at}: {:?}", report.damages);
        let plain = Database::check(world.store()).unwrap();
        assert!(plain.damages.iter().any(|d| d.file == FILE), "byte {at}");
        let eager = options(&indexes).with_verify(Verify::Eager);
        let refused = Database::open_with(world.store(), &eager)
            .err()
            .expect("damage");
        assert!(refused.to_string().contains(FILE), "{refused}");
        // Unverified it opens, or says why not; answers may be wrong then, and end.
        match Database::open_with(world.store(), &options(&indexes)) {
            Ok(db) => {
                for text in questions() {
                    let text = super::support::PREFIXES.to_owned() + &text;
                    match db.query_with(&text, &asked) {
                        Ok(_) => answered += 1,
                        Err(e) => assert!(
                            matches!(e, Error::Damaged { .. } | Error::Internal(_)),
                            "{e}"
                        ),
                    }
                }
            }
            Err(e) => assert!(e.to_string().contains(FILE), "{e}"),
        }
    }
    assert!(answered > flips * 5 / 2, "{answered}");
    std::fs::write(&path, &sound).unwrap();
    assert!(
        Database::check_with(world.store(), &indexes)
            .unwrap()
            .is_sound()
    );
}

#[test]
fn whatever_the_hashes_say_the_check_looks_inside() {
    // A file with right hashes and wrong lists: as a defect of the builder would leave it.
    use jindou::index::Dictionary;
    use jindou::index::{Index, IndexFile, IndexWriter, Indexes, OpenIndex, Terms};
    use std::sync::Arc;

    struct Wrong;

    impl Index for Wrong {
        fn name(&self) -> &str {
            "words"
        }

        fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> jindou::Result<()> {
            file.begin(1)?;
            file.write(b"ba")?;
            file.begin(2)?;
            file.write_u64s(&[1, 2])?;
            file.begin(3)?;
            file.write_u64s(&[2, 3])?;
            file.begin(4)?;
            file.write_u32s(&[5, 4, terms.len() + 9])?;
            file.begin(5)?;
            file.write_u32s(&[0])
        }

        fn open(
            &self,
            f: Option<Arc<IndexFile>>,
            d: &Dictionary,
        ) -> jindou::Result<Box<dyn OpenIndex>> {
            jindou_words::Words.open(f, d)
        }
    }

    let model = Model::random(&mut Rng(4), 60);
    let wrong = Indexes::new().with(Wrong).unwrap();
    let world = World::new(&model.trig(), &wrong);
    assert!(Database::check(world.store()).unwrap().is_sound());
    let report = Database::check_with(world.store(), &wrong).unwrap();
    let found: Vec<&str> = report.damages.iter().map(|d| &*d.what).collect();
    for what in [
        "word 1 does not follow",
        "list of word 0 is not",
        "list of word 1 is not",
        "long texts are not",
    ] {
        assert!(found.iter().any(|f| f.contains(what)), "{what}: {found:?}");
    }
}

#[test]
fn a_file_that_is_cut_or_lost_is_named() {
    let model = Model::random(&mut Rng(22), 100);
    let (indexes, _) = counted(true);
    let world = World::new(&model.trig(), &indexes);
    let path = world.store().join(FILE);
    let sound = std::fs::read(&path).unwrap();
    let (without, _) = counted(false);
    for length in [0, 1, 511, 512, sound.len() - 1] {
        std::fs::write(&path, &sound[..length]).unwrap();
        for indexes in [&indexes, &without] {
            let e = Database::open_with(world.store(), &options(indexes))
                .err()
                .expect("a cut file");
            assert!(e.to_string().contains(FILE), "{e}");
        }
        let report = Database::check(world.store()).unwrap();
        assert!(report.damages.iter().any(|d| d.file == FILE), "{length}");
    }
    std::fs::remove_file(&path).unwrap();
    let e = Database::open_with(world.store(), &options(&indexes))
        .err()
        .expect("a lost file");
    assert!(
        e.to_string()
            .contains("index-words.jd: the file is missing"),
        "{e}"
    );
    std::fs::write(&path, &sound).unwrap();
    // The index of another store.
    let other = World::new(&Model::random(&mut Rng(23), 90).trig(), &indexes);
    drop(opened(&other.store(), &indexes));
    let mut foreign = std::fs::read(other.store().join(FILE)).unwrap();
    foreign.resize(sound.len(), 0);
    // Its head says how long it is.
    foreign[16..24].copy_from_slice(&(sound.len() as u64).to_le_bytes());
    std::fs::write(&path, &foreign).unwrap();
    let e = Database::open_with(world.store(), &options(&indexes))
        .err()
        .expect("a foreign file");
    assert!(e.to_string().contains("belongs to another"), "{e}");
}

#[test]
fn a_file_that_shrinks_while_it_is_open_gives_an_error() {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..20_000 {
        text += &format!(":s{i} :text \"word{i} common{} of all\" .\n", i % 50);
    }
    let (indexes, _) = counted(true);
    let world = World::new(&text, &indexes);
    let db = opened(&world.store(), &indexes);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(world.store().join(FILE))
        .unwrap();
    file.set_len(4096).unwrap();
    let asked = QueryOptions::default().with_functions(functions());
    let text = super::support::PREFIXES.to_owned()
        + "SELECT ?s { ?s :text ?t FILTER(fn:word(?t, \"common7\")) }";
    let e = db
        .query_with(&text, &asked)
        .expect_err("a file that shrank");
    assert!(
        matches!(e, Error::Damaged { .. }) && e.to_string().contains(FILE),
        "{e}"
    );
    assert!(db.query("ASK { ?s ?p ?o }").is_err(), "for good");
}

#[test]
fn another_version_is_passed_over_until_it_is_built_anew() {
    use jindou::index::Dictionary;
    use jindou::index::{Index, IndexFile, IndexWriter, Indexes, OpenIndex, Terms};
    use std::sync::Arc;

    struct Newer;

    impl Index for Newer {
        fn name(&self) -> &str {
            "words"
        }

        fn version(&self) -> u32 {
            2
        }

        fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> jindou::Result<()> {
            jindou_words::Words.build(terms, file)
        }

        fn open(
            &self,
            f: Option<Arc<IndexFile>>,
            d: &Dictionary,
        ) -> jindou::Result<Box<dyn OpenIndex>> {
            jindou_words::Words.open(f, d)
        }
    }

    let model = Model::random(&mut Rng(31), 150);
    let (indexes, _) = counted(true);
    let world = World::new(&model.trig(), &indexes);
    let newer = Indexes::new().with(Newer).unwrap();
    let state = || {
        Database::info_with(world.store(), &newer).unwrap().indexes[0]
            .1
            .clone()
    };
    assert!(state().starts_with("of another version"), "{}", state());
    let db = opened(&world.store(), &newer);
    let want = questions()
        .iter()
        .map(|q| rows(&opened(&world.store(), &indexes), q))
        .collect::<Vec<_>>();
    let got = || questions().iter().map(|q| rows(&db, q)).collect::<Vec<_>>();
    assert_eq!(got(), want);
    db.recluster(&Default::default(), &Default::default())
        .unwrap();
    assert!(state().contains("words of"), "{}", state());
    assert_eq!(got(), want);
}
