//! Cursors over databases in memory: compared with `spareval`'s answers, with readers that are slow or go away, and
//! with limits.

use jindou::parse::Format;
use jindou::testing::source;
use jindou::{
    CancelToken, Cursor, Database, Error, MemoryBudget, QueryOptions, Resource, Result,
    UpdateOptions, decode_term,
};
use jindou_testing::{Answer, Rng, answer};
use oxrdf::Quad;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn load(nquads: &str) -> Database {
    let source = source(nquads, Format::NQuads);
    Database::in_memory_from(&source, &UpdateOptions::default()).unwrap()
}

fn database(quads: &[Quad]) -> Database {
    let lines: String = quads.iter().map(|q| format!("{q} .\n")).collect();
    load(&lines)
}

/// A database of `n` subjects with a number each, so that [`PRODUCT`] has n² rows.
fn numbered(n: usize) -> Database {
    let mut text = String::new();
    for i in 0..n {
        let _ = writeln!(text, "<http://e/v{i}> <http://e/p> \"{i}\" .");
    }
    load(&text)
}

const PRODUCT: &str = "SELECT ?a ?b { ?a <http://e/p> ?x . ?b <http://e/p> ?y }";
/// A query without rows, which the engine finds out only by computing all n³ combinations.
const FRUITLESS: &str = "SELECT ?a { ?a <http://e/p> ?x . ?b <http://e/p> ?y . ?c <http://e/p> ?z
    FILTER(CONCAT(?x, ?y, ?z) = \"none\") }";

/// Options with their own budget, so that [`used`] shows this query's memory alone.
fn counted() -> QueryOptions {
    QueryOptions::default().with_memory(MemoryBudget::unlimited())
}

/// Bytes charged to the budget of these options.
fn used(options: &QueryOptions) -> u64 {
    options.memory.as_ref().unwrap().used()
}

/// Reads all rows in one of three ways, chosen by `way % 3`: by row, by column and row, or by column.
fn all(mut cursor: Cursor, way: usize) -> Result<Answer> {
    let columns = cursor.variables().to_vec();
    let mut rows = vec![];
    while let Some(batch) = cursor.next_batch()? {
        assert!(batch.rows() > 0);
        assert_eq!(batch.variables(), columns);
        let from = rows.len();
        rows.resize(from + batch.rows(), vec![]);
        for (r, row) in rows[from..].iter_mut().enumerate() {
            match way % 3 {
                0 => *row = batch.row(r)?,
                1 => {
                    for c in 0..columns.len() {
                        let mut column = batch.column(c);
                        let canonical = column.canonical(r)?;
                        assert_eq!(canonical.is_none(), batch.ids(c)[r] == 0);
                        row.push(canonical.map(|bytes| decode_term(bytes).unwrap()));
                    }
                }
                _ => {}
            }
        }
        if way % 3 == 2 {
            for c in 0..columns.len() {
                for (row, term) in rows[from..].iter_mut().zip(batch.terms(c)) {
                    row.push(term?);
                }
            }
        }
        assert!(batch.ids(columns.len()).is_empty());
    }
    assert!(cursor.next_batch()?.is_none());
    Ok(Answer::Rows(columns, rows))
}

#[test]
fn random_queries_answer_as_spareval_does() {
    let (mut compared, mut rows) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let data = jindou_testing::quads(&mut rng);
        let db = database(&data);
        for n in 0..20 {
            let query = jindou_testing::query(&mut rng, &data);
            let Ok(expected @ Answer::Rows(..)) = answer(&data, &query.oracle) else {
                continue;
            };
            let options = QueryOptions::default()
                .with_threads(1 + n % 2)
                .with_memory(MemoryBudget::unlimited());
            let cursor = match db.cursor(&query.text, &options) {
                Ok(cursor) => cursor,
                Err(e) => panic!("{}: {e}", query.text),
            };
            let got = all(cursor, n).unwrap_or_else(|e| panic!("{}: {e}", query.text));
            let (got, expected) = (got.bag(), expected.bag());
            if query.counts_only {
                assert_eq!(got.len(), expected.len(), "{}", query.text);
            } else {
                assert_eq!(got, expected, "seed {seed}: {}", query.text);
            }
            assert_eq!(used(&options), 0, "{}", query.text);
            compared += 1;
            rows += got.len();
        }
    }
    println!("{compared} compared, {rows} rows");
    assert!(compared > 500 && rows > 300);
}

#[test]
fn a_slow_reader_holds_the_query_back() {
    let db = numbered(1000);
    let options = counted();
    let mut cursor = db.cursor(PRODUCT, &options).unwrap();
    let mut rows = cursor.next_batch().unwrap().unwrap().rows();
    // All rows would take 8 MB (a million rows of two columns). The batches in the queue take some 200 kB, in addition
    // to the query's own memory.
    let mut most = 0;
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(30));
        most = most.max(used(&options));
    }
    assert!(most < 4 << 20, "{most} bytes");
    while let Some(batch) = cursor.next_batch().unwrap() {
        rows += batch.rows();
    }
    assert_eq!(rows, 1_000_000);
    drop(cursor);
    assert_eq!(used(&options), 0);
}

#[test]
fn order_is_kept() {
    let db = numbered(300);
    let query =
        "SELECT ?x { ?a <http://e/p> ?x . ?b <http://e/p> ?y } ORDER BY DESC(?x) LIMIT 60000";
    let mut cursor = db.cursor(query, &QueryOptions::default()).unwrap();
    let mut seen = vec![];
    while let Some(batch) = cursor.next_batch().unwrap() {
        seen.extend(batch.terms(0).map(|t| t.unwrap().unwrap().to_string()));
    }
    assert_eq!(seen.len(), 60_000);
    assert!(seen.is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_reader_that_goes_cancels_the_query_and_nothing_else() {
    let db = numbered(1000);
    let cancel = CancelToken::new();
    let options = counted().with_cancel(cancel.clone());
    // One cursor is dropped while its query waits for the reader, another before its query has found a row.
    let mut cursor = db.cursor(PRODUCT, &options).unwrap();
    let batch = cursor.next_batch().unwrap().unwrap();
    let began = Instant::now();
    drop(cursor);
    drop(db.cursor(FRUITLESS, &options).unwrap());
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!cancel.is_cancelled());
    // A batch outlives its cursor.
    assert_eq!(batch.terms(0).filter(Result::is_err).count(), 0);
    drop(batch);
    assert_eq!(used(&options), 0);
    assert_eq!(
        db.query("SELECT * { ?s ?p ?o }").unwrap().solutions().len(),
        1000
    );
}

#[test]
fn the_caller_cancels_and_the_error_comes_once() {
    let db = numbered(1000);
    let options = QueryOptions::default();
    for query in [PRODUCT, FRUITLESS] {
        let cancel = CancelToken::new();
        let options = options.clone().with_cancel(cancel.clone());
        let mut cursor = db.cursor(query, &options).unwrap();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel();
        });
        let error = loop {
            match cursor.next_batch() {
                Ok(Some(_)) => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => panic!("{query} ended"),
                Err(e) => break e,
            }
        };
        assert!(matches!(error, Error::Cancelled), "{query}: {error}");
        assert!(cursor.next_batch().unwrap().is_none());
        canceller.join().unwrap();
    }
}

#[test]
fn the_time_limit_holds_for_query_and_reader() {
    let db = numbered(1000);
    let limit = Duration::from_millis(100);
    let options = QueryOptions::default().with_timeout(limit);
    // A query without rows, and one whose reader sleeps longer than the time limit.
    for (query, sleep) in [(FRUITLESS, 0), (PRODUCT, 400)] {
        let mut cursor = db.cursor(query, &options).unwrap();
        std::thread::sleep(Duration::from_millis(sleep));
        let error = loop {
            match cursor.next_batch() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{query} ended"),
                Err(e) => break e,
            }
        };
        assert!(
            matches!(error, Error::Timeout(at) if at == limit),
            "{error}"
        );
        assert!(cursor.next_batch().unwrap().is_none());
    }
}

#[test]
fn what_is_no_table_or_has_no_room_is_refused() {
    let db = numbered(10);
    let options = QueryOptions::default();
    for query in [
        "ASK {}",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "DESCRIBE <http://e/v1>",
    ] {
        let refused = db.cursor(query, &options).map(|_| ()).unwrap_err();
        assert!(
            matches!(refused, Error::Unsupported(_)),
            "{query}: {refused}"
        );
    }
    assert!(matches!(
        db.cursor("SELECT nothing", &options).map(|_| ()),
        Err(Error::Sparql(_))
    ));
    let db = numbered(1000);
    let options = QueryOptions::default().with_memory(MemoryBudget::new(1 << 20));
    let query = format!("{PRODUCT} ORDER BY ?b ?a");
    let refused = all(db.cursor(&query, &options).unwrap(), 2).unwrap_err();
    assert_eq!(refused.resource(), Some(Resource::Memory), "{refused}");
    assert_eq!(used(&options), 0);
}

#[test]
fn planned_queries_give_cursors_and_say_their_form() {
    use jindou::{QueryForm, Value};
    let db = numbered(20);
    let options = QueryOptions::default();
    for (text, form) in [
        ("SELECT * { ?s ?p ?o }", QueryForm::Select),
        ("ASK { ?s ?p ?o }", QueryForm::Ask),
        (
            "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
            QueryForm::Construct,
        ),
        ("DESCRIBE <http://e/v1>", QueryForm::Describe),
    ] {
        let planned = db.plan(text, &options).unwrap();
        assert_eq!(planned.form(), form);
        let cursor = db.cursor_planned(planned, &options);
        assert_eq!(cursor.is_ok(), form == QueryForm::Select);
        assert!(matches!(cursor, Ok(_) | Err(Error::Unsupported(_))));
    }
    let prepared = db
        .prepare("SELECT ?x { ?s <http://e/p> ?x }", &["s"], &options)
        .unwrap();
    let planned = prepared
        .plan(&[Value::Iri("http://e/v7")], &options)
        .unwrap();
    let mut cursor = db.cursor_planned(planned, &options).unwrap();
    let batch = cursor.next_batch().unwrap().unwrap();
    assert_eq!(
        batch.row(0).unwrap(),
        [Some(oxrdf::Literal::from("7").into())]
    );
    assert!(cursor.next_batch().unwrap().is_none());
    // The time limit also applies to a query that is planned already.
    let planned = db.plan(FRUITLESS, &options).unwrap();
    let db = numbered(1000);
    drop(planned);
    let planned = db.plan(FRUITLESS, &options).unwrap();
    let limited = QueryOptions::default().with_timeout(Duration::from_millis(50));
    let mut cursor = db.cursor_planned(planned, &limited).unwrap();
    assert!(matches!(cursor.next_batch(), Err(Error::Timeout(_))));
}

#[test]
fn waiting_for_a_batch_ends_in_time() {
    let db = numbered(1000);
    let cursor = db.cursor(FRUITLESS, &QueryOptions::default()).unwrap();
    let begun = Instant::now();
    assert!(!cursor.wait(Duration::from_millis(60)));
    assert!(begun.elapsed() >= Duration::from_millis(60));
    drop(cursor);
    let mut cursor = db.cursor(PRODUCT, &QueryOptions::default()).unwrap();
    assert!(cursor.wait(Duration::MAX));
    assert!(cursor.next_batch().unwrap().is_some());
    let mut none = db
        .cursor(
            "SELECT ?x { ?x <http://e/none> ?y }",
            &QueryOptions::default(),
        )
        .unwrap();
    assert!(none.wait(Duration::MAX) && none.next_batch().unwrap().is_none());
    // After a cancellation, `wait` returns at once, since there is an error to return.
    let cancel = CancelToken::new();
    let options = QueryOptions::default().with_cancel(cancel.clone());
    let mut cursor = db.cursor(FRUITLESS, &options).unwrap();
    cancel.cancel();
    assert!(cursor.wait(Duration::MAX));
    assert!(matches!(cursor.next_batch(), Err(Error::Cancelled)));
}

#[test]
fn ids_of_all_batches_are_decoded_by_any() {
    let db = numbered(300);
    // Terms of the store, and terms that the query computes.
    let text = "SELECT ?a (CONCAT(?x, \"!\") AS ?made) { ?a <http://e/p> ?x . ?b <http://e/p> ?y }";
    let mut cursor = db.cursor(text, &QueryOptions::default()).unwrap();
    let (mut ids, mut expected, mut first) = (vec![], vec![], None);
    while let Some(batch) = cursor.next_batch().unwrap() {
        for column in 0..2 {
            ids.extend_from_slice(batch.ids(column));
            expected.extend(batch.terms(column).map(|t| t.unwrap().unwrap()));
        }
        first.get_or_insert(batch);
    }
    assert_eq!(ids.len(), 2 * 300 * 300);
    ids.push(0);
    let (mut decoded, mut next) = (vec![], 0);
    let first = first.unwrap();
    first
        .decode(&ids, |place, bytes| {
            assert_eq!(place, next);
            next += 1;
            decoded.push(decode_term(bytes).unwrap());
        })
        .unwrap();
    assert_eq!(decoded, expected);
    assert!(first.decode(&[u32::MAX], |_, _| ()).is_err());
}
