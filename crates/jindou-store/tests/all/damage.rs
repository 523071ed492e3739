//! Damaged stores: `check` finds every changed byte, and reading one never panics.

use crate::load::load_into;
use jindou_store::testing::{read_all, reseal, varied_quads};
use jindou_store::{LoadOptions, check, open};

fn store() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default().with_threads(1).with_memory(16 << 20);
    load_into(&dir, &varied_quads(), &options);
    (folder, dir)
}

/// Flips a bit of every byte of the headers and small files, and of a sample of the rest.
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
            if at > 160 && at % 97 != 0 {
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
    // A file that is internally wrong but has matching hashes: two neighbours are swapped and the store is sealed
    // again.
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
    reseal(&dir).unwrap();
    let report = check(&dir).unwrap();
    assert!(!report.is_sound());
    assert!(
        report.damages.iter().all(|d| d.what.contains("segment")),
        "{:?}",
        report.damages
    );
}

/// The fuzz target's work with random edits: files with matching hashes and nonsensical content.
#[test]
fn readers_survive_nonsense_behind_sound_hashes() {
    use jindou_store::directory::FILES;
    let (_folder, dir) = store();
    let manifest = std::fs::read(dir.join("manifest.jd")).unwrap();
    let sound: Vec<Vec<u8>> = FILES
        .iter()
        .map(|f| std::fs::read(dir.join(f)).unwrap())
        .collect();
    let mut x = 1u64;
    let mut draw = |n: usize| {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) as usize % n.max(1)
    };
    for _ in 0..rounds() {
        let file = draw(FILES.len());
        let mut bad = sound[file].clone();
        for _ in 0..1 + draw(4) {
            // Half of the edits in the header, where they do most.
            let room = if draw(2) == 0 {
                bad.len().min(256)
            } else {
                bad.len()
            };
            let at = draw(room);
            bad[at] = [0, 0xFF, bad[at] ^ 1 << draw(8), draw(256) as u8][draw(4)];
        }
        let path = dir.join(FILES[file]);
        std::fs::write(&path, &bad).unwrap();
        std::fs::write(dir.join("manifest.jd"), &manifest).unwrap();
        reseal(&dir).unwrap();
        let _ = check(&dir);
        read_all(&dir);
        std::fs::write(&path, &sound[file]).unwrap();
    }
}

/// Edits to try; `JINDOU_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("JINDOU_ROUNDS")
        .ok()
        .and_then(|r| r.parse().ok())
        .unwrap_or(100)
}
