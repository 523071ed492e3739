//! Damaged files: clear errors or wrong answers, but no panic and no endless loop.

use crate::common::dictionary;
use jindou_dictionary::{Comparison, DICTIONARY_FILE, Dictionary, STRINGS_FILE};
use jindou_model::{Error, VertexId};
use jindou_values::{Num, Temporal, TemporalKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

fn terms() -> Vec<Vec<u8>> {
    let mut terms: Vec<Vec<u8>> = vec![];
    for i in 0..9 {
        terms.push(format!("<http://e.org/{i}").into_bytes());
        terms.push([&[0x80][..], i.to_string().as_bytes()].concat());
    }
    for t in ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00"] {
        terms.push([&[0x91][..], t.as_bytes()].concat());
    }
    terms.push(b"\"text".to_vec());
    terms.sort();
    terms
}

/// Calls every reading function.
fn read_all(d: &Dictionary, terms: &[Vec<u8>]) {
    let mut out = vec![];
    let mut decoder = d.decoder();
    for id in 0..terms.len() as u32 + 3 {
        let id = VertexId(id);
        d.term(id, &mut out);
        let _ = (decoder.term(id), d.kind(id), d.sort_key(id));
        let _ = (d.numeric_value(id), d.numeric_rank(id));
    }
    let asked: Vec<&[u8]> = terms.iter().map(Vec::as_slice).collect();
    let mut found = vec![];
    d.lookup_many(&asked, &mut found);
    for t in asked {
        let _ = (d.lookup(t), d.strings().find(t));
    }
    d.numeric_rank_many(&found, &mut vec![]);
    let _ = d.strings().for_each(0..d.len(), |_, _| ());
    let _ = d.numeric_bounds(Comparison::LessOrEqual, &Num::Int(7).into());
    let time = Temporal::parse(TemporalKind::DateTime, "2020-01-01T00:00:00Z");
    let _ = d.temporal_bounds(Comparison::Less, time.unwrap());
    let _ = d.string_bounds(Comparison::Less, "text");
}

#[test]
fn no_flipped_byte_makes_a_panic() {
    let tmp = tempfile::tempdir().unwrap();
    let terms = terms();
    drop(dictionary(&terms, tmp.path()));
    for name in [STRINGS_FILE, DICTIONARY_FILE] {
        let path = tmp.path().join(name);
        let good = std::fs::read(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        for at in 0..good.len() {
            let flip = [1, 0x80, 0xFF][at % 3];
            file.write_all_at(&[good[at] ^ flip], at as u64).unwrap();
            if let Ok(d) = Dictionary::open(tmp.path()) {
                read_all(&d, &terms);
            }
            file.write_all_at(&[good[at]], at as u64).unwrap();
        }
        for len in (0..good.len()).step_by(97) {
            std::fs::write(&path, &good[..len]).unwrap();
            let opened = Dictionary::open(tmp.path());
            assert!(matches!(opened, Err(Error::Damaged { .. })), "{name} {len}");
        }
        std::fs::write(&path, &good).unwrap();
    }
    read_all(&Dictionary::open(tmp.path()).unwrap(), &terms);
}

fn message(dir: &Path) -> String {
    Dictionary::open(dir).map_or_else(|e| e.to_string(), |_| String::new())
}

#[test]
fn what_is_wrong_is_named() {
    let tmp = tempfile::tempdir().unwrap();
    drop(dictionary(&terms(), tmp.path()));
    let path = tmp.path().join(DICTIONARY_FILE);
    let good = std::fs::read(&path).unwrap();
    let mut newer = good.clone();
    newer[8] = 3;
    std::fs::write(&path, &newer).unwrap();
    assert!(message(tmp.path()).contains("format version 3"));
    std::fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert!(message(tmp.path()).contains("truncated"));
    std::fs::write(&path, vec![b'x'; 1000]).unwrap();
    assert!(message(tmp.path()).contains("not a file of a Jindou dictionary"));
    // A dictionary of other strings.
    let other = tempfile::tempdir().unwrap();
    drop(dictionary(&terms()[..15], other.path()));
    std::fs::copy(other.path().join(DICTIONARY_FILE), &path).unwrap();
    assert!(message(tmp.path()).contains("another strings.jd"));
    std::fs::remove_file(&path).unwrap();
    let opened = Dictionary::open(tmp.path());
    assert!(matches!(opened, Err(Error::Io { .. })));
}
