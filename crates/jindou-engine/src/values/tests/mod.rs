//! Compares expressions with `spareval` on the same terms.

mod aggregates;
mod numbers;

use super::Evaluator;
use crate::batch::View;
use crate::eval::EvalContext;
use crate::explore::QueryContext;
use crate::terms::{QueryTerms, TermDecoder};
use crate::tree::SlotLayout;
use jindou_model::{CancelToken, FIRST_TAIL_ID, MemoryBudget, term};
use jindou_plan::GeneralExpression;
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term, Variable};
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression, Function, GraphPattern};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn word(&mut self, of: &'static str) -> &'static str {
        self.pick(&of.split(' ').collect::<Vec<_>>())
    }
}

/// Terms that `spareval` returns unchanged; it replaces others by their canonical form.
fn terms() -> Vec<Term> {
    let typed = |s: &str, d: oxrdf::NamedNodeRef<'_>| Literal::new_typed_literal(s, d).into();
    let lang = |s: &str, l: &str| Literal::new_language_tagged_literal_unchecked(s, l).into();
    let mut all: Vec<Term> = vec![
        NamedNode::new_unchecked("http://e/a").into(),
        NamedNode::new_unchecked("http://e/é").into(),
        oxrdf::BlankNode::new_unchecked("b").into(),
        lang("chat", "en"),
        lang("chat", "fr"),
        lang("abc", "en-gb"),
        lang("", "en"),
        typed("maybe", xsd::BOOLEAN),
        typed("x", xsd::INTEGER),
        typed("2011-01-10T14:45:13.815-05:00", xsd::DATE_TIME),
        typed("2011-01-10T14:45:13Z", xsd::DATE_TIME),
        typed("2012-02-29T00:00:00", xsd::DATE_TIME),
        typed("2011-01-10", xsd::DATE),
        typed("true", xsd::BOOLEAN),
        typed("false", xsd::BOOLEAN),
        typed("NaN", xsd::DOUBLE),
        typed("INF", xsd::FLOAT),
        typed("99999999999999999999", xsd::INTEGER),
        Literal::new_typed_literal("z", NamedNode::new_unchecked("http://e/dt")).into(),
    ];
    let texts = ",abc,http://e/b,ABCé日,a.c,2,true,[,%20 b";
    for s in texts.split(',') {
        all.push(Literal::from(s).into());
    }
    for n in ["0", "1", "-7", "3", "9223372036854775807"] {
        all.push(typed(n, xsd::INTEGER));
    }
    for n in ["0", "1.5", "-2.25", "3", "0.000000000000000001"] {
        all.push(typed(n, xsd::DECIMAL));
    }
    for n in ["0", "-0", "1.5", "2E300", "3"] {
        all.push(typed(n, xsd::DOUBLE));
        all.push(typed(n, xsd::FLOAT));
    }
    all.retain(|t| {
        spareval_value(&Expression::Variable(x(0)), &[Some(t.clone())]).as_ref() == Some(t)
    });
    assert!(all.len() > 35, "{}", all.len());
    all
}

fn x(n: usize) -> Variable {
    Variable::new_unchecked(format!("x{n}"))
}

fn spareval_value(e: &Expression, row: &[Option<Term>]) -> Option<Term> {
    let pattern = GraphPattern::Extend {
        inner: Box::new(GraphPattern::Bgp { patterns: vec![] }),
        variable: Variable::new_unchecked("value"),
        expression: e.clone(),
    };
    let sparopt::algebra::GraphPattern::Extend { expression, .. } = (&pattern).into() else {
        panic!("{e}");
    };
    let names: Vec<Variable> = (0..row.len()).map(x).collect();
    let row = names
        .iter()
        .zip(row)
        .filter_map(|(n, t)| Some((n, t.clone()?)));
    QueryEvaluator::new().evaluate_expression(&expression, row)
}

/// Constants in random expressions.
const CONSTANTS: &str = "\
    1 2.5 \"3\"^^<http://www.w3.org/2001/XMLSchema#double> \"abc\" \"b\" \"chat\"@en true false <http://e/a> \
    \"\" \"en\" \"1.5\"^^<http://www.w3.org/2001/XMLSchema#float> -7 0";

/// Functions of one argument.
const FUNCTIONS_OF_ONE: &str = "\
    STR LANG DATATYPE STRLEN UCASE LCASE isIRI isBLANK isLITERAL isNUMERIC ABS CEIL FLOOR ROUND YEAR MONTH \
    DAY HOURS MINUTES SECONDS TZ ENCODE_FOR_URI MD5 IRI <http://www.w3.org/2001/XMLSchema#integer> \
    <http://www.w3.org/2001/XMLSchema#string> <http://www.w3.org/2001/XMLSchema#double> \
    <http://www.w3.org/2001/XMLSchema#boolean>";

/// Functions of two arguments.
const FUNCTIONS_OF_TWO: &str = "\
    CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER LANGMATCHES sameTerm CONCAT STRLANG STRDT";

/// A random expression over ?x0, ?x1 and ?x2, as SPARQL text.
fn random_expression(r: &mut Random, depth: usize) -> String {
    if depth == 0 || r.below(8) == 0 {
        return match r.below(3) {
            0 => r.word(CONSTANTS).to_owned(),
            _ => format!("?x{}", r.below(3)),
        };
    }
    let mut e = || random_expression(r, depth - 1);
    let (a, b, c) = (e(), e(), e());
    match r.below(17) {
        0 | 1 => format!("({a} {} {b})", r.pick(&["+", "-", "*", "/"])),
        2 | 3 => format!("({a} {} {b})", r.pick(&["=", "!=", "<", "<=", ">", ">="])),
        4 => format!("({a} {} {b})", r.pick(&["&&", "||"])),
        5 => format!("({}{a})", r.pick(&["!", "-", "+"])),
        6 => format!("({a} {} ({b}, {c}))", r.pick(&["IN", "NOT IN"])),
        7 => format!("IF({a}, {b}, {c})"),
        8 => format!("COALESCE({a}, {b})"),
        9 => format!("BOUND(?x{})", r.below(3)),
        10 | 11 => {
            let f = r.word(FUNCTIONS_OF_ONE);
            format!("{f}({a})")
        }
        12 | 13 => {
            let f = r.word(FUNCTIONS_OF_TWO);
            format!("{f}({a}, {b})")
        }
        14 => format!("SUBSTR({a}, {b}, {c})"),
        15 => {
            let p = r.pick(&["\".\"", "\"(a)|b\"", "\"\"", "\"[\"", &b]);
            let to = r.pick(&["\"$1x$0\"", "\"$$\"", "\"é\"@en", "\"${1}0\"", &c]);
            let flags = r.pick(&["", ", \"i\"", ", \"q\"", ", \"?\"", ", STR(\"i\")"]);
            format!("REPLACE({a}, {p}, {to}{flags})")
        }
        _ => {
            let p = r.pick(&[
                "\"^a\"",
                "\"B\", \"i\"",
                "\"a.c\", \"q\"",
                "\"[\"",
                "\"(a|b)+\", \"x\"",
                "\"a\", \"?\"",
            ]);
            if r.below(2) == 0 {
                let flags = r.pick(&["", ", \"i\"", ", \"q\"", ", \"?\"", ", STR(\"i\")", ", ?x2"]);
                return format!("REGEX({a}, {b}{flags})");
            }
            format!("REGEX({a}, {p})")
        }
    }
}

fn parse(text: &str) -> Option<Expression> {
    let query = spargebra::SparqlParser::new()
        .parse_query(&format!("SELECT ({text} AS ?v) {{}}"))
        .ok()?;
    let spargebra::Query::Select { pattern, .. } = query else {
        return None;
    };
    let GraphPattern::Project { inner, .. } = pattern else {
        return None;
    };
    match *inner {
        GraphPattern::Extend { expression, .. } => Some(expression),
        _ => None,
    }
}

/// Calls `f` with a store that has every second one of these terms, and an id for each term; the others are
/// query-local.
fn with_terms(all: &[Term], f: impl FnOnce(&QueryContext<'_>, &[u32])) {
    let quads: Vec<Quad> = all
        .iter()
        .step_by(2)
        .map(|t| {
            Quad::new(
                NamedNode::new_unchecked("http://e/s"),
                NamedNode::new_unchecked("http://e/p"),
                t.clone(),
                GraphName::DefaultGraph,
            )
        })
        .collect();
    let (_folder, base) = store_of(&quads);
    let snapshot = Snapshot::of_base(base);
    let (terms, cancel, budget, stop) = (
        QueryTerms::new(),
        CancelToken::default(),
        MemoryBudget::unlimited(),
        AtomicBool::new(false),
    );
    let ctx = QueryContext {
        eval: EvalContext {
            vocabulary: snapshot.vocabulary(),
            terms: &terms,
            cancel: &cancel,
            scope: None,
            budget: &budget,
            stop: &stop,
        },
        snapshot: &snapshot,
        batch_rows: 64,
        first_batch: 64,
        profile: false,
        live: None,
        threads: 1,
        heavy: false,
        service: None,
        pool: &crate::options::Spawned,
        temp: None,
    };
    let ids: Vec<u32> = all
        .iter()
        .map(|t| {
            terms
                .resolve(snapshot.vocabulary(), &term::encode(t), &budget)
                .unwrap()
                .0
        })
        .collect();
    assert!(ids.iter().any(|&i| i < FIRST_TAIL_ID) && ids.iter().any(|&i| i >= FIRST_TAIL_ID));
    f(&ctx, &ids);
}

/// The term with this id; `None` for an unbound value. Blank nodes have other labels than when they were loaded.
fn read(ctx: &QueryContext<'_>, id: u32) -> Option<Term> {
    TermDecoder::new(ctx.snapshot, ctx.terms).term(id).unwrap()
}

/// An expression and all of its subexpressions.
fn with_parts(e: &Expression) -> Vec<&Expression> {
    let mut all = vec![e];
    use Expression as E;
    let parts: Vec<&Expression> = match e {
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => vec![],
        E::Or(a, b)
        | E::And(a, b)
        | E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => vec![a, b],
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => vec![a],
        E::In(a, list) => std::iter::once(&**a).chain(list).collect(),
        E::If(a, b, c) => vec![a, b, c],
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter().collect(),
    };
    all.extend(parts.into_iter().flat_map(with_parts));
    all
}

/// True if a known bug of `spareval` may affect the result; each condition describes one. The specified results are
/// tested in `jindou-values` and by the reference evaluator of `jindou-testing`.
pub(super) fn may_differ(e: &Expression, input: &[Option<Term>]) -> bool {
    use Expression as E;
    let value = |e: &Expression| spareval_value(e, input);
    let literal = |e: &Expression| match value(e)? {
        Term::Literal(l) => Some(l),
        _ => None,
    };
    let own = |l: &Literal| jindou_values::value(&term::encode(&l.clone().into())).map(owned);
    let kind = |e: &Expression| literal(e).and_then(|l| own(&l));
    let all = with_parts(e);
    let mut truths = vec![e];
    for e in &all {
        match e {
            E::Not(a) | E::If(a, ..) => truths.push(a),
            E::And(a, b) | E::Or(a, b) => truths.extend([&**a, &**b]),
            _ => {}
        }
    }
    // `spareval` has a different effective boolean value for strings with a language tag and for ill-typed literals.
    let untrue = |e: &&Expression| {
        literal(e).is_some_and(|l| l.language().is_some()) || kind(e) == Some(Sort::IllTyped)
    };
    if truths.iter().any(untrue) {
        return true;
    }
    all.iter().any(|e| {
        // `spareval` does not support numbers beyond 64 bits or 18 digits, and writes numbers far from 1 differently.
        if literal(e).is_some_and(|l| {
            matches!(own(&l), Some(Sort::Long | Sort::FarFromOne)) || many_digits(&l)
        }) {
            return true;
        }
        // In `spareval`, every term is less than or equal to itself.
        if let E::Less(a, b) | E::LessOrEqual(a, b) | E::Greater(a, b) | E::GreaterOrEqual(a, b) = e
            && value(a).is_some()
            && value(a) == value(b)
            && literal(a)
                .is_none_or(|l| kind(a) == Some(Sort::Other) && l.datatype() != xsd::STRING)
        {
            return true;
        }
        match e {
            // `spareval` orders NaN by its sign, does not order booleans, nor dates with a time zone and dates without
            // one.
            E::Less(a, b)
            | E::LessOrEqual(a, b)
            | E::Greater(a, b)
            | E::GreaterOrEqual(a, b)
            | E::Equal(a, b) => compared_otherwise(kind(a), kind(b)),
            E::In(a, list) => list.iter().any(|b| compared_otherwise(kind(a), kind(b))),
            // `spareval` gives other results after an overflow, and for 0 divided by 1.1.
            E::Add(a, b) | E::Subtract(a, b) | E::Multiply(a, b) | E::Divide(a, b) => {
                value(e).is_none() && kind(a) == Some(Sort::Number) && kind(b) == Some(Sort::Number)
                    || matches!(kind(a), Some(Sort::Time(..)))
                    || matches!(kind(b), Some(Sort::Time(..)))
            }
            E::UnaryMinus(a) => value(e).is_none() && kind(a) == Some(Sort::Number),
            E::FunctionCall(
                Function::Abs | Function::Round | Function::Floor | Function::Ceil,
                list,
            ) => value(e).is_none() && kind(&list[0]) == Some(Sort::Number),
            // `spareval` interprets `$n` and `\\` in the replacement as the `regex` crate does, and accepts patterns
            // that match the empty string; SPARQL does neither.
            E::FunctionCall(Function::Replace, list) => {
                let text =
                    |e: &Expression| literal(e).map(|l| l.value().to_owned()).unwrap_or_default();
                text(&list[2]).contains(['$', '\\'])
                    || regex::Regex::new(&text(&list[1])).is_ok_and(|r| r.is_match(""))
            }
            // In `spareval`, casts from floats and doubles to exact types are inexact, do not trim white space, and
            // accept ill-typed literals.
            E::FunctionCall(Function::Custom(_), list) => literal(&list[0]).is_some_and(|l| {
                matches!(l.datatype(), xsd::FLOAT | xsd::DOUBLE)
                    || l.value() != l.value().trim()
                    || own(&l) == Some(Sort::IllTyped)
                    || long_text(l.value())
            }),
            _ => false,
        }
    })
}

/// Kind of a literal, as far as `spareval` treats kinds differently.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Number,
    Nan,
    /// A number beyond 64 bits, or with more than 18 digits after the point.
    Long,
    FarFromOne,
    Boolean,
    /// Its datatype, and whether it has a time zone.
    Time(jindou_values::TemporalKind, bool),
    IllTyped,
    Other,
}

fn owned(v: jindou_values::Value<'_>) -> Sort {
    use jindou_values::{Num, Number, Value};
    match v {
        Value::Number(Number::Small(n)) if n.is_nan() => Sort::Nan,
        Value::Number(Number::Small(n @ (Num::Flt(_) | Num::Dbl(_))))
            if n.truth() && !(0.000_001..1e6).contains(&n.to_f64().abs()) =>
        {
            Sort::FarFromOne
        }
        Value::Number(Number::Small(_)) => Sort::Number,
        Value::Number(_) => Sort::Long,
        Value::Boolean(_) => Sort::Boolean,
        Value::Temporal(t) => Sort::Time(t.kind(), t.zone().is_some()),
        Value::IllTyped(_, tag) if tag <= term::BOOLEAN_TAG => Sort::IllTyped,
        _ => Sort::Other,
    }
}

fn compared_otherwise(a: Option<Sort>, b: Option<Sort>) -> bool {
    match (a, b) {
        (Some(Sort::Nan), _) | (_, Some(Sort::Nan)) => true,
        (Some(Sort::Boolean), Some(Sort::Boolean)) => true,
        (Some(Sort::IllTyped), Some(Sort::IllTyped)) => true,
        (Some(Sort::Time(k, zone)), Some(Sort::Time(l, other))) => k != l || zone != other,
        _ => false,
    }
}

/// True for the text of a number that `spareval` has no value for.
fn long_text(text: &str) -> bool {
    [term::FIRST_DATATYPE, term::FIRST_DATATYPE + 1]
        .into_iter()
        .any(|tag| jindou_values::cast_text(tag, text).map(owned) == Some(Sort::Long))
}

/// True for a decimal whose last digit `spareval` may have truncated.
fn many_digits(l: &Literal) -> bool {
    let digits = l.value().split_once('.').map_or(0, |(_, f)| f.len());
    l.datatype() == xsd::DECIMAL && digits >= 18
}

/// The expression over the first variables, which are in the slots of their numbers.
fn general(e: &Expression, variables: u16) -> GeneralExpression {
    GeneralExpression {
        expression: Arc::new(e.into()),
        variables: (0..variables).map(|n| (x(n.into()).into(), n)).collect(),
        base_iri: None,
        functions: jindou_plan::Functions::new(),
        per_row: false,
        asked: None,
    }
}

/// Computes values and effective boolean values over a batch and compares them with `spareval`. Returns the number of
/// values.
fn agree_with_spareval(
    ctx: &QueryContext<'_>,
    text: &str,
    e: &Expression,
    columns: &[Vec<u32>],
) -> usize {
    let (rows, mut values) = (columns[0].len(), 0);
    let g = general(e, 3);
    let evaluator = || Evaluator::new(&g, &SlotLayout::new(&[0, 1, 2]), ctx).unwrap();
    let view = View { columns, rows };
    let mut out = vec![0; rows];
    evaluator().column(ctx, view, &mut out).unwrap();
    let mut truths = vec![crate::filter::TRUE; rows];
    let mut evaluator = evaluator();
    evaluator
        .truth(ctx, view, 0, &mut truths, &mut vec![])
        .unwrap();
    // Only some rows are wanted; the entries of others must not change.
    let wanted = |row: usize| u8::from(!row.is_multiple_of(3));
    let mut some: Vec<u8> = (rows / 2..rows).map(wanted).collect();
    evaluator
        .truth(ctx, view, rows / 2, &mut some, &mut vec![])
        .unwrap();
    for (row, got) in (rows / 2..).zip(some) {
        let want = if wanted(row) == 1 { truths[row] } else { 0 };
        assert_eq!(got, want, "row {row}: the truth of {text} in some rows");
    }
    for row in 0..rows {
        let input: Vec<Option<Term>> = columns.iter().map(|c| read(ctx, c[row])).collect();
        let want = spareval_value(e, &input);
        let got = read(ctx, out[row]);
        if got != want && may_differ(e, &input) {
            continue;
        }
        assert_eq!(got, want, "{text} over {input:?}");
        let not = Expression::Not(Box::new(Expression::Not(Box::new(e.clone()))));
        let want = match spareval_value(&not, &input) {
            None => crate::filter::ERROR,
            Some(t) => u8::from(t == Literal::from(true).into()),
        };
        if truths[row] != want && may_differ(e, &input) {
            continue;
        }
        assert_eq!(truths[row], want, "the truth of {text} over {input:?}");
        values += usize::from(got.is_some());
    }
    values
}

fn random_expressions(cases: usize, seed: u64) {
    let all = terms();
    with_terms(&all, |ctx, ids| {
        let mut r = Random(seed);
        let (mut compared, mut values) = (0, 0);
        while compared < cases {
            let text = random_expression(&mut r, 3);
            let Some(e) = parse(&text) else { continue };
            let rows = 6;
            let mut columns = vec![vec![0u32; rows]; 3];
            for c in &mut columns {
                for v in c.iter_mut() {
                    if r.below(12) != 0 {
                        *v = ids[r.below(ids.len())];
                    }
                }
            }
            values += agree_with_spareval(ctx, &text, &e, &columns);
            compared += 1;
        }
        assert!(
            values > cases,
            "most cases were errors: {values} of {}",
            cases * 6
        );
    });
}

#[test]
fn expressions_agree_with_spareval() {
    random_expressions(1_500, 0x9E37_79B9_7F4A_7C15);
}

#[test]
fn casts_agree_with_spareval() {
    let mut all = terms();
    let texts = "\
        1.5,-3,+4,1e3, 7 ,.5,5.,INF,-INF,NaN,0x10,1_0,012,,99999999999999999999,1E400,0.1234567890123456789";
    for text in texts.split(',') {
        all.push(Literal::from(text).into());
        let currency = NamedNode::new_unchecked("http://e/currency");
        all.push(Literal::new_typed_literal(text, currency).into());
    }
    all.push(Literal::new_typed_literal("7", xsd::BYTE).into());
    let types = ["string", "integer", "decimal", "float", "double", "boolean"];
    let name = |t: &str| format!("<http://www.w3.org/2001/XMLSchema#{t}>");
    let once = types.map(|t| format!("{}(?x0)", name(t)));
    let twice = types
        .iter()
        .flat_map(|a| once.iter().map(move |b| format!("{}({b})", name(a))));
    let texts: Vec<String> = once.iter().cloned().chain(twice).collect();
    with_terms(&all, |ctx, ids| {
        let mut values = 0;
        for text in &texts {
            let e = parse(text).expect("a cast");
            let g = general(&e, 1);
            let columns = [ids.to_vec()];
            let view = View {
                columns: &columns,
                rows: ids.len(),
            };
            let mut out = vec![0; ids.len()];
            let mut evaluator = Evaluator::new(&g, &SlotLayout::new(&[0]), ctx).unwrap();
            evaluator.column(ctx, view, &mut out).unwrap();
            for (&id, &got) in ids.iter().zip(&out) {
                let input = read(ctx, id);
                let got = read(ctx, got);
                let want = spareval_value(&e, std::slice::from_ref(&input));
                if got != want && may_differ(&e, std::slice::from_ref(&input)) {
                    continue;
                }
                assert_eq!(got, want, "{text} of {input:?}");
                values += usize::from(got.is_some());
            }
        }
        assert!(values > 500, "most casts were errors: {values} were not");
    });
}

/// 100,000 expressions; takes some minutes.
#[test]
#[ignore = "long"]
fn many_expressions_agree_with_spareval() {
    for seed in 1..=20u64 {
        random_expressions(5_000, seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
        numbers::columns_of_numbers(500, seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
    }
}

#[test]
fn growing_strings_hit_the_budget() {
    for call in [
        "CONCAT(?x0, ?x0)",
        "ENCODE_FOR_URI(CONCAT(?x0, ?x0))",
        "REPLACE(?x0, \"([0-9 %])\", \"$1$1\")",
        "STRDT(CONCAT(?x0, STR(?x0)), <http://www.w3.org/2001/XMLSchema#string>)",
    ] {
        growing_string_hits_the_budget(call);
    }
}

fn growing_string_hits_the_budget(call: &str) {
    let all = [Term::from(Literal::from("0123456789 %%%%%"))];
    let other = [Term::from(Literal::from("x")), all[0].clone()];
    with_terms(&other, |ctx, ids| {
        let budget = MemoryBudget::new(8 << 20);
        let small = QueryContext {
            eval: EvalContext {
                budget: &budget,
                ..ctx.eval
            },
            ..*ctx
        };
        let e = parse(call).unwrap();
        let g = general(&e, 1);
        let mut evaluator = Evaluator::new(&g, &SlotLayout::new(&[0]), &small).unwrap();
        let mut id = ids[1];
        for _ in 0..40 {
            let columns = [vec![id]];
            let mut out = [0];
            let view = View {
                columns: &columns,
                rows: 1,
            };
            match evaluator.column(&small, view, &mut out) {
                Ok(()) => id = out[0],
                Err(e) => {
                    assert!(matches!(e, jindou_model::Error::Limit(_)), "{e}");
                    return;
                }
            }
        }
        panic!("{call}: 40 steps fitted in 8 MiB");
    });
}
