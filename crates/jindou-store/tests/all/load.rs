//! Loads small data and compares every answer of the store with the quads that went in.

use jindou_model::Progress;
use jindou_store::shard::{CLUSTER, Cluster, Sharding};
use jindou_store::testing::agreement::{Draw, agree, quads};
use jindou_store::testing::{QuadList, TermQuad, store_of_terms, varied_quads};
use jindou_store::{LoadOptions, Snapshot, check, info, load, open};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub fn load_into(dir: &Path, quads: &[TermQuad], options: &LoadOptions) {
    load(dir, &QuadList(quads), options, &Progress::default()).unwrap();
}

/// Every file below a folder, by its path there.
fn files_in(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = files_in(&path).into_iter();
            out.extend(below.map(|(n, b)| (format!("{name}/{n}"), b)));
        } else {
            out.insert(name, std::fs::read(&path).unwrap());
        }
    }
    out
}

#[test]
fn a_store_answers_with_what_was_loaded() {
    for (seed, n, graphs) in [
        (1, 0, 0),
        (2, 1, 0),
        (3, 1, 3),
        (4, 700, 0),
        (5, 900, 4),
        (6, 2000, 40),
        (7, 9000, 2),
    ] {
        let data = quads(seed, n, graphs);
        let (folder, base) = store_of_terms(&data);
        agree(&data, &Snapshot::of_base(base));
        let report = check(&folder.path().join("store")).unwrap();
        assert!(report.is_sound(), "{seed}: {:?}", report.damages);
        let info = info(&folder.path().join("store")).unwrap();
        assert_eq!(
            info.quads as usize,
            data.iter().collect::<BTreeSet<_>>().len()
        );
    }
}

#[test]
fn order_threads_and_memory_leave_no_trace() {
    let data = quads(7, 3000, 9);
    let (folder, _) = store_of_terms(&data);
    let want = files_in(&folder.path().join("store"));
    let mut shuffled = data.clone();
    let mut d = Draw(8);
    for i in (1..shuffled.len()).rev() {
        shuffled.swap(i, d.below(i as u64 + 1) as usize);
    }
    for (i, (list, threads, memory)) in [
        (&shuffled, 2, 64 << 20),
        (&data, 1, 64 << 20),
        (&shuffled, 5, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = folder.path().join(format!("other{i}"));
        let options = LoadOptions::default()
            .with_threads(threads)
            .with_memory(memory);
        load_into(&dir, list, &options);
        let got = files_in(&dir);
        assert_eq!(
            got.keys().collect::<Vec<_>>(),
            want.keys().collect::<Vec<_>>()
        );
        for (name, bytes) in got {
            assert!(bytes == want[&name], "{name} differs in load {i}");
        }
    }
}

#[test]
fn the_union_flag_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default().with_union_default(true);
    load_into(&dir, &quads(1, 10, 2), &options);
    assert!(open(&dir).unwrap().union_default());
}

#[test]
fn shards_do_not_depend_on_order_threads_or_memory_and_one_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let data = quads(3, 3_000, 2);
    let mut turned = data.clone();
    turned.reverse();
    let cut = |shards| LoadOptions::default().with_sharding(Some(Sharding::new(shards)));
    let [a, b, one, plain] = ["a", "b", "one", "plain"].map(|n| folder.path().join(n));
    load_into(&a, &data, &cut(3).with_threads(2));
    load_into(&b, &turned, &cut(3).with_threads(1).with_memory(1));
    assert_eq!(files_in(&a), files_in(&b));
    load_into(&one, &data, &cut(1));
    load_into(&plain, &data, &LoadOptions::default());
    assert_eq!(files_in(&one), files_in(&plain));
    // Ids are those of the unsharded store.
    let shard = Cluster::read(&a).unwrap().unwrap();
    assert_eq!(shard.terms, u64::from(open(&plain).unwrap().vertices()));
}

#[test]
fn shards_take_the_place_of_a_store_and_make_room_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let data = quads(4, 300, 1);
    let cut = LoadOptions::default().with_sharding(Some(Sharding::new(4)));
    let whole = LoadOptions::default();
    load_into(&dir, &data, &whole);
    assert!(load(&dir, &QuadList(&data), &cut, &Progress::default()).is_err());
    load_into(&dir, &data, &cut.clone().with_replace(true));
    assert!(dir.join(CLUSTER).exists() && !dir.join("manifest.jd").exists());
    let e = open(&dir).unwrap_err().to_string();
    assert!(e.contains("sharded store"), "{e}");
    let e = open(&dir.join("shard-2")).unwrap_err().to_string();
    assert!(e.contains("shard 2 of 4"), "{e}");
    load_into(&dir, &data, &whole.clone().with_replace(true));
    assert!(!dir.join(CLUSTER).exists());
    open(&dir).unwrap();
    // A foreign file alongside shards stays, and so do they.
    load_into(&dir, &data, &cut.clone().with_replace(true));
    std::fs::write(dir.join("shard-9"), "mine").unwrap();
    let refused = load(
        &dir,
        &QuadList(&data),
        &whole.with_replace(true),
        &Progress::default(),
    );
    assert!(refused.unwrap_err().to_string().contains("shard-9"));
    for shards in [0, 256] {
        let options = LoadOptions::default().with_sharding(Some(Sharding::new(shards)));
        let other = folder.path().join("other");
        assert!(load(&other, &QuadList(&data), &options, &Progress::default()).is_err());
        assert!(!other.exists());
    }
}

#[test]
fn a_damaged_shard_is_named() {
    let sharding = Sharding::new(3).with_block_shift(Some(0));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let cut = LoadOptions::default().with_sharding(Some(sharding));
    load_into(&dir, &varied_quads(), &cut);
    for (name, bytes) in files_in(&dir) {
        let path = dir.join(&name);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 0x55;
            std::fs::write(&path, &bad).unwrap();
            let report = check(&dir).unwrap();
            let named = report.damages.iter().any(|d| d.file == name);
            assert!(named, "{name}, byte {at}: {:?}", report.damages);
        }
        std::fs::remove_file(&path).unwrap();
        if name != CLUSTER {
            assert!(!check(&dir).unwrap().is_sound(), "{name}");
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(check(&dir).unwrap().is_sound());
}
