//! A server under test: started on a small store, asked over sockets, its memory read from the system.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    child: Child,
    pub address: SocketAddr,
    _folder: tempfile::TempDir,
}

fn program() -> PathBuf {
    std::env::var_os("JINDOU_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_jindou").into(), PathBuf::from)
}

impl Server {
    /// A server that may write, on a store of some hundred statements.
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
        let mut child = Command::new(program())
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
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("jindou serve");
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        let at = line
            .split("http://")
            .nth(1)
            .and_then(|l| l.split('/').next());
        let address = at.and_then(|a| a.parse().ok()).expect("an address");
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// A value of `/proc/PID/status` in bytes.
    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    pub fn resident(&self) -> u64 {
        self.status("VmRSS")
    }

    /// Most memory since [`Self::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.status("VmHWM")
    }

    pub fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells the server to end (SIGTERM), and waits for it.
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Longest wait for an answer: what takes longer counts as no answer.
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
    // A refusal may come before all is sent.
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
