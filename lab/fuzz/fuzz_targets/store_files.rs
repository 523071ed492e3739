//! Opens, reads and checks stores with damaged files behind sound checksums: nothing may panic or hang.
//!
//! The input is a list of edits of 6 bytes: file, kind, position (4 bytes). The manifest and checksums
//! are made to fit again, so that the damage reaches the readers.

#![no_main]

use jindou_model::Progress;
use jindou_store::directory::FILES;
use jindou_store::testing::{QuadList, read_all, reseal, varied_quads};
use jindou_store::{LoadOptions, check, load};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The sound files, in the order of [`FILES`], and the manifest.
static SOUND: LazyLock<(Vec<Vec<u8>>, Vec<u8>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default().with_threads(1).with_memory(16 << 20);
    load(&dir, &QuadList(&varied_quads()), &options, &Progress::default()).unwrap();
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    (FILES.iter().map(|f| read(f)).collect(), read("manifest.jd"))
});

fuzz_target!(|data: &[u8]| {
    let (mut files, manifest) = SOUND.clone();
    for edit in data.chunks_exact(6).take(64) {
        let file = &mut files[edit[0] as usize % FILES.len()];
        let at = u32::from_le_bytes([edit[2], edit[3], edit[4], edit[5]]) as usize;
        if file.is_empty() {
            continue;
        }
        let at = at % file.len();
        match edit[1] {
            0..8 => file[at] ^= 1 << edit[1],
            8 => file.truncate(at),
            9 => file[at] = 0xFF,
            10 => file.extend_from_slice(&[0; 16]),
            value => file[at] = value,
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("manifest.jd"), manifest).unwrap();
    for (name, bytes) in FILES.iter().zip(&files) {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    reseal(dir).unwrap();
    let _ = check(dir);
    read_all(dir);
});
