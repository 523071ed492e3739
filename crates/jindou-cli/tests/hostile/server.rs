//! A server under test: it serves a small store and gets requests over sockets. Its memory is read from the system.

use jindou_testing::Served;
use std::io::{Read, Write};
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

    pub fn query(&self, text: &str) -> Outcome {
        post(
            self.address,
            "/query",
            "application/sparql-query",
            "",
            text.as_bytes(),
        )
    }
}

/// Maximum wait for an answer. A later one counts as no answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends a request and reads the whole answer.
pub fn post(at: SocketAddr, path: &str, media: &str, more: &str, body: &[u8]) -> Outcome {
    send(at, "POST", path, media, more, body)
}

pub fn send(
    at: SocketAddr,
    method: &str,
    path: &str,
    media: &str,
    more: &str,
    body: &[u8],
) -> Outcome {
    let begun = Instant::now();
    let mut said = Vec::new();
    let _ = exchange(at, method, path, media, more, body, &mut said);
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

fn exchange(
    at: SocketAddr,
    method: &str,
    path: &str,
    media: &str,
    more: &str,
    body: &[u8],
    said: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n",
        body.len()
    )?;
    // The server may refuse the request before all of it was sent, so the error of sending is reported after reading.
    let sent = stream.write_all(body);
    let mut piece = vec![0u8; 1 << 16];
    loop {
        let n = match stream.read(&mut piece) {
            Ok(0) => return sent,
            Ok(n) => n,
            Err(e) => return Err(e),
        };
        if said.len() < 1 << 16 {
            said.extend_from_slice(&piece[..n]);
        }
    }
}
