//! Tests that records are decoded as they were encoded, and that damaged ones are refused.

use super::*;
use proptest::prelude::*;

fn quads() -> impl Strategy<Value = Vec<[u32; 4]>> {
    prop::collection::btree_set(
        (
            0u32..3,
            0u32..4,
            1u32..6,
            prop_oneof![1u32..9, any::<u32>()],
        ),
        0..40,
    )
    .prop_map(|s| {
        s.into_iter()
            .map(|(g, p, s, o)| [g, p, s, o.max(1)])
            .collect()
    })
    .prop_map(|mut v: Vec<[u32; 4]>| {
        v.sort_unstable();
        v.dedup();
        v
    })
}

proptest! {
    #[test]
    fn a_record_reads_as_it_was_written(
        added in quads(),
        removed in quads(),
        terms in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5),
        number: u64,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut: prop::sample::Index,
    ) {
        let reused = if number & 2 == 0 { vec![] } else { vec![[0, 2], [3, 4], [4, 7]] };
        let net = NetChanges { tail_before: 7, reused, terms, predicates_before: 3, predicates: vec![5, 900], removed, added };
        let bytes = encode(&net, number);
        let mut twice = bytes.clone();
        twice.extend_from_slice(&bytes);
        let mut from = &twice[..];
        for _ in 0..2 {
            prop_assert_eq!(decode_part(&mut from).unwrap(), (number, RecordPart::Quads(net.clone())));
        }
        prop_assert!(from.is_empty());
        // The time after the parts is skipped, and is not itself a part.
        prop_assert_eq!(committed_at(&twice), None);
        stamp(&mut twice, number >> 3);
        prop_assert_eq!(committed_at(&twice), Some(number >> 3));
        let all: Vec<_> = parts(&twice).collect::<Result<_>>().unwrap();
        let quads = || (number, RecordPart::Quads(net.clone()));
        prop_assert_eq!(all, vec![quads(), quads()]);
        let changes = vec![
            PrefixChange::Declare("a".into(), "http://e/".into()),
            PrefixChange::Set("".into(), "http://f/".into()),
            PrefixChange::Remove("b".into()),
        ];
        let prefixes = encode_prefixes(&changes, number);
        let both = [&prefixes[..], &bytes[..]].concat();
        let all: Vec<_> = parts(&both).collect::<Result<_>>().unwrap();
        prop_assert_eq!(all, vec![(number, RecordPart::Prefixes(changes)), quads()]);
        let request = DoneRequest { key: u128::from(number) << 70 | 5, fingerprint: number, revision: Some(number), ..DoneRequest::default() };
        let noted = [&bytes[..], &encode_request(&request, number)].concat();
        let parsed: Vec<_> = parts(&noted).collect::<Result<_>>().unwrap();
        prop_assert_eq!(parsed, vec![quads(), (number, RecordPart::Request(request))]);
        for at in bytes.len() + 1..noted.len() {
            prop_assert!(parts(&noted[..at]).any(|p| p.is_err()));
        }
        let plan = MergePlan { generation: number as u32, all: number & 1 == 1, texts_at_owners: number & 2 == 2 };
        let shard = |hash, n| ShardResult { hash, statistics: vec![7; n] };
        let committed = MergeCommitted { merged: number, shards: vec![shard(number, 0), shard(3, 200)] };
        let freed = vec![[2, 3], [4, 900], [1000, u32::MAX]];
        let merges = [
            encode_merge_started(plan, number),
            encode_merge_committed(&committed, number),
            encode_freed(&freed, number),
        ];
        let all: Vec<_> = parts(&merges.concat()).collect::<Result<_>>().unwrap();
        prop_assert_eq!(all, vec![
            (number, RecordPart::MergeStarted(plan)),
            (number, RecordPart::MergeCommitted(committed.clone())),
            (number, RecordPart::Freed(freed)),
        ]);
        prop_assert_eq!(MergeCommitted::of_record(&bytes).unwrap(), None);
        prop_assert_eq!(MergeCommitted::of_record(&merges.concat()).unwrap(), Some(committed));
        for record in &merges {
            for at in 0..record.len() {
                prop_assert!(parts(&record[..at]).any(|p| p.is_err()));
                let mut bad = record.clone();
                bad[at] ^= 1 << (at % 8);
                let _ = parts(&bad).count();
            }
        }
        for at in 0..prefixes.len() {
            prop_assert!(parts(&prefixes[..at]).any(|p| p.is_err()));
            let mut bad = prefixes.clone();
            bad[at] ^= 1 << (at % 8);
            let _ = parts(&bad).count();
        }
        prop_assert!(parts(&twice[bytes.len() * 2..]).any(|p| p.is_err()));
        prop_assert!(parts(&[]).any(|p| p.is_err()));
        // Damage leads to an error or to other numbers, never to a panic.
        let mut bad = bytes.clone();
        for (at, b) in damage {
            let at = at.index(bad.len());
            bad[at] = b;
        }
        let _ = decode_part(&mut &bad[..]);
        let _ = (committed_at(&bad), parts(&bad).count());
        let cut = cut.index(bytes.len());
        prop_assert!(decode_part(&mut &bytes[..cut]).is_err());
    }
}
