//! An HTTP client with one connection to a server on this machine.

use jindou_model::{Error, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The error for a failure of this kind.
pub fn failed(what: &str, e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("{what}: {e}"))
}

/// A request for a query's answer as TSV, the shortest form.
pub fn request(query: &str) -> Vec<u8> {
    format!(
        "POST /sparql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-query\r\n\
        accept: text/tab-separated-values\r\ncontent-length: {}\r\n\r\n{query}",
        query.len()
    )
    .into_bytes()
}

/// A stream to a server.
pub enum Connection {
    /// Over the network.
    Tcp(TcpStream),
    /// Through a Unix socket.
    Unix(UnixStream),
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A client with one connection.
pub struct Client {
    reader: BufReader<Connection>,
    line: Vec<u8>,
    /// The body of the last answer.
    pub body: Vec<u8>,
    /// The `Retry-After` time of the last answer, if it had one.
    pub retry_after: Option<Duration>,
}

impl Client {
    /// Connects; reading waits for a minute at most.
    ///
    /// # Errors
    /// [`Error::Internal`], as in all functions here.
    pub fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).map_err(|e| failed("connecting", e))?;
        stream
            .set_nodelay(true)
            .map_err(|e| failed("connecting", e))?;
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .map_err(|e| failed("connecting", e))?;
        Ok(Self::new(Connection::Tcp(stream)))
    }

    /// A client with this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, connection),
            line: vec![],
            body: vec![],
            retry_after: None,
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        let stream = self.reader.get_mut();
        stream.write_all(request).map_err(|e| failed("sending", e))
    }

    fn line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.reader
            .read_until(b'\n', &mut self.line)
            .map_err(|e| failed("reading", e))?;
        Ok(self.line.trim_ascii_end())
    }

    /// Reads one answer into `self.body` and returns its status.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn receive(&mut self) -> Result<u16> {
        let status = self.line()?;
        let status = status
            .get(9..12)
            .and_then(|s| std::str::from_utf8(s).ok()?.parse().ok())
            .ok_or_else(|| failed("reading", "no status line"))?;
        let (mut length, mut chunked, mut retry_after) = (0usize, false, None);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let text = String::from_utf8_lossy(line).to_ascii_lowercase();
            if let Some(n) = text.strip_prefix("content-length:") {
                length = n.trim().parse().map_err(|e| failed("content-length", e))?;
            }
            if let Some(n) = text.strip_prefix("retry-after:") {
                let seconds = n.trim().parse().map_err(|e| failed("retry-after", e))?;
                retry_after = Some(Duration::from_secs(seconds));
            }
            chunked |= text.starts_with("transfer-encoding:") && text.ends_with("chunked");
        }
        self.retry_after = retry_after;
        self.body.clear();
        loop {
            if chunked {
                let line = self.line()?;
                let text = std::str::from_utf8(line).unwrap_or("");
                length = usize::from_str_radix(text, 16).map_err(|e| failed("chunk", e))?;
            }
            let from = self.body.len();
            self.body.resize(from + length, 0);
            self.reader
                .read_exact(&mut self.body[from..])
                .map_err(|e| failed("reading", e))?;
            if chunked {
                self.line()?;
            }
            if !chunked || length == 0 {
                return Ok(status);
            }
        }
    }

    /// Sends a request and reads its answer into `self.body`; returns the answer's status.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn ask(&mut self, request: &[u8]) -> Result<u16> {
        self.send(request)?;
        self.receive()
    }
}
