use super::*;

fn some_rows() -> Columns {
    Columns {
        rows: 3,
        columns: vec![vec![1, 2, 3], vec![7, 0, u32::MAX]],
    }
}

fn program() -> PartProgram {
    PartProgram {
        steps: vec![1, 2, 3],
        state: 1 << 50,
        servers: vec![1, 2, 3],
        time: Some(Duration::from_millis(7)),
        memory: 1 << 40,
        mode: ShardMode::Fork,
        repeats: Repeats::Counted,
        first: None,
        profile: false,
    }
}

fn messages() -> Vec<PartMessage> {
    let bare = Columns {
        rows: 1 << 40,
        columns: vec![],
    };
    let report = PartReport {
        from: 3,
        completed: vec![1, u64::MAX],
        spawned: vec![9],
        rows: some_rows(),
        counts: PartCounts {
            steps: vec![
                StepCounts {
                    sent: 4,
                    ..StepCounts::default()
                };
                2
            ],
            messages: 1,
            bytes: 2,
            given: 9,
            held: 6,
            asked: [3, 4, 5],
            time: Duration::from_nanos(8),
        },
    };
    vec![
        PartMessage::Begin(program()),
        PartMessage::Begin(PartProgram {
            repeats: Repeats::Each,
            first: Some(FirstByColumn {
                column: 3,
                is_descending: true,
                is_alone: false,
                most: 10,
            }),
            ..program()
        }),
        PartMessage::Start {
            number: 1,
            alone: true,
        },
        PartMessage::Rows {
            number: 2,
            step: 3,
            rows: some_rows(),
        },
        PartMessage::Rows {
            number: 2,
            step: 3,
            rows: bare,
        },
        PartMessage::Report(report),
        PartMessage::Failed(PartFailure::at_shard(&Error::Cancelled, 2)),
        PartMessage::Waiting,
        PartMessage::End,
        PartMessage::Run(PartProgram {
            time: None,
            ..program()
        }),
    ]
}

#[test]
fn messages_come_back_and_cut_ones_do_not() {
    let query = QueryName {
        home: 5,
        number: 77,
    };
    for message in messages() {
        let bytes = put(query, &message);
        assert_eq!(read(&bytes), Some((query, message)));
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), None);
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(read(&longer), None);
    }
    let answers = [
        PartAnswer::Taken(9),
        PartAnswer::Unknown,
        PartAnswer::Ran(
            some_rows(),
            vec![1, 2],
            ShippedTerms {
                ids: vec![7, 9],
                ends: vec![2, 2],
                bytes: b"ab".to_vec(),
            },
        ),
        PartAnswer::Declined,
        PartAnswer::Failed(PartFailure::at_shard(&Error::Internal("x".into()), 1)),
    ];
    for answer in answers {
        let bytes = put_answer(&answer);
        assert_eq!(read_answer(&bytes), Some(answer));
        for cut in 0..bytes.len() {
            assert_eq!(read_answer(&bytes[..cut]), None);
        }
    }
}

/// A message with one changed byte is rejected or decodes to a message that is encoded to the same bytes. It never
/// makes the decoder allocate more memory than the message has bytes.
#[test]
fn damaged_messages_are_refused_or_mean_themselves() {
    let query = QueryName { home: 1, number: 2 };
    for message in messages() {
        let bytes = put(query, &message);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                if let Some((query, message)) = read(&bad) {
                    assert_eq!(put(query, &message), bad, "{at} {bit}");
                }
            }
        }
    }
}

/// An ORDER BY with LIMIT 0 is never sent.
#[test]
fn no_rows_are_not_the_first() {
    let query = QueryName { home: 1, number: 2 };
    let first = |most| {
        let first = Some(FirstByColumn {
            column: 0,
            is_descending: false,
            is_alone: true,
            most,
        });
        PartMessage::Begin(PartProgram { first, ..program() })
    };
    assert_eq!(read(&put(query, &first(1))), Some((query, first(1))));
    assert_eq!(read(&put(query, &first(0))), None);
}

#[test]
fn failures_keep_their_kind() {
    let all = [
        Error::shard(4, "away"),
        Error::limit(Resource::Memory, "full"),
        Error::Timeout(Duration::from_secs(3)),
        Error::Cancelled,
        Error::Internal("bug".into()),
    ];
    for e in all {
        let back = PartFailure::at_shard(&e, 2).error();
        assert_eq!(std::mem::discriminant(&back), std::mem::discriminant(&e));
        assert!(back.to_string().contains(match &e {
            Error::Shard { .. } => "away",
            Error::Limit(_) => "full",
            Error::Internal(_) => "bug",
            _ => "",
        }));
    }
}
