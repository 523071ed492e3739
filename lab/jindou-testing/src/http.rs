//! A small HTTP/1.1 client for what HTTP libraries do not offer: it reports whether a body was complete, and it can
//! stop reading a connection.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names and values of the headers. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without the framing of chunks.
    pub body: Vec<u8>,
    /// Reason why the body was not received up to its announced length or its last chunk.
    pub failure: Option<std::io::ErrorKind>,
}

impl Answer {
    /// True if the body was received up to its announced length or its last chunk.
    pub fn is_whole(&self) -> bool {
        self.failure.is_none()
    }

    /// The value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, v)| v)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The type of the problem that the body describes (RFC 9457), without the prefix `urn:jindou:problem:`.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let json = self.json();
        assert_eq!(json["status"], self.status);
        let kind = json["type"].as_str().expect("a type");
        kind.trim_start_matches("urn:jindou:problem:").to_owned()
    }
}

/// Connects to a server. Reads from the stream have a time limit.
pub fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    stream
}

/// Writes a request's head and body.
pub fn send(
    stream: &mut impl Write,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) {
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    if !headers.iter().any(|h| h.0.eq_ignore_ascii_case("host")) {
        head += "host: localhost\r\n";
    }
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if !body.is_empty() || method == "POST" {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    head += "\r\n";
    let mut all = head.into_bytes();
    all.extend_from_slice(body);
    // Errors are ignored: a server may answer and close before it has read everything, for example if the body is too
    // large.
    let _ = stream.write_all(&all);
}

/// Reads one response.
pub fn receive(stream: &mut impl Read, method: &str) -> Answer {
    try_receive(stream, method).unwrap_or_else(|e| panic!("no answer to {method}: {e}"))
}

/// Reads one response.
///
/// # Errors
///
/// [`std::io::ErrorKind::UnexpectedEof`] if the connection ends before a complete head; an error of another kind if the
/// head is not HTTP.
pub fn try_receive(stream: &mut impl Read, method: &str) -> std::io::Result<Answer> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let wrong = |line: &str| std::io::Error::other(format!("no head: {line:?}"));
    let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
    let status = status.ok_or_else(|| wrong(&line))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let trimmed = line.trim_end();
        if trimmed.is_empty() {
            break;
        }
        let (name, value) = trimmed.split_once(':').ok_or_else(|| wrong(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
        failure: None,
    };
    if method == "HEAD" || status == 204 {
        return Ok(answer);
    }
    if answer.header("transfer-encoding") == "chunked" {
        answer.failure = chunks(&mut reader, &mut answer.body)
            .err()
            .map(|e| e.kind());
    } else if let Ok(length) = answer.header("content-length").parse::<usize>() {
        answer.failure = match reader.take(length as u64).read_to_end(&mut answer.body) {
            Ok(read) if read < length => Some(std::io::ErrorKind::UnexpectedEof),
            Ok(_) => None,
            Err(e) => Some(e.kind()),
        };
    }
    Ok(answer)
}

/// Reads the chunks of a body; `UnexpectedEof` if the connection ends before the last chunk.
fn chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16);
        let length = length.map_err(|_| std::io::ErrorKind::UnexpectedEof)?;
        let from = body.len();
        body.resize(from + length, 0);
        reader.read_exact(&mut body[from..])?;
        line.clear();
        reader.read_line(&mut line)?;
        if length == 0 {
            return Ok(());
        }
    }
}

/// Sends one request on a new connection.
pub fn request(
    to: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = connect(to);
    send(&mut stream, method, target, headers, body);
    receive(&mut stream, method)
}

/// Percent-encodes a text for use in a URL's parameter.
pub fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}
