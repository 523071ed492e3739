//! From batches to the opened dictionary, against ordered and hashed collections of the standard
//! library.

use crate::common::{Quad, dictionary, intern, merge, permutation};
use jindou_dictionary::{Dictionary, Strings, write_dictionary};
use jindou_model::spill::SpillDir;
use jindou_model::{MemoryBudget, NO_VERTEX, VertexId};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Terms that share prefixes, of all tags, with zero bytes and some length.
fn term() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        "[ab]{0,3}",
        "http://(www\\.)?[ab]{1,2}\\.org/[a-c]{0,12}",
        "[0-9]{1,4}(\\.[0-9])?",
        "en\u{0}[a-c]{0,9}",
        "(abcdefgh){0,9}[xy]",
    ];
    let tag = prop_oneof![5 => prop::sample::select(&b"<_\"@^"[..]), 1 => 0x80u8..0x9C];
    (tag, text).prop_map(|(tag, text)| [&[tag], text.as_bytes()].concat())
}

fn quads() -> impl Strategy<Value = Vec<Quad>> {
    let graph = prop_oneof![Just(vec![]), Just(b"<g".to_vec()), term()];
    proptest::collection::vec((term(), term(), term(), graph), 0..200)
        .prop_map(|v| v.into_iter().map(|(s, p, o, g)| [s, p, o, g]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_quad_comes_back(
        input in proptest::collection::vec(quads(), 1..4),
        size in 1usize..80,
        max_bytes in prop_oneof![Just(1usize << 30), Just(200_000), Just(1 << 16), Just(0)],
        budget in prop_oneof![Just(0u64), Just(3 << 20), Just(u64::MAX)],
        threads in 1usize..4,
    ) {
        let tmp = tempfile::tempdir().unwrap();
        let spill = SpillDir::new(tmp.path(), MemoryBudget::new(budget)).unwrap();
        let workers = input.iter().map(|q| intern(q, size, max_bytes, &spill)).collect();
        let (merged, got) = merge(workers, tmp.path(), threads);

        let all: BTreeSet<&[u8]> =
            input.iter().flatten().flatten().map(Vec::as_slice).filter(|t| !t.is_empty()).collect();
        let sorted: Vec<&[u8]> = all.iter().copied().collect();
        prop_assert_eq!(merged.terms as usize, sorted.len());

        let strings = Strings::open(tmp.path()).unwrap();
        let mut seen = vec![];
        prop_assert!(strings.for_each(0..strings.len(), |_, t| seen.push(t.to_vec())));
        prop_assert_eq!(&seen, &sorted);
        let expected: Vec<[Option<&Vec<u8>>; 4]> = input.iter().flatten()
            .map(|q| [0, 1, 2, 3].map(|i| Some(&q[i]).filter(|t| !t.is_empty()))).collect();
        let got: Vec<[Option<&Vec<u8>>; 4]> =
            got.iter().map(|q| q.map(|lex| seen.get(lex as usize))).collect();
        prop_assert_eq!(got, expected);
        for tag in 0..=255u8 {
            let count = sorted.iter().filter(|t| t[0] == tag).count();
            let range = strings.tag_ranges().range(tag);
            prop_assert_eq!(range.len(), count);
            prop_assert!(sorted[range.start as usize..range.end as usize].iter().all(|t| t[0] == tag));
            prop_assert_eq!(&range, &merged.tag_ranges.range(tag));
        }

        let ids = permutation(merged.terms);
        write_dictionary(tmp.path(), &ids, threads).unwrap();
        let d = Dictionary::open(tmp.path()).unwrap();
        prop_assert_eq!(d.len(), merged.terms);
        let mut decoder = d.decoder();
        for (lex, t) in sorted.iter().enumerate() {
            let id = VertexId(ids[lex]);
            let mut out = b"x".to_vec();
            prop_assert!(d.term(id, &mut out));
            prop_assert_eq!(&out[1..], *t);
            prop_assert_eq!(decoder.term(id), Some(*t));
            prop_assert_eq!(d.lex(id), Some(lex as u32));
            prop_assert_eq!(d.lookup(t), Some(id));
            prop_assert_eq!(strings.find(t), Some(lex as u32));
            // Near misses.
            for near in [&t[..t.len() - 1], &[t, &b"a"[..]].concat(), &[t, &b"\0"[..]].concat()] {
                let place = sorted.binary_search(&near);
                prop_assert_eq!(d.lookup(near), place.ok().map(|l| VertexId(ids[l])));
                prop_assert_eq!(strings.find(near), place.ok().map(|l| l as u32));
                prop_assert_eq!(strings.lower_bound(near) as usize, place.unwrap_or_else(|l| l));
            }
        }
        let mut found = vec![];
        let mut asked: Vec<&[u8]> = sorted.clone();
        asked.push(b"<not there");
        d.lookup_many(&asked, &mut found);
        let expected: Vec<u32> = ids.iter().copied().chain([NO_VERTEX]).collect();
        prop_assert_eq!(found, expected);
        for id in [0, merged.terms + 1, u32::MAX] {
            prop_assert_eq!(d.lex(VertexId(id)), None);
            prop_assert!(!d.term(VertexId(id), &mut vec![]));
        }
    }
}

#[test]
fn nothing_at_all_is_a_dictionary() {
    let tmp = tempfile::tempdir().unwrap();
    let (merged, _) = merge(vec![], tmp.path(), 2);
    assert_eq!(merged.terms, 0);
    write_dictionary(tmp.path(), &[], 1).unwrap();
    let d = Dictionary::open(tmp.path()).unwrap();
    assert!(d.is_empty());
    assert_eq!(d.lookup(b"<a"), None);
    assert_eq!(d.lex(VertexId(1)), None);
    assert_eq!(d.strings().find(b"<a"), None);
    assert_eq!(d.tag_range(b'<'), 0..0);
}

#[test]
fn long_strings_come_back() {
    let tmp = tempfile::tempdir().unwrap();
    let mut terms: Vec<Vec<u8>> = vec![];
    for i in 0..40u8 {
        let mut t = b"\"".to_vec();
        t.resize(65_536 + i as usize * 7, b'a' + i % 3);
        t.push(i);
        terms.push(t);
    }
    // 3 MiB, beyond every buffer.
    terms.push([&b"\""[..], &vec![b'z'; 3 << 20]].concat());
    terms.sort();
    let (d, ids) = dictionary(&terms, tmp.path());
    for (t, &id) in terms.iter().zip(&ids) {
        assert_eq!(d.lookup(t), Some(VertexId(id)));
        let mut out = vec![];
        assert!(d.term(VertexId(id), &mut out));
        assert!(out == *t);
    }
    // Some terms ahead in the same block.
    for step in 1..20 {
        let mut decoder = d.decoder();
        for (t, &id) in terms.iter().zip(&ids).skip(step / 3).step_by(step) {
            assert!(decoder.term(VertexId(id)) == Some(t.as_slice()));
        }
    }
}

#[test]
fn ids_that_are_no_permutation_are_refused() {
    let terms: Vec<Vec<u8>> = ["<a", "<b", "<c"].map(|t| t.as_bytes().to_vec()).to_vec();
    let all = [1, 2, 3, 4];
    for bad in [&[1, 2, 2][..], &[0, 1, 2], &[1, 2, 4], &all[..2], &all] {
        let tmp = tempfile::tempdir().unwrap();
        drop(dictionary(&terms, tmp.path()));
        std::fs::remove_file(tmp.path().join(jindou_dictionary::DICTIONARY_FILE)).unwrap();
        assert!(write_dictionary(tmp.path(), bad, 1).is_err(), "{bad:?}");
    }
}
