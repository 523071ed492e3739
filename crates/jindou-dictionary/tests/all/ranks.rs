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
    let numbers = "0,-1,1,01,2.5,0.1,16777217,1e-1,NaN,INF,x,";
    for (datatype, forms) in [
        ("integer", numbers),
        ("decimal", numbers),
        ("float", numbers),
        ("double", numbers),
        ("byte", numbers),
        ("boolean", "true,0,no"),
        ("date", "2020-01-01,2020-01-01Z,2019-12-31+14:00,2020-13-01"),
        ("dateTime", "2020-01-01T00:00:00,2020-01-01T00:00:00.5Z"),
        ("time", "12:00:00"),
        ("duration", "P1Y"),
        ("yearMonthDuration", "P12M"),
        ("dayTimeDuration", "PT1H"),
        ("string", ",a,b,1,é"),
        ("token", "a, a"),
        (
            "dateTimeStamp",
            "2020-01-01T01:00:00+01:00,2020-01-01T00:00:00",
        ),
    ] {
        let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
        let datatype = NamedNode::new_unchecked(datatype);
        let typed = |form: &str| Literal::new_typed_literal(form, datatype.clone());
        all.extend(forms.split(',').map(typed));
    }
    for (form, language) in [("a", "en"), ("a", "de"), ("b", "en")] {
        all.push(Literal::new_language_tagged_literal_unchecked(
            form, language,
        ));
    }
    let other = NamedNode::new_unchecked("http://e/datatype");
    all.push(Literal::new_typed_literal("a", other));
    all.into_iter().map(|l| term::encode(&l.into())).collect()
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
    terms.extend([b"<http://e/a", b"<http://e/b"].map(|iri| iri.to_vec()));
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
                    let [a, b] = [term, constant].map(|t| String::from_utf8_lossy(t));
                    if got == Verdict::Unsettled {
                        left += 1;
                        assert!(!must_be_settled(term, constant), "{a} {relation:?} {b}");
                    } else {
                        settled += 1;
                        assert_eq!(got, want, "{a} {relation:?} {b}");
                    }
                }
                let unknown = &out[known..];
                assert_eq!(unknown[0], Verdict::Error, "unbound");
                assert!(unknown[1..].iter().all(|v| *v == Verdict::Unsettled));
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
    let resources = "<http://e/a <http://e/b <1 < _:a _:1".split(' ');
    terms.extend(resources.map(|r| r.as_bytes().to_vec()));
    let folder = tempfile::tempdir().unwrap();
    let (d, _) = dictionary(&terms, folder.path());
    let open = OpenIndexes::without_files(&Indexes::new(), &d).unwrap();
    let mut ids: Vec<u32> = terms.iter().map(|t| d.lookup(t).unwrap().0).collect();
    ids.extend([0, d.len() + 1, FIRST_TAIL_ID, FIRST_QUERY_ID]);
    for prefix in ",1,12,a,http://e/a,2020-01-01,é,~,\u{10FFFF}".split(',') {
        for of_str in [false, true] {
            let call = begins(prefix, of_str);
            let mut probe = open.probe(&Question::Holds(&call), &d).unwrap();
            let mut out = vec![Verdict::True; ids.len()];
            probe.test_many(&ids, &mut out);
            for (term, &got) in terms.iter().zip(&out) {
                let verdict = |s: &str| match s.starts_with(prefix) {
                    true => Verdict::True,
                    false => Verdict::False,
                };
                let want = match term::parts(term).unwrap() {
                    term::Parts::String(s) => verdict(s),
                    term::Parts::Iri(s) | term::Parts::Coded(s, _) if of_str => verdict(s),
                    term::Parts::Iri(_) | term::Parts::Blank(_) => Verdict::Error,
                    _ => Verdict::Unsettled,
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
    let call = Call {
        name: "CONTAINS".into(),
        arguments: vec![],
    };
    for question in [
        Question::Compare(Relation::Equal, b"<http://e/a"),
        Question::Compare(Relation::Equal, b""),
        Question::Compare(Relation::Equal, b"_:b"),
        Question::Holds(&call),
    ] {
        assert!(open.probe(&question, &d).is_none());
    }
    assert!(open.are_ranks_alone() && open.states().is_empty());
}
