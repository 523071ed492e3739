//! Runs the LUBM queries on a store that `jindou load` (or the example `load_generated`) made, and prints
//! rows, time and nanoseconds a row: `explore_bench DIR [--threads T] [--repeat R] [--profile] [NAME…]`.

use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed, execute};
use jindou_plan::{PlanOptions, explain, parse, plan};
use jindou_store::{Snapshot, open};
use std::path::Path;
use std::time::{Duration, Instant};

const PREFIXES: &str = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> \
    PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> ";

const QUERIES: [(&str, &str); 14] = [
    (
        "L1",
        "SELECT ?X ?Y ?Z WHERE { ?Y a ub:University . ?X ub:undergraduateDegreeFrom ?Y . \
         ?X a ub:GraduateStudent . ?X ub:memberOf ?Z . ?Z ub:subOrganizationOf ?Y . ?Z a ub:Department }",
    ),
    (
        "L2",
        "SELECT ?X ?Y WHERE { ?X a ub:Course . ?X ub:name ?Y }",
    ),
    (
        "L3",
        "SELECT ?X ?Y ?Z WHERE { ?X ub:undergraduateDegreeFrom ?Y . ?X a ub:UndergraduateStudent . \
         ?X ub:memberOf ?Z . ?Z a ub:Department . ?Z ub:subOrganizationOf ?Y . ?Y a ub:University }",
    ),
    (
        "L4",
        "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE { ?X ub:worksFor <http://www.Department0.University0.edu> . \
         ?X a ub:FullProfessor . ?X ub:name ?Y1 . ?X ub:emailAddress ?Y2 . ?X ub:telephone ?Y3 }",
    ),
    (
        "L5",
        "SELECT ?X WHERE { ?X ub:subOrganizationOf <http://www.Department0.University0.edu> . \
         ?X a ub:ResearchGroup }",
    ),
    (
        "L6",
        "SELECT ?X ?Y WHERE { ?Y ub:subOrganizationOf <http://www.University0.edu> . \
         ?Y a ub:Department . ?X ub:worksFor ?Y . ?X a ub:FullProfessor }",
    ),
    (
        "L7",
        "SELECT ?X ?Y ?Z WHERE { ?Y a ub:FullProfessor . ?X ub:advisor ?Y . \
         ?X a ub:UndergraduateStudent . ?X ub:takesCourse ?Z . ?Z a ub:Course . ?Y ub:teacherOf ?Z }",
    ),
    (
        "q10",
        "SELECT ?X ?Y WHERE { ?X a ub:UndergraduateStudent . \
         ?X ?Y <http://www.Department3.University0.edu/FullProfessor1> }",
    ),
    (
        "q11",
        "SELECT ?X WHERE { <http://www.Department7.University0.edu/UndergraduateStudent201> ?X \
         <http://www.Department7.University0.edu> }",
    ),
    (
        "q12",
        "SELECT ?X ?Y WHERE { ?Y ub:subOrganizationOf <http://www.University0.edu> . \
         ?X ub:worksFor ?Y . ?Z ub:advisor ?X }",
    ),
    (
        "q8",
        "SELECT ?X ?P ?D WHERE { ?D ub:subOrganizationOf <http://www.University0.edu> . ?X ?P ?D }",
    ),
    (
        "q9",
        "SELECT ?X ?P WHERE { ?X ?P <http://www.Department0.University0.edu> }",
    ),
    ("all", "SELECT * WHERE { ?s ?p ?o }"),
    (
        "count",
        "SELECT (COUNT(*) AS ?n) WHERE { ?x ub:memberOf ?d . ?x ub:takesCourse ?c }",
    ),
];

fn main() {
    if let Err(e) = run() {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

fn run() -> jindou_model::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut dir = None;
    let (mut threads, mut repeat, mut profile, mut names) = (1, 11, false, Vec::new());
    while let Some(a) = args.next() {
        match a.as_str() {
            "--threads" => threads = args.next().and_then(|t| t.parse().ok()).unwrap_or(1),
            "--repeat" => repeat = args.next().and_then(|t| t.parse().ok()).unwrap_or(11),
            "--profile" => profile = true,
            _ if dir.is_none() => dir = Some(a),
            _ => names.push(a),
        }
    }
    let Some(dir) = dir else {
        eprintln!("explore_bench DIR [--threads T] [--repeat R] [--profile] [NAME…]");
        std::process::exit(2);
    };
    let snapshot = Snapshot::of_base(open(Path::new(&dir))?);
    println!(
        "{:<6} {:>12} {:>10} {:>12} {:>12} {:>9}  checksum",
        "query", "rows", "plan µs", "min µs", "median µs", "ns/row"
    );
    for (name, text) in QUERIES {
        if !names.is_empty() && !names.iter().any(|n| n == name)
            || names.is_empty() && name == "all"
        {
            continue;
        }
        let query = parse(&format!("{PREFIXES}{text}"))?;
        let clock = Instant::now();
        let plan = plan(&query, &snapshot, &PlanOptions::default())?;
        let plan_time = clock.elapsed();
        let options = ExecOptions {
            threads,
            profile,
            ..ExecOptions::default()
        };
        let mut times: Vec<Duration> = Vec::new();
        let mut last = ChecksumSink::default();
        let mut steps = vec![];
        let inner = if plan.cost < 100_000.0 { 200 } else { 1 };
        for _ in 0..repeat {
            let clock = Instant::now();
            for _ in 0..inner {
                let sink = Summed::<ChecksumSink>::default();
                let terms = QueryTerms::new();
                let p = execute(&plan, &snapshot, &options, &terms, &sink)?;
                last = sink.into_inner();
                steps = p.steps().to_vec();
            }
            times.push(clock.elapsed() / inner);
        }
        times.sort();
        let (min, median) = (times[0], times[times.len() / 2]);
        println!(
            "{name:<6} {:>12} {:>10.0} {:>12.1} {:>12.1} {:>9.1}  {:016x}",
            last.rows,
            plan_time.as_secs_f64() * 1e6,
            min.as_secs_f64() * 1e6,
            median.as_secs_f64() * 1e6,
            min.as_secs_f64() * 1e9 / last.rows.max(1) as f64,
            last.checksum
        );
        if profile {
            println!("{}", explain(&plan, &snapshot));
            for (i, s) in steps.iter().enumerate() {
                println!(
                    "    step {i}: {:>11} in {:>11} out {:>10.1} µs {:>12} bytes",
                    s.rows_in,
                    s.rows_out,
                    s.time.as_secs_f64() * 1e6,
                    s.bytes
                );
            }
        }
    }
    Ok(())
}
