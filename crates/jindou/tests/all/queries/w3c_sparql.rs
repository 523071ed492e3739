//! The W3C SPARQL query suites, each test run on a database loaded from its files.

use crate::answers;
use crate::oracle;
use jindou::ShardMode;
use jindou::testing::Nothing;
use jindou::{Answer, Database, LoadOptions, Progress, parse_query};
use jindou_parse::{Input, Sources};
use jindou_store::shard::{Placement, Sharding};
use jindou_testing::w3c::manifest::{self, Test, iri_of};
use jindou_testing::w3c::shared;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ends of the names of tests that are known to fail, each with the reason.
const KNOWN_FAILURES: [(&str, &str); 1] = [(
    // The test follows XSD 1.0, by which it is undetermined whether a date without a time zone equals one with a time
    // zone. By XPath (F&O 3.1 §9.4) the implicit time zone decides, which is UTC here: see docs/values.md.
    "open-world/manifest#date-1",
    "a date without a time zone is UTC's",
)];

/// Ends of the names of tests whose expected file has the data's numbers in another lexical form ("0.0" for 0E1, "1.0"
/// for 1E0). The store returns the lexical form of the data, so numbers of these tests are compared by value.
const BY_VALUE: [&str; 1] = ["cast/manifest#cast-decimal"];

thread_local! {
    /// Number and placement of the shards into which this thread's tests load their stores; `None` for no shards.
    static SHARDING: Cell<Option<Sharding>> = const { Cell::new(None) };
    /// The way in which this thread's queries use other shards: by sending rows there, or by fetching data.
    static MODE: Cell<ShardMode> = const { Cell::new(ShardMode::Dynamic) };
}

fn query_options() -> jindou::QueryOptions {
    jindou::QueryOptions::default().with_shard_mode(MODE.get())
}

#[derive(Default)]
pub(super) struct Tally {
    passed: usize,
    pub(super) failed: Vec<String>,
    other: usize,
}

/// Runs a suite with at least one test, and prints how many pass.
pub(super) fn run_suite(
    manifest: &Path,
    run_test: fn(&Test) -> Option<Result<(), String>>,
) -> Tally {
    let mut tally = Tally::default();
    for test in manifest::read(manifest).unwrap() {
        match catch_unwind(AssertUnwindSafe(|| run_test(&test))) {
            Ok(Some(Ok(()))) => {
                let listed = KNOWN_FAILURES.iter().any(|k| test.name.ends_with(k.0));
                assert!(
                    !listed,
                    "{} passes: remove it from KNOWN_FAILURES",
                    test.name
                );
                tally.passed += 1;
            }
            Ok(Some(Err(why))) => tally.failed.push(format!("{}: {why}", test.name)),
            Ok(None) => tally.other += 1,
            Err(_) => tally.failed.push(format!("{}: panicked", test.name)),
        }
    }
    println!(
        "{}: {} passed, {} failed, {} of other kinds",
        manifest.display(),
        tally.passed,
        tally.failed.len(),
        tally.other
    );
    for f in &tally.failed {
        println!("  failed: {f}");
    }
    assert!(tally.passed > 0, "{} has no test", manifest.display());
    tally
}

/// Runs a test; `None` if it is not a query test.
fn run_test(test: &Test) -> Option<Result<(), String>> {
    let text = || std::fs::read_to_string(&test.query).map_err(|e| e.to_string());
    Some(match test.kind.as_str() {
        "PositiveSyntaxTest" | "PositiveSyntaxTest11" | "PositiveSyntaxTest12" => {
            text().and_then(|t| parse(&test.query, &t).map(drop))
        }
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" | "NegativeSyntaxTest12" => {
            match text().and_then(|t| parse(&test.query, &t)) {
                Ok(_) => Err("was accepted".into()),
                Err(_) => Ok(()),
            }
        }
        "QueryEvaluationTest" | "CSVResultFormatTest" if !test.entailment => evaluate(test),
        _ => return None,
    })
}

fn with_base(path: &Path, text: &str) -> String {
    format!("BASE <{}>\n{text}", iri_of(path))
}

fn parse(path: &Path, text: &str) -> Result<jindou::algebra::Query, String> {
    parse_query(&with_base(path, text)).map_err(|e| e.to_string())
}

/// A test's query, and the data files of its default graph and named graphs.
struct Case {
    text: String,
    query: jindou::algebra::Query,
    default: Vec<PathBuf>,
    named: Vec<(String, PathBuf)>,
}

impl Case {
    fn read(test: &Test) -> Result<Self, String> {
        let text = std::fs::read_to_string(&test.query).map_err(|e| e.to_string())?;
        let query = parse(&test.query, &text)?;
        let mut named: Vec<(String, PathBuf)> = test.graphs.clone();
        if test.data.is_empty()
            && named.is_empty()
            && let Some(dataset) = query.dataset()
        {
            let from = dataset.named.iter().flatten();
            for n in dataset.default.iter().chain(from) {
                let file = PathBuf::from(n.as_str().trim_start_matches("file://"));
                if !named.iter().any(|g| g.0 == n.as_str()) {
                    named.push((n.as_str().to_owned(), file));
                }
            }
        }
        Ok(Self {
            text: with_base(&test.query, &text),
            query,
            default: test.data.clone(),
            named,
        })
    }

    /// Loads the files into a store. The returned folder must live as long as the database is used.
    fn load(&self) -> Result<(tempfile::TempDir, Database), String> {
        let mut sources = Sources::builder();
        let default = self.default.iter().map(|d| (None, d));
        let named = self.named.iter().map(|(g, f)| (Some(g), f));
        for (graph, file) in default.chain(named) {
            sources = sources.input(Input {
                path: file.clone(),
                format: None,
                graph: graph.cloned(),
            });
        }
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let store = dir.path().join("store");
        let options = LoadOptions::default()
            .with_threads(1)
            .with_memory(1 << 28)
            .with_sharding(SHARDING.get());
        if self.default.is_empty() && self.named.is_empty() {
            Database::load(&store, &Nothing, &options, &Progress::default())
        } else {
            let sources = sources.build().map_err(|e| e.to_string())?;
            Database::load(&store, &sources, &options, &Progress::default())
        }
        .map_err(|e| e.to_string())?;
        let db = Database::open(&store).map_err(|e| e.to_string())?;
        Ok((dir, db))
    }

    /// The answer of `spareval` over its own dataset, which shows whether a failure is ours.
    fn reference(&self) -> Result<Answer, String> {
        oracle::answer(&oracle::dataset(&self.default, &self.named)?, &self.query)
    }
}

/// The endpoints of a federated test: databases in this process, which may call each other. All other endpoints are
/// unreachable.
struct Endpoints(Arc<Vec<(String, tempfile::TempDir, Database)>>);

impl std::fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|e| &e.0)).finish()
    }
}

impl Endpoints {
    fn read(test: &Test) -> Result<Self, String> {
        let mut all = vec![];
        for (endpoint, data) in &test.endpoints {
            let case = Case {
                text: String::new(),
                query: parse_query("ASK {}").map_err(|e| e.to_string())?,
                default: vec![data.clone()],
                named: vec![],
            };
            let (folder, db) = case.load()?;
            all.push((endpoint.clone(), folder, db));
        }
        Ok(Self(Arc::new(all)))
    }
}

impl jindou::ServiceCaller for Endpoints {
    fn call(
        &self,
        endpoint: &str,
        query: &str,
        variables: &[&str],
        _: &jindou::CancelToken,
        row: jindou::TakeRow<'_>,
    ) -> jindou::Result<()> {
        let Some((_, _, db)) = self.0.iter().find(|e| e.0 == endpoint) else {
            return Err(jindou::Error::service(
                endpoint,
                "there is no such endpoint",
            ));
        };
        let options =
            jindou::QueryOptions::default().with_service(Arc::new(Self(Arc::clone(&self.0))));
        let answer = db.query_with(query, &options)?;
        for solution in answer.solutions() {
            let cells: Vec<Option<Vec<u8>>> = variables
                .iter()
                .map(|v| {
                    let at = answer.variables().iter().position(|x| x == v)?;
                    Some(jindou_model::term::encode(solution[at].as_ref()?))
                })
                .collect();
            row(&cells)?;
        }
        Ok(())
    }
}

fn evaluate(test: &Test) -> Result<(), String> {
    let case = Case::read(test)?;
    let (_dir, db) = case.load()?;
    let result = test.result.as_ref().ok_or("no expected result")?;
    if result.extension().is_some_and(|e| e == "csv") {
        return same_csv(&db, &case.text, result);
    }
    let options = query_options().with_service(Arc::new(Endpoints::read(test)?));
    let mut got = db
        .query_with(&case.text, &options)
        .map_err(|e| e.to_string())?;
    let (mut want, ordered) = answers::read(result).ok_or("expected result unreadable")?;
    if answers::is_reduced(&case.query) {
        // REDUCED may return a duplicated row any number of times, at least once.
        answers::drop_duplicates(&mut got);
        answers::drop_duplicates(&mut want);
    }
    // TSV abbreviates numbers as Turtle does, and the suite's expected TSV file has other lexical forms than its data.
    let by_value = BY_VALUE.iter().any(|t| test.name.ends_with(t));
    let lax = if by_value || result.extension().is_some_and(|e| e == "tsv") {
        got.variables().to_vec()
    } else {
        answers::computed(&case.query)
    };
    if answers::same(&got, &want, ordered, &lax) {
        return Ok(());
    }
    let theirs = match case.reference() {
        Ok(a) if answers::same(&a, &want, ordered, &lax) => "right".to_owned(),
        Ok(a) => format!("wrong too: {}", answers::show(&a)),
        Err(e) => format!("fails: {e}"),
    };
    Err(format!(
        "got {}\n   want {}\n   spareval alone is {theirs}",
        answers::show(&got),
        answers::show(&want)
    ))
}

/// Compares CSV line by line, in any order, since CSV does not show of what kind a term is.
fn same_csv(db: &Database, text: &str, result: &Path) -> Result<(), String> {
    let mut out = Vec::new();
    let mut writer = jindou::ResultWriter::new(&mut out, jindou::ResultFormat::Csv);
    db.run(text, &query_options(), &mut writer)
        .map_err(|e| e.to_string())?;
    drop(writer);
    // The columns of SELECT * may be in any order, so each line's cells are sorted by variable.
    let lines = |b: &[u8]| {
        let text = String::from_utf8_lossy(b).into_owned();
        let table: Vec<Vec<String>> = text.lines().map(csv_cells).collect();
        let mut order: Vec<usize> = (0..table.first().map_or(0, Vec::len)).collect();
        order.sort_by_key(|&i| &table[0][i]);
        let mut v: Vec<String> = table
            .iter()
            .map(|row| {
                order
                    .iter()
                    .map(|&i| row.get(i).map_or("?", String::as_str))
                    .collect::<Vec<_>>()
                    .join("\u{1}")
            })
            .collect();
        v.sort();
        v
    };
    let want = std::fs::read(result).map_err(|e| e.to_string())?;
    let (got, want) = (lines(&out), lines(&want));
    let blank = |l: &[String]| l.iter().any(|l| l.contains("_:"));
    if got == want || (got.len() == want.len() && blank(&want)) {
        Ok(())
    } else {
        Err(format!("got {got:?} want {want:?}"))
    }
}

/// The values of a CSV line (the suite has no line break inside a value).
fn csv_cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.trim_end().chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Runs suites, and panics if a test fails that is not among the [`KNOWN_FAILURES`].
fn all_pass(suites: &[&str]) {
    let Some(shared) = shared("w3c/sparql") else {
        return;
    };
    let mut failed = Vec::new();
    let mut known = Vec::new();
    for suite in suites {
        for f in run_suite(&shared.join(suite), run_test).failed {
            match KNOWN_FAILURES.iter().find(|k| is_about(&f, k.0)) {
                Some(k) => known.push(k.0),
                None => failed.push(f),
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    println!("{} known failures", known.len());
}

/// True if this message (test name, colon, reason) is about a test whose name ends so.
fn is_about(message: &str, end_of_name: &str) -> bool {
    let name = message.split(": ").next();
    name.is_some_and(|name| name.ends_with(end_of_name))
}

#[test]
fn sparql_1_0_queries() {
    all_pass(&["sparql10/manifest.ttl"]);
}

#[test]
fn sparql_1_1_queries() {
    all_pass(&[
        "sparql11/manifest-sparql11-query.ttl",
        "sparql11/manifest-sparql11-results.ttl",
    ]);
}

/// Runs suites over shards with blocks of one id each, so that the ends of most patterns are on different shards.
fn over_shards(shards: u32, placement: Placement, mode: ShardMode, suites: &[&str]) {
    MODE.set(mode);
    let sharding = Sharding::new(shards).with_placement(placement);
    SHARDING.set(Some(sharding.with_block_shift(Some(0))));
    all_pass(suites);
}

#[test]
fn sparql_1_1_queries_over_shards() {
    for mode in [ShardMode::InPlace, ShardMode::Fork] {
        over_shards(
            2,
            Placement::Hash,
            mode,
            &["sparql11/manifest-sparql11-query.ttl"],
        );
    }
}

/// All numbers of shards and placements; see docs/testing.md.
#[test]
#[ignore = "long: every number of shards and placement"]
fn sparql_queries_over_any_shards() {
    for placement in [Placement::Range, Placement::Hash] {
        for shards in [1, 2, 3, 6, 12] {
            let suites = [
                "sparql10/manifest.ttl",
                "sparql11/manifest-sparql11-query.ttl",
                "sparql11/manifest-sparql11-results.ttl",
            ];
            for mode in [ShardMode::InPlace, ShardMode::Fork] {
                over_shards(shards, placement, mode, &suites);
            }
        }
    }
}

#[test]
fn sparql_1_1_federated_queries() {
    all_pass(&["sparql11/manifest-sparql11-fed.ttl"]);
}

/// Counts the SPARQL 1.2 tests that pass with what `spargebra` supports; failures are allowed.
#[test]
fn sparql_1_2_queries_are_counted() {
    if let Some(manifest) = shared("w3c/sparql/sparql12/manifest.ttl") {
        run_suite(&manifest, run_test);
    }
}
