//! Two processes on one store: a server that only reads, and commands that change it meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn jindou(args: &[&str]) -> String {
    let o = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .args(args)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.success(), "{args:?}: {err}");
    String::from_utf8_lossy(&o.stdout).into_owned()
}

struct Served {
    child: Child,
    line: String,
    address: String,
}

impl Served {
    fn start(store: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .args(["serve", "--port", "0", "--log-level", "error", "--store"])
            .arg(store)
            .args(more)
            .stdout(Stdio::piped())
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
        Self {
            child,
            line,
            address,
        }
    }

    fn count(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let query = "SELECT%20(COUNT(*)%20AS%20%3Fn)%20%7B%3Fs%20%3Fp%20%3Fo%7D";
        write!(
            stream,
            "GET /query?query={query} HTTP/1.1\r\nhost: localhost\r\naccept: text/csv\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let digits = |l: &&str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_digit());
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        body.lines()
            .map(str::trim)
            .skip_while(|l| *l != "n")
            .find(digits)
            .and_then(|l| l.parse().ok())
            .unwrap_or_else(|| panic!("{answer}"))
    }

    /// Waits until the server answers that there are this many quads.
    fn shows(&self, quads: u64, after: &str) {
        let begun = Instant::now();
        loop {
            let now = self.count();
            if now == quads {
                return;
            }
            let waited = begun.elapsed();
            assert!(
                waited < Duration::from_secs(30),
                "{now} quads after {after}, not {quads}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_only_reads_shows_what_other_processes_change() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.nt");
    std::fs::write(&data, "<http://e/a> <http://e/p> <http://e/b> .\n").unwrap();
    let store = folder.path().join("store");
    let (store, data) = (store.to_str().unwrap(), data.to_str().unwrap());
    jindou(&["load", "--quiet", "--store", store, data]);
    let served = Served::start(Path::new(store), &[]);
    assert!(
        served.line.contains(" read-only at http://"),
        "{}",
        served.line
    );
    assert_eq!(served.count(), 1);
    let insert = |i: u32| {
        let text = format!(
            "INSERT DATA {{ <http://e/s{i}> <http://e/p> {i} . <http://e/s{i}> <http://e/q> <http://e/t{i}> }}"
        );
        jindou(&["update", "--store", store, &text]);
    };
    for i in 0..3 {
        insert(i);
        served.shows(3 + 2 * u64::from(i), "an update");
    }
    jindou(&["merge", "--store", store]);
    insert(10);
    served.shows(9, "a merge and an update");
    jindou(&[
        "update",
        "--store",
        store,
        "DELETE WHERE { ?s <http://e/q> ?o }",
    ]);
    served.shows(5, "a deletion");
    jindou(&["recluster", "--quiet", "--store", store]);
    insert(11);
    served.shows(7, "a reclustering and an update");
    jindou(&["load", "--quiet", "--replace", "--store", store, data]);
    served.shows(1, "another load");
    insert(12);
    served.shows(3, "an update of what was loaded");
    // And while another server writes.
    let writer = Served::start(Path::new(store), &["--writable"]);
    assert!(!writer.line.contains("read-only"), "{}", writer.line);
    let mut stream = TcpStream::connect(&writer.address).unwrap();
    let text = "INSERT DATA { <http://e/last> <http://e/p> 1 }";
    write!(
        stream,
        "POST /update HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-update\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    served.shows(4, "an update of another server");
}
