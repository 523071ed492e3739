//! The committed fatbin belongs to the committed kernels.

use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// As in `kernels/build.sh`.
const SOURCES: [&str; 10] = [
    "device.cuh",
    "params.cuh",
    "segment.cuh",
    "compact.cuh",
    "start.cu",
    "filter.cu",
    "measure.cu",
    "expand.cu",
    "fold.cu",
    "all.cu",
];

fn kernel_file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels")).join(name)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[test]
fn the_fatbin_was_built_from_these_sources() {
    let mut all = vec![];
    for name in SOURCES {
        all.extend(std::fs::read(kernel_file(name)).unwrap());
    }
    let recorded = std::fs::read_to_string(kernel_file("jindou.fatbin.sources.sha256")).unwrap();
    assert_eq!(recorded.trim(), hex(&all), "run kernels/build.sh");
    let recorded = std::fs::read_to_string(kernel_file("jindou.fatbin.sha256")).unwrap();
    assert_eq!(
        recorded.trim(),
        hex(jindou_gpu::FATBIN),
        "run kernels/build.sh"
    );
    let listed: Vec<String> = std::fs::read_dir(kernel_file(""))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".cu") || n.ends_with(".cuh"))
        .collect();
    assert_eq!(
        listed.len(),
        SOURCES.len(),
        "a kernel file that the hash does not cover: {listed:?}"
    );
}

#[test]
fn without_a_gpu_one_sentence_says_so() {
    if let Err(why) = jindou_gpu::Cuda::open() {
        assert!(why.starts_with("no GPU is used: "), "{why}");
        assert!(!why.contains('\n'));
    }
}
