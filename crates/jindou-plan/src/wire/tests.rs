use super::*;
use crate::slots::FIRST_HIDDEN;
use crate::{
    Condition, EdgeList, FarEnd, Functions, GeneralExpression, GraphRef, IdFilter, Intervals,
    Member, Operand, PredicateRef, Relation, Slot, StartSource, StepKind, TermTest, TouchedBy,
};
use jindou_model::{Direction, FIRST_QUERY_ID, FIRST_TAIL_ID, PredicateId, term};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A slot that a step reads. Slots that a step binds are below 60, in a range of ten for each position ([`bound`]).
fn known() -> impl Strategy<Value = Slot> {
    prop_oneof![60..70u16, FIRST_HIDDEN..=u16::MAX]
}

fn bound(role: u16) -> impl Strategy<Value = Slot> {
    10 * role..10 * role + 10
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        known().prop_map(Operand::Slot),
        any::<u32>().prop_map(Operand::Const)
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Out, Direction::In])
}

fn ascending(least: u32) -> impl Strategy<Value = Vec<u32>> {
    let any = prop_oneof![least..9, least..=u32::MAX];
    btree_set(any, 0..5).prop_map(|s| s.into_iter().collect())
}

/// Graphs that are the same for all rows.
fn graphs() -> impl Strategy<Value = GraphRef> {
    prop_oneof![
        Just(GraphRef::Default),
        (1..=u32::MAX).prop_map(GraphRef::Named),
        Just(GraphRef::AnyNamed),
        Just(GraphRef::Union),
        ascending(0).prop_map(GraphRef::Set),
    ]
}

fn graphs_or_slot() -> impl Strategy<Value = GraphRef> {
    prop_oneof![3 => graphs(), 1 => known().prop_map(GraphRef::Slot)]
}

fn any_graphs() -> impl Strategy<Value = GraphRef> {
    let bind = (bound(0), option::of(ascending(1))).prop_map(|(s, only)| GraphRef::Bind(s, only));
    prop_oneof![2 => graphs_or_slot(), 1 => bind]
}

fn edges(
    anchor: impl Strategy<Value = Operand>,
    graph: impl Strategy<Value = GraphRef>,
) -> impl Strategy<Value = EdgeList> {
    let parts = (anchor, any::<u32>(), direction(), graph);
    parts.prop_map(|(anchor, predicate, direction, graph)| EdgeList {
        anchor,
        predicate: PredicateId(predicate),
        direction,
        graph,
    })
}

fn intervals() -> impl Strategy<Value = Intervals> {
    let parts = (vec((0..90u32, 1..90u32), 0..6), any::<bool>());
    parts.prop_map(|(parts, tail)| {
        let mut end = 1;
        let mut all: Intervals = vec![];
        for (gap, length) in parts {
            all.push([end + gap, end + gap + length]);
            end += gap + length;
        }
        if tail {
            all.push([FIRST_TAIL_ID, FIRST_QUERY_ID]);
        }
        all
    })
}

fn id_filter() -> impl Strategy<Value = IdFilter> {
    let id = option::of(any::<u32>());
    let touched = (any::<u32>(), direction(), graphs(), id).prop_map(
        |(predicate, direction, graph, neighbour)| TouchedBy {
            predicate: PredicateId(predicate),
            direction,
            graph,
            neighbour,
        },
    );
    let member = (intervals(), option::of(touched))
        .prop_map(|(intervals, touched)| Member { intervals, touched });
    (intervals(), vec(member, 0..3))
        .prop_map(|(intervals, members)| IdFilter { intervals, members })
}

/// A source of values for a slot, and a restriction of these values.
fn source() -> impl Strategy<Value = (StartSource, Option<IdFilter>)> {
    let list = edges(any::<u32>().prop_map(Operand::Const), graphs());
    let keys = (any::<u32>(), direction(), graphs());
    let keys = keys.prop_map(|(predicate, direction, graph)| StartSource::Keys {
        predicate: PredicateId(predicate),
        direction,
        graph,
    });
    let others = prop_oneof![
        list.prop_map(StartSource::List),
        keys,
        option::of(ascending(1)).prop_map(StartSource::Graphs),
    ];
    prop_oneof![
        1 => id_filter().prop_map(|within| (StartSource::IdFilter, Some(within))),
        3 => (others, option::of(id_filter())),
    ]
}

fn kind() -> impl Strategy<Value = StepKind> {
    let predicate = || {
        prop_oneof![
            bound(1).prop_map(PredicateRef::Bind),
            known().prop_map(PredicateRef::Slot)
        ]
    };
    let far = prop_oneof![
        bound(2).prop_map(FarEnd::Bind),
        operand().prop_map(FarEnd::Known)
    ];
    let lists = prop_oneof![
        vec(edges(operand(), graphs_or_slot()), 1..4),
        vec(edges(operand(), any_graphs()), 1),
    ];
    prop_oneof![
        1 => Just(unit()),
        2 => (bound(3), source()).prop_map(|(to, (source, within))| start(Some(to), source, within)),
        2 => (bound(3), source())
            .prop_map(|(to, (source, within))| StepKind::Cross { to, source, within }),
        2 => (bound(3), lists, option::of(id_filter()))
            .prop_map(|(to, lists, within)| StepKind::Expand { to, lists, within }),
        2 => (edges(operand(), any_graphs()), operand())
            .prop_map(|(list, other)| StepKind::Check { list, other }),
        2 => (known(), id_filter()).prop_map(|(slot, within)| StepKind::Restrict { slot, within }),
        2 => (operand(), direction(), predicate(), far, any_graphs())
            .prop_map(|(anchor, direction, predicate, far, graph)|
                StepKind::ExpandAny { anchor, direction, predicate, far, graph }),
        2 => (bound(3), predicate(), bound(4), any_graphs())
            .prop_map(|(subject, predicate, object, graph)|
                StepKind::ScanAll { subject, predicate, object, graph }),
    ]
}

fn literal(lexical: &str, datatype: &str) -> Vec<u8> {
    let mut out = vec![];
    let xsd = "http://www.w3.org/2001/XMLSchema#";
    term::push_typed(lexical, &format!("{xsd}{datatype}"), &mut out);
    out
}

fn condition() -> impl Strategy<Value = Condition> {
    let relation = select(vec![
        Relation::Equal,
        Relation::NotEqual,
        Relation::Less,
        Relation::LessOrEqual,
        Relation::Greater,
        Relation::GreaterOrEqual,
    ]);
    let constant = select(vec![
        literal("-17", "integer"),
        literal("2.50", "decimal"),
        literal("INF", "double"),
        literal("", "string"),
        literal("naïve \0 text", "string"),
        literal("true", "boolean"),
        literal("2020-02-29T12:00:00Z", "dateTime"),
        literal("P1Y", "yearMonthDuration"),
    ]);
    let test = select(vec![
        TermTest::Iri,
        TermTest::Blank,
        TermTest::Literal,
        TermTest::Numeric,
    ]);
    let slot = any::<Slot>;
    let leaf = prop_oneof![
        (operand(), operand()).prop_map(|(a, b)| Condition::Same(a, b)),
        (slot(), relation, constant).prop_map(|(s, r, c)| Condition::Compare(s, r, c.into())),
        (slot(), test).prop_map(|(s, test)| Condition::Kind(s, test)),
        slot().prop_map(Condition::Bound),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Condition::And),
            vec(inner.clone(), 0..4).prop_map(Condition::Or),
            inner.prop_map(|c| Condition::Not(Box::new(c))),
        ]
    })
}

fn estimate() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e18, select(vec![0.0, f64::MAX, f64::INFINITY])]
}

fn step() -> impl Strategy<Value = Step> {
    let (filters, slots) = (vec(condition(), 0..3), vec(any::<Slot>(), 0..5));
    let parts = (kind(), filters, slots, estimate(), estimate());
    parts.prop_map(|(kind, filters, live, rows, cost)| Step {
        kind,
        filters,
        live,
        rows,
        cost,
        why: "it is the cheapest".into(),
    })
}

fn silent(mut all: Vec<Step>) -> Vec<Step> {
    all.iter_mut().for_each(|s| s.why.clear());
    all
}

fn bytes_of(all: &[Step]) -> Vec<u8> {
    let mut bytes = vec![];
    put_steps(all, &mut bytes).unwrap();
    bytes
}

/// True if the bytes can be decoded. Encoding the result must then yield the same bytes.
fn is_read(bytes: &[u8]) -> bool {
    let read = steps(bytes);
    if let Some(read) = &read {
        assert_eq!(bytes_of(read), bytes, "{read:?}");
    }
    read.is_some()
}

proptest! {
    #[test]
    fn steps_come_back(all in vec(step(), 0..5)) {
        prop_assert!(all.iter().all(is_sendable));
        let mut bytes = b"before".to_vec();
        put_steps(&all, &mut bytes).unwrap();
        let mut bytes = bytes.split_off(6);
        prop_assert_eq!(steps(&bytes), Some(silent(all)));
        for cut in 0..bytes.len() {
            prop_assert!(steps(&bytes[..cut]).is_none(), "{} of {}", cut, bytes.len());
        }
        bytes.push(0);
        prop_assert!(steps(&bytes).is_none());
    }

    /// 40 independent single-bit flips in each of 256 messages. The other bytes stay unchanged, so decoded values often
    /// have another variant, length or position.
    #[test]
    fn flipped_bits_are_refused_or_mean_themselves(
        all in vec(step(), 1..4),
        flips in vec((any::<Index>(), 0..8u32), 40),
    ) {
        let bytes = bytes_of(&all);
        for (at, bit) in flips {
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] ^= 1 << bit;
            is_read(&damaged);
        }
    }

    #[test]
    fn noise_is_refused_or_means_itself(
        all in vec(step(), 1..4),
        from in any::<Index>(),
        noise in vec(prop_oneof![0..8u8, any::<u8>()], 1..40),
    ) {
        is_read(&noise);
        let mut bytes = bytes_of(&all);
        let from = from.index(bytes.len());
        let to = bytes.len().min(from + noise.len());
        bytes.splice(from..to, noise);
        is_read(&bytes);
    }
}

/// Corruption is not always detected: some flipped bits yield another valid message.
#[test]
fn some_flips_can_be_read() {
    let bytes = bytes_of(&[with(vec![Condition::Bound(5)])]);
    let readable = (0..8 * bytes.len()).filter(|bit| {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        is_read(&damaged)
    });
    let (readable, all) = (readable.count(), 8 * bytes.len());
    assert!(readable > all / 10, "{readable} of {all}");
    assert!(readable < all * 9 / 10, "{readable} of {all}");
}

fn step_of(kind: StepKind) -> Step {
    Step {
        kind,
        filters: vec![],
        live: vec![5],
        rows: 1.0,
        cost: 2.0,
        why: String::new(),
    }
}

fn start(to: Option<Slot>, source: StartSource, within: Option<IdFilter>) -> StepKind {
    StepKind::Start { to, source, within }
}

fn unit() -> StepKind {
    start(None, StartSource::Unit, None)
}

fn with(filters: Vec<Condition>) -> Step {
    Step {
        filters,
        ..step_of(unit())
    }
}

/// Asserts that the step is rejected by both encoder and decoder, although its bytes alone could be decoded.
fn is_refused(step: Step, flaw: Flaw) {
    assert!(!is_sendable(&step), "{step:?}");
    let all = [step_of(unit()), step];
    let mut bytes = vec![7];
    assert_eq!(
        put_steps(&all, &mut bytes),
        Err(Unsendable { step: 1, flaw })
    );
    assert_eq!(bytes, [7]);
    bytes.clear();
    code::put(&all, &mut bytes);
    if !matches!(flaw, Flaw::Expression | Flaw::Depth | Flaw::Conditions) {
        assert!(code::take(&bytes).is_some_and(|read| read.len() == 2));
    }
    assert!(steps(&bytes).is_none());
}

fn list(graph: GraphRef) -> EdgeList {
    EdgeList {
        anchor: Operand::Const(9),
        predicate: PredicateId(0),
        direction: Direction::Out,
        graph,
    }
}

fn started(source: StartSource, within: Option<IdFilter>) -> [StepKind; 2] {
    let start = start(Some(1), source.clone(), within.clone());
    let to = 1;
    [start, StepKind::Cross { to, source, within }]
}

#[test]
fn intervals_must_be_in_order() {
    let last = FIRST_QUERY_ID;
    for good in [vec![], vec![[1, 2], [2, 3]], vec![[5, last]]] {
        let step = step_of(StepKind::Restrict {
            slot: 1,
            within: IdFilter::exactly(good),
        });
        assert!(is_sendable(&step));
    }
    let bad = [
        vec![[0, 2]],
        vec![[2, 2]],
        vec![[3, 2]],
        vec![[4, 6], [1, 3]],
        vec![[1, 4], [3, 6]],
        vec![[1, 4], [1, 4]],
        vec![[last, last + 1]],
        vec![[1, u32::MAX]],
    ];
    for list in bad {
        let flaw = Flaw::Intervals;
        let mut member = IdFilter::default();
        member.members.push(Member {
            intervals: list.clone(),
            touched: None,
        });
        for within in [IdFilter::exactly(list), member] {
            let restrict = StepKind::Restrict {
                slot: 1,
                within: within.clone(),
            };
            is_refused(step_of(restrict), flaw);
            for kind in started(StartSource::IdFilter, Some(within)) {
                is_refused(step_of(kind), flaw);
            }
        }
    }
}

#[test]
fn graphs_must_be_in_order_and_of_the_right_kind() {
    let flaw = Flaw::Graphs;
    let check = |graph| {
        step_of(StepKind::Check {
            list: list(graph),
            other: Operand::Slot(3),
        })
    };
    assert!(is_sendable(&check(GraphRef::Set(vec![0, 4]))));
    for ids in [vec![4, 0], vec![4, 4], vec![1, 3, 2]] {
        is_refused(check(GraphRef::Set(ids.clone())), flaw);
        is_refused(check(GraphRef::Bind(2, Some(ids.clone()))), flaw);
        for kind in started(StartSource::Graphs(Some(ids)), None) {
            is_refused(step_of(kind), flaw);
        }
    }
    is_refused(check(GraphRef::Named(0)), flaw);
    is_refused(check(GraphRef::Bind(2, Some(vec![0, 4]))), flaw);
    for by_row in [GraphRef::Slot(2), GraphRef::Bind(2, None)] {
        let keys = StartSource::Keys {
            predicate: PredicateId(0),
            direction: Direction::Out,
            graph: by_row.clone(),
        };
        let of_list = StartSource::List(list(by_row.clone()));
        for kind in [started(keys, None), started(of_list, None)].concat() {
            is_refused(step_of(kind), flaw);
        }
        let touched = TouchedBy {
            predicate: PredicateId(0),
            direction: Direction::Out,
            graph: by_row,
            neighbour: None,
        };
        let mut within = IdFilter::default();
        within.members.push(Member {
            intervals: vec![],
            touched: Some(touched),
        });
        is_refused(step_of(StepKind::Restrict { slot: 1, within }), flaw);
    }
}

#[test]
fn starts_must_have_values_and_a_slot() {
    let flaw = Flaw::Source;
    let ids = Some(IdFilter::exactly(vec![[1, 9]]));
    let nowhere = start(None, StartSource::Graphs(None), None);
    let unit_within = start(None, StartSource::Unit, ids);
    let mut anchored = list(GraphRef::Default);
    anchored.anchor = Operand::Slot(4);
    let bad = [
        started(StartSource::Unit, None),
        started(StartSource::IdFilter, None),
        started(StartSource::List(anchored), None),
        [nowhere, unit_within],
    ];
    for kind in bad.concat() {
        is_refused(step_of(kind), flaw);
    }
}

#[test]
fn lists_and_slots_must_go_together() {
    let expand = |to, lists| {
        step_of(StepKind::Expand {
            to,
            lists,
            within: None,
        })
    };
    let bind = list(GraphRef::Bind(2, None));
    assert!(is_sendable(&expand(1, vec![bind.clone()])));
    is_refused(expand(1, vec![]), Flaw::Lists);
    let both = vec![list(GraphRef::Default), bind.clone()];
    is_refused(expand(1, both), Flaw::Lists);
    // Bound twice, reserved for the engine, both bound and read.
    is_refused(expand(2, vec![bind]), Flaw::Slots);
    let own = FIRST_HIDDEN;
    is_refused(expand(own, vec![list(GraphRef::Default)]), Flaw::Slots);
    let mut anchored = list(GraphRef::Default);
    anchored.anchor = Operand::Slot(1);
    is_refused(expand(1, vec![anchored]), Flaw::Slots);
    let scan = |subject, predicate| {
        step_of(StepKind::ScanAll {
            subject,
            predicate,
            object: 3,
            graph: GraphRef::Slot(4),
        })
    };
    is_refused(scan(3, PredicateRef::Bind(1)), Flaw::Slots);
    is_refused(scan(2, PredicateRef::Slot(2)), Flaw::Slots);
    is_refused(scan(4, PredicateRef::Bind(1)), Flaw::Slots);
    assert!(is_sendable(&scan(2, PredicateRef::Slot(4))));
}

#[test]
fn estimates_must_be_numbers() {
    for bad in [f64::NAN, -f64::NAN, -1.0, f64::NEG_INFINITY] {
        let (rows, cost) = (step_of(unit()), step_of(unit()));
        is_refused(Step { rows: bad, ..rows }, Flaw::Estimate);
        is_refused(Step { cost: bad, ..cost }, Flaw::Estimate);
    }
}

#[test]
fn constants_must_have_an_order() {
    let mut nested = vec![];
    for _ in 0..100 {
        let mut outer = vec![term::TRIPLE];
        for part in [&b"<s"[..], b"<p", &nested] {
            outer.extend_from_slice(&(part.len() as u32).to_le_bytes());
            outer.extend_from_slice(part);
        }
        nested = outer;
    }
    let bad = [
        vec![],
        b"<http://e/a".to_vec(),
        b"_:b".to_vec(),
        b"@en\0a".to_vec(),
        vec![term::STRING, 0xFF],
        literal("x", "integer"),
        literal("NaN", "double"),
        vec![0xFF, b'1'],
        nested,
    ];
    for constant in bad {
        let compare = Condition::Compare(1, Relation::Less, constant.into());
        let inside = Condition::Not(Box::new(Condition::Or(vec![compare])));
        is_refused(with(vec![inside]), Flaw::Constant);
    }
}

#[test]
fn expressions_stay() {
    use jindou_syntax::algebra::{Expression, Variable};
    let general = GeneralExpression {
        expression: Expression::Bound(Variable::new_unchecked("x")).into(),
        variables: [].into(),
        base_iri: None,
        functions: Functions::new(),
        per_row: false,
        asked: None,
    };
    let general = Condition::General(Box::new(general));
    is_refused(with(vec![general.clone()]), Flaw::Expression);
    let inside = Condition::And(vec![Condition::Bound(1), general]);
    is_refused(with(vec![inside]), Flaw::Expression);
    let flaw = Flaw::Expression;
    let unsendable = Unsendable { step: 3, flaw };
    assert_eq!(
        unsendable.to_string(),
        "step 3, counted from 0, cannot be sent to another server: it has a condition that only an expression can compute; \
         run it on the server that planned it"
    );
}

/// `levels` nested conditions.
fn nest(levels: usize, around: impl Fn(Condition) -> Condition) -> Condition {
    (1..levels).fold(Condition::Bound(1), |c, _| around(c))
}

/// Drops nested conditions iteratively: they are too deep for the recursion of `drop`.
fn dismantle(mut c: Condition) {
    loop {
        c = match c {
            Condition::Not(inner) => *inner,
            Condition::And(mut all) | Condition::Or(mut all) if !all.is_empty() => all.remove(0),
            _ => return,
        };
    }
}

fn around() -> [fn(Condition) -> Condition; 3] {
    [
        |c| Condition::Not(Box::new(c)),
        |c| Condition::And(vec![c]),
        |c| Condition::Or(vec![c]),
    ]
}

#[test]
fn depth_is_bounded() {
    for around in around() {
        let deepest = vec![with(vec![nest(MAX_DEPTH, around)])];
        assert_eq!(steps(&bytes_of(&deepest)), Some(deepest));
        is_refused(with(vec![nest(MAX_DEPTH + 1, around)]), Flaw::Depth);
    }
}

/// Runs on a stack that is too small for thousands of recursive calls.
#[test]
fn ten_thousand_levels_are_refused_without_recursion() {
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let asked = small.spawn(|| {
        for (tag, around) in [6, 4, 5].into_iter().zip(around()) {
            let mut step = with(vec![nest(10_000, around)]);
            assert!(!is_sendable(&step));
            let flaw = Flaw::Depth;
            let refused = put_steps(std::slice::from_ref(&step), &mut vec![]);
            assert_eq!(refused, Err(Unsendable { step: 0, flaw }));
            step.filters.drain(..).for_each(dismantle);
            // The encoding of the step, written without recursion: one step with one filter.
            let mut bytes = bytes_of(&[step_of(unit())]);
            let rest = bytes.split_off(8);
            bytes.extend_from_slice(&[1, 0, 0, 0]);
            for _ in 1..10_000 {
                bytes.push(tag);
                if tag != 6 {
                    bytes.extend_from_slice(&[1, 0, 0, 0]);
                }
            }
            bytes.extend_from_slice(&[3, 1, 0]);
            bytes.extend_from_slice(&rest[4..]);
            assert!(steps(&bytes).is_none());
        }
    });
    asked.unwrap().join().unwrap();
}

/// Checks the byte offsets that the previous test uses: with one level, the bytes can be decoded.
#[test]
fn filters_are_where_that_test_puts_them() {
    let mut bytes = bytes_of(&[step_of(unit())]);
    let rest = bytes.split_off(8);
    bytes.extend_from_slice(&[1, 0, 0, 0, 6, 3, 1, 0]);
    bytes.extend_from_slice(&rest[4..]);
    let not = Condition::Not(Box::new(Condition::Bound(1)));
    assert_eq!(steps(&bytes), Some(vec![with(vec![not])]));
}

#[test]
fn conditions_are_counted_over_all_steps() {
    let some = |n| with(vec![Condition::Or(vec![Condition::Bound(1); n - 1])]);
    let full = vec![some(MAX_CONDITIONS / 2); 2];
    assert_eq!(steps(&bytes_of(&full)), Some(full));
    let flaw = Flaw::Conditions;
    let over = [some(MAX_CONDITIONS / 2), some(MAX_CONDITIONS / 2 + 1)];
    assert!(over.iter().all(is_sendable));
    let refused = put_steps(&over, &mut vec![]);
    assert_eq!(refused, Err(Unsendable { step: 1, flaw }));
    let mut bytes = vec![];
    code::put(&over, &mut bytes);
    assert!(steps(&bytes).is_none());
    is_refused(some(MAX_CONDITIONS + 1), flaw);
}

/// Too large lengths in each list. Lengths are the only places where these steps have the bytes of the number 1.
#[test]
fn lengths_are_not_trusted() {
    let restrict = StepKind::Restrict {
        slot: 1,
        within: IdFilter::exactly(vec![[2, 9]]),
    };
    let set = StepKind::Check {
        list: list(GraphRef::Set(vec![2])),
        other: Operand::Const(7),
    };
    let compare = Condition::Compare(1, Relation::Less, literal("5", "integer").into());
    let mut filtered = with(vec![Condition::And(vec![compare])]);
    filtered.live = vec![];
    for step in [step_of(restrict), step_of(set), filtered] {
        let bytes = bytes_of(&[step]);
        let mut lengths = 0;
        for at in 0..bytes.len() - 3 {
            if bytes[at..at + 4] == [1, 0, 0, 0] {
                lengths += 1;
                for length in [2, 1 << 20, 1 << 31, u32::MAX] {
                    let mut damaged = bytes.clone();
                    damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(length));
                    assert!(!is_read(&damaged), "{at} {length}");
                }
            }
        }
        assert!(lengths >= 3);
    }
    assert!(steps(&[255; 40]).is_none());
}
