//! Prefixes in a caller's options: they apply where a text does not declare them, and plans are cached separately for
//! each meaning.

use jindou::{Answer, Database, QueryOptions, UpdateOptions};

fn options(pairs: &[(&str, &str)], common: bool) -> QueryOptions {
    let pairs = pairs.iter().map(|(n, i)| ((*n).into(), (*i).into()));
    QueryOptions::default()
        .with_prefixes(pairs.collect())
        .with_common_prefixes(common)
}

#[test]
fn the_same_text_means_what_its_prefixes_do() {
    let db = Database::in_memory();
    let update = UpdateOptions::default().with_prefixes(vec![("x".into(), "http://a/".into())]);
    db.update("INSERT DATA { x:s x:p 1 }", &update).unwrap();
    let ask = "ASK { x:s ?p 1 }";
    let query = |options: &QueryOptions| db.query_with(ask, options);
    for _ in 0..2 {
        let a = query(&options(&[("x", "http://a/")], false)).unwrap();
        assert_eq!(a, Answer::Boolean(true));
        let b = query(&options(&[("x", "http://b/")], false)).unwrap();
        assert_eq!(b, Answer::Boolean(false));
        assert!(query(&options(&[], true)).is_err());
        assert!(query(&options(&[("y", "http://a/")], true)).is_err());
    }
    // A caller's prefixes take precedence over the common ones, and the text's own declarations over both.
    let of = |text: &str, options: &QueryOptions| db.query_with(text, options).unwrap();
    let mine = options(&[("foaf", "http://a/")], true);
    assert_eq!(of("ASK { foaf:s ?p 1 }", &mine), Answer::Boolean(true));
    let declared = "PREFIX foaf: <http://b/> ASK { foaf:s ?p 1 }";
    assert_eq!(of(declared, &mine), Answer::Boolean(false));
    let prepared = db.prepare(
        "ASK { x:s ?p ?v }",
        &["v"],
        &options(&[("x", "http://a/")], false),
    );
    assert!(prepared.is_ok());
}
