use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Out), Just(Direction::In)]
}

fn graphs() -> impl Strategy<Value = RequestGraphs> {
    prop_oneof![
        Just(RequestGraphs::Default),
        any::<u32>().prop_map(RequestGraphs::Named),
        Just(RequestGraphs::AnyNamed),
        Just(RequestGraphs::Union),
        column().prop_map(RequestGraphs::Set),
    ]
}

fn column() -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 0..9)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..9)
}

fn a_request() -> impl Strategy<Value = ShardRequest> {
    let n = any::<u32>;
    prop_oneof![
        (
            n(),
            direction(),
            graphs(),
            any::<bool>(),
            column(),
            [n(), n()],
            n()
        )
            .prop_map(
                |(predicate, direction, graphs, merged, keys, within, most)| ShardRequest::Lists {
                    predicate,
                    direction,
                    graphs,
                    merged,
                    keys,
                    within,
                    most,
                }
            ),
        (n(), direction(), graphs(), column(), column()).prop_map(
            |(predicate, direction, graphs, keys, neighbours)| ShardRequest::Contains {
                predicate,
                direction,
                graphs,
                keys,
                neighbours,
            }
        ),
        (n(), direction(), column()).prop_map(|(predicate, direction, keys)| {
            ShardRequest::Degrees {
                predicate,
                direction,
                keys,
            }
        }),
        (n(), direction(), graphs(), n(), n()).prop_map(
            |(predicate, direction, graphs, from, most)| ShardRequest::Keys {
                predicate,
                direction,
                graphs,
                from,
                most,
            }
        ),
        (direction(), column()).prop_map(|(direction, vertices)| ShardRequest::Predicates {
            direction,
            vertices,
        }),
        column().prop_map(|ids| ShardRequest::Terms { ids }),
        (column(), text()).prop_map(|(ends, bytes)| ShardRequest::Lookup { ends, bytes }),
        (n(), n()).prop_map(|(graph, predicate)| ShardRequest::GraphSubjects { graph, predicate }),
        n().prop_map(|graph| ShardRequest::GraphPredicates { graph }),
        n().prop_map(|predicate| ShardRequest::ObjectTerms { predicate }),
        text().prop_map(ShardRequest::Post),
        Just(ShardRequest::MergeResult),
        (n(), direction()).prop_map(|(predicate, direction)| ShardRequest::Summary {
            predicate,
            direction
        }),
        (column(), text()).prop_map(|(ends, bytes)| ShardRequest::Find { ends, bytes }),
        (text(), any::<bool>(), graphs(), column(), any::<u64>(), n()).prop_map(
            |(words, iris, graphs, labels, from, micros)| {
                ShardRequest::Words {
                    words,
                    iris,
                    graphs,
                    labels,
                    from,
                    micros,
                }
            }
        ),
        (graphs(), column()).prop_map(|(graphs, vertices)| ShardRequest::Uses { graphs, vertices }),
    ]
}

fn a_reply() -> impl Strategy<Value = Reply> {
    let wide = || vec(any::<u64>(), 0..9);
    prop_oneof![
        (column(), column(), column()).prop_map(|(ends, neighbours, graphs)| Reply::Lists {
            ends,
            neighbours,
            graphs,
        }),
        (column(), vec(any::<[u32; 2]>(), 0..9))
            .prop_map(|(ends, runs)| Reply::Runs { ends, runs }),
        text().prop_map(Reply::There),
        (wide(), wide()).prop_map(|(default, named)| Reply::Degrees { default, named }),
        (column(), any::<bool>()).prop_map(|(ids, more)| Reply::Ids { ids, more }),
        (column(), column()).prop_map(|(ends, predicates)| Reply::Predicates { ends, predicates }),
        (column(), text()).prop_map(|(ends, bytes)| Reply::Terms { ends, bytes }),
        any::<u8>().prop_map(Reply::Objects),
        (
            [column(), column(), column(), column()],
            text(),
            any::<[bool; 2]>(),
            any::<u64>()
        )
            .prop_map(
                |([ids, ends, subject_ends, subjects], bytes, [cut, more], next)| Reply::Words {
                    ids,
                    ends,
                    bytes,
                    subject_ends,
                    subjects,
                    cut,
                    more,
                    next,
                }
            ),
        (text(), wide()).prop_map(|(seen, uses)| Reply::Uses { seen, uses }),
        text().prop_map(Reply::Post),
        (column(), column(), column(), wide(), wide()).prop_map(
            |(ids, ends, predicates, default, named)| Reply::Found {
                ids,
                ends,
                predicates,
                default,
                named,
            }
        ),
    ]
}

proptest! {
    #[test]
    fn requests_come_back(all in vec((any::<u32>(), a_request()), 0..5), cut in any::<prop::sample::Index>()) {
        let mut bytes = message(7, &all.iter().collect::<Vec<_>>());
        prop_assert_eq!(requests(&bytes), Some((7, all)));
        prop_assert_eq!(requests(&bytes[..cut.index(bytes.len())]), None);
        bytes.push(0);
        prop_assert_eq!(requests(&bytes), None);
    }

    #[test]
    fn replies_come_back(all in vec(a_reply(), 0..5), cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        put_replies(&all, &mut bytes);
        prop_assert_eq!(replies(&bytes), Some(all));
        prop_assert_eq!(replies(&bytes[..cut.index(bytes.len())]), None);
        bytes.push(0);
        prop_assert_eq!(replies(&bytes), None);
    }

    /// Damaged bytes are rejected, or decode to a value whose encoding is exactly these bytes.
    #[test]
    fn damage_is_refused_or_means_itself(
        all in vec((any::<u32>(), a_request()), 1..4),
        given in vec(a_reply(), 1..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = message(7, &all.iter().collect::<Vec<_>>());
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if let Some((base, read)) = requests(&bytes) {
            let again = message(base, &read.iter().collect::<Vec<_>>());
            prop_assert_eq!(again, bytes);
        }
        let mut bytes = Vec::new();
        put_replies(&given, &mut bytes);
        let place = at.index(bytes.len());
        bytes[place] = byte;
        if let Some(read) = replies(&bytes) {
            let mut again = Vec::new();
            put_replies(&read, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn noise_is_no_message_that_panics(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (requests(&bytes), replies(&bytes));
    }
}

/// Lengths that far exceed the available bytes, up to those that overflow.
#[test]
fn lengths_are_not_trusted() {
    for length in [5, 1 << 40, u64::MAX / 4, u64::MAX / 4 + 1, u64::MAX] {
        for tag in (0..7).chain(8..12) {
            let mut bytes = vec![1, 0, 0, 0, tag];
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            assert_eq!(replies(&bytes), None, "{length} {tag}");
        }
    }
    assert_eq!(replies(&[255; 4]), None);
    assert_eq!(requests(&[255; 20]), None);
}
