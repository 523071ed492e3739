//! BSBM's, SP²Bench's and LUBM's official queries: answers against `spareval` on small data, and
//! against the published reference answers.

use crate::compare;
use crate::oracle;
use compare::{assert_equal, round_floats};
use jindou::testing::Store;
use jindou::{QuadSource, parse_query};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::{Inferred, Lubm};
use jindou_workloads::queries::{bsbm, lubm_official, sp2b};
use jindou_workloads::sp2b::Sp2b;
use oxrdf::Dataset;

/// A store and a dataset with the same statements.
fn both(make: &dyn Fn() -> Box<dyn QuadSource>) -> (Store, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.nt");
    let mut file = std::fs::File::create(&path).unwrap();
    write_source(&*make(), TagCase::Lower, &mut file).unwrap();
    let data = oracle::dataset(&[path], &[]).unwrap();
    (Store::load(&*make()), data)
}

#[test]
fn bsbm_answers_are_spareval_s() {
    let (store, data) = both(&|| Box::new(Bsbm::new(60, 1)));
    let source = Bsbm::new(60, 1);
    let mut rows = 0;
    // B3 is left out: it compares dates by `<`, which `spareval` as built here does not support, so that its answer is
    // empty. The servers of Oxigraph and Jena return the same rows for it as Jindou (`jindou bench bsbm -n 60 --seed 1
    // --mix bi --queries B3 --peers oxigraph,jena`).
    let all = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
    for template in all.filter(|t| t.name != "B3") {
        for instance in template.instances(&source, 3) {
            let query = parse_query(&instance.text).unwrap();
            let mut got = compare::run(&store.db, &instance.text);
            let mut want = oracle::answer(&data, &query).unwrap();
            round_floats(&mut got);
            round_floats(&mut want);
            assert_equal(&instance.name, &got, &want);
            rows += compare::bag(&got).len();
        }
    }
    assert!(rows > 300, "{rows} rows");
}

#[test]
fn sp2b_answers_are_spareval_s() {
    let (store, data) = both(&|| Box::new(Sp2b::new(6_000, 0)));
    let mut rows = 0;
    for q in &sp2b::QUERIES {
        let got = compare::run(&store.db, q.text);
        let want = oracle::answer(&data, &parse_query(q.text).unwrap()).unwrap();
        assert_equal(q.name, &got, &want);
        rows += compare::bag(&got).len();
    }
    assert!(rows > 1_000, "{rows} rows");
}

#[test]
fn lubm_s_official_queries_have_the_reference_answers() {
    let inferred = Store::load(&Inferred::new(Lubm::new(1, 0)));
    let raw = Store::load(&Lubm::new(1, 0));
    for q in &lubm_official::QUERIES {
        let rows = |store: &Store| compare::bag(&compare::run(&store.db, q.text)).len() as u64;
        let want = lubm_official::inferred_rows(q.name, 1).unwrap();
        assert_eq!(rows(&inferred), want, "{}", q.name);
        let as_it_is = rows(&raw);
        let needs_none = ["O1", "O2", "O3", "O14"].contains(&q.name);
        assert_eq!(
            as_it_is == want,
            needs_none,
            "{}: {as_it_is} of {want}",
            q.name
        );
    }
}
