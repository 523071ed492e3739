//! Lookup of quads by pattern, compared with a filter over all quads: before and after updates, over a loaded base, and
//! with blank nodes in all positions.

use jindou::parse::Format;
use jindou::testing::{Store, source};
use jindou::{
    CancelToken, Database, Error, MemoryBudget, QuadPattern, QueryOptions, UpdateOptions,
};
use jindou_testing::Rng;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::BTreeSet;

fn node(rng: &mut Rng) -> NamedOrBlankNode {
    let n = rng.below(6);
    if n.is_multiple_of(2) {
        BlankNode::new_unchecked(format!("b{n}")).into()
    } else {
        NamedNode::new_unchecked(format!("http://e/{n}")).into()
    }
}

fn random(rng: &mut Rng) -> Quad {
    let predicate = match rng.below(4) {
        0 => oxrdf::vocab::rdf::TYPE.into_owned(),
        n => NamedNode::new_unchecked(format!("http://e/p{n}")),
    };
    let object: Term = match rng.below(3) {
        0 => Literal::from(rng.below(4) as i64).into(),
        _ => node(rng).into(),
    };
    let graph: GraphName = match rng.below(3) {
        0 => GraphName::DefaultGraph,
        _ => node(rng).into(),
    };
    Quad::new(node(rng), predicate, object, graph)
}

fn found(db: &Database, pattern: &QuadPattern) -> BTreeSet<String> {
    let matches = db
        .quads_matching(pattern, &QueryOptions::default())
        .unwrap();
    let mut out = vec![];
    // Reads in two parts, of which the second ends beyond the last quad.
    matches.read(0..matches.len() / 2, &mut out).unwrap();
    matches
        .read(matches.len() / 2..usize::MAX, &mut out)
        .unwrap();
    assert_eq!(out.len(), matches.len());
    let set: BTreeSet<String> = out.iter().map(ToString::to_string).collect();
    assert_eq!(set.len(), out.len(), "a quad came twice");
    set
}

fn check(db: &Database, quads: &[Quad], rng: &mut Rng) {
    for _ in 0..200 {
        let like = if rng.below(4) == 0 {
            random(rng)
        } else {
            quads[rng.below(quads.len())].clone()
        };
        let mask = rng.below(16);
        let pattern = QuadPattern::default()
            .with_subject((mask & 1 > 0).then(|| Term::from(like.subject.clone())))
            .with_predicate((mask & 2 > 0).then(|| Term::from(like.predicate.clone())))
            .with_object((mask & 4 > 0).then(|| like.object.clone()))
            .with_graph((mask & 8 > 0).then(|| like.graph_name.clone()));
        let is_like = |q: &&Quad| {
            (mask & 1 == 0 || q.subject == like.subject)
                && (mask & 2 == 0 || q.predicate == like.predicate)
                && (mask & 4 == 0 || q.object == like.object)
                && (mask & 8 == 0 || q.graph_name == like.graph_name)
        };
        let expected: BTreeSet<String> = quads
            .iter()
            .filter(is_like)
            .map(ToString::to_string)
            .collect();
        assert_eq!(found(db, &pattern), expected, "{pattern:?}");
    }
}

#[test]
fn patterns_find_what_a_filter_does() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let mut quads: Vec<Quad> = (0..120).map(|_| random(&mut rng)).collect();
        quads.sort_by_key(ToString::to_string);
        quads.dedup();
        let text: String = quads.iter().map(|q| format!("{q} .\n")).collect();
        let source = source(&text, Format::NQuads);
        let store = Store::load(&source);
        for db in [
            store.db.clone(),
            Database::in_memory_from(&source, &UpdateOptions::default()).unwrap(),
        ] {
            check(&db, &quads, &mut rng);
            let mut now = quads.clone();
            let mut batch = jindou::Batch::new();
            for _ in 0..20 {
                let gone = now.remove(rng.below(now.len()));
                batch.remove(gone.as_ref());
                let new = random(&mut rng);
                batch.insert(new.as_ref());
                now.retain(|q| *q != new);
                now.push(new);
            }
            db.apply(&batch, &UpdateOptions::default()).unwrap();
            check(&db, &now, &mut rng);
        }
    }
}

#[test]
fn what_cannot_be_is_nowhere_and_limits_hold() {
    let db = Database::in_memory();
    let text: String = (0..20_000)
        .map(|n| format!("<a:{n}> <a:p> {n} . "))
        .collect();
    db.update(
        &format!("INSERT DATA {{ {text} }}"),
        &UpdateOptions::default(),
    )
    .unwrap();
    let any = QuadPattern::default();
    let of = |term: Term| any.clone().with_predicate(term);
    assert!(found(&db, &of(Literal::from(1).into())).is_empty());
    assert!(found(&db, &of(BlankNode::new_unchecked("b").into())).is_empty());
    assert!(found(&db, &any.clone().with_subject(Term::from(Literal::from(1)))).is_empty());
    assert_eq!(found(&db, &any).len(), 20_000);
    let budget = MemoryBudget::new(1 << 16);
    let little = QueryOptions::default().with_memory(budget.clone());
    assert!(matches!(
        db.quads_matching(&any, &little),
        Err(Error::Limit(_) | Error::Busy(_))
    ));
    assert_eq!(budget.used(), 0);
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = QueryOptions::default().with_cancel(cancel);
    assert!(matches!(
        db.quads_matching(&any, &cancelled),
        Err(Error::Cancelled)
    ));
}
