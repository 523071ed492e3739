//! A server under test: it serves a small store and gets requests over sockets. Its memory is read from the system.

use jindou_testing::{Served, http};
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The outcome of a request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status, or 0 if there was none (the connection broke).
    pub status: u16,
    pub took: Duration,
    /// The answer's first bytes.
    pub said: String,
}

pub struct Server {
    served: Served,
    _folder: tempfile::TempDir,
}

impl Deref for Server {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Served {
        &mut self.served
    }
}

fn program() -> PathBuf {
    std::env::var_os("JINDOU_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_jindou").into(), PathBuf::from)
}

impl Server {
    /// Starts a server that accepts updates, with a store of a few hundred statements.
    pub fn start(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (text, store) = (folder.path().join("data.nt"), folder.path().join("store"));
        let mut data = String::new();
        for i in 0..300 {
            let (a, b) = (i, (i * 7 + 1) % 300);
            data += &format!("<http://e/s{a}> <http://e/p{}> <http://e/s{b}> .\n", i % 5);
            data += &format!(
                "<http://e/s{a}> <http://e/n> \"{a}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"
            );
            data += &format!("<http://e/s{a}> <http://e/t> \"text {a}\" .\n");
        }
        std::fs::write(&text, data).expect("data");
        let loaded = Command::new(program())
            .args(["load", "--quiet", "--store"])
            .args([&store, &text])
            .status()
            .expect("jindou load");
        assert!(loaded.success());
        let mut command = Command::new(program());
        command
            .args([
                "serve",
                "--port",
                "0",
                "--writable",
                "--log-level",
                "error",
                "--store",
            ])
            .arg(&store)
            .args(more);
        Self {
            served: Served::start(&mut command),
            _folder: folder,
        }
    }

    /// Sends SIGTERM to the server, waits until it has exited, and returns the time that this took.
    pub fn end(&mut self) -> Duration {
        let begun = Instant::now();
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.expect("kill").success());
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
        begun.elapsed()
    }
}

/// Maximum wait for an answer. A later one counts as no answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends a request and reads the whole answer.
pub fn send(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Outcome {
    let begun = Instant::now();
    let mut said = Vec::new();
    let mut exchange = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let headers = [headers, &[("connection", "close")][..]].concat();
        http::send(&mut stream, method, path, &headers, body);
        let mut piece = vec![0u8; 1 << 16];
        loop {
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                n if said.len() < 1 << 16 => said.extend_from_slice(&piece[..n]),
                _ => {}
            }
        }
    };
    let _ = exchange();
    let text = String::from_utf8_lossy(&said).into_owned();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let said = text.split_once("\r\n\r\n").map_or("", |t| t.1);
    Outcome {
        status,
        took: begun.elapsed(),
        said: said.chars().take(200).collect(),
    }
}

/// Posts a query.
pub fn query(at: SocketAddr, text: &str) -> Outcome {
    let media = [("content-type", "application/sparql-query")];
    send(at, "POST", "/query", &media, text.as_bytes())
}
