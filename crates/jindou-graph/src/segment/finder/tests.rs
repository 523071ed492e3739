//! Tests of `finder.rs`.

use super::*;
use proptest::prelude::*;

fn agrees(keys: Vec<u32>) {
    agrees_with(build(keys.clone()), keys);
}

fn agrees_with(arrays: FinderArrays, keys: Vec<u32>) {
    let f = arrays.view();
    if let Some(plain) = f.unfolded(keys.len() as u32) {
        assert_eq!(plain.keys, keys);
        let find = |v| find_directory(plain.first, plain.shift, &plain.buckets, &keys, v);
        assert!(keys.iter().all(|&k| find(k) == f.find(k)));
    }
    let probes: Vec<u32> = keys
        .iter()
        .flat_map(|&k| [k.wrapping_sub(1), k, k + 1])
        .chain([
            0,
            1,
            u32::MAX,
            0x8000_0000,
            FIRST_TAIL_ID,
            FIRST_TAIL_ID - 1,
            0xF000_0007,
        ])
        .collect();
    let mut many = Vec::new();
    f.find_many(&probes, &mut many);
    for (&v, &got) in probes.iter().zip(&many) {
        let want = keys.binary_search(&v).map_or(NO_KEY, |i| i as u32);
        assert_eq!(f.find(v), want, "{:?} {v}", f.kind());
        assert_eq!(got, want);
    }
    let n = keys.len() as u32;
    for (a, b) in [(0, n), (n / 3, n / 2), (n / 2, n), (n, n)] {
        let mut out = Vec::new();
        f.keys_into(a, b, &mut out);
        assert_eq!(out, keys[a as usize..b as usize], "{:?}", f.kind());
    }
}

#[test]
fn each_kind_is_chosen_for_its_shape() {
    assert_eq!(build(vec![]).view().kind(), FinderKind::Empty);
    assert_eq!(
        build((5..5000).collect()).view().kind(),
        FinderKind::Intervals
    );
    assert_eq!(
        build((1..5000).map(|i| i * 3).collect()).view().kind(),
        FinderKind::Bitmap
    );
    assert_eq!(
        build((1..5000).map(|i| i * 300).collect()).view().kind(),
        FinderKind::Directory
    );
}

#[test]
fn extreme_ids() {
    agrees(vec![1]);
    agrees(vec![1, 0xEFFF_FFFF]);
    agrees((0..40).map(|i| 1 + i * 100_000_000).collect());
}

#[test]
fn keys_of_base_and_tail_are_as_dense_as_they_were() {
    let keys = |gap: u32| -> Vec<u32> {
        let base = (1..5000).map(|i| i * gap);
        base.chain((0..900).map(|i| FIRST_TAIL_ID + i * gap))
            .collect()
    };
    for (gap, kind) in [
        (3, FinderKind::FoldedBitmap),
        (300, FinderKind::FoldedDirectory),
    ] {
        let fold = fold_behind(5000 * gap + 9);
        let arrays = build_folded(keys(gap), Some(fold));
        assert_eq!(arrays.view().kind(), kind);
        agrees_with(arrays, keys(gap));
        // If all keys are in the tail, no id is folded.
        let tail: Vec<u32> = keys(gap)
            .into_iter()
            .filter(|&k| k >= FIRST_TAIL_ID)
            .collect();
        agrees_with(build_folded(tail.clone(), Some(fold)), tail);
    }
}

proptest! {
    #[test]
    fn folded_finders_agree_with_search(
        gaps in prop::collection::vec(prop_oneof![1u32..2, 1u32..4, 1u32..40, 1u32..100_000], 1..300),
        tail in prop::collection::vec(prop_oneof![1u32..2, 1u32..4, 1u32..400], 1..300),
    ) {
        let mut at = 0;
        let mut keys: Vec<u32> = gaps.iter().map(|g| { at += g; at }).collect();
        let fold = fold_behind(at + 70);
        at = FIRST_TAIL_ID;
        keys.extend(tail.iter().map(|g| { at += g; at }));
        agrees_with(build_folded(keys.clone(), Some(fold)), keys);
    }

    #[test]
    fn every_kind_agrees_with_search(
        gaps in prop::collection::vec(prop_oneof![1u32..2, 1u32..4, 1u32..40, 1u32..100_000], 1..400)
    ) {
        let mut at = 0;
        agrees(gaps.iter().map(|g| { at += g; at }).collect());
    }
}
