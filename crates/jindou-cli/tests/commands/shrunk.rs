//! The files of a store are truncated while a server uses them: the server keeps running, and names the damaged file.

use jindou_testing::Served;
use jindou_testing::http::{Answer, request};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn start(store: &Path) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command
        .args(["serve", "--port", "0", "--log-level", "error", "--writable"])
        .args(["--verify", "off", "--store"])
        .arg(store);
    Served::start(command.stderr(Stdio::null()))
}

fn post(served: &Served, path: &str, kind: &str, body: &str) -> Answer {
    let kind = format!("application/sparql-{kind}");
    let headers = [("accept", "text/csv"), ("content-type", &*kind)];
    request(served.address, "POST", path, &headers, body.as_bytes())
}

fn query(served: &Served, body: &str) -> Answer {
    post(served, "/query", "query", body)
}

fn insert(served: &Served, i: u32) -> Answer {
    let body = format!("INSERT DATA {{ <http://e/new{i}> <http://e/q> {i} }}");
    post(served, "/update", "update", &body)
}

const N: usize = 5000;
const NAMES: &str = "SELECT (SUM(STRLEN(?n)) AS ?sum) { ?s <http://e/name> ?n }";
const NEW: &str = "SELECT (COUNT(*) AS ?sum) { ?s <http://e/q> ?n }";

#[test]
fn a_server_outlives_files_that_shrink() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for i in 0..N {
        writeln!(text, "<http://e/{i}> <http://e/name> \"number {i:06}\" .").unwrap();
    }
    std::fs::write(folder.path().join("data.nt"), text).unwrap();
    let store = folder.path().join("store");
    let load = ["load", "--quiet", "--store", "store", "data.nt"];
    super::run::good(folder.path(), &load);
    let right = (N * "number 000000".len()).to_string();
    let is = |answer: &Answer, status: u16, with: &str| {
        assert!(
            answer.status == status && answer.text().contains(with),
            "{answer:?}"
        );
    };
    for (round, file) in [
        "segments-out.jd",
        "segments-in.jd",
        "strings.jd",
        "dictionary.jd",
    ]
    .into_iter()
    .enumerate()
    {
        let path = store.join(file);
        let good = std::fs::read(&path).unwrap();
        let mut served = start(&store);
        is(&query(&served, NAMES), 200, &right);
        let round = u32::try_from(round).unwrap();
        is(&insert(&served, round), 200, "");
        let open = std::fs::OpenOptions::new().write(true).open(&path);
        open.unwrap().set_len(good.len() as u64 / 2).unwrap();
        for _ in 0..3 {
            let refused = query(&served, NAMES);
            is(&refused, 500, file);
            is(&refused, 500, "has shrunk");
            is(&insert(&served, 100), 500, file);
        }
        assert!(served.is_alive(), "it has ended");
        drop(served);
        std::fs::write(&path, &good).unwrap();
        let served = start(&store);
        is(&query(&served, NAMES), 200, &right);
        is(&query(&served, NEW), 200, &format!("{}", round + 1));
    }
}
