//! The one client that asks every server: SPARQL 1.1 Protocol by POST with a form, over one kept connection,
//! without compression.

use crate::engine::{Failure, Outcome, Timed};
use crate::seen::{Seen, gives_graph, read_graph, read_json};
use std::io::Read;
use std::time::{Duration, Instant};

/// Accepts TSV first; Virtuoso and the others then choose it.
const TSV: &str = "text/tab-separated-values";
const JSON: &str = "application/sparql-results+json";
/// For CONSTRUCT and DESCRIBE. An engine without N-Triples answers with Turtle, of which it is a part.
const TRIPLES: &str = "application/n-triples, text/turtle;q=0.5";

/// A SPARQL endpoint.
#[derive(Debug)]
pub struct Endpoint {
    agent: ureq::Agent,
    url: String,
    /// Form fields sent alongside the query.
    fields: Vec<(String, String)>,
    piece: Vec<u8>,
}

/// Bytes taken from the socket at once.
const PIECE: usize = 256 << 10;

impl Endpoint {
    /// An endpoint at a URL; `fields` go with every query.
    pub fn new(url: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        Self {
            agent: ureq::Agent::config_builder()
                .http_status_as_error(false)
                .proxy(None)
                .build()
                .into(),
            url: url.into(),
            fields: fields
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            piece: vec![0; PIECE],
        }
    }

    fn ask(&self, query: &str, accept: &str, limit: Duration) -> Outcome<impl Read + use<>> {
        let mut form = vec![("query", query)];
        form.extend(self.fields.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let mut answer = self
            .agent
            .post(&self.url)
            .config()
            .timeout_global(Some(limit))
            .build()
            .header("Accept", accept)
            .send_form(form)
            .map_err(failure)?;
        let status = answer.status();
        if !status.is_success() {
            let mut said = String::new();
            // What a server says about its failure is read as far as it comes.
            let _ = answer
                .body_mut()
                .as_reader()
                .take(2000)
                .read_to_string(&mut said);
            if said.is_empty() {
                said = "no explanation".into();
            }
            return Err(Failure::Refused(format!(
                "{status}: {}",
                first_words(&said, 200)
            )));
        }
        Ok(answer.into_body().into_reader())
    }

    /// Asks and counts the answer's bytes.
    pub fn time(&mut self, query: &str, limit: Duration) -> Outcome<Timed> {
        let accept = if gives_graph(query) { TRIPLES } else { TSV };
        let start = Instant::now();
        let mut answer = self.ask(query, accept, limit)?;
        let mut bytes = 0;
        loop {
            match answer.read(&mut self.piece) {
                Ok(0) => break,
                Ok(n) => bytes += n as u64,
                Err(e) => return Err(broken(&e)),
            }
        }
        Ok(Timed {
            seconds: start.elapsed().as_secs_f64(),
            bytes,
        })
    }

    /// Asks and reads every term.
    pub fn check(&mut self, query: &str, limit: Duration) -> Outcome<Seen> {
        if gives_graph(query) {
            read_graph(self.ask(query, TRIPLES, limit)?)
        } else {
            read_json(self.ask(query, JSON, limit)?)
        }
    }

    /// Asks for SPARQL Results JSON and keeps its text.
    pub fn answer(&mut self, query: &str, limit: Duration) -> Outcome<Vec<u8>> {
        let mut out = vec![];
        self.ask(query, JSON, limit)?
            .read_to_end(&mut out)
            .map_err(|e| broken(&e))?;
        Ok(out)
    }

    /// Waits until `ASK {}` is answered; `alive` says whether there is still a process to wait for.
    pub fn wait(&mut self, patience: Duration, mut alive: impl FnMut() -> bool) -> Outcome<()> {
        let end = Instant::now() + patience;
        loop {
            let last = match self.check("ASK {}", Duration::from_secs(5)) {
                Ok(_) => return Ok(()),
                Err(e) => e,
            };
            if !alive() {
                return Err(Failure::Broken("the server ended".into()));
            }
            if Instant::now() > end {
                return Err(last);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn failure(e: ureq::Error) -> Failure {
    match e {
        ureq::Error::Timeout(_) => Failure::Timeout,
        ureq::Error::Io(e) => broken(&e),
        e => Failure::Broken(e.to_string()),
    }
}

/// The failure that a failed read stands for.
pub fn broken(e: &std::io::Error) -> Failure {
    let timed_out = e.kind() == std::io::ErrorKind::TimedOut
        || e.get_ref()
            .and_then(|e| e.downcast_ref::<ureq::Error>())
            .is_some_and(|e| matches!(e, ureq::Error::Timeout(_)));
    if timed_out {
        Failure::Timeout
    } else {
        Failure::Broken(format!("the answer broke off: {e}"))
    }
}

/// The beginning of a text on one line.
pub fn first_words(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};

    /// Answers one request a connection with `reply`, and gives back what was asked.
    fn server(reply: &'static [u8], pause: Duration) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let asked = request(&stream);
            let mut to = &stream;
            let (head, tail) = reply.split_at(reply.len() / 2);
            let _ = to.write_all(head);
            std::thread::sleep(pause);
            let _ = to.write_all(tail);
            asked
        });
        (url, thread)
    }

    fn request(stream: &TcpStream) -> String {
        let mut from = BufReader::new(stream);
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            head += &line;
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        head + &String::from_utf8(body).unwrap()
    }

    const LIMIT: Duration = Duration::from_secs(5);

    /// Asks a server that answers with `reply`. Returns the outcome and what the server was asked.
    fn asked<T>(
        reply: &'static [u8],
        pause: u64,
        ask: impl FnOnce(&mut Endpoint) -> Outcome<T>,
    ) -> (Outcome<T>, String) {
        let (url, server) = server(reply, Duration::from_millis(pause));
        let outcome = ask(&mut Endpoint::new(url, &[("default-graph-uri", "urn:x y")]));
        (outcome, server.join().unwrap())
    }

    #[test]
    fn counts_an_answer_to_its_last_byte() {
        const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n?x\n\r\n5\r\n<a:b>\r\n1\r\n\n\r\n0\r\n\r\n";
        let (t, asked) = asked(REPLY, 60, |e| e.time("SELECT * { ?s ?p 'a&b' }", LIMIT));
        let t = t.unwrap();
        assert_eq!(t.bytes, 9);
        assert!(t.seconds >= 0.06);
        assert!(asked.starts_with("POST /sparql HTTP/1.1\r\n"), "{asked}");
        let accept = "accept: text/tab-separated-values";
        assert!(asked.to_ascii_lowercase().contains(accept), "{asked}");
        assert!(asked.contains("a%26b"), "{asked}");
        assert!(
            asked.contains("default-graph-uri=urn%3Ax%20y")
                || asked.contains("default-graph-uri=urn%3Ax+y"),
            "{asked}"
        );
    }

    #[test]
    fn an_answer_that_breaks_off_is_no_answer() {
        for reply in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n?x\n<a:b>\n"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n?x\n\r\n",
        ] {
            let (r, _) = asked(reply, 0, |e| e.time("ASK {}", LIMIT));
            assert!(matches!(r, Err(Failure::Broken(_))), "{r:?}");
        }
    }

    #[test]
    fn a_refusal_carries_the_servers_words() {
        const REPLY: &[u8] =
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 16\r\n\r\nno such\n thing  ";
        let (r, _) = asked(REPLY, 0, |e| e.check("SELECT", LIMIT));
        let Err(Failure::Refused(said)) = r else {
            panic!("a refusal");
        };
        assert!(
            said.contains("400") && said.contains("no such thing"),
            "{said}"
        );
    }

    #[test]
    fn a_slow_answer_times_out() {
        const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n?x\n<a:b>\n<c>";
        let limit = Duration::from_millis(100);
        let (r, _) = asked(REPLY, 600, |e| e.time("ASK {}", limit));
        assert_eq!(r, Err(Failure::Timeout));
    }

    #[test]
    fn checks_json() {
        const REPLY: &[u8] =
            b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"head\":{},\"boolean\":true}";
        let (r, _) = asked(REPLY, 0, |e| e.check("ASK {}", LIMIT));
        assert_eq!(r.unwrap().rows, 1);
        let mut gone = Endpoint::new("http://127.0.0.1:1/sparql", &[]);
        assert!(matches!(
            gone.wait(Duration::from_millis(10), || false),
            Err(Failure::Broken(_))
        ));
    }
}
