//! Prefixes that data declares, and those that are set: known to queries, written by dumps, kept by all that keeps a store.

use super::run::{bad, good, run};
use std::path::Path;

const PLANETS: &str = "@prefix acme: <http://acme.example/terms#> .\n@prefix : <http://acme.example/d/> .\n\
    :mars a acme:Planet ; acme:moons 2 .\n:earth a acme:Planet ; acme:moons 1 .\n";

#[test]
fn documents_declare_the_prefixes_that_they_use() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let mut text: String = (0..300)
        .map(|n| format!("@prefix p{n}: <http://e/{n}/> .\n"))
        .collect();
    text += "@prefix own: <http://xmlns.com/foaf/0.1/> .\n";
    for n in 0..20_000 {
        text += &format!("p7:s{n} own:age {n} .\n");
    }
    text += "p7:x p280:p p290:o .\n";
    std::fs::write(at.join("many.ttl"), &text).unwrap();
    good(at, &["load", "-q", "--store", "s", "many.ttl"]);
    let mine = "mine=http://mine/";
    for args in [
        &["dump", "--store", "s", "--to", "ttl"][..],
        &["convert", "many.ttl", "--to", "ttl"],
        &["convert", "many.ttl", "--to", "ttl", "--prefix", mine],
    ] {
        let text = good(at, args);
        let mut names: Vec<&str> = (text.lines())
            .filter_map(|l| l.strip_prefix("@prefix ")?.split(':').next())
            .collect();
        names.sort_unstable();
        let wanted: &[&str] = match args.len() {
            6 => &["mine", "own", "p280", "p290", "p7"],
            _ => &["own", "p280", "p290", "p7"],
        };
        assert_eq!(names, wanted, "{args:?}");
        let again = at.join("again.ttl");
        std::fs::write(&again, &text).unwrap();
        let lines = good(at, &["convert", "again.ttl", "--to", "nt"]);
        assert_eq!(lines.lines().count(), 20_001, "{args:?}");
    }
}

/// Names of XML need not be prefixes of Turtle.
#[test]
fn names_of_xml_that_are_no_prefixes_are_not_declared() {
    let t = tempfile::tempdir().unwrap();
    let rdf = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:_x='http://e/' xmlns:_='http://f/' xmlns:y='http://g/'>\
        <r:Description r:about='http://e/s' _x:p='1' _:p='2' y:p='3'/></r:RDF>";
    std::fs::write(t.path().join("a.rdf"), rdf).unwrap();
    let text = good(t.path(), &["convert", "a.rdf", "--to", "ttl"]);
    assert!(
        text.contains("@prefix y: <http://g/> .\n") && !text.contains("@prefix _"),
        "{text}"
    );
    std::fs::write(t.path().join("a.ttl"), &text).unwrap();
    let lines = good(t.path(), &["convert", "a.ttl", "--to", "nt"]);
    assert_eq!(lines.lines().count(), 3, "{lines}");
}

/// Words of the lines of a list: prefix, IRI, origin.
fn list(folder: &Path, store: &str) -> Vec<String> {
    let text = good(folder, &["prefixes", "--store", store]);
    let words = |l: &str| l.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

fn set(folder: &Path, name: &str, iri: &str) {
    good(folder, &["prefixes", "--store", "s", "set", name, iri]);
}

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?x a acme:Planet ; acme:moons ?m }";

fn count(folder: &Path, store: &str) -> String {
    let args = ["query", "--store", store, "--format", "csv", COUNT];
    good(folder, &args).lines().nth(1).unwrap().to_owned()
}

#[test]
fn prefixes_of_the_data_are_known_and_kept() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    std::fs::write(at.join("planets.ttl"), PLANETS).unwrap();
    good(at, &["load", "-q", "--store", "s", "planets.ttl"]);
    let data = [
        ": <http://acme.example/d/> data",
        "acme: <http://acme.example/terms#> data",
    ];
    assert_eq!(list(at, "s"), data);
    assert_eq!(count(at, "s"), "2");
    // Strict SPARQL, and what is near.
    let err = bad(at, &["query", "--store", "s", "--no-prefixes", COUNT]);
    assert!(err.contains("the prefix acme: is not declared"), "{err}");
    let err = bad(at, &["query", "--store", "s", "ASK { ?x a acne:Planet }"]);
    assert!(err.contains("did you mean acme:?"), "{err}");
    // A table, a graph and a dump are written with them.
    let moons = "SELECT ?x { ?x acme:moons 2 }";
    let table = good(at, &["query", "--store", "s", "--format", "table", moons]);
    assert!(
        table.contains(":mars") && !table.contains("http"),
        "{table}"
    );
    let construct = "CONSTRUCT { ?x acme:has ?m } { ?x acme:moons ?m }";
    let graph = good(at, &["query", "--store", "s", "--format", "ttl", construct]);
    assert!(
        graph.contains("@prefix acme: <http://acme.example/terms#>"),
        "{graph}"
    );
    assert!(graph.contains(":mars acme:has 2"), "{graph}");
    let dump = good(
        at,
        &[
            "dump",
            "--store",
            "s",
            "--to",
            "ttl",
            "--out",
            "-",
            "--default-graph",
        ],
    );
    assert!(
        dump.contains("@prefix acme: <http://acme.example/terms#>"),
        "{dump}"
    );
    assert!(
        dump.contains("\n:mars ") && dump.contains("a acme:Planet"),
        "{dump}"
    );

    // What is set wins over the data; what a query declares wins over all.
    set(at, "acme", "http://other.example/");
    assert_eq!(count(at, "s"), "0");
    let own = format!("PREFIX acme: <http://acme.example/terms#> {COUNT}");
    let counted = good(at, &["query", "--store", "s", "--format", "csv", &own]);
    assert!(counted.contains('2'), "{counted}");
    assert_eq!(list(at, "s")[1], "acme: <http://other.example/> set");
    let shown = good(at, &["prefixes", "--store", "s", "remove", "acme:"]);
    assert!(
        shown.contains("<http://acme.example/terms#> data"),
        "{shown}"
    );
    assert_eq!(
        (list(at, "s"), count(at, "s")),
        (data.map(str::to_owned).to_vec(), "2".into())
    );
    let err = bad(at, &["prefixes", "--store", "s", "remove", "nothing"]);
    assert!(err.contains("the store has no prefix nothing:"), "{err}");
    let err = bad(at, &["prefixes", "--store", "s", "remove", "foaf"]);
    assert!(err.contains("foaf: is a common one"), "{err}");
    for (name, iri) in [("1x", "http://e/"), ("x", "nowhere")] {
        let err = bad(at, &["prefixes", "--store", "s", "set", name, iri]);
        assert!(err.contains("is not "), "{err}");
    }

    // A document that an update loads brings its own; an update that fails brings none.
    let xml = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:zoo='http://zoo.example/' xmlns:acme='http://late.example/'>\
        <rdf:Description rdf:about='http://zoo.example/leo'><zoo:legs>4</zoo:legs></rdf:Description></rdf:RDF>";
    std::fs::write(at.join("zoo.rdf"), xml).unwrap();
    let file = format!(
        "<file://{}>",
        at.join("zoo.rdf").canonicalize().unwrap().display()
    );
    let fails = format!("LOAD {file} ; CREATE GRAPH <http://e/g> ; LOAD <file:///nowhere.ttl>");
    bad(at, &["update", "--store", "s", "--load-from", ".", &fails]);
    assert_eq!(list(at, "s"), data);
    good(
        at,
        &[
            "update",
            "--store",
            "s",
            "--load-from",
            ".",
            &format!("LOAD {file}"),
        ],
    );
    set(at, "mine", "<http://mine.example/>");
    let all = [
        ": <http://acme.example/d/> data",
        "acme: <http://acme.example/terms#> data",
        "mine: <http://mine.example/> set",
        "rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> data",
        "zoo: <http://zoo.example/> data",
    ];
    assert_eq!(list(at, "s"), all);
    good(at, &["check", "--store", "s"]);
    good(at, &["backup", "--store", "s", "--to", "before"]);
    good(at, &["merge", "--store", "s"]);
    assert_eq!(list(at, "s"), all);
    good(at, &["check", "--store", "s"]);
    good(at, &["prefixes", "--store", "s", "remove", "zoo"]);
    good(at, &["recluster", "-q", "--store", "s"]);
    good(at, &["check", "--store", "s"]);
    assert_eq!(list(at, "s").len(), 4);
    set(at, "zoo", "http://zoo.example/");
    good(at, &["backup", "--store", "s", "--to", "after"]);
    for (folder, origin) in [("before", "data"), ("after", "set")] {
        good(at, &["restore", "--from", folder, "--store", "r"]);
        assert_eq!(
            list(at, "r")[4],
            format!("zoo: <http://zoo.example/> {origin}")
        );
        assert_eq!(count(at, "r"), "2");
        std::fs::remove_dir_all(at.join("r")).unwrap();
    }
    let json = good(at, &["prefixes", "--store", "s", "--json", "--all"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |name: &str| {
        let all = json["prefixes"].as_array().unwrap();
        all.iter().find(|p| p["prefix"] == name).unwrap()["from"].clone()
    };
    assert_eq!(
        [of("zoo"), of("rdf"), of("foaf")],
        ["set", "data", "common"]
    );
}

#[test]
fn shards_know_the_prefixes_of_their_data() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    std::fs::write(at.join("planets.ttl"), PLANETS).unwrap();
    good(
        at,
        &["load", "-q", "--shards", "3", "--store", "s", "planets.ttl"],
    );
    assert_eq!(list(at, "s").len(), 2);
    assert_eq!(count(at, "s"), "2");
    good(at, &["check", "--store", "s"]);
}

#[test]
fn the_first_of_several_files_wins_and_too_many_are_left_out() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    for n in 1..5 {
        let text =
            format!("@prefix a: <http://a{n}/> .\n@prefix b{n}: <http://b/> .\na:s a:p a:o .\n");
        std::fs::write(at.join(format!("{n}.ttl")), text).unwrap();
    }
    good(
        at,
        &[
            "load", "-q", "--store", "s", "1.ttl", "2.ttl", "3.ttl", "4.ttl",
        ],
    );
    assert_eq!(list(at, "s")[0], "a: <http://a1/> data");
    let mut many = String::new();
    for n in 0..50_000 {
        many.push_str(&format!("@prefix p{n:05}: <http://e/{n}/> .\n"));
    }
    many.push_str("<http://e/s> <http://e/p> 1 .\n");
    std::fs::write(at.join("many.ttl"), many).unwrap();
    let o = run(at, &["load", "-q", "--store", "m", "many.ttl"]);
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(err.contains("more prefixes than a store keeps"), "{err}");
    assert_eq!(list(at, "m").len(), 4096);
    good(at, &["check", "--store", "m"]);
}

#[test]
fn damage_of_the_file_is_found() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    std::fs::write(at.join("planets.ttl"), PLANETS).unwrap();
    good(at, &["load", "-q", "--store", "s", "planets.ttl"]);
    let file = at.join("s/prefixes.jd");
    let text = std::fs::read_to_string(&file).unwrap();
    for bad_text in [
        text.replace("acme:", "acne:").replace("acme ", "acne "),
        String::new(),
    ] {
        std::fs::write(&file, &bad_text).unwrap();
        let err = bad(at, &["check", "--store", "s"]);
        let o = run(at, &["check", "--store", "s"]);
        let told = err + &String::from_utf8_lossy(&o.stdout);
        assert!(told.contains("prefixes.jd"), "{told}");
        let err = bad(at, &["query", "--store", "s", COUNT]);
        assert!(err.contains("prefixes.jd"), "{err}");
    }
    std::fs::remove_file(&file).unwrap();
    bad(at, &["check", "--store", "s"]);
    bad(at, &["query", "--store", "s", COUNT]);
    std::fs::write(&file, text).unwrap();
    good(at, &["check", "--store", "s"]);
    assert_eq!(count(at, "s"), "2");
}
