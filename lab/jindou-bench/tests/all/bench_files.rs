//! Tests of `jindou bench files`, `jindou generate` and `jindou peers` that need no other engine.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str], more: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jindou-bench"))
        .args(arguments)
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two files in two syntaxes, one with a named graph, and two queries.
fn inputs(dir: &Path) {
    fs::write(
        dir.join("a.ttl"),
        "@prefix : <http://e/> . :a :p :b , \"x\\u00e9\"@EN ; :q 1 . _:n :p _:n .",
    )
    .unwrap();
    fs::write(
        dir.join("b.nq"),
        "_:n <http://e/p> <http://e/c> <http://e/g> .\n",
    )
    .unwrap();
    fs::create_dir(dir.join("queries")).unwrap();
    fs::write(
        dir.join("queries/q10.rq"),
        "SELECT * { ?s <http://e/p> ?o }",
    )
    .unwrap();
    fs::write(dir.join("queries/q9.sparql"), "ASK { ?s <http://e/q> 1 }").unwrap();
    fs::write(dir.join("queries/readme.txt"), "no query").unwrap();
}

#[test]
fn any_data_and_queries_are_measured_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let at = |name: &str| dir.path().join(name);
    let o = bench(
        &["files", "--jindou", "inproc", "--rounds", "1"],
        &[
            &at("a.ttl"),
            &at("b.nq"),
            Path::new("--queries"),
            &at("queries"),
            Path::new("--work"),
            &at("work"),
            Path::new("--json"),
            &at("out.json"),
        ],
    );
    assert!(o.status.success(), "{}", text(&o.stderr));
    let table = text(&o.stdout);
    assert!(table.contains("NOT over HTTP"), "{table}");
    let (q9, q10) = (table.find("\nq9 ").unwrap(), table.find("\nq10 ").unwrap());
    assert!(q9 < q10, "{table}");
    assert!(text(&o.stderr).contains("1 statements of named graphs were merged"));
    // Blank nodes of two files stay different, and the output is canonical N-Triples.
    let data = fs::read_to_string(at("work/data.nt")).unwrap();
    assert_eq!(data.lines().count(), 5, "{data}");
    assert!(
        data.contains("<http://e/a> <http://e/p> \"xé\"@en ."),
        "{data}"
    );
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("out.json")).unwrap()).unwrap();
    assert_eq!(report["data"]["statements"], 5);
    assert_eq!(report["queries"][1]["answers"][0]["seen"]["rows"], 4);
    assert!(
        report["queries"][1]["answers"][0]["times_ms"][0]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(report["engines"][0]["loaded"]["disk"].as_u64().unwrap() > 1000);
    let o = bench(&["peers", "show"], &[&at("out.json")]);
    assert_eq!(text(&o.stdout), table);
}

/// QLever's programs: Jindou behind their options.
fn stand_in_for_qlever(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let own = Path::new(env!("CARGO_BIN_EXE_jindou-bench")).with_file_name("jindou");
    let own = own.display();
    let index = format!(
        r#"test "$1 $3 $4 $5 $7" = "-i -F nt -f --stxxl-memory" || exit 9
case $8 in *[0-9]MB) ;; *) exit 9 ;; esac
exec {own} load --quiet --store "$2.store" "$6""#
    );
    let server = format!(
        r#"if [ "$1" = --version ]; then echo QLever 0.5.38; exit; fi
test "$1 $3 $5 $7 $9 ${{10}} ${{11}} ${{12}}" = "-i -p -m -j -k 0 -s 3600s" || exit 9
exec {own} serve --store "$2.store" --port "$4""#
    );
    fs::create_dir(folder).unwrap();
    for (name, script) in [("qlever-index", index), ("qlever-server", server)] {
        fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join(name), mode).unwrap();
    }
}

#[test]
fn a_qlever_that_the_user_built_is_compared_with() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let at = |name: &str| dir.path().join(name);
    let run = |folder: &Path| {
        let peers = format!("qlever={}", folder.display());
        let arguments = ["files", "--rounds", "1", "--peers", &*peers, "--json"];
        let data = [
            at("out.json"),
            at("a.ttl"),
            at("b.nq"),
            "--queries".into(),
            at("queries"),
        ];
        bench(&arguments, &data.each_ref().map(|path| &**path))
    };
    let e = text(&run(dir.path()).stderr);
    assert!(e.contains("has no qlever-index and qlever-server"), "{e}");
    stand_in_for_qlever(&at("qlever"));
    let o = run(&at("qlever"));
    assert!(o.status.success(), "{}", text(&o.stderr));
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("out.json")).unwrap()).unwrap();
    let engine = &report["engines"][1];
    assert_eq!(engine["about"]["name"], "qlever", "{engine}");
    assert_eq!(engine["about"]["version"], "QLever 0.5.38");
    let answers = &report["queries"][1]["answers"];
    assert_eq!(answers[1]["seen"], answers[0]["seen"]);
    assert_eq!(answers[1]["seen"]["rows"], 4);
}

#[test]
fn what_is_missing_is_said_in_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let data = dir.path().join("a.ttl");
    let queries = dir.path().join("queries");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let files = |queries: &Path, peers: &str| {
        let o = bench(
            &["files", "--peers", peers, "--engines"],
            &[&empty, &data, Path::new("--queries"), queries],
        );
        assert_eq!(o.status.code(), Some(1));
        text(&o.stderr)
    };
    let e = files(&queries, "oxigraph");
    assert!(e.contains("jindou peers install oxigraph"), "{e}");
    let e = files(&queries, "oxigraf");
    assert!(e.contains("oxigraf") && e.contains("virtuoso"), "{e}");
    let e = files(&empty, "oxigraph");
    assert!(e.contains("*.rq"), "{e}");
    let o = bench(&["peers", "list", "--into"], &[&empty]);
    assert_eq!(text(&o.stdout).matches("not installed").count(), 4);
    let o = bench(&["peers", "install", "nosuch", "--into"], &[&empty]);
    assert!(text(&o.stderr).contains("nosuch"), "{}", text(&o.stderr));
}

#[test]
fn generated_data_and_queries_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let o = bench(&["generate", "lubm", "-n", "1", "--out"], &[&at("d.nt")]);
    assert!(o.status.success());
    assert_eq!(text(&o.stderr), "103074 statements\n");
    let lines = fs::read_to_string(at("d.nt")).unwrap().lines().count();
    assert_eq!(lines, 103_074);
    let o = bench(
        &["generate", "watdiv-queries", "-n", "1", "--out"],
        &[&at("q")],
    );
    assert!(o.status.success());
    assert!(at("q/L1-4.rq").is_file());
}
