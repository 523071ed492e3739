use super::*;
use crate::parse::SyntaxOptions;
use jindou_model::{CancelToken, Charge, MemoryBudget, Scope, Tracked};
use std::sync::Arc;

/// Counts the memory of all unit tests of this crate.
#[global_allocator]
static ALLOCATOR: Tracked = Tracked::new();

fn read(text: &str, memory: &MemoryBudget) -> Result<(Parsed, Charge)> {
    let scope = Scope::for_text(text.len(), memory, &CancelToken::new())?;
    scope.make(|| super::read(text, &SyntaxOptions::default()))
}

use jindou_syntax::algebra::{Expression, GraphPattern};
use jindou_syntax::algebra::{NamedNode, Variable};

fn plain() -> GraphPattern {
    GraphPattern::Bgp { patterns: vec![] }
}

fn variable(n: usize) -> Variable {
    Variable::new_unchecked(format!("v{n}"))
}

fn select(pattern: GraphPattern) -> Query {
    Query::Select {
        dataset: None,
        pattern: Arc::new(GraphPattern::Project {
            inner: Arc::new(pattern),
            variables: vec![],
        }),
        base_iri: None,
    }
}

/// Patterns and expressions a million levels deep.
fn deep() -> Vec<Query> {
    const N: usize = 1_000_000;
    let iri = || Expression::NamedNode(NamedNode::new_unchecked("http://e/a"));
    let binds = (0..N).fold(plain(), |inner, n| GraphPattern::Extend {
        inner: Arc::new(inner),
        variable: variable(n),
        expression: Arc::new(iri()),
    });
    let unions = (0..N).fold(plain(), |left, _| GraphPattern::Union {
        left: Arc::new(left),
        right: Arc::new(plain()),
    });
    let sum = (0..N).fold(iri(), |a, _| Expression::Add(Arc::new(a), Arc::new(iri())));
    let exists = (0..N / 2).fold(iri(), |e, _| {
        Expression::Exists(Arc::new(GraphPattern::Filter {
            expr: Arc::new(e),
            inner: Arc::new(plain()),
        }))
    });
    let filter = |expr| GraphPattern::Filter {
        expr: Arc::new(expr),
        inner: Arc::new(plain()),
    };
    vec![
        select(binds),
        select(unions),
        select(filter(sum)),
        select(filter(exists)),
    ]
}

#[test]
fn algebra_of_any_depth_is_measured_refused_and_dropped() {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let run = || {
        for query in deep() {
            let refused = Parsed::from_query(query).map(|p| p.depth());
            assert!(matches!(refused, Err(Error::Limit(_))), "{refused:?}");
        }
    };
    small.spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_is_charged_is_given_back() {
    let budget = MemoryBudget::new(64 << 20);
    let text = format!("SELECT * {{ VALUES ?v {{ {} }} }}", "1 ".repeat(20_000));
    let (parsed, charge) = read(&text, &budget).unwrap();
    let held = budget.used();
    assert!(held == charge.bytes() && held > 20_000 * 50, "{held}");
    assert!(budget.peak() >= held);
    drop((parsed, charge));
    assert_eq!(budget.used(), 0);
    let tight = MemoryBudget::new(1 << 20);
    assert!(matches!(read(&text, &tight), Err(Error::Limit(_))));
    assert_eq!(tight.used(), 0);
    // The query was refused soon after the budget was exhausted.
    assert!(tight.peak() < (1 << 20) + (256 << 10), "{}", tight.peak());
}

/// An expanded name repeats its whole prefix, so each different name is charged in full; equal names share one copy.
#[test]
fn long_prefixes_are_charged_for_each_different_name() {
    let budget = MemoryBudget::new(64 << 20);
    let values = |names: String| {
        let text = format!(
            "PREFIX e: <http://e/{}> SELECT * {{ VALUES ?v {{ {names} }} }}",
            "a".repeat(100_000)
        );
        read(&text, &budget)
    };
    let (once, charge) = values("e:b ".repeat(10_000)).unwrap();
    assert!(charge.bytes() < 4 << 20, "{}", charge.bytes());
    drop((once, charge));
    let refused = values((0..10_000).map(|n| format!("e:b{n} ")).collect());
    assert!(matches!(refused, Err(Error::Limit(_))));
    assert_eq!(budget.used(), 0);
    assert!(budget.peak() < 65 << 20, "{}", budget.peak());
}

#[test]
fn described_iris_are_inline_data() {
    let iris: String = (0..500).map(|n| format!(" <http://e/{n}>")).collect();
    let read = |text: &str| read(text, &MemoryBudget::unlimited()).unwrap().0;
    for text in [
        format!("DESCRIBE{iris}"),
        format!("DESCRIBE{iris} ?x {{ ?x ?p ?o }} ORDER BY ?x LIMIT 3"),
        format!("DESCRIBE ?x{iris} {{ ?x ?p ?o }}"),
        format!("DESCRIBE{iris} {{ ?x ?p ?o }} OFFSET 1"),
    ] {
        let parsed = read(&text);
        assert!(parsed.depth() < 12, "{}", parsed.depth());
        assert!(parsed.to_string().contains("VALUES"), "{}", *parsed);
    }
    // A BIND that the query itself contains is kept.
    let own = read("DESCRIBE ?x { ?s ?p ?o BIND(<http://e/a> AS ?x) }");
    assert!(!own.to_string().contains("VALUES"));
}
