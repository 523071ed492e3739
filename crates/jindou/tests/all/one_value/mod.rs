//! Tests that an expression has the same value at every position of a query, in every operator that evaluates it, and
//! whether its terms are in the base, in the tail, or computed by the query.
//!
//! The expected values come from an evaluator written from the specifications ([`jindou_testing::reference`]); the
//! operands are values that are difficult to handle (`matrix`) and random ones.

mod case;
mod judge;
mod positions;
mod relations;
mod stores;

use case::Case;
use jindou_testing::{Rng, from_environment, matrix, random_values};
use judge::Report;
use oxrdf::{BlankNode, Term};
use std::time::Instant;

/// The fixed difficult values, `random` random values, and a blank node.
fn values(rng: &mut Rng, random: usize) -> Vec<Term> {
    let mut out = matrix();
    out.extend(random_values(rng, random));
    out.push(BlankNode::new_unchecked("b").into());
    out
}

/// After this many expressions, new random values are drawn and new stores made.
const EACH: u64 = 50_000;
/// Number of random values in addition to the fixed ones.
const RANDOM: usize = 120;

/// Tests random expressions in every position until `count` pairs of an expression and a row were tested.
fn run(seed: u64, count: u64) -> Report {
    let mut report = Report::default();
    let mut rng = Rng::new(seed);
    while report.judged < count {
        let until = count.min(report.judged + EACH);
        let values = values(&mut rng, RANDOM);
        let stores = stores::stores(&values);
        let mut batches = 0;
        while report.judged < until {
            batches += 1;
            // Every sixteenth case has more rows than a batch of the engine, so that expressions are computed column by
            // column over several batches.
            let (expressions, rows) = if batches % 16 == 0 {
                (3, 2500)
            } else {
                (24, 24)
            };
            let begin = Instant::now();
            let case = Case::random(&mut rng, &values, expressions, rows);
            *report.spent.entry("the reference").or_default() += begin.elapsed();
            report.judge(&case, &stores, &mut rng);
            let begin = Instant::now();
            relations::of_expressions(&case, &stores, &mut rng, &mut report);
            *report.spent.entry("rows against rows").or_default() += begin.elapsed();
        }
    }
    report
}

fn assert_right(report: &Report, begin: Instant) {
    let text = report.text();
    println!("{text}{:.1} s", begin.elapsed().as_secs_f64());
    assert_eq!(report.wrong, 0, "{text}");
}

#[test]
fn an_expression_has_one_value_wherever_it_stands() {
    let begin = Instant::now();
    assert_right(&run(from_environment("JINDOU_SEED", 1), 20_000), begin);
}

/// Compares every two values by every operator, once as two variables and once as a variable with a constant.
#[test]
fn every_two_values_compare_alike() {
    let begin = Instant::now();
    let values = values(&mut Rng::new(1), 0);
    let stores = stores::stores(&values);
    let mut report = Report::default();
    relations::of_all_pairs(&values, &stores, 5, &mut report);
    assert_right(&report, begin);
}

/// Tests `JINDOU_COUNT` expressions (default a million) with the seed `JINDOU_SEED`, and all pairs of values with all
/// constants in all stores.
#[test]
#[ignore = "a million expressions take some minutes"]
fn a_million_expressions() {
    let begin = Instant::now();
    let mut report = run(
        from_environment("JINDOU_SEED", 2),
        from_environment("JINDOU_COUNT", 1_000_000),
    );
    let values = values(&mut Rng::new(from_environment("JINDOU_SEED", 2)), RANDOM);
    relations::of_all_pairs(&values, &stores::stores(&values), 1, &mut report);
    assert_right(&report, begin);
}
