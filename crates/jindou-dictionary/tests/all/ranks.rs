//! The value ranks as an index: each verdict against the values themselves, by `jindou-values`, which knows no ranks.

use crate::common::dictionary;
use jindou_dictionary::index::{
    Call, Indexes, OpenIndexes, Question, QuestionPart, Relation, Verdict,
};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, term};
use jindou_values::{Value, equal_values, order, value};
use oxrdf::{Literal, NamedNode};
use std::cmp::Ordering;

const RELATIONS: [Relation; 6] = [
    Relation::Equal,
    Relation::NotEqual,
    Relation::Less,
    Relation::LessOrEqual,
    Relation::Greater,
    Relation::GreaterOrEqual,
];

/// The verdict by the values alone.
fn specified(a: &[u8], relation: Relation, b: &[u8]) -> Verdict {
    let (x, y) = (value(a).unwrap(), value(b).unwrap());
    let ordered = |f: fn(Ordering) -> bool| order(&x, &y).map(|o| o.is_some_and(f));
    let truth = match relation {
        Relation::Equal => equal_values(a, &x, b, &y),
        Relation::NotEqual => equal_values(a, &x, b, &y).map(|e| !e),
        Relation::Less => ordered(Ordering::is_lt),
        Relation::LessOrEqual => ordered(Ordering::is_le),
        Relation::Greater => ordered(Ordering::is_gt),
        Relation::GreaterOrEqual => ordered(Ordering::is_ge),
    };
    match truth {
        Some(true) => Verdict::True,
        Some(false) => Verdict::False,
        None => Verdict::Error,
    }
}

fn literals() -> Vec<Vec<u8>> {
    let mut all = vec![];
    let mut add = |lexical: &str, datatype: &str| {
        let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
        let literal = Literal::new_typed_literal(lexical, NamedNode::new_unchecked(datatype));
        let mut bytes = vec![];
        term::push_literal(&literal, &mut bytes);
        all.push(bytes);
    };
    for datatype in ["integer", "decimal", "float", "double", "byte"] {
        for lexical in [
            "0", "-1", "1", "01", "2.5", "0.1", "16777217", "1e-1", "NaN", "INF", "x", "",
        ] {
            add(lexical, datatype);
        }
    }
    for (lexical, datatype) in [
        ("true", "boolean"),
        ("0", "boolean"),
        ("no", "boolean"),
        ("2020-01-01", "date"),
        ("2020-01-01Z", "date"),
        ("2019-12-31+14:00", "date"),
        ("2020-13-01", "date"),
        ("2020-01-01T00:00:00", "dateTime"),
        ("2020-01-01T00:00:00.5Z", "dateTime"),
        ("12:00:00", "time"),
        ("P1Y", "duration"),
        ("P12M", "yearMonthDuration"),
        ("PT1H", "dayTimeDuration"),
        ("", "string"),
        ("a", "string"),
        ("b", "string"),
        ("1", "string"),
        ("é", "string"),
        ("a", "token"),
        (" a", "token"),
        ("2020-01-01T01:00:00+01:00", "dateTimeStamp"),
        ("2020-01-01T00:00:00", "dateTimeStamp"),
    ] {
        add(lexical, datatype);
    }
    for (lexical, language) in [("a", "en"), ("a", "de"), ("b", "en")] {
        let literal = Literal::new_language_tagged_literal_unchecked(lexical, language);
        let mut bytes = vec![];
        term::push_literal(&literal, &mut bytes);
        all.push(bytes);
    }
    let other = NamedNode::new_unchecked("http://e/datatype");
    let mut bytes = vec![];
    term::push_literal(&Literal::new_typed_literal("a", other), &mut bytes);
    all.push(bytes);
    all
}

/// True if reading the term again would be a waste: both have values of one kind, and the term has a rank.
fn must_be_settled(a: &[u8], b: &[u8]) -> bool {
    if a.first() == Some(&term::TYPED) {
        return false;
    }
    match (value(a), value(b)) {
        (Some(Value::Number(_)), Some(Value::Number(n))) => !n.to_f64().is_nan(),
        (Some(Value::String(_)), Some(Value::String(_))) => true,
        (Some(Value::Temporal(x)), Some(Value::Temporal(y))) => x.kind() == y.kind(),
        (Some(Value::Iri(_) | Value::Blank(_)), _) => true,
        _ => false,
    }
}

#[test]
fn every_verdict_is_what_the_values_say() {
    let mut terms = literals();
    let constants = terms.clone();
    for iri in ["http://e/a", "http://e/b"] {
        let mut bytes = vec![];
        term::push_iri(iri, &mut bytes);
        terms.push(bytes);
    }
    // Once with all, and without kinds of numbers, which changes how numbers are rounded.
    for left_out in [0x00, 0x82, 0x83, 0x80] {
        let kept: Vec<Vec<u8>> = terms.iter().filter(|t| t[0] != left_out).cloned().collect();
        let folder = tempfile::tempdir().unwrap();
        let (d, _) = dictionary(&kept, folder.path());
        let open = OpenIndexes::without_files(&Indexes::new(), &d).unwrap();
        let mut ids: Vec<u32> = kept.iter().map(|t| d.lookup(t).unwrap().0).collect();
        let known = ids.len();
        ids.extend([0, d.len() + 1, FIRST_TAIL_ID, FIRST_QUERY_ID, u32::MAX]);
        let (mut settled, mut left) = (0, 0);
        for constant in &constants {
            for relation in RELATIONS {
                let question = Question::Compare(relation, constant);
                let mut probe = open.probe(&question, &d).expect("a literal");
                let mut out = vec![Verdict::True; ids.len()];
                probe.test_many(&ids, &mut out);
                for (term, &got) in kept.iter().zip(&out) {
                    let want = specified(term, relation, constant);
                    let text = || {
                        format!(
                            "{} {relation:?} {}: {got:?}, {want:?}",
                            String::from_utf8_lossy(term),
                            String::from_utf8_lossy(constant)
                        )
                    };
                    if got == Verdict::Unsettled {
                        left += 1;
                        assert!(!must_be_settled(term, constant), "{}", text());
                    } else {
                        settled += 1;
                        assert_eq!(got, want, "{}", text());
                    }
                }
                let unknown = &out[known..];
                assert_eq!(unknown[0], Verdict::Error, "unbound");
                assert!(
                    unknown[1..].iter().all(|v| *v == Verdict::Unsettled),
                    "{unknown:?}"
                );
                let estimate = probe.estimate();
                assert!(estimate.passing <= estimate.of && estimate.of <= u64::from(d.len()));
            }
        }
        assert!(settled > 5000 && left > 1000, "{settled} {left}");
    }
}

/// The question `STRSTARTS(?x, prefix)`, or with `STR(?x)`.
fn begins(prefix: &str, of_str: bool) -> Call {
    let text = match of_str {
        false => QuestionPart::Variable,
        true => QuestionPart::Call(Call {
            name: "STR".into(),
            arguments: vec![QuestionPart::Variable],
        }),
    };
    let constant = [&[term::STRING], prefix.as_bytes()].concat();
    Call {
        name: "STRSTARTS".into(),
        arguments: vec![text, QuestionPart::Constant(constant)],
    }
}

#[test]
fn beginnings_are_what_the_texts_say() {
    let mut terms = literals();
    for resource in [
        &b"<http://e/a"[..],
        b"<http://e/b",
        b"<1",
        b"<",
        b"_:a",
        b"_:1",
    ] {
        terms.push(resource.to_vec());
    }
    let folder = tempfile::tempdir().unwrap();
    let (d, _) = dictionary(&terms, folder.path());
    let open = OpenIndexes::without_files(&Indexes::new(), &d).unwrap();
    let mut ids: Vec<u32> = terms.iter().map(|t| d.lookup(t).unwrap().0).collect();
    ids.extend([0, d.len() + 1, FIRST_TAIL_ID, FIRST_QUERY_ID]);
    for prefix in [
        "",
        "1",
        "12",
        "a",
        "http://e/a",
        "2020-01-01",
        "é",
        "~",
        "\u{10FFFF}",
    ] {
        for of_str in [false, true] {
            let call = begins(prefix, of_str);
            let mut probe = open.probe(&Question::Holds(&call), &d).unwrap();
            let mut out = vec![Verdict::True; ids.len()];
            probe.test_many(&ids, &mut out);
            for (term, &got) in terms.iter().zip(&out) {
                let want = match term::parts(term).unwrap() {
                    term::Parts::String(s) => Some(s.starts_with(prefix)),
                    term::Parts::Iri(s) | term::Parts::Coded(s, _) if of_str => {
                        Some(s.starts_with(prefix))
                    }
                    term::Parts::Iri(_) | term::Parts::Blank(_) => None,
                    _ => {
                        assert_eq!(got, Verdict::Unsettled, "{term:?}");
                        continue;
                    }
                };
                let want = match want {
                    Some(true) => Verdict::True,
                    Some(false) => Verdict::False,
                    None => Verdict::Error,
                };
                assert_eq!(got, want, "{} {prefix}", String::from_utf8_lossy(term));
            }
            let unknown = &out[terms.len()..];
            assert_eq!(unknown[0], Verdict::Error);
            assert!(unknown[1..].iter().all(|v| *v == Verdict::Unsettled));
            let passing = out.iter().filter(|v| **v == Verdict::True).count() as u64;
            let estimate = probe.estimate();
            assert_eq!((estimate.passing, estimate.exact), (passing, false));
        }
    }
}

#[test]
fn questions_about_resources_and_calls_are_not_for_ranks() {
    let terms = literals();
    let folder = tempfile::tempdir().unwrap();
    let (d, _) = dictionary(&terms, folder.path());
    let open = OpenIndexes::without_files(&Indexes::new(), &d).unwrap();
    for constant in [&b"<http://e/a"[..], b"", b"_b"] {
        let constant = match constant.first() {
            Some(b'<') => [&[term::IRI], &constant[1..]].concat(),
            Some(_) => [&[term::BLANK], &constant[1..]].concat(),
            None => vec![],
        };
        assert!(
            open.probe(&Question::Compare(Relation::Equal, &constant), &d)
                .is_none()
        );
    }
    let call = jindou_dictionary::index::Call {
        name: "CONTAINS".into(),
        arguments: vec![],
    };
    assert!(open.probe(&Question::Holds(&call), &d).is_none());
    assert!(open.are_ranks_alone() && open.states().is_empty());
}
