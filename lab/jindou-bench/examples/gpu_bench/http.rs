//! An HTTP client with one connection to a server on this machine.

use jindou_model::{Error, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("{what}: {e}"))
}

/// A request for a query's answer as TSV.
pub fn request(query: &str) -> Vec<u8> {
    format!(
        "POST /sparql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-query\r\n\
        accept: text/tab-separated-values\r\ncontent-length: {}\r\n\r\n{query}",
        query.len()
    )
    .into_bytes()
}

pub struct Client {
    reader: BufReader<TcpStream>,
    line: String,
}

impl Client {
    pub fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).map_err(|e| failed("connecting", e))?;
        let set = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(|e| failed("connecting", e))?;
        Ok(Self {
            reader: BufReader::with_capacity(64 << 10, stream),
            line: String::new(),
        })
    }

    fn line(&mut self) -> Result<&str> {
        self.line.clear();
        let read = self.reader.read_line(&mut self.line);
        match read.map_err(|e| failed("reading", e))? {
            0 => Err(failed("reading", "the server closed the connection")),
            _ => Ok(self.line.trim_end()),
        }
    }

    /// Sends a request and reads its answer: status and body.
    pub fn ask(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        let stream = self.reader.get_mut();
        stream
            .write_all(request)
            .map_err(|e| failed("sending", e))?;
        let status = self.line()?.get(9..12).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| failed("reading", "no status line"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.strip_prefix("content-length:") {
                length = n.trim().parse().map_err(|e| failed("content-length", e))?;
            }
            is_chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
        }
        let mut body = vec![];
        loop {
            if is_chunked {
                length =
                    usize::from_str_radix(self.line()?, 16).map_err(|e| failed("a chunk", e))?;
            }
            let from = body.len();
            body.resize(from + length, 0);
            let read = self.reader.read_exact(&mut body[from..]);
            read.map_err(|e| failed("reading", e))?;
            if is_chunked {
                self.line()?;
            }
            if !is_chunked || length == 0 {
                return Ok((status, body));
            }
        }
    }
}
