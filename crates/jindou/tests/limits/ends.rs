//! Time limits, memory limits, cancellation, and readers that go away: each ends a query soon with its own error, and
//! the database answers the next query.

use jindou::testing::Store;
use jindou::{
    Access, CancelToken, Database, Error, MemoryBudget, OpenOptions, QueryOptions, Resource,
    ResultFormat, ResultWriter, Runtime, UpdateOptions,
};
use jindou_testing::{Stopwatch, thread_time, turn};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time by which a query may exceed its time limit; large, since test machines are busy.
const SOON: Duration = Duration::from_secs(5);

/// A cross product of 10^12 rows, which needs no expressions.
const NATIVE: &str =
    "PREFIX : <http://e/> SELECT ?a ?b ?c ?d WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z }";
/// The same cross product with a computed column.
const OTHER: &str = "PREFIX : <http://e/> SELECT ?a ?b ?c ?d ?e WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z BIND(STR(?a) AS ?e) }";
/// Queries that read all input before they return a row.
const NATIVE_GREEDY: [&str; 3] = [
    "PREFIX : <http://e/> SELECT DISTINCT ?a ?b ?c ?d WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z }",
    "PREFIX : <http://e/> SELECT ?a ?b ?c ?d WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z } ORDER BY ?w ?z",
    "PREFIX : <http://e/> SELECT (COUNT(DISTINCT ?d) AS ?n) ?a ?b ?c WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z } GROUP BY ?a ?b ?c",
];
const OTHER_GREEDY: [&str; 2] = [
    "PREFIX : <http://e/> SELECT DISTINCT ?a ?b ?c ?d ?e WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z BIND(STR(?a) AS ?e) }",
    "PREFIX : <http://e/> SELECT ?a ?b ?c ?d ?e WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z BIND(STR(?a) AS ?e) } ORDER BY ?e ?d",
];
/// Queries that run long and never return a row.
const SILENT: [&str; 2] = [
    "PREFIX : <http://e/> SELECT ?a WHERE { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z FILTER(?w + ?x + ?y + ?z < 0) }",
    "PREFIX : <http://e/> ASK { ?a :p ?w . ?b :p ?x . ?c :p ?y . ?d :p ?z BIND(?w + ?x + ?y + ?z AS ?s) FILTER(?s < 0) }",
];

fn store() -> Store {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..1000 {
        writeln!(text, ":s{i} :p {i} .").unwrap();
    }
    Store::of_trig(&text)
}

/// A pipe whose reader goes away after some bytes.
struct Leaving(usize);

impl io::Write for Leaving {
    fn write(&mut self, b: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = b.len().min(self.0);
        self.0 -= n;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(
    db: &Database,
    text: &str,
    options: &QueryOptions,
    out: impl io::Write + Send,
    format: ResultFormat,
) -> (Error, Duration) {
    let start = Stopwatch::start();
    let e = db
        .run(text, options, &mut ResultWriter::new(out, format))
        .err()
        .unwrap_or_else(|| panic!("{text} ended by itself"));
    (e, start.elapsed())
}

/// Asserts that the shortest of several times is below a limit: other tests run at the same time.
fn assert_soon(limit: Duration, took: impl FnMut(u32) -> Duration) {
    let took = (0..3).map(took).min().unwrap();
    println!("{took:?}");
    assert!(took < limit, "{took:?}");
}

/// Bytes charged to the query's own budget.
fn used(options: &QueryOptions) -> u64 {
    options.memory.as_ref().map_or(0, MemoryBudget::used)
}

/// Asserts that the query has released all memory and computing slots, and that the database answers another query.
fn well(db: &Database, options: &QueryOptions, text: &str) {
    assert_eq!(used(options), 0, "{text} keeps memory");
    assert_eq!(db.runtime().memory().used(), 0, "{text} keeps memory");
    assert_eq!(
        db.runtime().workers().load().1,
        0,
        "{text} leaves somebody waiting"
    );
    let a = db.query("SELECT * { <http://e/s1> ?p ?o }").unwrap();
    assert_eq!(a.solutions().len(), 1);
}

fn all() -> impl Iterator<Item = &'static str> {
    [NATIVE, OTHER]
        .into_iter()
        .chain(NATIVE_GREEDY)
        .chain(OTHER_GREEDY)
        .chain(SILENT)
}

#[test]
fn all_are_native() {
    let _turn = turn();
    let store = store();
    let options = QueryOptions::default();
    for text in all() {
        let plan = store.db.explain(text, &options).unwrap();
        assert!(plan.contains(", native, "), "{text}: {plan}");
    }
    let limited = format!("{OTHER} LIMIT 3");
    let report = store
        .db
        .run(
            &limited,
            &options,
            &mut ResultWriter::new(io::sink(), ResultFormat::Json),
        )
        .unwrap();
    assert!(report.rows == 3);
}

#[test]
fn a_deadline_ends_every_query() {
    let _turn = turn();
    let store = store();
    for threads in [1, 2] {
        for text in all() {
            let options = QueryOptions::default()
                .with_threads(threads)
                .with_timeout(Duration::from_millis(60))
                .with_memory(MemoryBudget::new(4 << 30));
            let (e, took) = run(&store.db, text, &options, io::sink(), ResultFormat::Tsv);
            assert!(matches!(e, Error::Timeout(_)), "{text}: {e}");
            assert!(took < SOON, "{text} took {took:?}");
            well(&store.db, &options, text);
        }
    }
}

#[test]
fn an_enormous_time_limit_is_none() {
    let _turn = turn();
    let store = store();
    for limit in [Duration::MAX, Duration::from_secs_f64(1e19)] {
        let options = QueryOptions::default().with_timeout(limit);
        let text = "SELECT * { <http://e/s1> ?p ?o }";
        let answer = store.db.query_with(text, &options).unwrap();
        assert_eq!(answer.solutions().len(), 1);
        let update = UpdateOptions::default().with_timeout(limit);
        store.db.update("INSERT DATA {}", &update).unwrap();
    }
}

/// A thousand rows, all in the first batch, make ten million quads.
#[test]
fn a_deadline_ends_templates_of_many_quads() {
    let _turn = turn();
    let store = store();
    let mut template = String::new();
    for i in 0..10_000 {
        let _ = write!(template, "?s <http://e/p{i}> ?o . ");
    }
    let options = UpdateOptions::default().with_timeout(Duration::from_millis(200));
    for change in [
        format!("INSERT {{ {template} }}"),
        format!("DELETE {{ {template} }}"),
        format!("DELETE {{ ?s ?p ?o }} INSERT {{ {template} }}"),
    ] {
        let update = format!("{change} WHERE {{ ?s ?p ?o }}");
        let begun = Stopwatch::start();
        let got = store.db.update(&update, &options);
        assert!(matches!(got, Err(Error::Timeout(_))), "{got:?}");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_deadline_ends_a_path_and_a_quadratic_closure() {
    let _turn = turn();
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..3000 {
        writeln!(text, ":s{i} :p :s{} .", (i + 1) % 3000).unwrap();
    }
    let store = Store::of_trig(&text);
    let options = QueryOptions::default().with_timeout(Duration::from_millis(60));
    let query = "PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) { ?a :p+ ?b . ?b :p+ ?c }";
    let (e, took) = run(&store.db, query, &options, io::sink(), ResultFormat::Tsv);
    assert!(matches!(e, Error::Timeout(_)), "{e}");
    assert!(took < SOON, "{took:?}");
}

#[test]
fn memory_ends_what_hoards() {
    let _turn = turn();
    let store = store();
    for text in NATIVE_GREEDY.iter().chain(&OTHER_GREEDY) {
        let options = QueryOptions::default()
            .with_memory(MemoryBudget::new(32 << 20))
            .with_temp(0)
            .with_timeout(Duration::from_secs(60));
        let (e, _) = run(&store.db, text, &options, io::sink(), ResultFormat::Tsv);
        assert!(matches!(e, Error::Limit(_)), "{text}: {e}");
        assert_eq!(e.resource(), Some(Resource::Memory), "{e}");
        assert!(!e.to_string().contains("--"), "{e}");
        well(&store.db, &options, text);
    }
    // An answer that is collected in memory is charged as well.
    for text in [NATIVE, OTHER] {
        let options = QueryOptions::default().with_memory(MemoryBudget::new(4 << 20));
        let e = store.db.query_with(text, &options).unwrap_err();
        assert!(matches!(e, Error::Limit(_)), "{text}: {e}");
        well(&store.db, &options, text);
    }
}

/// A folder on a disk. The system's folder for temporary files may be in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Opens a store again, with a runtime whose queries write temporary files to a folder.
fn open_with_files(store: &Store, folder: &Path, limit: u64) -> Database {
    let runtime = Runtime::builder().temp_limit(limit).temp_dir(folder);
    let options = OpenOptions::default()
        .with_access(Access::Read)
        .with_runtime(runtime.unwrap().build());
    Database::open_with(&store.dir, &options).unwrap()
}

/// With permission for temporary files, the limit of their bytes ends what would not fit on the disk either.
#[test]
fn temporary_files_are_bounded() {
    let _turn = turn();
    let (store, folder) = (store(), on_disk());
    let db = open_with_files(&store, folder.path(), 1 << 30);
    for text in [NATIVE_GREEDY[1], OTHER_GREEDY[1]] {
        let options = QueryOptions::default()
            .with_memory(MemoryBudget::new(32 << 20))
            .with_temp(100 << 20);
        let (e, _) = run(&db, text, &options, io::sink(), ResultFormat::Tsv);
        assert_eq!(e.resource(), Some(Resource::Disk), "{text}: {e}");
        assert_eq!(db.runtime().temp().used(), 0);
        assert!(db.runtime().temp().written() > 50 << 20);
        well(&db, &options, text);
    }
}

/// A sort with temporary files gives the same rows as one in memory, takes no more memory than it may, and its profile
/// says how many bytes were written.
#[test]
fn sorting_with_temporary_files_needs_little_memory() {
    let _turn = turn();
    let (store, folder) = (store(), on_disk());
    let db = open_with_files(&store, folder.path(), 1 << 30);
    let text = "PREFIX : <http://e/> SELECT ?w ?x { ?a :p ?w . ?b :p ?x } ORDER BY DESC(?x) ?w";
    let answer = |options: &QueryOptions| {
        let mut text_of = Vec::new();
        let mut writer = ResultWriter::new(&mut text_of, ResultFormat::Csv);
        let report = db.run(text, options, &mut writer).unwrap();
        (text_of, report.profile)
    };
    let memory = MemoryBudget::new(4 << 20);
    let options = QueryOptions::default()
        .with_memory(memory.clone())
        .with_profile(true);
    let (few, profile) = answer(&options);
    assert!(profile.contains("temporary files: "), "{profile}");
    assert!(memory.peak() <= 4 << 20, "{}", memory.peak());
    let (all, profile) = answer(&QueryOptions::default().with_profile(true));
    assert!(!profile.contains("temporary files: "), "{profile}");
    assert!(few == all);
    let e = db.run(
        text,
        &options.with_temp(0),
        &mut ResultWriter::new(io::sink(), ResultFormat::Csv),
    );
    assert!(e.unwrap_err().is_of_memory());
}

/// Many queries that need files at once give right answers or say that the limit of files is reached, and leave neither
/// bytes nor descriptors.
#[test]
fn many_queries_share_the_space_of_temporary_files() {
    let _turn = turn();
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let (store, folder) = (store(), on_disk());
    let db = open_with_files(&store, folder.path(), 10 << 20);
    let before = open();
    for (text, queries) in [
        (
            "SELECT ?w ?x { ?a ?p ?w . ?b ?p ?x FILTER(?w < 50) } ORDER BY ?x DESC(?w)",
            200,
        ),
        (
            "SELECT DISTINCT ?w ?x ?p { ?a ?p ?w . ?b ?p ?x FILTER(?w < 50) }",
            40,
        ),
        (
            "SELECT ?w ?x (COUNT(*) AS ?n) { ?a ?p ?w . ?b ?p ?x FILTER(?w < 50) } GROUP BY ?w ?x",
            40,
        ),
    ] {
        let answer = || {
            let options = QueryOptions::default()
                .with_memory(MemoryBudget::new(2 << 20))
                .with_threads(1);
            let mut rows = Vec::new();
            let mut writer = ResultWriter::new(&mut rows, ResultFormat::Csv);
            let done = db.run(text, &options, &mut writer);
            assert_eq!(used(&options), 0, "{text}");
            done.map(|_| {
                let mut lines: Vec<&[u8]> = rows.split(|b| *b == b'\n').collect();
                lines.sort_unstable();
                lines.concat()
            })
        };
        let want = answer().unwrap();
        let ends: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..queries).map(|_| scope.spawn(answer)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let mut right = 0;
        for end in ends {
            match end {
                Ok(got) => {
                    assert!(got == want, "{text}");
                    right += 1;
                }
                Err(e) => assert_eq!(e.resource(), Some(Resource::Disk), "{text}: {e}"),
            }
        }
        assert!(right > 0, "{text}");
        assert!(db.runtime().temp().written() > 0, "{text}");
        assert_eq!(db.runtime().temp().used(), 0, "{text}");
    }
    assert!(open() <= before, "{} descriptors, then {}", before, open());
}

/// A folder in memory is refused; one that goes away ends only the queries that need it.
#[test]
fn folders_of_temporary_files_may_be_unsuitable() {
    let _turn = turn();
    let (store, folder) = (store(), on_disk());
    let at = folder.path().join("temp");
    let e = Runtime::builder().temp_dir(&at).unwrap_err();
    assert!(matches!(e, Error::Io { .. }), "{e}");
    std::fs::create_dir(&at).unwrap();
    let db = open_with_files(&store, &at, 1 << 30);
    std::fs::remove_dir(&at).unwrap();
    let text = "SELECT ?w ?x { ?a ?p ?w . ?b ?q ?x } ORDER BY DESC(?x) ?w";
    let options = QueryOptions::default().with_memory(MemoryBudget::new(4 << 20));
    let e = db.query_with(text, &options).unwrap_err();
    assert!(
        e.to_string()
            .contains("temporary file of a query cannot be created"),
        "{e}"
    );
    well(&db, &options, text);
}

#[test]
fn another_thread_cancels() {
    let _turn = turn();
    let store = store();
    for text in all() {
        let cancel = CancelToken::new();
        let options = QueryOptions::default()
            .with_cancel(cancel.clone())
            .with_memory(MemoryBudget::new(4 << 30));
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(40));
            cancel.cancel();
        });
        let (e, took) = run(&store.db, text, &options, io::sink(), ResultFormat::Csv);
        other.join().unwrap();
        assert!(matches!(e, Error::Cancelled), "{text}: {e}");
        assert!(took < SOON, "{text} took {took:?}");
        well(&store.db, &options, text);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_query() {
    let _turn = turn();
    let store = store();
    let formats = [
        ResultFormat::Table,
        ResultFormat::Tsv,
        ResultFormat::Csv,
        ResultFormat::Json,
        ResultFormat::Xml,
    ];
    for format in formats {
        for text in [NATIVE, OTHER] {
            for bytes in [0, 5, 100_000] {
                let options = QueryOptions::default();
                let (e, took) = run(&store.db, text, &options, Leaving(bytes), format);
                assert!(matches!(e, Error::SinkClosed), "{text} {format:?}: {e}");
                assert!(took < SOON, "{text} took {took:?}");
                well(&store.db, &options, text);
            }
        }
    }
    let construct = "CONSTRUCT { ?s ?q ?o } WHERE { ?s ?p ?o . ?a ?q ?b }";
    let options = QueryOptions::default();
    let format = "nt".parse().unwrap();
    let (e, _) = run(&store.db, construct, &options, Leaving(1000), format);
    assert!(matches!(e, Error::SinkClosed), "{e}");
}

/// A store of 20 subjects that have all of this many predicates, and a query for them.
fn star(predicates: usize) -> (Store, String) {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for s in 0..20 {
        for p in 0..predicates {
            writeln!(text, ":s{s} :p{p} {} .", (s * p) % 7).unwrap();
        }
    }
    let patterns: String = (0..predicates)
        .map(|p| format!("?s :p{p} ?o{p} . "))
        .collect();
    let query = format!("PREFIX : <http://e/> SELECT ?s {{ {patterns}}}");
    (Store::of_trig(&text), query)
}

#[test]
fn a_deadline_and_a_cancellation_end_planning() {
    let _turn = turn();
    let (store, query) = star(1900);
    let options = QueryOptions::default().with_timeout(Duration::from_millis(100));
    let start = Stopwatch::start();
    let e = store.db.plan(&query, &options).err().expect("no plan");
    assert!(matches!(e, Error::Timeout(_)), "{e}");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    let cancel = CancelToken::new();
    let options = QueryOptions::default().with_cancel(cancel.clone());
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(40));
        cancel.cancel();
    });
    let start = Stopwatch::start();
    let e = store
        .db
        .plan_uncached(&query, &options)
        .err()
        .expect("no plan");
    other.join().unwrap();
    assert!(matches!(e, Error::Cancelled), "{e}");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(store.db.runtime().memory().used(), 0);
    let answer = store.db.query("ASK { <http://e/s1> <http://e/p1> ?o }");
    assert!(answer.is_ok());
}

/// Listing the columns of many steps with many columns once took seconds before the first check of the time limit.
#[test]
fn a_deadline_ends_the_beginning_of_a_run_of_many_wide_steps() {
    let _turn = turn();
    let text: String = (0..4000)
        .map(|i| format!("<http://e/s{}> <http://e/p{i}> {i} .\n", i % 50))
        .collect();
    let store = Store::of_trig(&text);
    let patterns: String = (0..12_000).map(|i| format!("?x{i} ?p ?o . ")).collect();
    let options = QueryOptions::default();
    let planned = store
        .db
        .plan(&format!("SELECT * {{ {patterns} }}"), &options)
        .unwrap();
    let options = options.with_timeout(Duration::from_millis(50));
    assert_soon(Duration::from_millis(550), |_| {
        let start = Stopwatch::start();
        let mut out = ResultWriter::new(io::sink(), ResultFormat::Tsv);
        let e = store.db.run_planned(&planned, &options, &mut out);
        assert!(matches!(e, Err(Error::Timeout(_))), "{e:?}");
        start.elapsed()
    });
}

/// Each predicate occurs in one of many graphs in FROM. It must not be looked up in each of them, which would be
/// quadratic.
#[test]
fn chosen_graphs_are_not_searched_for_every_predicate() {
    let _turn = turn();
    let text: String = (0..8000)
        .map(|i| {
            format!("<http://e/g{i}> {{ <http://e/s{i}> <http://e/p{i}> {i} . <http://e/s> <http://e/all> 0 }}\n")
        })
        .collect();
    let store = Store::of_trig(&text);
    let count = |graphs: usize| {
        let from: String = (0..graphs)
            .map(|i| format!("FROM <http://e/g{i}> "))
            .collect();
        let text = format!("SELECT (COUNT(*) AS ?n) {from}{{ ?s ?p ?o }}");
        let start = Stopwatch::start();
        let answer = store.db.query(&text).unwrap();
        (
            answer.solutions()[0][0].as_ref().unwrap().to_string(),
            start.elapsed(),
        )
    };
    assert!(count(1).0.starts_with("\"2\""));
    assert!(count(10).0.starts_with("\"11\""));
    assert_soon(Duration::from_secs(1), |_| {
        let (n, took) = count(40_000);
        assert!(n.starts_with("\"8001\""), "{n}");
        took
    });
}

/// If each of many operands of a join could evaluate a condition, its cost must be estimated once, not for each
/// operand.
#[test]
fn a_long_condition_over_many_parts_is_planned_soon() {
    let _turn = turn();
    let (store, _) = star(10);
    let constants: Vec<String> = (0..2000).map(|i| format!("<r{i}>")).collect();
    let lists = vec![format!("?o IN ({})", constants.join(",")); 300];
    let parts = "{ SELECT DISTINCT ?o { ?s <http://e/p1> ?o } } ".repeat(3000);
    let text = format!(
        "BASE <http://e/> SELECT * {{ FILTER(CONCAT({})) {parts} }}",
        lists.join(",")
    );
    let options = QueryOptions::default().with_timeout(Duration::from_millis(50));
    assert_soon(Duration::from_millis(800), |_| {
        let begun = Stopwatch::start();
        match store.db.plan_uncached(&text, &options) {
            Ok(_) | Err(Error::Timeout(_)) => {}
            Err(e) => panic!("{e}"),
        }
        begun.elapsed()
    });
}

/// Each level of REPLACE multiplies the length of the string; the memory limit or the time limit must end that soon.
#[test]
fn strings_that_grow_by_replacing_end() {
    let _turn = turn();
    let store = store();
    let nested = |levels: usize, pattern: &str, by: &str| {
        let mut text = "STR(?s)".to_owned();
        for _ in 0..levels {
            text = format!("REPLACE({text}, {pattern}, {by})");
        }
        format!("SELECT (STRLEN({text}) AS ?n) {{ ?s ?p 7 }}")
    };
    let cases = [
        nested(14, "\".\"", "\"$0$0$0$0\""),
        nested(14, "\".+\"", "\"$0$0$0$0$0$0$0$0\""),
        nested(14, "\".{1}\"", "\"$0ab\""),
        nested(12, "SUBSTR(\"..\", 1, 1)", "\"$0$0$0$0\""),
        nested(12, "\"p\"", &format!("\"{}\"", "p".repeat(1000))),
    ];
    for query in &cases {
        let options = QueryOptions::default()
            .with_memory(MemoryBudget::new(64 << 20))
            .with_timeout(Duration::from_secs(2));
        let (e, took) = run(&store.db, query, &options, io::sink(), ResultFormat::Tsv);
        assert!(
            matches!(e, Error::Limit(_) | Error::Timeout(_)),
            "{query}: {e}"
        );
        assert!(took < Duration::from_secs(2) + SOON, "{query}: {took:?}");
        well(&store.db, &options, query);
    }
}

/// The server relies on this: it plans texts of up to 4 KiB on a network thread.
#[test]
fn a_deadline_of_a_millisecond_ends_planning_within_two() {
    let _turn = turn();
    let (store, _) = star(300);
    let repeat = |begin: &str, unit: &str, end: &str| {
        let mut text = format!("PREFIX e:<http://e/>{begin}");
        for i in 1.. {
            let more = unit.replace('#', &i.to_string());
            if text.len() + more.len() + end.len() > 4 << 10 {
                break;
            }
            text += &more;
        }
        text + end
    };
    let texts = [
        repeat("ASK{?s e:p0 9", ";e:p# ?o#", "}"),
        repeat("ASK{?v0 e:p0 9", ".?v# e:p# ?v0", "}"),
        repeat("SELECT*{?s ?p ?o", ".?a# ?b# ?c#", "}"),
        repeat("SELECT*{?s e:p1 ?o ", "OPTIONAL{?s e:p# ?o#}", "}"),
        repeat("SELECT*{{?s e:p1 ?o}", "UNION{?s e:p# ?o}", "}"),
        repeat("SELECT*{?s e:p1 ?o ", "MINUS{?s e:p# ?o}", "}"),
        repeat("SELECT*{?s e:p1/e:p2", "/e:p#*", " ?o}"),
        repeat("SELECT*{?s e:p1 ?o FILTER(?o=0", "||?o=#", ")}"),
        repeat("SELECT*{?s e:p1 ?o VALUES ?o{", "# ", "}}"),
    ];
    for text in texts {
        let options = QueryOptions::default().with_timeout(Duration::from_millis(1));
        // The shortest of many times, because other tests share caches and cores with this thread.
        let took = (0..20)
            .map(|_| {
                let begun = thread_time();
                match store.db.plan_uncached(&text, &options) {
                    Ok(_) | Err(Error::Timeout(_)) => {}
                    Err(e) => panic!("{text}: {e}"),
                }
                thread_time() - begun
            })
            .min()
            .unwrap();
        println!("{took:?}: {}…", &text[..60]);
        assert!(took < Duration::from_millis(2), "{took:?}: {text}");
    }
}
