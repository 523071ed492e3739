//! Prints the work of LUBM's queries as one JSON object per line, as the fixture `tests/recorded/h200.jsonl` contains
//! it: `works STORE [UNIVERSITIES [QUERIES]]`. Loads LUBM into the store first if a number of universities is given.
//! QUERIES is a file of further queries, `NAME<tab>TEXT` per line, such as `tests/recorded/served.tsv`. No device is
//! needed. `tests/recorded/condense.py` makes the fixture from this output and the raw measurements.

use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::PlanWork;
use jindou_model::{Progress, Result};
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use serde_json::json;
use std::path::Path;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(store) = args.first().map(Path::new) else {
        println!("usage: works STORE [UNIVERSITIES [QUERIES]]");
        return Ok(());
    };
    let universities = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    if universities > 0 && !store.exists() {
        let options = LoadOptions::default().with_threads(1);
        let source = Lubm::new(universities, 0);
        load(store, &source, &options, &Progress::default())?;
    }
    let snapshot = Snapshot::of_base(open(store)?);
    let mut queries: Vec<(String, String)> = QUERIES
        .iter()
        .map(|q| (q.name.to_owned(), q.text.to_owned()))
        .collect();
    if let Some(text) = args.get(2).and_then(|f| std::fs::read_to_string(f).ok()) {
        let lines = text.lines().filter_map(|l| l.split_once('\t'));
        queries.extend(lines.map(|(name, text)| (name.into(), text.into())));
    }
    for (name, text) in queries {
        let plan = plan(&parse(&text)?, &snapshot, &PlanOptions::default())?;
        let sink = Summed::<ChecksumSink>::default();
        let (exec, terms) = (ExecOptions::default(), QueryTerms::default());
        jindou_engine::execute(&plan, &snapshot, &exec, &terms, &sink)?;
        let work = PlanWork::of_plan(&plan, &snapshot);
        println!(
            "{}",
            json!({
                "query": name, "universities": universities, "rows": sink.into_inner().rows, "work": work.to_json(),
            })
        );
    }
    Ok(())
}
