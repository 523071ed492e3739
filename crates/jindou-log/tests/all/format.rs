//! Log files that were truncated or changed at any position: reading must return a prefix of the records, or report
//! damage.

use crate::log_files;
use jindou_log::{Crash, Faulty, Files, Log, LogOptions, check};
use jindou_model::Error;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Numbers of the last record before the log, such that files have record numbers of 32 bits, of 64 bits, or first the
/// one and then the other.
fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        (1u64 << 31) - 8..1 << 31,
        (1u64 << 32) - 8..1 << 32,
        Just(1 << 50)
    ]
}

fn write(groups: &[Vec<Vec<u8>>], file_bytes: u64, start: u64) -> Faulty {
    let files = Faulty::new(1);
    let options = LogOptions {
        file_bytes,
        lengthen_bytes: 1024,
        idle: Duration::from_secs(1000),
        ..LogOptions::default()
    };
    let (log, _) = Log::open(Arc::new(files.clone()), 1, start, options, &mut |_, _| {
        Ok(())
    })
    .expect("open");
    let mut number = start + 1;
    for group in groups {
        let tickets: Vec<_> = group
            .iter()
            .map(|r| {
                let ticket = log.append(number, r.clone()).expect("append");
                number += 1;
                ticket
            })
            .collect();
        tickets.iter().for_each(|t| t.wait().expect("wait"));
    }
    // The log is not closed, as after a kill of the process.
    files.set(jindou_log::DiskFaults {
        die_after: Some(0),
        ..Default::default()
    });
    drop(log);
    files.crash(Crash::Kill);
    files
}

fn read(files: &Faulty, start: u64) -> (Result<bool, Error>, Vec<Vec<u8>>) {
    let mut records = Vec::new();
    let opened = Log::open(
        Arc::new(files.clone()),
        1,
        start,
        LogOptions::default(),
        &mut |n, r| {
            assert_eq!(n, start + records.len() as u64 + 1);
            records.push(r.to_vec());
            Ok(())
        },
    );
    (opened.map(|(_, found)| found.cut.is_some()), records)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn what_is_written_is_read(
        groups in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 1..5), 1..8),
        file_bytes in 0u64..4000,
        start in start(),
    ) {
        let files = write(&groups, file_bytes, start);
        let all: Vec<Vec<u8>> = groups.concat();
        let report = check(&files).expect("check");
        prop_assert!(report.is_sound());
        prop_assert_eq!(report.records as usize, all.len());
        let (opened, records) = read(&files, start);
        // The last group that the dying process tried to write may be torn.
        opened.expect("open");
        prop_assert_eq!(records, all);
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_prefix_or_is_refused(
        groups in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4), 1..6),
        file_bytes in 0u64..3000,
        start in start(),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let files = write(&groups, file_bytes, start);
        let all: Vec<Vec<u8>> = groups.concat();
        let names = log_files(&files);
        let name = which.get(&names).clone();
        let length = files.read(&name, u64::MAX).expect("read").len();
        files.open(&name).expect("open").truncate(at.index(length) as u64).expect("truncate");
        let (opened, records) = read(&files, start);
        prop_assert_eq!(&records[..], &all[..records.len()]);
        match opened {
            Ok(_) => prop_assert!(records.len() == all.len() || Some(&name) == names.last()),
            Err(e) => prop_assert!(e.to_string().contains(&name), "{}", e),
        }
    }

    #[test]
    fn zeros_in_the_place_of_a_group_are_no_torn_tail(
        sizes in prop::collection::vec(0usize..900, 3..8),
        start in start(),
        which in any::<prop::sample::Index>(),
    ) {
        // One file with one record per group. Every group but the last is proven to be durable by the group after it.
        let groups: Vec<Vec<Vec<u8>>> = sizes.iter().map(|&n| vec![vec![7; n]]).collect();
        let files = write(&groups, u64::MAX, start);
        let name = log_files(&files).remove(0);
        let head = if start + 1 < 1 << 31 { 80 } else { 88 };
        let place = |n: usize| head + sizes[..n].iter().map(|&s| 56 + 8 + s.next_multiple_of(8) + 16).sum::<usize>();
        let lost = which.index(sizes.len() - 1);
        let zeros = vec![0; place(lost + 1) - place(lost)];
        files.open(&name).expect("open").write_at(place(lost) as u64, &zeros).expect("write");
        let (opened, records) = read(&files, start);
        prop_assert_eq!(records.len(), lost);
        let error = opened.expect_err("records are missing").to_string();
        let named = format!("{name}, byte {}", place(lost));
        prop_assert!(error.contains(&named), "{} does not name {}", error, named);
    }

    #[test]
    fn rubbish_anywhere_is_never_served(
        groups in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4), 1..6),
        file_bytes in 0u64..3000,
        start in start(),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        rubbish in prop::collection::vec(any::<u8>(), 1..200),
        zeros in any::<bool>(),
    ) {
        let files = write(&groups, file_bytes, start);
        let all: Vec<Vec<u8>> = groups.concat();
        let names = log_files(&files);
        let name = which.get(&names).clone();
        let length = files.read(&name, u64::MAX).expect("read").len();
        let bytes = if zeros { vec![0; rubbish.len()] } else { rubbish };
        files.open(&name).expect("open").write_at(at.index(length) as u64, &bytes).expect("write");
        let (opened, records) = read(&files, start);
        prop_assert_eq!(&records[..], &all[..records.len()]);
        match opened {
            Ok(cut) => prop_assert!(records.len() == all.len() || (cut && Some(&name) == names.last())),
            Err(e) => prop_assert!(e.to_string().contains(".log, byte "), "{}", e),
        }
    }

    #[test]
    fn files_of_rubbish_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..500),
        start in start(),
        name in "[0-9a-f]{16}-[0-9a-f]{16}.log|00000000000000010000000000000001.log|[a-z]{1,8}",
    ) {
        let files = Faulty::new(1);
        files.put(&name, &bytes).expect("put");
        files.put("0000000000000001-0000000000000009.log", &bytes).expect("put");
        let (opened, records) = read(&files, start);
        prop_assert!(opened.is_err() && records.is_empty());
        prop_assert!(!check(&files).expect("check").is_sound());
    }
}
