use super::*;
use crate::parse::SyntaxOptions;
use std::sync::Arc;

fn read(text: &str, memory: &MemoryBudget, cancel: &CancelToken) -> Result<Parsed> {
    super::read(text, &SyntaxOptions::default(), memory, cancel)
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
            let refused = Parsed::of(query, &MemoryBudget::unlimited()).map(|p| p.depth());
            assert!(matches!(refused, Err(Error::Limit(_))), "{refused:?}");
        }
    };
    small.spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_is_charged_is_given_back() {
    let budget = MemoryBudget::new(64 << 20);
    let cancel = CancelToken::new();
    let text = format!("SELECT * {{ VALUES ?v {{ {} }} }}", "1 ".repeat(20_000));
    let parsed = read(&text, &budget, &cancel).unwrap();
    let held = budget.used();
    assert!(held >= parsed.bytes() && held > 20_000 * 100, "{held}");
    assert!(budget.peak() >= held);
    drop(parsed);
    assert_eq!(budget.used(), 0);
    let tight = MemoryBudget::new(1 << 20);
    assert!(matches!(read(&text, &tight, &cancel), Err(Error::Limit(_))));
    assert_eq!(tight.used(), 0);
}

/// A name of a long prefix has all of it, and is held once.
#[test]
fn long_prefixes_are_charged_for_each_different_name() {
    let budget = MemoryBudget::new(64 << 20);
    let values = |names: String| {
        let text = format!(
            "PREFIX e: <http://e/{}> SELECT * {{ VALUES ?v {{ {names} }} }}",
            "a".repeat(100_000)
        );
        read(&text, &budget, &CancelToken::new())
    };
    let once = values("e:b ".repeat(10_000)).unwrap();
    assert!(once.bytes() < 4 << 20, "{}", once.bytes());
    drop(once);
    let refused = values((0..10_000).map(|n| format!("e:b{n} ")).collect());
    assert!(matches!(refused, Err(Error::Limit(_))));
    assert_eq!(budget.used(), 0);
}

#[test]
fn described_iris_are_inline_data() {
    let iris: String = (0..500).map(|n| format!(" <http://e/{n}>")).collect();
    let read = |text: &str| read(text, &MemoryBudget::unlimited(), &CancelToken::new()).unwrap();
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
    // A variable's own BIND stays one.
    let own = read("DESCRIBE ?x { ?s ?p ?o BIND(<http://e/a> AS ?x) }");
    assert!(!own.to_string().contains("VALUES"));
}
