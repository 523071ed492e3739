//! Index builders that fail or are cancelled, and the terms that a builder receives.

use super::support::{World, counted, load, opened, texts};
use super::words::Words;
use jindou::index::Dictionary;
use jindou::index::{Index, IndexFile, IndexWriter, Indexes, OpenIndex, Terms};
use jindou::{CancelToken, Database, Error, Progress, ReclusterOptions, Result};
use std::sync::Arc;

type Build = fn(&Terms<'_>) -> Result<()>;

/// An index whose builder runs a given function.
struct Building(Build);

impl Index for Building {
    fn name(&self) -> &str {
        "building"
    }

    fn build(&self, terms: &Terms<'_>, _: &mut IndexWriter) -> Result<()> {
        (self.0)(terms)
    }

    fn open(&self, f: Option<Arc<IndexFile>>, d: &Dictionary) -> Result<Box<dyn OpenIndex>> {
        Words.open(f, d)
    }
}

#[test]
fn an_index_that_cannot_be_built_leaves_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let fails: [(Build, &str); 3] = [
        (|t| t.memory().charge(1 << 40), "memory limit"),
        (
            |_| panic!("a defect"),
            "building the index building panicked",
        ),
        (
            |t| {
                t.for_each(0..t.len(), |id, _| match id.0 {
                    7 => Err(Error::external("seven")),
                    _ => Ok(()),
                })
            },
            "seven",
        ),
    ];
    for (fail, why) in fails {
        let indexes = Indexes::new().with(Building(fail)).unwrap();
        let e = load(&dir, &texts(100), &indexes, 1 << 28).unwrap_err();
        assert!(e.to_string().contains(why), "{e}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn terms_come_all_in_order_with_their_ids() {
    let indexes = Indexes::new()
        .with(Building(|terms| {
            let (mut last, mut seen) = (vec![], vec![false; terms.len() as usize + 1]);
            let mut count = 0;
            terms.for_each(0..terms.len(), |id, bytes| {
                assert!(count == 0 || last.as_slice() < bytes);
                last = bytes.to_vec();
                assert!(!std::mem::replace(&mut seen[id.0 as usize], true) && id.0 > 0);
                count += 1;
                Ok(())
            })?;
            assert_eq!(count, terms.len());
            Err(Error::external("all seen"))
        }))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let e = load(
        &folder.path().join("store"),
        &texts(10_000),
        &indexes,
        1 << 28,
    )
    .unwrap_err();
    assert!(e.to_string().contains("all seen"), "{e}");
}

#[test]
fn reclustering_is_cancelled_while_an_index_is_built() {
    // Only the builder itself can cancel at the right moment, so it needs the token in a static variable.
    static CANCEL: std::sync::OnceLock<CancelToken> = std::sync::OnceLock::new();
    let cancel = CANCEL.get_or_init(CancelToken::new);
    let indexes = Indexes::new()
        .with(Building(|terms| {
            CANCEL.get().expect("set").cancel();
            terms.for_each(0..terms.len(), |_, _| Ok(()))
        }))
        .unwrap();
    let (without, _) = counted(false);
    let world = World::new(&texts(100), &without);
    let db = opened(&world.store(), &indexes);
    let options = ReclusterOptions::default().with_cancel(cancel.clone());
    let e = db.recluster(&options, &Progress::default()).unwrap_err();
    assert!(matches!(e, Error::Cancelled), "{e}");
    assert!(!world.store().join("base-1").exists());
    drop(db);
    assert!(Database::check(world.store()).unwrap().is_sound());
}
