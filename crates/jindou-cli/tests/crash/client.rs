//! Clients that write numbered transactions over HTTP and remember which of them the server acknowledged.

use jindou_testing::http;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::TcpStream;
use std::time::Duration;

/// A generator of random numbers (SplitMix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.0)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least * 1000 + self.below((most - least) * 1000))
    }
}

/// A connection that is used for many requests. Requests return `None` once the server is gone.
pub struct Http(TcpStream);

impl Http {
    pub fn connect(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .ok()?;
        Some(Self(stream))
    }

    /// Sends a request, and returns the status and body of the answer.
    pub fn post(&mut self, target: &str, body: &str) -> Option<(u16, String)> {
        let headers = [("content-type", "application/sparql-update")];
        http::send(&mut self.0, "POST", target, &headers, body.as_bytes());
        let answer = http::try_receive(&mut self.0, "POST").ok()?;
        Some((answer.status, String::from_utf8_lossy(&answer.body).into()))
    }
}

/// The changes of one transaction: it adds the quads that belong to the number `adds`, and deletes those of the numbers
/// `removes`.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub adds: u64,
    pub removes: Vec<u64>,
}

/// A client, and the quads that it expects in the store.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub name: u64,
    next: u64,
    /// Numbers whose quads are in the store.
    pub live: BTreeSet<u64>,
    /// The transaction that was sent but not answered.
    pub open: Option<Transaction>,
    /// Number of acknowledged transactions.
    pub acknowledged: u64,
}

/// Number of quads (parts) that belong to one number. The test checks that all or none of them are in the store.
pub const PARTS: u32 = 4;

impl Client {
    pub fn new(name: u64) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn quads(&self, n: u64) -> String {
        let c = self.name;
        let s = format!("<http://c/{c}/{n}>");
        format!(
            "{s} <http://e/part0> {n} . {s} <http://e/part1> <http://e/t{}> . {s} <http://e/part2> \"{c} of {n}\"@en . \
             GRAPH <http://e/g{c}> {{ {s} <http://e/part3> <http://c/{c}/{}> }} ",
            n % 40,
            n / 2,
        )
    }

    /// Writes until the server is gone. Each request adds the parts of a number in two operations.
    pub fn write(&mut self, address: &str, mut rng: Rng) {
        let Some(mut http) = Http::connect(address) else {
            return;
        };
        loop {
            let adds = self.next;
            self.next += 1;
            let mut removes = Vec::new();
            while self.live.len() > removes.len() + 30 || (rng.below(3) == 0 && removes.len() < 3) {
                let at = rng.below(self.live.len().max(1) as u64) as usize;
                match self.live.iter().nth(at) {
                    Some(n) if !removes.contains(n) => removes.push(*n),
                    _ => break,
                }
            }
            let quads = self.quads(adds);
            let (front, back) = quads.split_once(" . ").expect("several quads");
            let mut text = format!("INSERT DATA {{ {front} }} ; INSERT DATA {{ {back} }}");
            for &n in &removes {
                let _ = write!(text, " ; DELETE DATA {{ {} }}", self.quads(n));
            }
            self.open = Some(Transaction { adds, removes });
            match http.post("/update", &text) {
                None => return,
                Some((200, _)) => self.commit(),
                Some((status, body)) => panic!("{status} for {text}: {body}"),
            }
        }
    }

    fn commit(&mut self) {
        if let Some(t) = self.open.take() {
            self.live = after(&self.live, &t);
            self.acknowledged += 1;
        }
    }

    /// Compares the expected quads with those in the store, given as the parts of each number. A transaction that was
    /// not answered may be in the store completely or not at all.
    ///
    /// # Errors
    /// A description of the difference.
    pub fn settle(&mut self, found: &BTreeMap<u64, u32>) -> Result<(), String> {
        let whole = (1 << PARTS) - 1;
        if let Some((n, parts)) = found.iter().find(|f| *f.1 != whole) {
            return Err(format!(
                "client {}: of number {n} only the parts {parts:04b} are there; open: {:?}",
                self.name, self.open
            ));
        }
        let there: BTreeSet<u64> = found.keys().copied().collect();
        let open = self.open.take();
        let also = open.as_ref().map(|t| after(&self.live, t));
        if there == self.live {
            return Ok(());
        }
        if also.as_ref() == Some(&there) {
            self.live = there;
            return Ok(());
        }
        let lost: Vec<_> = self.live.difference(&there).collect();
        let more: Vec<_> = there.difference(&self.live).collect();
        Err(format!(
            "client {}: lost {lost:?}, and has {more:?} too many; open: {open:?}",
            self.name
        ))
    }
}

fn after(live: &BTreeSet<u64>, t: &Transaction) -> BTreeSet<u64> {
    let mut out = live.clone();
    out.insert(t.adds);
    for n in &t.removes {
        out.remove(n);
    }
    out
}
