//! The committed fatbin must have been built from the committed kernels.

use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The same list as in `kernels/build.sh`.
const SOURCES: &str = "device.cuh params.cuh segment.cuh compact.cuh start.cu filter.cu measure.cu \
    expand.cu fold.cu operators.cu group.cu select.cu all.cu";

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
    for name in SOURCES.split(' ') {
        all.extend(std::fs::read(kernel_file(name)).unwrap());
    }
    let recorded = std::fs::read_to_string(kernel_file("jindou.fatbin.sources.sha256")).unwrap();
    assert_eq!(recorded.trim(), hex(&all), "run kernels/build.sh");
    let recorded = std::fs::read_to_string(kernel_file("jindou.fatbin.sha256")).unwrap();
    let built = hex(jindou_gpu::FATBIN);
    assert_eq!(recorded.trim(), built, "run kernels/build.sh");
    let listed: Vec<String> = std::fs::read_dir(kernel_file(""))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".cu") || n.ends_with(".cuh"))
        .collect();
    let covered = SOURCES.split(' ').count();
    assert_eq!(listed.len(), covered, "not covered by the hash: {listed:?}");
}

/// Kind (1 PTX, 2 machine code) and architecture of each part of a fatbin.
fn parts(fatbin: &[u8]) -> Vec<(u16, u32)> {
    let u16_at = |at: usize| u16::from_le_bytes(fatbin[at..at + 2].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(fatbin[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(fatbin[at..at + 8].try_into().unwrap());
    assert_eq!(u32_at(0), 0xBA55_ED50, "not a fatbin");
    let (mut at, mut found) = (usize::from(u16_at(6)), vec![]);
    let end = at + u64_at(8) as usize;
    assert_eq!(end, fatbin.len());
    while at < end {
        found.push((u16_at(at), u32_at(at + 28)));
        at += (u64::from(u32_at(at + 4)) + u64_at(at + 8)) as usize;
    }
    found
}

/// Checks for machine code from Turing to Blackwell, and for PTX of the oldest, from which the driver compiles for
/// future chips.
#[test]
fn the_fatbin_has_code_for_every_architecture() {
    let script = std::fs::read_to_string(kernel_file("build.sh")).unwrap();
    let mut lines = script.lines();
    let line = lines
        .find_map(|l| l.strip_prefix("ARCHITECTURES="))
        .unwrap();
    let listed = line.trim_matches('"').split(' ');
    let listed: Vec<u32> = listed.map(|a| a.parse().unwrap()).collect();
    assert_eq!(listed, [75, 80, 86, 89, 90, 100, 120]);
    let mut parts = parts(jindou_gpu::FATBIN);
    parts.sort_unstable();
    let mut want = vec![(1, 75)];
    want.extend(listed.iter().map(|&a| (2, a)));
    assert_eq!(parts, want, "run kernels/build.sh");
    assert!(jindou_gpu::FATBIN.len() < 1 << 20, "compress it");
}

/// Kernels that look up vertices, which must have at least `LEAST_LOADS` loads in flight together.
const LOOK_UPS: &str = "jd_check jd_check_any jd_expand_one jd_intersect \
    jd_measure jd_measure_any jd_measure_cut jd_measure_many";
const LEAST_LOADS: u32 = 4;

/// `kernels/inspect.txt` describes this fatbin's machine code, which must have certain properties. `inspect.sh check`
/// compares the file with the machine code.
#[test]
fn look_ups_have_several_loads_under_way_together_on_every_chip() {
    let text = std::fs::read_to_string(kernel_file("inspect.txt")).unwrap();
    let mut lines = text.lines();
    let of = lines.next().unwrap().strip_prefix("fatbin ").unwrap();
    assert_eq!(of, hex(jindou_gpu::FATBIN), "run kernels/inspect.sh");
    let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let (mut rows, mut looked) = (0, 0);
    for line in lines {
        let row: Vec<&str> = line.split_whitespace().collect();
        let of = |name: &str| -> u32 {
            let column = names.iter().position(|n| *n == name).unwrap();
            row[column].parse().unwrap()
        };
        rows += 1;
        // At least two blocks must fit on a multiprocessor, and hardly any registers may be spilled.
        assert!(of("registers") <= 128 && of("spilled") <= 64, "{line}");
        assert!(of("occupancy") >= 25, "{line}");
        if LOOK_UPS.split(' ').any(|name| name == row[1]) {
            looked += 1;
            assert!(of("random") >= LEAST_LOADS, "{line}");
            // Of four loads from a bitmap, three are in one straight stretch of code, and one is before the branch that
            // leads there. These loads do not occur in an intersection, whose lists were found before; and if each row
            // has a segment of its own, there are too few registers.
            // A thread that clips lists has only two rows.
            let few = ["jd_intersect", "jd_measure_cut"].contains(&row[1]);
            let bitmaps = !few && !row[1].ends_with("_any");
            assert!(!bitmaps || of("blocks") >= LEAST_LOADS - 1, "{line}");
        }
    }
    assert_eq!(rows, 7 * jindou_gpu::Kernel::ALL.len());
    assert_eq!(looked, 7 * LOOK_UPS.split(' ').count());
}

#[test]
fn without_a_gpu_one_sentence_says_so() {
    if let Err(why) = jindou_gpu::Cuda::open() {
        assert!(why.starts_with("no GPU is used: "), "{why}");
        assert!(!why.contains('\n'));
    }
}
