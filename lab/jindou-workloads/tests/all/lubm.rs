//! Compares LUBM with data of the original generator, by hashes and counts published with the benchmark's rules. Tests
//! of large sizes run with `--ignored`.

use crate::{Counting, by_workers, delivered};
use jindou_model::{Progress, QuadSource};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::lubm::{CLASSES, Lubm, known};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::time::Instant;

/// The distinct statements as sorted lines.
fn sorted_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn text(universities: u32) -> Vec<u8> {
    let mut out = vec![];
    let raw = write_source(&Lubm::new(universities, 0), TagCase::Lower, &mut out).unwrap();
    assert_eq!(raw, known::totals(universities).unwrap().raw);
    out
}

fn check_hash(universities: u32) {
    let text = text(universities);
    let lines = sorted_lines(&text);
    assert_eq!(
        lines.len() as u64,
        known::totals(universities).unwrap().distinct
    );
    let mut hash = Sha256::new();
    lines.iter().for_each(|l| hash.update(l));
    let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(Some(hex.as_str()), known::sorted_sha256(universities));
}

#[test]
fn one_university_equals_the_original() {
    check_hash(1);
}

#[test]
#[ignore = "300 MB of memory, long in the dev profile"]
fn ten_universities_equal_the_original() {
    check_hash(10);
}

#[test]
#[ignore = "1.5 GB of memory"]
fn fifty_universities_equal_the_original() {
    check_hash(50);
}

#[test]
fn one_university_equals_the_reference_file() {
    let Some(path) = jindou_testing::shared("workloads/lubm/reference/lubm1-seed0.sorted.nt.gz")
    else {
        return;
    };
    let file = std::fs::File::open(path).unwrap();
    let mut reference = vec![];
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut reference)
        .unwrap();
    let text = text(1);
    assert!(sorted_lines(&text).concat() == reference);
}

#[test]
fn instances_of_each_class_are_as_published() {
    let published = [
        ("Publication", 5_999),
        ("UndergraduateStudent", 5_916),
        ("GraduateStudent", 1_874),
        ("University", 979),
        ("Course", 828),
        ("GraduateCourse", 799),
        ("ResearchAssistant", 547),
        ("TeachingAssistant", 407),
        ("ResearchGroup", 224),
        ("AssociateProfessor", 176),
        ("AssistantProfessor", 146),
        ("FullProfessor", 125),
        ("Lecturer", 93),
        ("Department", 15),
    ];
    let text = text(1);
    let mut counts = BTreeMap::new();
    for line in sorted_lines(&text) {
        let line = std::str::from_utf8(line).unwrap();
        if line.contains("#type> ") {
            let class = line.rsplit_once('#').unwrap().1.trim_end_matches("> .\n");
            *counts.entry(class.to_owned()).or_insert(0) += 1;
        }
    }
    assert_eq!(counts, published.map(|(c, n)| (c.to_owned(), n)).into());
    assert_eq!(counts.len(), CLASSES.len());
}

#[test]
fn five_universities_have_the_published_counts() {
    let known = known::totals(5).unwrap();
    let (source, progress) = (Lubm::new(5, 0), Progress::default());
    let mut sink = Counting {
        quads: 0,
        distinct: Some(HashSet::new()),
    };
    source.run(0, 1, &mut sink, &progress).unwrap();
    assert_eq!(sink.quads, known.raw);
    assert_eq!(sink.distinct.map(|d| d.len() as u64), Some(known.distinct));
    assert_eq!(
        (progress.done.into_inner(), progress.quads.into_inner()),
        (5, known.raw)
    );
    assert_eq!(
        (0..5).map(|u| source.departments(u)).sum::<u32>(),
        known.departments
    );
}

#[test]
fn workers_share_the_universities() {
    let (source, progress) = (Lubm::new(7, 3), Progress::default());
    let counts: Vec<Counting> = by_workers(&source, 3, &progress);
    let alone = delivered(&Lubm::new(7, 3), Counting::default());
    let counts = counts.iter().map(|c| c.quads);
    assert_eq!(counts.sum::<u64>(), alone.quads);
}

#[test]
#[ignore = "a minute in the release profile"]
fn raw_counts_up_to_2560_universities_are_as_published() {
    for known in known::all().filter(|k| k.universities <= 2560) {
        let start = Instant::now();
        let lubm = Lubm::new(known.universities, 0);
        let sink = delivered(&lubm, Counting::default());
        let rate = sink.quads as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!(
            "LUBM({}): {} statements, {rate:.1} M/s",
            known.universities, sink.quads
        );
        assert_eq!(sink.quads, known.raw);
    }
}

#[test]
#[ignore = "a measurement, for the release profile"]
fn speed_of_text() {
    let (start, lubm) = (Instant::now(), Lubm::new(40, 0));
    let raw = write_source(&lubm, TagCase::Lower, &mut std::io::sink()).unwrap();
    println!(
        "{:.1} M statements/s as text",
        raw as f64 / start.elapsed().as_secs_f64() / 1e6
    );
}
