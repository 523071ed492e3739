//! A client over one kept connection that sees status, headers and body of each answer.

use jindou::{Error, Result};
use jindou_testing::http;
use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server's HTTP address, and the token that it wants, if any.
#[derive(Clone, Debug)]
pub struct Address {
    pub socket: SocketAddr,
    pub token: Option<&'static str>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The snapshot that it was read from, or that shows the change.
    pub fn snapshot(&self) -> Option<u64> {
        self.header("jindou-snapshot")?.parse().ok()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The request.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(
            f,
            "{} {} {:?} {body:?}",
            self.method, self.path, self.headers
        )
    }
}

impl Request {
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            path: path.into(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn with(mut self, header: &str, value: impl Into<String>) -> Self {
        self.headers.push((header.to_owned(), value.into()));
        self
    }

    #[must_use]
    pub fn body(self, media_type: &str, text: impl Into<String>) -> Self {
        let mut with = self.with("Content-Type", media_type);
        with.body = text.into().into_bytes();
        with
    }

    /// True of reads.
    pub fn changes_nothing(&self) -> bool {
        let path = self.path.split('?').next();
        matches!(&*self.method, "GET" | "HEAD") || path == Some("/query")
    }

    /// True if sending it twice does what sending it once does.
    fn may_be_repeated(&self) -> bool {
        self.changes_nothing() || self.headers.iter().any(|(h, _)| h == "Idempotency-Key")
    }

    /// A SPARQL update.
    pub fn update(text: impl Into<String>) -> Self {
        Self::new("POST", "/update").body("application/sparql-update", text)
    }

    /// A SPARQL query that is answered as TSV, with this consistency if any is named.
    pub fn query(text: impl Into<String>, consistency: Option<&str>) -> Self {
        let asked = Self::new("POST", "/query")
            .body("application/sparql-query", text)
            .with("Accept", "text/tab-separated-values");
        match consistency {
            Some(wanted) => asked.with("Jindou-Consistency", wanted),
            None => asked,
        }
    }
}

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    address: Address,
    limit: Duration,
    kept: Option<TcpStream>,
}

impl Client {
    /// A client that waits for each read of an answer for at most so long.
    pub fn new(address: Address, limit: Duration) -> Self {
        Self {
            address,
            limit,
            kept: None,
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address.socket, self.limit)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.limit))?;
        stream.set_write_timeout(Some(self.limit))?;
        Ok(stream)
    }

    /// Sends a request. A connection that failed is not used again. If a kept one was closed before any of the answer came, a request
    /// that may be repeated is sent again over a new one (RFC 9110, section 9.2.2).
    pub fn send(&mut self, request: &Request) -> io::Result<Answer> {
        let message = self.message(request);
        if let Some(kept) = self.kept.take() {
            match self.exchange(kept, &message, &request.method) {
                Err(e) if is_closed(&e) && request.may_be_repeated() => {}
                done => return done,
            }
        }
        self.exchange(self.connect()?, &message, &request.method)
    }

    /// Sends a request that must succeed.
    pub fn succeed(&mut self, request: &Request) -> Result<Answer> {
        let answer = self.send(request);
        let (method, path, socket) = (&request.method, &request.path, self.address.socket);
        let failed = |why: String| Error::external(format!("{method} {path} at {socket}: {why}"));
        let answer = answer.map_err(|e| failed(e.to_string()))?;
        match answer.is_success() {
            true => Ok(answer),
            false => Err(failed(format!("{} {}", answer.status, answer.text()))),
        }
    }

    fn message(&self, request: &Request) -> Vec<u8> {
        let mut message = format!(
            "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n",
            request.method,
            request.path,
            request.body.len()
        );
        if let Some(token) = self.address.token {
            message += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in &request.headers {
            message += &format!("{name}: {value}\r\n");
        }
        message += "\r\n";
        let mut message = message.into_bytes();
        message.extend_from_slice(&request.body);
        message
    }

    fn exchange(
        &mut self,
        mut connection: TcpStream,
        message: &[u8],
        method: &str,
    ) -> io::Result<Answer> {
        connection.write_all(message)?;
        let answer = http::try_receive(&mut connection, method)?;
        if let Some(failure) = answer.failure {
            return Err(failure.into());
        }
        if answer.header("connection") != "close" {
            self.kept = Some(connection);
        }
        Ok(Answer {
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
        })
    }
}

/// True if the other side has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}
