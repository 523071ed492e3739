//! Tests of the output of `jindou bench papers`, and of its checks of answers.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn papers(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jindou-bench"))
        .arg("papers")
        .args(args)
        .output()
        .unwrap()
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn json(o: &Output) -> Value {
    serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", err(o)))
}

/// The sheet whose title begins with `title`.
fn sheet<'a>(report: &'a Value, title: &str) -> &'a Value {
    let sheets = report["sheets"].as_array().unwrap();
    let mut found = sheets
        .iter()
        .filter(|s| s["title"].as_str().unwrap().starts_with(title));
    found.next().unwrap_or_else(|| panic!("no {title}"))
}

fn rows(sheet: &Value) -> &Vec<Value> {
    sheet["rows"].as_array().unwrap()
}

#[test]
fn lubm_tables_and_figures_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let stores = folder.path().join("stores");
    let args = ["-n", "5", "--repeat", "1", "--threads", "2", "--json"];
    let store = ["--store", stores.to_str().unwrap()];
    let o = papers(&[&args[..], &store].concat());
    assert_eq!(o.status.code(), Some(0), "{}", err(&o));
    let report = json(&o);
    assert_eq!(report["universities"], 5);
    assert!(report["machine"].as_str().unwrap().contains("cores"));

    let table = sheet(&report, "Table 2");
    let queries = rows(table);
    assert_eq!(queries.len(), 8, "L1 to L7 and the mean");
    // Published values from Table 2 of OSDI '16, and numbers of rows on LUBM-5 that were not counted by Jindou.
    for (i, name, rows, wukong) in [
        (0, "L1", 9, 752.0),
        (2, "L3", 0, 306.0),
        (3, "L4", 10, 0.19),
        (6, "L7", 213, 671.0),
    ] {
        assert_eq!(queries[i]["query"], name);
        assert_eq!(queries[i]["rows"], rows);
        assert_eq!(queries[i]["Wukong"], wukong);
        for column in ["exec ms", "plan ms", "whole ms"] {
            assert!(
                queries[i][column].as_f64().unwrap() > 0.0,
                "{name} {column}"
            );
        }
    }
    assert_eq!(queries[0]["BitMat"], Value::Null, "it gave up");

    let threads = sheet(&report, "Figure 14");
    assert_eq!(rows(threads).len(), 7);
    assert!(rows(threads)[0]["2 threads ms"].as_f64().unwrap() > 0.0);

    let sizes = sheet(&report, "Figure 16");
    for size in ["LUBM-1", "LUBM-5"] {
        assert!(rows(sizes)[1][size].as_f64().unwrap() > 0.0);
    }
    let slope = rows(sizes)[3]["slope of rows"].as_f64().unwrap();
    assert!(slope.abs() < 1e-9, "L4 has ten rows at every size");
    let slope = rows(sizes)[1]["slope of rows"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&slope), "L2 grows as the data: {slope}");

    let memory = sheet(&report, "Figure 21");
    let bytes = |part: &str| {
        let found = rows(memory).iter().find(|r| r["part"] == part);
        found.unwrap_or_else(|| panic!("no {part}"))["bytes"]
            .as_u64()
            .unwrap()
    };
    let on_disk: u64 = std::fs::read_dir(stores.join("lubm-5"))
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| {
            // The last two belong to updates, of which there were none.
            !["manifest.jd", "checksums.jd", "lock", "log"]
                .iter()
                .any(|n| e.file_name() == **n)
        })
        .map(|e| e.metadata().unwrap().len())
        .sum();
    assert_eq!(bytes("= all files"), on_disk);
    let parts: u64 = rows(memory)
        .iter()
        .take_while(|r| !r["part"].as_str().unwrap().starts_with('='))
        .map(|r| r["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(parts, on_disk, "the parts are the whole");
    assert!(bytes("= without strings and dictionary") < on_disk);

    // Existing stores are reused, but one with other data is refused.
    std::fs::rename(stores.join("lubm-1"), stores.join("lubm-10")).unwrap();
    let o = papers(&[&["--table", "2", "-n", "10"][..], &store].concat());
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains("LUBM(10)"), "{}", err(&o));
}

/// Data of six people, three of whom have a page, as the first query of table 8 asks for; and queries.
fn small(folder: &Path) -> (PathBuf, PathBuf) {
    let data = folder.join("data.nt");
    let mut text = String::new();
    for i in 0..6 {
        text += &format!("<http://e/{i}> <http://e/type> <http://e/Person> .\n");
        if i % 2 == 0 {
            text += &format!("<http://e/{i}> <http://e/page> <http://e/page{i}> .\n");
        }
    }
    std::fs::write(&data, text).unwrap();
    let queries = folder.join("queries");
    std::fs::create_dir(&queries).unwrap();
    for i in 1..=5 {
        let text = "SELECT * { ?p <http://e/type> <http://e/Person> ; <http://e/page> ?u }";
        std::fs::write(queries.join(format!("q{i}")), text).unwrap();
    }
    (data, queries)
}

#[test]
fn other_tables_take_the_users_data() {
    let folder = tempfile::tempdir().unwrap();
    let (data, queries) = small(folder.path());
    let counts = folder.path().join("counts.tsv");
    let (data, queries) = (data.to_str().unwrap(), queries.to_str().unwrap());
    let ask = |counted: &str, more: &[&str]| {
        std::fs::write(&counts, counted).unwrap();
        let mut args = vec!["--table", "8", "--data", data, "--queries", queries];
        args.extend(["--repeat", "1", "--json", "--counts"]);
        args.push(counts.to_str().unwrap());
        args.extend(more);
        papers(&args)
    };
    let o = ask("query\trows\nq1\t3\n", &[]);
    assert_eq!(o.status.code(), Some(0), "{}", err(&o));
    let report = json(&o);
    let table = sheet(&report, "Table 8");
    assert_eq!(rows(table)[0]["query"], "D1");
    assert_eq!(rows(table)[0]["rows"], 3);
    assert_eq!(rows(table)[0]["Wukong"], 1.75);
    assert_eq!(rows(table)[5]["Wukong"], 1.16);
    assert!(table["notes"][0].as_str().unwrap().contains("4 of 5"));
    let o = ask("query\trows\nq1\t4\n", &[]);
    assert_eq!(o.status.code(), Some(3));
    assert!(
        err(&o).contains("WRONG ANSWER q1: 3 rows, 4"),
        "{}",
        err(&o)
    );
    let o = ask("query\trows\nq1 4\n", &[]);
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains("line 2"), "{}", err(&o));
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (data, queries) = small(folder.path());
    let (data, queries) = (data.to_str().unwrap(), queries.to_str().unwrap());
    for (args, words) in [
        (&["--table", "7"][..], "--data"),
        (&["--table", "8", "--data", data], "--queries"),
        (&["--data", data, "--queries", queries], "--table"),
        (
            &["--table", "9", "--data", data, "--queries", queries],
            "holds 5 queries",
        ),
        (
            &["--table", "7", "--data", data, "--queries", queries],
            "L1 to L5",
        ),
        (
            &["--table", "8", "--data", data, "--queries", "/nowhere"],
            "/nowhere",
        ),
    ] {
        let o = papers(args);
        assert_eq!(o.status.code(), Some(1), "{args:?}: {}", err(&o));
        let e = err(&o);
        assert!(e.contains(words) && e.lines().count() == 1, "{args:?}: {e}");
    }
}

#[test]
fn watdivs_given_counts_are_those_of_table_7() {
    let Some(folder) = jindou_testing::shared("workloads/watdiv/sf10") else {
        return;
    };
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let files = [
        "watdiv-sf10-seed1024.nt.gz",
        "queries",
        "expected-counts-sf10.tsv",
    ];
    let paths = files.map(path);
    let [data, queries, counts] = paths.each_ref().map(String::as_str);
    let mut args = vec!["--table", "7", "--data", data, "--queries", queries];
    args.extend(["--counts", counts, "--repeat", "1", "--json"]);
    let o = papers(&args);
    assert_eq!(o.status.code(), Some(0), "{}", err(&o));
    let report = json(&o);
    let table = sheet(&report, "Table 7");
    let notes = table["notes"].as_array().unwrap();
    assert!(
        !notes
            .iter()
            .any(|n| n.as_str().unwrap().contains("not checked")),
        "{notes:?}"
    );
    assert_eq!(rows(table).len(), 20 + 4, "templates and groups");
    let linear = rows(table).iter().find(|r| r["query"] == "Geo. M L1-L5");
    assert_eq!(linear.unwrap()["TriAD"], 4.5);
}
