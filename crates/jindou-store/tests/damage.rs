//! Damaged stores: `check` finds every changed byte, and reading one never panics.

use jindou_model::{Direction, PredicateId, Progress, VertexId, term};
use jindou_store::segment::Scope;
use jindou_store::testing::{QuadList, TermQuad};
use jindou_store::{LoadOptions, Snapshot, check, info, load, open};
use std::path::Path;

fn iri(s: String) -> Vec<u8> {
    let mut out = vec![];
    term::push_iri(&s, &mut out);
    out
}

/// Every kind of finder, value column and index, in a few kilobytes.
fn quads() -> Vec<TermQuad> {
    let mut out = vec![];
    for i in 0..60u32 {
        let s = iri(format!("http://e/s{i}"));
        let g = if i % 3 == 0 {
            iri(format!("http://e/g{}", i % 4))
        } else {
            vec![]
        };
        out.push([
            s.clone(),
            term::rdf_type(),
            iri(format!("http://e/C{}", i % 3)),
            g.clone(),
        ]);
        for j in 0..i % 7 {
            let p = iri(format!("http://e/p{}", (i * j) % 11));
            out.push([
                s.clone(),
                p,
                iri(format!("http://e/s{}", (i * 7 + j) % 60)),
                g.clone(),
            ]);
        }
        let mut o = vec![];
        term::push_typed(
            &(i % 9).to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
            &mut o,
        );
        out.push([s, iri("http://e/n".into()), o, vec![]]);
    }
    out
}

/// Reads everything that queries read. What it finds does not matter.
fn read_all(dir: &Path) {
    let _ = info(dir);
    let Ok(base) = open(dir) else { return };
    let d = base.dictionary();
    let mut buffer = vec![];
    for id in 0..200 {
        buffer.clear();
        d.term(VertexId(id), &mut buffer);
        let _ = d.lookup(&buffer);
        let _ = (
            d.lex(VertexId(id)),
            d.sort_key(VertexId(id)),
            d.kind(VertexId(id)),
        );
        let _ = d.numeric_value(VertexId(id));
        let _ = base.statistics().classes.get(&id);
    }
    let snapshot = Snapshot::of_base(base);
    let (mut keys, mut scratch, mut found) = (vec![], vec![], vec![]);
    for p in 0..snapshot.predicate_count() {
        for direction in [Direction::Out, Direction::In] {
            let view = snapshot.edges(PredicateId(p), direction);
            keys.clear();
            view.candidate_keys(Scope::Union, &mut keys);
            keys.truncate(300);
            keys.extend([0, 1, 77, u32::MAX]);
            view.default.finder.find_many(&keys, &mut found);
            for &key in &keys {
                view.read(key, Scope::Union, &mut scratch);
                view.read(key, Scope::AnyNamed, &mut scratch);
                let _ = view.contains(key, 5, Scope::Union);
                let _ = snapshot.predicates_of(key, direction);
                let _ = snapshot.class_intervals(VertexId(key));
            }
        }
    }
    for g in snapshot.named_graphs().into_iter().take(20) {
        for p in snapshot.graph_predicates(g).into_iter().take(50) {
            snapshot.graph_subjects(g, PredicateId(p), &mut scratch);
        }
    }
}

fn store() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions {
        threads: 1,
        memory: 16 << 20,
        ..LoadOptions::default()
    };
    load(&dir, &QuadList(&quads()), &options, &Progress::default()).unwrap();
    (folder, dir)
}

/// A bit of every byte of the headers and small files, and of a sample of the rest.
#[test]
fn every_changed_byte_is_found_and_none_makes_a_reader_panic() {
    let (_folder, dir) = store();
    assert!(check(&dir).unwrap().is_sound());
    read_all(&dir);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        for at in 0..good.len() {
            if at > 320 && at % 97 != 0 {
                continue;
            }
            bad[at] ^= 1 << (at * 5 % 8);
            std::fs::write(&path, &bad).unwrap();
            let found = !check(&dir).is_ok_and(|r| r.is_sound());
            assert!(found, "byte {at} of {}", path.display());
            read_all(&dir);
            bad[at] = good[at];
        }
        std::fs::write(&path, &good).unwrap();
    }
    assert!(check(&dir).unwrap().is_sound());
}

#[test]
fn damage_is_named_with_file_and_bytes() {
    let (_folder, dir) = store();
    let path = dir.join("segments-in.jd");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let report = check(&dir).unwrap();
    let d = &report.damages[0];
    assert_eq!(d.file, "segments-in.jd");
    assert!(d.bytes.as_ref().unwrap().contains(&(at as u64)), "{d}");
}

#[test]
fn cut_and_lost_files_are_one_sentence() {
    let (_folder, dir) = store();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let good = std::fs::read(&path).unwrap();
        for len in [0, 9, good.len() / 2, good.len() - 1] {
            std::fs::write(&path, &good[..len]).unwrap();
            assert!(!check(&dir).is_ok_and(|r| r.is_sound()), "{name} {len}");
            if name != "checksums.jd" {
                let e = open(&dir).err().unwrap().to_string();
                assert!(e.contains(&name) || e.contains("not a store"), "{e}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!check(&dir).is_ok_and(|r| r.is_sound()), "{name}");
        if name != "checksums.jd" {
            let e = open(&dir).err().unwrap().to_string();
            assert!(e.contains(&name) && !e.contains('\n'), "{e}");
        }
        std::fs::write(&path, &good).unwrap();
    }
}

#[test]
fn check_sees_what_hashes_cannot() {
    // A file that is internally wrong but was hashed so: swap two neighbours and seal the store again.
    let (_folder, dir) = store();
    let file = jindou_store::directory::SegmentFile::open(
        jindou_store::directory::Bytes::map(&dir.join("segments-out.jd")).unwrap(),
        "x",
    )
    .unwrap();
    let record = *file.records().iter().max_by_key(|r| r.edges).unwrap();
    drop(file);
    let path = dir.join("segments-out.jd");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[record.neighbours_at as usize] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    reseal(&dir);
    let report = check(&dir).unwrap();
    assert!(!report.is_sound());
    assert!(
        report.damages.iter().all(|d| d.what.contains("segment")),
        "{:?}",
        report.damages
    );
}

/// Makes checksums and manifest fit the files.
fn reseal(dir: &Path) {
    use jindou_store::directory::{CHECKSUMS, Checksums, MANIFEST, Manifest};
    let mut manifest = Manifest::of_store(dir).unwrap();
    for f in &mut manifest.files {
        f.1 = std::fs::metadata(dir.join(&f.0)).unwrap().len();
    }
    let sums = Checksums::of(dir, &manifest.files, 1).unwrap().to_bytes();
    manifest.checksums = xxhash_rust::xxh3::xxh3_64(&sums);
    std::fs::write(dir.join(CHECKSUMS), sums).unwrap();
    std::fs::write(dir.join(MANIFEST), manifest.to_text()).unwrap();
}
