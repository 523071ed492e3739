//! A client over one kept connection that sees status, headers and body of each answer.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
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

/// Bytes of an answer that is taken for a mistake.
const LONGEST: u64 = 1 << 30;

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    address: Address,
    limit: Duration,
    kept: Option<BufReader<TcpStream>>,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
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

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect_timeout(&self.address.socket, self.limit)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.limit))?;
        stream.set_write_timeout(Some(self.limit))?;
        Ok(BufReader::new(stream))
    }

    /// Sends a request. A connection that failed is not used again. If a kept one was closed before any of the answer came, a request
    /// that may be repeated is sent again over a new one (RFC 9110, section 9.2.2).
    pub fn send(&mut self, request: &Request) -> io::Result<Answer> {
        let (message, head) = (self.message(request), request.method == "HEAD");
        if let Some(kept) = self.kept.take() {
            match self.exchange(kept, &message, head) {
                Err(e) if is_closed(&e) && request.may_be_repeated() => {}
                done => return done,
            }
        }
        self.exchange(self.connect()?, &message, head)
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
        mut connection: BufReader<TcpStream>,
        message: &[u8],
        head: bool,
    ) -> io::Result<Answer> {
        connection.get_mut().write_all(message)?;
        let (answer, stays) = read(&mut connection, head)?;
        if stays {
            self.kept = Some(connection);
        }
        Ok(answer)
    }
}

/// True if the other side has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.take(1 << 16).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn exactly(from: &mut impl Read, bytes: u64, to: &mut Vec<u8>) -> io::Result<()> {
    if bytes > LONGEST {
        return Err(wrong("an answer is too long"));
    }
    match from.take(bytes).read_to_end(to)? as u64 == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// An answer, of HEAD without its body, and whether the connection can be used again.
fn read(from: &mut impl BufRead, head: bool) -> io::Result<(Answer, bool)> {
    let status = line(from)?;
    let status = status.split(' ').nth(1).and_then(|s| s.parse().ok());
    let mut answer = Answer {
        status: status.ok_or_else(|| wrong("no status"))?,
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        let header = line(from)?;
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':') {
            let pair = (name.to_ascii_lowercase(), value.trim().to_owned());
            answer.headers.push(pair);
        }
    }
    if head {
        // Its headers are those of GET.
    } else if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = line(from)?;
            let size = u64::from_str_radix(size.trim(), 16).map_err(|_| wrong("no chunk"))?;
            exactly(from, size, &mut answer.body)?;
            line(from)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = answer.header("content-length") {
        let length = length.parse().map_err(|_| wrong("no length"))?;
        exactly(from, length, &mut answer.body)?;
    } else if answer.status != 204 {
        from.take(LONGEST).read_to_end(&mut answer.body)?;
        return Ok((answer, false));
    }
    let stays = answer.header("connection") != Some("close");
    Ok((answer, stays))
}
