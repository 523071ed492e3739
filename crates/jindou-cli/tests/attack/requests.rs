//! Requests by which a text can be sent to a server.

use crate::server::TOKEN;
use jindou_testing::attack::{Attack, Language};
use jindou_testing::{Rng, http};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A combination of a path, a method and the place of the text in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Get(&'static str),
    Body(&'static str),
    Form(&'static str),
    Explain,
    ExplainForm,
    WhyEmpty,
    Profile,
    Bound,
    Prepare,
    PrepareForm,
    /// A prepared query with values.
    Prepared,
    Batch,
    BatchArray,
    Complete,
    CompleteAfter,
    /// The text as words to search for.
    Search,
    /// A request for the labels of many resources, one of which is as long as the text.
    Labels,
    /// A short query with many other parameters.
    Parameters,
    /// A short query with long headers.
    Headers,
    Describe,
    Update(&'static str),
    UpdateForm(&'static str),
    UpdateParameters,
    Patch,
    Put,
    Post,
    PostNew,
    ReadGraph,
    DeleteGraph,
    /// The text as the IRI of a prefix.
    SetPrefix,
    ReadPrefixes,
}

const QUERIES: [Route; 29] = [
    Route::Body("/query"),
    Route::Body("/query"),
    Route::Body("/query"),
    Route::Body("/sparql"),
    Route::Body("/query"),
    Route::Body("/query"),
    Route::Body("/query"),
    Route::Body("/sparql"),
    Route::Form("/query"),
    Route::Form("/sparql"),
    Route::Form("/"),
    Route::Get("/query"),
    Route::Get("/sparql"),
    Route::Explain,
    Route::WhyEmpty,
    Route::ExplainForm,
    Route::Profile,
    Route::Bound,
    Route::Prepare,
    Route::Prepare,
    Route::PrepareForm,
    Route::Prepared,
    Route::Batch,
    Route::BatchArray,
    Route::Complete,
    Route::CompleteAfter,
    Route::Search,
    Route::Labels,
    Route::Parameters,
];

const UPDATES: [Route; 10] = [
    Route::Update("/update"),
    Route::Update("/update"),
    Route::Update("/update"),
    Route::Update("/sparql"),
    Route::UpdateForm("/update"),
    Route::UpdateForm("/sparql"),
    Route::UpdateParameters,
    Route::Patch,
    Route::SetPrefix,
    Route::ReadPrefixes,
];

const DOCUMENTS: [Route; 8] = [
    Route::Put,
    Route::Put,
    Route::Post,
    Route::Post,
    Route::PostNew,
    Route::ReadGraph,
    Route::DeleteGraph,
    Route::Describe,
];

/// Formats in which answers are requested.
const ACCEPT: [&str; 10] = [
    "*/*",
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/csv",
    "text/tab-separated-values",
    "text/turtle, application/sparql-results+json",
    "application/n-triples, text/csv",
    "application/rdf+xml, */*",
    "application/ld+json, */*",
    "text/html, */*",
];

/// Maximum number of bytes of a request's head.
const HEAD: usize = 120 << 10;

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    head: String,
    body: Vec<u8>,
}

impl Route {
    /// A random route for a text of this language.
    pub fn random(rng: &mut Rng, language: Language) -> Self {
        match language {
            Language::Query if rng.chance(2) => rng.one(&[Self::Headers, Self::Describe]),
            Language::Query => rng.one(&QUERIES),
            Language::Update => rng.one(&UPDATES),
            Language::Document(_) => rng.one(&DOCUMENTS),
        }
    }

    /// The request that sends a text by this route. `prepared` is the id of a prepared query with the parameters `s`
    /// and `o`.
    pub fn request(self, attack: &Attack, accept: &str, prepared: &str, most: usize) -> Request {
        let texts = Texts { attack, most };
        let (method, path, (media, body)) = self.parts(texts, prepared);
        let mut more = String::new();
        if self == Self::Headers {
            for i in 0..attack.recipe.bytes().min(HEAD / 2) / 24 {
                let _ = write!(more, "Accept: text/x{i};q=0.{i}\r\n");
            }
        }
        let (path, body) = (path.replace(' ', "%20"), body.into_bytes());
        if !media.is_empty() {
            let _ = write!(more, "Content-Type: {media}\r\n");
        }
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nAccept: {accept}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n",
            body.len()
        );
        Request { head, body }
    }

    /// Method, path, and the body with its media type.
    fn parts(self, texts: Texts<'_>, prepared: &str) -> (&'static str, String, Body) {
        const QUERY: &str = "application/sparql-query";
        const UPDATE: &str = "application/sparql-update";
        let graph = || "/store?graph=http://e/hostile".to_owned();
        let media = match texts.attack.language {
            Language::Document(media) => media,
            _ => "text/turtle",
        };
        let text = || texts.text();
        let whole = |name: &str| texts.form(texts.field(name));
        let nothing = || ("", String::new());
        match self {
            Self::Get(path) => ("GET", format!("{path}?{}", texts.short("query")), nothing()),
            Self::Body(path) => ("POST", path.to_owned(), (QUERY, text())),
            Self::Form(path) => ("POST", path.to_owned(), whole("query")),
            Self::Explain => ("POST", "/query?explain=true".into(), (QUERY, text())),
            Self::WhyEmpty => ("POST", "/query?why-empty=true".into(), (QUERY, text())),
            Self::ExplainForm => {
                let form = format!("explain=1&{}", texts.field("query"));
                ("POST", "/query".into(), texts.form(form))
            }
            Self::Profile => ("POST", "/query?profile=true".into(), (QUERY, text())),
            Self::Bound => ("POST", "/query".into(), texts.bound()),
            Self::Prepare => {
                let text = text();
                let name = ["v", "s", "o", "n", "x0", "p"]
                    .iter()
                    .find(|n| text.contains(&format!("?{n} ")) || text.contains(&format!("${n} ")));
                let parameter = name.map_or(String::new(), |n| format!("?parameter={n}"));
                ("POST", format!("/prepared{parameter}"), (QUERY, text))
            }
            Self::PrepareForm => ("POST", "/prepared".into(), texts.with_parameters()),
            Self::Prepared => {
                let [s, o] = [0, 1].map(|n| escaped(&texts.value(n)));
                let path = format!("/prepared/{prepared}");
                ("POST", path, texts.form(format!("$s={s}&$o={o}")))
            }
            Self::Batch | Self::BatchArray => {
                let lines = texts.batch(prepared, self == Self::BatchArray);
                ("POST", "/batch".into(), ("application/x-ndjson", lines))
            }
            Self::Complete => ("POST", "/complete".into(), whole("text")),
            Self::CompleteAfter => ("POST", "/complete".into(), texts.halves()),
            Self::Search => ("POST", "/search?timeout=2s".into(), whole("q")),
            Self::Labels => ("POST", "/labels?lang=en,de".into(), texts.iris()),
            Self::SetPrefix => {
                let name = texts.attack.recipe.bytes() % 5000;
                ("PUT", format!("/prefixes/p{name}"), ("text/plain", text()))
            }
            Self::ReadPrefixes => ("GET", "/prefixes".into(), nothing()),
            Self::Parameters => {
                let names = ["default-graph-uri", "named-graph-uri", "x"];
                ("POST", "/query".into(), texts.repeated(LIGHT, &names))
            }
            Self::Headers => ("GET", format!("/query?{LIGHT}"), nothing()),
            Self::Describe => ("GET", "/query".into(), nothing()),
            Self::Update(path) => ("POST", path.to_owned(), (UPDATE, text())),
            Self::UpdateForm(path) => ("POST", path.to_owned(), whole("update")),
            Self::UpdateParameters => {
                let update = "update=DELETE%20WHERE%20%7B%20?s%20?p%2077777%20%7D";
                let names = ["using-graph-uri", "using-named-graph-uri"];
                ("POST", "/update".into(), texts.repeated(update, &names))
            }
            Self::Patch => ("PATCH", graph(), (UPDATE, text())),
            Self::Put => ("PUT", graph(), (media, text())),
            Self::Post => ("POST", graph(), (media, text())),
            Self::PostNew => ("POST", "/store".into(), (media, text())),
            Self::ReadGraph => {
                let which = ["default", "graph=http://e/g1", ""][texts.attack.recipe.bytes() % 3];
                ("GET", format!("/store?{which}"), nothing())
            }
            Self::DeleteGraph => ("DELETE", graph(), nothing()),
        }
    }
}

/// A form with a query that takes little time.
const LIGHT: &str = "query=SELECT%20*%20%7B%20?s%20%3Chttp://e/n%3E%207%20%7D";

/// A media type and a body.
type Body = (&'static str, String);

/// The texts of an attack in the forms that requests need.
#[derive(Clone, Copy)]
struct Texts<'a> {
    attack: &'a Attack,
    /// Maximum number of bytes of a text.
    most: usize,
}

impl Texts<'_> {
    fn text(self) -> String {
        self.attack.text(self.most)
    }

    /// A form's field with the text. Escaping may make the text three times as long.
    fn field(self, name: &str) -> String {
        format!("{name}={}", escaped(&self.text()))
    }

    /// Like [`Self::field`], but short enough for a URL.
    fn short(self, name: &str) -> String {
        format!(
            "{name}={}",
            escaped(&self.attack.text(self.most.min(HEAD) / 3))
        )
    }

    fn form(self, mut form: String) -> Body {
        form.truncate(self.most);
        ("application/x-www-form-urlencoded", form)
    }

    /// The attack's value for parameter `n`; if it has none, a literal that contains the text.
    fn value(self, n: usize) -> String {
        self.attack.values.get(n).map_or_else(
            || {
                let wrong = self.attack.text(self.most.min(1 << 16));
                format!("\"{}\"", wrong.replace(['"', '\\', '\n', '\r'], " "))
            },
            |v| v.1.text(self.most),
        )
    }

    /// Number of pieces of about forty bytes in a text of the attack's length.
    fn pieces(self) -> usize {
        self.attack.recipe.bytes().min(self.most) / 40
    }

    /// A form with the query and values for its parameters.
    fn bound(self) -> Body {
        let mut all = String::new();
        for (name, value) in &self.attack.values {
            let _ = write!(all, "${name}={}&", escaped(&value.text(self.most)));
        }
        if all.is_empty() {
            all = "$s=%3Chttp://e/s1%3E&$o=7&".into();
        }
        self.form(all + &self.field("query"))
    }

    /// A form with the query and names of its parameters.
    fn with_parameters(self) -> Body {
        let text = self.text();
        let mut all = String::new();
        for i in 0..text.len() / 10 {
            // Only variables of the query can be parameters.
            if i < 100 && !text.contains(&format!("?x{i} ")) {
                break;
            }
            let _ = write!(all, "parameter=x{i}&");
        }
        self.form(all + &self.field("query"))
    }

    /// Many calls of a prepared query, one per line or as a JSON array.
    fn batch(self, prepared: &str, array: bool) -> String {
        let (o, bytes) = (self.value(0), self.attack.recipe.bytes().min(self.most));
        let mut all = String::from(if array { "[" } else { "" });
        let mut n = 0;
        while all.len() < bytes {
            let values = serde_json::json!({ "s": format!("<http://e/s{n}>"), "o": o });
            let line = serde_json::json!({ "id": prepared, "values": values });
            let comma = if array && n > 0 { "," } else { "" };
            let _ = write!(all, "{comma}{line}{}", if array { "" } else { "\n" });
            n += 1;
        }
        all + if array { "]" } else { "" }
    }

    /// The text cut in the middle, as the texts before and after the cursor of an editor.
    fn halves(self) -> Body {
        let text = self.text();
        let middle = (0..=text.len() / 2)
            .rev()
            .find(|&i| text.is_char_boundary(i));
        let (before, after) = text.split_at(middle.unwrap_or(0));
        self.form(format!("text={}&after={}", escaped(before), escaped(after)))
    }

    /// A form with many IRIs.
    fn iris(self) -> Body {
        let mut all = format!("iri={}", escaped(&self.value(0)));
        // A request with more IRIs than allowed is refused before they are used, so their number is limited.
        for i in 0..self.pieces().min(1200) {
            let _ = write!(all, "&iri=http://e/s{i}");
        }
        self.form(all)
    }

    /// The form `first` with many further fields that have these names in turn.
    fn repeated(self, first: &str, names: &[&str]) -> Body {
        let mut all = String::from(first);
        for i in 0..self.pieces() {
            let _ = write!(all, "&{}=http://e/g{i}", names[i % names.len()]);
        }
        self.form(all)
    }
}

impl Request {
    /// Length of the request's body.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }
}

/// A random format of answers.
pub fn accept(rng: &mut Rng) -> &'static str {
    rng.one(&ACCEPT)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for b in text.bytes() {
        match b {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'?'
            | b'/'
            | b':' => {
                out.push(b as char);
            }
            b => {
                let _ = write!(out, "%{b:02X}");
            }
        }
    }
    out
}

/// Number of bytes of an answer after which the client closes the connection.
const READ: usize = 2 << 20;

/// A request that is being sent and answered.
#[derive(Default)]
pub struct Flight {
    stream: Mutex<Option<TcpStream>>,
    left: AtomicBool,
    sent: AtomicBool,
    done: AtomicBool,
    outcome: Mutex<Outcome>,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The status, or 0 if there was none (the connection broke).
    pub status: u16,
    pub took: Duration,
    /// The answer's first bytes.
    pub said: String,
    /// True if the client closed the connection after [`READ`] bytes.
    pub enough: bool,
}

impl Flight {
    /// Sends the request and reads its answer.
    pub fn fly(&self, to: SocketAddr, request: &Request) {
        let begun = Instant::now();
        let mut said = vec![];
        let enough = self.exchange(to, request, &mut said).unwrap_or(false);
        let text = String::from_utf8_lossy(&said);
        let status = text.split(' ').nth(1).and_then(|s| s.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |t| t.1);
        let outcome = Outcome {
            status: status.unwrap_or(0),
            took: begun.elapsed(),
            said: body.chars().take(300).collect(),
            enough,
        };
        *self.outcome.lock().expect("no thread panicked") = outcome;
        self.sent.store(true, Ordering::Relaxed);
        self.done.store(true, Ordering::Release);
    }

    fn exchange(
        &self,
        to: SocketAddr,
        request: &Request,
        said: &mut Vec<u8>,
    ) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
        *self.stream.lock().expect("no thread panicked") = Some(stream.try_clone()?);
        let head = request.head.replacen("HOST", &to.to_string(), 1);
        stream.write_all(head.as_bytes())?;
        // The server may refuse the request before all of it was sent, so the error of sending is reported after
        // reading.
        let sent = stream.write_all(&request.body);
        self.sent.store(true, Ordering::Relaxed);
        let (mut piece, mut all) = (vec![0u8; 1 << 16], 0);
        loop {
            let n = stream.read(&mut piece)?;
            if n == 0 {
                return sent.map(|()| false);
            }
            all += n;
            if said.len() < 1 << 12 {
                said.extend_from_slice(&piece[..n.min(1 << 12)]);
            }
            if all > READ {
                let _ = stream.shutdown(Shutdown::Both);
                return Ok(true);
            }
        }
    }

    /// True if the whole request was sent.
    pub fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// True if the client closed the connection before it had the whole answer.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Closes the client's connection.
    pub fn leave(&self) {
        if !self.is_done() {
            self.left.store(true, Ordering::Relaxed);
        }
        if let Some(stream) = &*self.stream.lock().expect("no thread panicked") {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome.lock().expect("no thread panicked").clone()
    }
}

/// Sends a short request of the test's own. Returns the status and body of the answer; the status is 0 if none came in
/// time.
pub fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    media: &str,
    body: &str,
    patience: Duration,
) -> (u16, String) {
    let exchange = || -> std::io::Result<http::Answer> {
        let mut stream = TcpStream::connect_timeout(&to, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let bearer = format!("Bearer {TOKEN}");
        let all = [
            ("connection", "close"),
            ("authorization", bearer.as_str()),
            ("content-type", media),
        ];
        let headers = if media.is_empty() {
            &all[..2]
        } else {
            &all[..]
        };
        http::send(&mut stream, method, path, headers, body.as_bytes());
        http::try_receive(&mut stream, method)
    };
    exchange().map_or((0, String::new()), |answer| {
        let text = String::from_utf8_lossy(&answer.body);
        (answer.status, text.into_owned())
    })
}
