//! Queries on a device, as users run them, with the shim in place of a GPU. Answers must be the same as without it, and
//! profiles must say where each step ran. Light queries stay on the CPU even with `--gpu on`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

fn jindou(args: &[&str], store: &Path, query: Option<&str>, device: &str) -> (String, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .args(args)
        .arg("--store")
        .arg(store)
        .args(query)
        .env("JINDOU_GPU", device)
        .output()
        .unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    assert!(
        o.status.success(),
        "{args:?} {query:?}: {}",
        text(&o.stderr)
    );
    (text(&o.stdout), text(&o.stderr))
}

/// Number of nodes with which the queries are heavy.
const NODES: u32 = 20_000;

#[test]
fn answers_do_not_depend_on_the_device_and_profiles_name_it() {
    let t = tempfile::tempdir().unwrap();
    let (store, file) = (t.path().join("store"), t.path().join("data.ttl"));
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..NODES {
        let (a, b) = (i * 7 % NODES, i * 13 % NODES);
        writeln!(text, ":n{i} :p :n{a}, :n{b} ; :v {i} ; a :C{} .", i % 3).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    jindou(
        &["load", "--quiet", file.to_str().unwrap()],
        &store,
        None,
        "off",
    );
    let mut heavy = 0;
    // Each query, and whether some of its steps run on the CPU.
    for (query, mixed) in [
        ("SELECT ?a ?c { ?a :p ?b . ?b :p ?c . ?a a :C1 }", false),
        ("SELECT ?x ?y ?b { :n3 ?x ?b . ?b ?y ?c }", false),
        ("SELECT ?s ?p ?o { ?s ?p ?o }", false),
        (
            "SELECT ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b a ?c } GROUP BY ?c",
            false,
        ),
        (
            "SELECT DISTINCT ?c { ?a :p ?b . ?b :p ?c } ORDER BY ?c LIMIT 20",
            false,
        ),
        (
            "SELECT ?a ?w { ?a :p ?b . ?b :v ?w . ?b :p ?c FILTER(?w > 280) }",
            true,
        ),
        ("ASK { ?a :p ?b . ?b :p ?a }", false),
    ] {
        let query = format!("PREFIX : <http://e/> {query}");
        let args = |gpu| ["query", "--format", "tsv", "--profile", "--gpu", gpu];
        let (want, _) = jindou(&args("off"), &store, Some(&query), "off");
        let (got, profile) = jindou(&args("on"), &store, Some(&query), "shim");
        let sorted = |s: &str| {
            let mut lines: Vec<String> = s.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&got), sorted(&want), "{query}");
        let there = profile
            .lines()
            .filter(|l| l.ends_with("through the shim"))
            .count();
        let here = profile
            .lines()
            .filter(|l| l.trim_start().starts_with("step ") && l.ends_with("  cpu"))
            .count();
        let (plan, _) = jindou(
            &["query", "--explain", "--gpu", "auto"],
            &store,
            Some(&query),
            "shim",
        );
        assert!(
            plan.contains("\ncpu: about ") && plan.contains("\ngpu: about "),
            "{query}: {plan}"
        );
        if plan.contains("chosen: the CPU, since the query is light") {
            assert!(there == 0 && here > 0, "{query}: {profile}");
            continue;
        }
        heavy += 1;
        assert!(there > 0 || mixed, "{query}: {profile}");
        assert!(here == 0 || mixed, "{query}: {profile}");
    }
    assert!(heavy >= 4, "{heavy} heavy queries");
}
