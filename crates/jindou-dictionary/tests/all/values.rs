//! Ranks and bounds against independent arithmetic: big fractions by digits for numbers, XSD's types for times, the
//! standard order for strings.

use crate::common::dictionary;
use jindou_dictionary::{Comparison, Dictionary, NAN_RANK, NO_RANK, SortKey, TermKind, ValueGroup};
use jindou_model::VertexId;
use jindou_values::{Num, Number, Temporal, TemporalKind};
use oxsdatatypes::{Date, DateTime, Decimal, Double, Float, Integer};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::str::FromStr;

const COMPARISONS: [Comparison; 5] = [
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Equal,
    Comparison::GreaterOrEqual,
    Comparison::Greater,
];

fn coded(tag: u8, lexical: &str) -> Vec<u8> {
    [&[tag], lexical.as_bytes()].concat()
}

/// A dictionary of terms, and the id of each in the order given (distinct).
fn build(terms: &[Vec<u8>]) -> (tempfile::TempDir, Dictionary, Vec<VertexId>) {
    let tmp = tempfile::tempdir().unwrap();
    let (d, _) = dictionary(terms, tmp.path());
    let ids = terms.iter().map(|t| d.lookup(t).unwrap()).collect();
    (tmp, d, ids)
}

/// An exact value as a fraction over 10^400 in decimal digits: sign and 900 digits, comparable as
/// text once padded. Slow and simple; independent of the crate.
fn exact(tag: u8, lexical: &str) -> Option<(i8, String)> {
    let plain = match tag {
        0x82 | 0x83 => {
            let v = f64_of((tag, lexical)).filter(|v| v.is_finite())?;
            format!("{v:.400}")
        }
        _ => lexical.to_owned(),
    };
    let negative = plain.starts_with('-');
    let digits = plain.trim_start_matches(['+', '-']);
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let text = format!("{integer:0>500}{fraction:0<400}");
    assert_eq!(text.len(), 900);
    let sign = match text.bytes().all(|b| b == b'0') {
        true => 0,
        false if negative => -1,
        false => 1,
    };
    Some((sign, text))
}

fn exact_order(a: &(i8, String), b: &(i8, String)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| match a.0 {
        -1 => b.1.cmp(&a.1),
        0 => Ordering::Equal,
        _ => a.1.cmp(&b.1),
    })
}

fn number() -> impl Strategy<Value = (u8, String)> {
    let near = (-3i64..4).prop_map(|i| (9_007_199_254_740_992 + i).to_string());
    let whole = prop_oneof![
        "-?[0-9]{1,3}",
        "[+-]?0{0,2}[0-9]{1,2}",
        near,
        "-?[1-9][0-9]{18,40}"
    ];
    let decimal = prop_oneof![
        whole.clone(),
        "-?[0-9]{1,2}\\.[0-9]{0,3}",
        "-?0\\.1[05]{0,25}",
        Just("0.1000000000000000055511151231257827021181583404541015625".to_owned()),
        Just("0.100000001490116119384765625".to_owned()),
    ];
    let double = prop_oneof![
        "-?[0-9]{1,2}(\\.[0-9]{1,2})?(e[0-3])?",
        Just("9007199254740992".to_owned()),
        Just("0.1".to_owned()),
        Just("-0".to_owned()),
        Just("1e-300".to_owned()),
        Just("1.25e30".to_owned()),
    ];
    prop_oneof![
        whole.prop_map(|s| (0x80, s)),
        decimal.prop_map(|s| (0x81, s)),
        double.clone().prop_map(|s| (0x82, s)),
        double.prop_map(|s| (0x83, s)),
        "-?[0-9]{1,2}".prop_map(|s| (0x84, s)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn numeric_ranks_are_exact(set in proptest::collection::btree_set(number(), 1..40)) {
        let all: Vec<(u8, String)> = set.into_iter().collect();
        let terms: Vec<Vec<u8>> = all.iter().map(|(t, s)| coded(*t, s)).collect();
        let (_tmp, d, ids) = build(&terms);
        let values: Vec<_> = all.iter().map(|(t, s)| exact(*t, s).unwrap()).collect();
        let mut many = vec![];
        d.numeric_rank_many(&ids.iter().map(|i| i.0).collect::<Vec<_>>(), &mut many);
        let mut used: Vec<u32> = many.clone();
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used, (0..*many.iter().max().unwrap() + 1).collect::<Vec<_>>(), "dense");
        for i in 0..all.len() {
            prop_assert_eq!(d.numeric_rank(ids[i]), Some(many[i]));
            for j in 0..all.len() {
                prop_assert_eq!(
                    many[i].cmp(&many[j]), exact_order(&values[i], &values[j]),
                    "{:?} {:?}", &all[i], &all[j]
                );
                prop_assert_eq!(d.sort_key(ids[i]).cmp(&d.sort_key(ids[j])), many[i].cmp(&many[j]));
            }
        }
    }

    #[test]
    fn numeric_bounds_compare_as_sparql_does(
        set in proptest::collection::btree_set(number(), 1..40), bounds in proptest::collection::vec(number(), 1..8)
    ) {
        let all: Vec<(u8, String)> = set.into_iter().collect();
        let terms: Vec<Vec<u8>> = all.iter().map(|(t, s)| coded(*t, s)).collect();
        let (_tmp, d, ids) = build(&terms);
        for (tag, text) in bounds.iter().chain(&all) {
            let bound = Number::parse(*tag, text).unwrap();
            for comparison in COMPARISONS {
                let intervals = d.numeric_bounds(comparison, &bound);
                for (i, (t, s)) in all.iter().enumerate() {
                    let Some(order) = sparql_order((*t, s), (*tag, text)) else { continue };
                    let kind = d.numeric_kind(ids[i]).unwrap();
                    let rank = d.numeric_rank(ids[i]).unwrap();
                    prop_assert_eq!(
                        intervals.interval(kind).contains(&rank), comparison.holds(order),
                        "{:?} {:?} {:?}", (t, s), comparison, (tag, text)
                    );
                    if let Some(one) = intervals.uniform() {
                        prop_assert_eq!(one.contains(&rank), comparison.holds(order));
                    }
                }
            }
        }
    }
}

/// The order by XPath's promotion rules; `None` if one side is exact and the other a float such that rounding twice
/// (exact to double to float) could matter, and for values that oxsdatatypes cannot represent.
fn sparql_order(a: (u8, &str), b: (u8, &str)) -> Option<Ordering> {
    let kind = |t: u8| match t {
        0x82 => 2,
        0x83 => 1,
        _ => 0,
    };
    match kind(a.0).max(kind(b.0)) {
        0 => Some(exact_order(&exact(a.0, a.1)?, &exact(b.0, b.1)?)),
        2 => f64_of(a)?.partial_cmp(&f64_of(b)?),
        _ => {
            let single = |(t, s): (u8, &str)| {
                let direct = f32::from_str(s).ok()?;
                (t == 0x83 || direct == f64::from_str(s).ok()? as f32).then_some(direct)
            };
            single(a)?.partial_cmp(&single(b)?)
        }
    }
}

fn f64_of((t, s): (u8, &str)) -> Option<f64> {
    match t {
        0x83 => f32::from_str(s).ok().map(f64::from),
        _ => f64::from_str(s).ok(),
    }
}

proptest! {
    #[test]
    fn ranks_agree_with_oxsdatatypes(
        a in "-?[0-9]{1,6}", b in "-?[0-9]{1,6}(\\.[0-9]{1,4})?", c in "-?[0-9]{1,6}(\\.[0-9]{1,4})?"
    ) {
        let terms = [coded(0x80, &a), coded(0x81, &b), coded(0x82, &c), coded(0x83, &c)];
        let (_tmp, d, ids) = build(&terms);
        let rank = |i: usize| d.numeric_rank(ids[i]).unwrap();
        let integer = Integer::from_str(&a).unwrap();
        let decimal = Decimal::from_str(&b).unwrap();
        let double = Double::from_str(&c).unwrap();
        let float = Float::from_str(&c).unwrap();
        prop_assert_eq!(Some(rank(0).cmp(&rank(1))), Decimal::from(integer).partial_cmp(&decimal));
        prop_assert_eq!(Some(rank(0).cmp(&rank(2))), Double::from(integer).partial_cmp(&double));
        prop_assert_eq!(Some(rank(3).cmp(&rank(2))), Double::from(float).partial_cmp(&double));
        prop_assert_eq!(d.numeric_value(ids[1]), Number::parse(0x81, &decimal.to_string()));
    }

    #[test]
    fn times_compare_as_in_oxsdatatypes(
        set in proptest::collection::btree_set(
            (1u8..4, 0u8..24, prop_oneof![Just(""), Just("Z"), Just("+14:00"), Just("-14:00"), Just("+01:00")]), 2..40)
    ) {
        let date_times: Vec<String> =
            set.iter().map(|(d, h, z)| format!("2021-02-{d:02}T{h:02}:30:00{z}")).collect();
        check_times(0x91, &date_times, |s| DateTime::from_str(s).unwrap());
        let dates: std::collections::BTreeSet<String> =
            set.iter().map(|(d, _, z)| format!("2021-02-{d:02}{z}")).collect();
        check_times(0x92, &dates.into_iter().collect::<Vec<_>>(), |s| Date::from_str(s).unwrap());
    }

    #[test]
    fn strings_compare_by_code_point(
        set in proptest::collection::btree_set("[a-c\u{e9}\u{10FFFF}]{0,3}", 0..60), bound in "[a-c]{0,3}"
    ) {
        let mut terms: Vec<Vec<u8>> = set.iter().map(|s| coded(b'"', s)).collect();
        terms.push(b"<a".to_vec());
        terms.push(b"!".to_vec());
        let (_tmp, d, ids) = build(&terms);
        for comparison in COMPARISONS {
            let range = d.string_bounds(comparison, &bound);
            for (s, &id) in set.iter().zip(&ids) {
                let lex = d.lex(id).unwrap();
                prop_assert_eq!(range.contains(&lex), comparison.holds(s.as_str().cmp(bound.as_str())));
            }
            prop_assert!(!range.contains(&d.lex(ids[set.len()]).unwrap()));
            prop_assert!(!range.contains(&d.lex(ids[set.len() + 1]).unwrap()));
        }
    }
}

fn check_times<T: PartialOrd>(tag: u8, texts: &[String], parse: impl Fn(&str) -> T) {
    let terms: Vec<Vec<u8>> = texts.iter().map(|t| coded(tag, t)).collect();
    let (_tmp, d, ids) = build(&terms);
    // Without a zone, a value is taken as UTC.
    let zoned = |t: &str| t.contains(['Z', '+']) || t.ends_with("-14:00");
    let utc = |t: &String| if zoned(t) { t.clone() } else { format!("{t}Z") };
    let values: Vec<T> = texts.iter().map(|t| parse(&utc(t))).collect();
    let rank = |i: usize| d.value_rank(d.lex(ids[i]).unwrap());
    for (j, bound) in texts.iter().enumerate() {
        for i in 0..texts.len() {
            let order = values[i].partial_cmp(&values[j]).unwrap();
            assert_eq!(rank(i).cmp(&rank(j)), order, "{} {bound}", texts[i]);
            assert_eq!(d.sort_key(ids[i]).cmp(&d.sort_key(ids[j])), order);
            for comparison in COMPARISONS {
                let kind = TemporalKind::of_tag(tag).unwrap();
                let bound = Temporal::parse(kind, bound).unwrap();
                let bounds = d.temporal_bounds(comparison, bound);
                let (got, want) = (bounds.contains(&rank(i)), comparison.holds(order));
                assert_eq!(got, want, "{} {comparison:?} {bound:?}", texts[i]);
            }
        }
    }
}

#[test]
fn what_has_no_value_has_no_rank() {
    let terms = [
        coded(0x80, "x"),
        coded(0x82, "NaN"),
        coded(0x82, "INF"),
        coded(0x83, "-INF"),
        coded(0x80, &"9".repeat(400)),
        coded(0x82, "1e0"),
        coded(0x90, "true"),
        coded(0x90, "0"),
        coded(0x90, "TRUE"),
        coded(0x91, "yesterday"),
        coded(0x9A, "PT24H"),
        coded(0x99, "P1D"),
        b"\"1".to_vec(),
        b"<i".to_vec(),
        b"_:b".to_vec(),
    ];
    let (_tmp, d, ids) = build(&terms);
    let rank = |i: usize| d.value_rank(d.lex(ids[i]).unwrap());
    assert_eq!([0, 8, 9, 12].map(rank), [NO_RANK; 4]);
    assert_eq!(rank(1), NAN_RANK);
    // -INF < 1 < 10^400 - 1 < INF
    assert_eq!([rank(3), rank(5), rank(4), rank(2)], [0, 1, 2, 3]);
    assert_eq!((rank(6), rank(7)), (1, 0));
    assert_eq!(rank(10), rank(11));
    assert_eq!(d.numeric_rank(ids[6]), None);
    assert_eq!(d.value_group(ids[11]), Some(ValueGroup::Duration));
    let huge = Number::parse(0x80, &"9".repeat(400)).unwrap();
    assert_eq!(d.numeric_bounds(Comparison::Equal, &huge).exact, 2..3);
    assert_eq!(d.numeric_bounds(Comparison::Less, &huge).exact, 0..2);
    let nan = Num::Dbl(f64::NAN).into();
    assert_eq!(d.numeric_bounds(Comparison::Less, &nan).exact, 0..0);
    let key = |i: usize| d.sort_key(ids[i]);
    assert!(key(14) < key(13) && key(13) < key(3) && key(2) < key(1) && key(1) < key(12));
    assert_eq!(d.sort_key(VertexId(0)), SortKey { class: 0, rank: 0 });
    let kinds = [TermKind::Blank, TermKind::Iri, TermKind::Literal];
    assert_eq!([14, 13, 0].map(|i| d.kind(ids[i])), kinds.map(Some));
}

/// A term that the dictionary does not have gets the position that it would have there.
#[test]
fn places_of_other_terms_are_those_of_the_dictionary_with_them() {
    let mut terms = vec![
        coded(b'"', "a"),
        coded(b'"', "b"),
        b"<http://e/a".to_vec(),
        b"@en\0a".to_vec(),
        b"_:a".to_vec(),
    ];
    let floats = "0.1 -0 INF -INF NaN 1e300 99999999999999999999";
    let integers = "-5 0 7 99999999999999999999 999999999999999999999999999999 x";
    let decimals = "0.1 7.0 0.12345678901234567890 0.12345678901234567891";
    let dates = "2020-01-01 2020-01-01Z 2020-01-01+14:00 -0001-01-01 x";
    for (tag, texts) in [
        (0x80, integers),
        (0x81, decimals),
        (0x82, floats),
        (0x83, floats),
        (0x90, "true 0 maybe"),
        (0x92, dates),
        (0x99, "P1D PT24H P30D P1M P31D x"),
    ] {
        terms.extend(texts.split(' ').map(|text| coded(tag, text)));
    }
    let (_tmp, all, ids) = build(&terms);
    for (i, one) in terms.iter().enumerate() {
        let mut others = terms.clone();
        others.remove(i);
        let (_tmp, d, other_ids) = build(&others);
        let (place, equal) = d.place(one);
        for (other, &id) in others.iter().zip(&other_ids) {
            let j = terms.iter().position(|t| t == other).unwrap();
            let want = all.sort_key(ids[j]).cmp(&all.sort_key(ids[i]));
            let got = match d.sort_key(id).cmp(&place) {
                Ordering::Equal if !equal => Ordering::Greater,
                o => o,
            };
            assert_eq!(got, want, "{one:?} among others: {other:?}");
        }
        assert_eq!(all.place(one), (all.sort_key(ids[i]), true), "{one:?}");
    }
}
