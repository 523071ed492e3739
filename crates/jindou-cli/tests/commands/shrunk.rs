//! A server whose store's files are cut: it lives, and says which file it was.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(store: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .args(["serve", "--port", "0", "--log-level", "error", "--writable"])
            .args(["--verify", "off", "--store"])
            .arg(store)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_else(|| panic!("no address in: {line}"))
            .to_owned();
        Self { child, address }
    }

    /// A status line with everything after it.
    fn post(&self, path: &str, kind: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/csv\r\nconnection: close\r\ncontent-type: application/sparql-{kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn query(&self, body: &str) -> String {
        self.post("/query", "query", body)
    }

    fn insert(&self, i: u32) -> String {
        let body = format!("INSERT DATA {{ <http://e/new{i}> <http://e/q> {i} }}");
        self.post("/update", "update", &body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let data = folder.path().join("data.nt");
    std::fs::write(&data, text).unwrap();
    let store = folder.path().join("store");
    let loaded = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .args(["load", "--quiet", "--store"])
        .args([&store, &data])
        .status()
        .unwrap();
    assert!(loaded.success());
    let right = (N * "number 000000".len()).to_string();
    let is = |answer: &str, status: &str, with: &str| {
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(with),
            "{answer}"
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
        let mut served = Served::start(&store);
        is(&served.query(NAMES), "200", &right);
        let round = u32::try_from(round).unwrap();
        is(&served.insert(round), "2", "");
        let open = std::fs::OpenOptions::new().write(true).open(&path);
        open.unwrap().set_len(good.len() as u64 / 2).unwrap();
        for _ in 0..3 {
            let refused = served.query(NAMES);
            is(&refused, "500", file);
            is(&refused, "500", "has shrunk");
            is(&served.insert(100), "500", file);
        }
        assert!(served.child.try_wait().unwrap().is_none(), "it has ended");
        drop(served);
        std::fs::write(&path, &good).unwrap();
        let served = Served::start(&store);
        is(&served.query(NAMES), "200", &right);
        is(&served.query(NEW), "200", &format!("{}", round + 1));
    }
}
