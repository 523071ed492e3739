//! Compares aggregates with `spareval`.

use super::*;
use crate::values::Accumulators;
use jindou_plan::{Aggregate, AggregateFunction};

/// The result of an aggregate in `spareval`, over rows given by VALUES.
fn spareval_aggregate(call: &str, values: &[Option<Term>]) -> Option<Term> {
    let rows: String = values
        .iter()
        .map(|v| v.as_ref().map_or("UNDEF ".into(), |t| format!("{t} ")))
        .collect();
    let text = format!("SELECT ({call} AS ?v) {{ VALUES ?x {{ {rows} }} }}");
    let query = spargebra::SparqlParser::new().parse_query(&text).unwrap();
    let nothing = oxrdf::Dataset::new();
    let spareval::QueryResults::Solutions(mut s) = QueryEvaluator::new()
        .prepare(&query)
        .execute(&nothing)
        .unwrap()
    else {
        panic!();
    };
    s.next().unwrap().unwrap().get("v").cloned()
}

/// The aggregate for two groups, computed by two workers and merged. The second worker numbers the groups the other way
/// round.
fn aggregated_in_two_parts(
    run: &EvalContext<'_>,
    aggregate: &Aggregate,
    column: &[u32],
    groups: &[u32],
    cut: usize,
) -> Vec<u32> {
    let part = |column: &[u32], groups: &[u32]| {
        let mut a = Accumulators::new(std::slice::from_ref(aggregate), &[0], run);
        a.grow(2).unwrap();
        let columns = [column.to_vec()];
        let view = View {
            columns: &columns,
            rows: column.len(),
        };
        a.add(run, view, groups).unwrap();
        a
    };
    let mut whole = part(&column[..cut], &groups[..cut]);
    let turned: Vec<u32> = groups[cut..].iter().map(|g| 1 - g).collect();
    let rest = part(&column[cut..], &turned);
    whole.merge(run, rest, &[1, 0]).unwrap();
    whole.finish(run).unwrap().remove(0)
}

#[test]
fn aggregates_agree_with_spareval() {
    // VALUES cannot have blank nodes. Of numbers with equal values but different types, MIN and MAX may return any.
    let all: Vec<Term> = terms()
        .into_iter()
        .filter(|t| match t {
            Term::Literal(l) => !matches!(
                l.value(),
                // `spareval` does not treat the last one as a number.
                "0" | "-0" | "3" | "1.5" | "NaN" | "99999999999999999999"
            ),
            Term::NamedNode(_) => true,
            _ => false,
        })
        .collect();
    let integer = |t: &Term| matches!(t, Term::Literal(l) if l.datatype() == xsd::INTEGER && l.value().len() < 3);
    use AggregateFunction as F;
    let calls = [
        ("COUNT(*)", F::CountRows),
        ("COUNT(#?x)", F::Count),
        ("SUM(#?x)", F::Sum),
        ("AVG(#?x)", F::Avg),
        ("MIN(#?x)", F::Min),
        ("MAX(#?x)", F::Max),
        (
            "GROUP_CONCAT(#STR(?x); SEPARATOR=\", \")",
            F::GroupConcat(", ".into()),
        ),
    ];
    with_terms(&all, |run, ids| {
        let mut r = Random(77);
        for case in 0..400 {
            let (name, function) = &calls[case % calls.len()];
            let distinct = case % 3 == 0 && *function != F::CountRows;
            // Groups of numbers, of strings, or of any terms.
            let kind = r.below(3);
            let pool: Vec<u32> = (0..all.len())
                .filter(|&i| match kind {
                    0 => integer(&all[i]),
                    1 => matches!(&all[i], Term::Literal(l) if l.datatype() == xsd::STRING),
                    _ => true,
                })
                .map(|i| ids[i])
                .collect();
            // SPARQL does not define the order between literals of different types.
            if matches!(function, F::GroupConcat(_)) && kind != 1
                || matches!(function, F::Min | F::Max) && kind == 2
            {
                continue;
            }
            let rows = r.below(9);
            let column: Vec<u32> = (0..rows)
                .map(|_| {
                    if r.below(15) == 0 {
                        0
                    } else {
                        pool[r.below(pool.len())]
                    }
                })
                .collect();
            let groups: Vec<u32> = (0..rows).map(|_| r.below(2) as u32).collect();
            let aggregate = Aggregate {
                to: 9,
                function: function.clone(),
                of: (*function != F::CountRows).then_some(0),
                distinct,
                row: vec![],
            };
            let cut = r.below(rows + 1);
            let got = aggregated_in_two_parts(run, &aggregate, &column, &groups, cut);
            for g in 0..2u32 {
                let values: Vec<Option<Term>> = (0..rows)
                    .filter(|&i| groups[i] == g)
                    .map(|i| read(run, column[i]))
                    .collect();
                let call = name.replace('#', if distinct { "DISTINCT " } else { "" });
                let want = spareval_aggregate(&call, &values);
                assert_eq!(
                    read(run, got[g as usize]),
                    want,
                    "case {case}: {call} of {values:?}"
                );
            }
        }
    });
}
