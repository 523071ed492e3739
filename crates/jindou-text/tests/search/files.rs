//! Files of the index that are damaged or truncated.

use super::model::{Model, WORDS};
use super::support::{Rng, World, load, names, opened, options, search, texts};
use jindou::search::Search;
use jindou::{Database, Error, Verify};
use std::time::{Duration, Instant};

const FILE: &str = "index-text.jd";

#[test]
fn flipped_bits_are_found_and_never_crash_a_search() {
    let mut rng = Rng(21);
    let model = Model::random(&mut rng, 60, 300);
    let world = World::new(&model.trig(), true);
    let path = world.store().join(FILE);
    let sound = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for flip in 0..150 {
        let mut bad = sound.clone();
        let at = match flip % 3 {
            0 => rng.below(1024.min(bad.len())),
            1 => bad.len() - 1 - rng.below(1024.min(bad.len())),
            _ => rng.below(bad.len()),
        };
        bad[at] ^= 1 << rng.below(8);
        std::fs::write(&path, &bad).unwrap();
        let report = Database::check_with(world.store(), &texts()).unwrap();
        assert!(report.damages.iter().any(|d| d.file == FILE), "byte {at}");
        let eager = options().with_verify(Verify::Eager);
        let e = Database::open_with(world.store(), &eager)
            .err()
            .expect("damage");
        assert!(e.to_string().contains(FILE), "{e}");
        // The store opens or reports the damage; the first search compares the file with its hash.
        match Database::open_with(world.store(), &options()) {
            Ok(db) => {
                let begun = Instant::now();
                for (word, _) in &WORDS[..4] {
                    let asked = Search::new(word).with_patience(Duration::from_secs(10));
                    match db.search(&asked) {
                        // Flipped bits between sections damage nothing.
                        Ok(found) => assert!(found.complete),
                        Err(e) => {
                            refused += 1;
                            let is_named = matches!(e, Error::Damaged { .. });
                            assert!(is_named && e.to_string().contains(FILE), "{e}");
                        }
                    }
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "byte {at}");
            }
            Err(e) => assert!(e.to_string().contains(FILE), "{e}"),
        }
    }
    assert!(refused > 100, "{refused}");
    std::fs::write(&path, &sound).unwrap();
    let report = Database::check_with(world.store(), &texts()).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
}

#[test]
fn a_file_that_shrinks_while_it_is_open_gives_an_error() {
    let mut text = String::new();
    for i in 0..20_000 {
        text += &format!(
            "<http://e/s{i}> <http://www.w3.org/2000/01/rdf-schema#label> \"word{i} common{} of all\" .\n",
            i % 50
        );
    }
    let world = World::new(&text, true);
    let db = opened(&world.store());
    assert_eq!(names(&search(&db, "word77 com", false)), ["s77"]);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(world.store().join(FILE))
        .unwrap();
    file.set_len(4096).unwrap();
    for words in ["common7 al", "word1", "of"] {
        let asked = Search::new(words).with_patience(Duration::from_secs(5));
        let e = db.search(&asked).expect_err("a file that shrank");
        assert!(
            matches!(e, Error::Damaged { .. }) && e.to_string().contains(FILE),
            "{e}"
        );
    }
}

#[test]
fn the_same_data_makes_the_same_file_and_little_memory_one_as_good() {
    let mut text = String::new();
    for i in 0..60_000 {
        text += &format!(
            "<http://e/Thing{i}> <http://www.w3.org/2000/01/rdf-schema#label> \"Number{i} common{} all\" .\n",
            i % 50
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, memory: u64| {
        let dir = folder.path().join(name);
        load(&dir, &text, true, memory).unwrap();
        let state = Database::info_with(&dir, &texts()).unwrap().indexes;
        assert!(
            state[0].1.starts_with("words of 60000 literals and 6000"),
            "{state:?}"
        );
        (std::fs::read(dir.join(FILE)).unwrap(), opened(&dir), state)
    };
    let (one, db, _) = make("one", 1 << 30);
    let (two, ..) = make("two", 1 << 30);
    assert!(one == two);
    let (_, little, state) = make("little", 4 << 20);
    assert!(!state[0].1.ends_with(" 2 segments"), "{state:?}");
    for db in [&db, &little] {
        assert_eq!(names(&search(db, "number777", false))[0], "Thing777");
        assert!(names(&search(db, "common7 number57", false)).contains(&"Thing57"));
        assert_eq!(names(&search(db, "19999 thing", false)), ["Thing19999"]);
        assert_eq!(search(db, "common7", false).found.len(), 200);
    }
}
