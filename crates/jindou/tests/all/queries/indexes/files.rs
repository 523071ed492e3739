//! Files of an index that are truncated, missing, of another store, or have wrong content.

use super::model::Model;
use super::support::{World, counted, opened, options};
use super::words::Words;
use jindou::index::{Dictionary, Index, IndexFile, IndexWriter, Indexes, OpenIndex, Terms};
use jindou::{Database, Result};
use jindou_testing::Rng;
use std::sync::Arc;

const FILE: &str = "index-words.jd";

#[test]
fn whatever_the_hashes_say_the_check_looks_inside() {
    /// Makes a file with correct checksums and wrong lists, as a bug in the builder would.
    struct Wrong;

    impl Index for Wrong {
        fn name(&self) -> &str {
            "words"
        }

        fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
            file.begin(1)?;
            file.write(b"ba")?;
            file.begin(2)?;
            file.write_u64s(&[1, 2])?;
            file.begin(3)?;
            file.write_u64s(&[2, 3])?;
            file.begin(4)?;
            file.write_u32s(&[5, 4, terms.len() + 9])
        }

        fn open(&self, f: Option<Arc<IndexFile>>, d: &Dictionary) -> Result<Box<dyn OpenIndex>> {
            Words.open(f, d)
        }
    }

    let model = Model::random(&mut Rng::new(4), 60);
    let wrong = Indexes::new().with(Wrong).unwrap();
    let world = World::new(&model.trig(), &wrong);
    assert!(Database::check(world.store()).unwrap().is_sound());
    let report = Database::check_with(world.store(), &wrong).unwrap();
    let found: Vec<&str> = report.damages.iter().map(|d| &*d.what).collect();
    for what in [
        "word 1 does not follow",
        "list of word 0 is not",
        "list of word 1 is not",
    ] {
        assert!(found.iter().any(|f| f.contains(what)), "{what}: {found:?}");
    }
}

#[test]
fn a_file_that_is_cut_or_lost_is_named() {
    let model = Model::random(&mut Rng::new(22), 100);
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
    // The index file of another store.
    let other = World::new(&Model::random(&mut Rng::new(23), 90).trig(), &indexes);
    drop(opened(&other.store(), &indexes));
    let mut foreign = std::fs::read(other.store().join(FILE)).unwrap();
    foreign.resize(sound.len(), 0);
    // The file's header contains its length, which must match.
    foreign[16..24].copy_from_slice(&(sound.len() as u64).to_le_bytes());
    std::fs::write(&path, &foreign).unwrap();
    let e = Database::open_with(world.store(), &options(&indexes))
        .err()
        .expect("a foreign file");
    assert!(e.to_string().contains("belongs to another"), "{e}");
}
