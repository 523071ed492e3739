//! Parse time of the workloads' queries, compared with `spargebra`'s in the same run: `cargo run --release -p jindou-bench --example parse_time
//! FOLDER …`, each folder with queries in files.

use jindou_syntax::{ParserOptions, parse_query};
use spargebra::SparqlParser;
use std::path::Path;
use std::time::{Duration, Instant};

fn texts(folder: &Path, out: &mut Vec<String>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            texts(&path, out);
        } else if let Ok(text) = std::fs::read_to_string(&path)
            && text.len() < 100_000
            && SparqlParser::new().parse_query(&text).is_ok()
        {
            out.push(text);
        }
    }
}

/// Fastest of many runs over all texts.
fn fastest(mut run: impl FnMut()) -> Duration {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < Duration::from_millis(700) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed());
    }
    best
}

fn main() {
    let options = ParserOptions::default();
    for folder in std::env::args().skip(1) {
        let mut all = vec![];
        texts(Path::new(&folder), &mut all);
        if all.is_empty() {
            println!("{folder}: no queries");
            continue;
        }
        let bytes: usize = all.iter().map(String::len).sum();
        let ours = fastest(|| {
            for text in &all {
                assert!(parse_query(text, &options).is_ok());
            }
        });
        let parsed: Vec<_> = all
            .iter()
            .filter_map(|text| parse_query(text, &options).ok())
            .collect();
        // The floor of both: the algebra made and dropped.
        let algebra = fastest(|| {
            for query in &parsed {
                std::hint::black_box(query.clone());
            }
        });
        let theirs = fastest(|| {
            for text in &all {
                assert!(SparqlParser::new().parse_query(text).is_ok());
            }
        });
        let per = |d: Duration| d.as_secs_f64() * 1e6 / all.len() as f64;
        println!(
            "{folder}: {} queries, {bytes} bytes: {:.2} µs a query, spargebra {:.2} µs: {:.1} times faster; copying and dropping \
             the algebra alone {:.2} µs",
            all.len(),
            per(ours),
            per(theirs),
            per(theirs) / per(ours),
            per(algebra),
        );
    }
}
