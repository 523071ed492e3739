//! The same clients over HTTP on loopback: a server in this process, and a connection and a thread for each client.

use super::arrivals::{Arrivals, Random};
use super::emulate::{Plan, Setup, Task};
use super::machine::Reading;
use super::outcome::{MOST_SAMPLES, Outcome, SAMPLE, Stats};
use crate::measure::{cpu_time, resident_memory};
use jindou::Result;
use jindou_server::{Server, ServerOptions};
use jindou_workloads::client::{Client, failed, request};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The grouping of queries into requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Travel {
    /// Queries per request to `/batch`; with 1, each query is a request to `/prepared/ID`.
    pub batch: usize,
    /// Requests that a connection sends before it reads their answers.
    pub pipeline: usize,
}

/// Encoded requests, indexed by class and start point: a whole request each, or a line of a batch.
struct Requests(Vec<Vec<Vec<u8>>>);

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
        out
    })
}

/// Prepares the classes at the server, and encodes all requests.
fn requests(setup: &Setup, to: SocketAddr, batch: usize) -> Result<Requests> {
    let mut client = Client::connect(to)?;
    let mut all = vec![];
    for c in &setup.classes {
        let text = c.prepared.text();
        let head = format!(
            "POST /prepared?parameter=start HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/sparql-query\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        let status = client.ask(head.as_bytes())?;
        let answer: serde_json::Value =
            serde_json::from_slice(&client.body).map_err(|e| failed("preparing", e))?;
        let id = answer["id"]
            .as_str()
            .filter(|_| status == 201)
            .ok_or_else(|| failed("preparing", &answer))?;
        let write = |start: &oxrdf::Term| {
            if batch > 1 {
                let line =
                    serde_json::json!({ "id": id, "values": { "start": start.to_string() } });
                format!("{line}\n").into_bytes()
            } else {
                let start = escape(&start.to_string());
                format!("GET /prepared/{id}?$start={start} HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    .into_bytes()
            }
        };
        all.push(c.starts.iter().map(write).collect());
    }
    Ok(Requests(all))
}

/// A client that is more than this behind skips the queries that it missed. They count as unsent rather than in any
/// latency.
const MOST_BEHIND: Duration = Duration::from_millis(5);

struct ClientContext<'a> {
    setup: &'a Setup,
    requests: Requests,
    /// A request for each heavy query.
    heavy: Vec<Vec<u8>>,
    travel: Travel,
    recording: AtomicBool,
    going: AtomicBool,
}

/// Number of rows of an answer, 1 for a boolean that is true.
fn rows(answer: &serde_json::Value) -> Option<u64> {
    match &answer["boolean"] {
        serde_json::Value::Bool(b) => Some(u64::from(*b)),
        _ => Some(answer["results"]["bindings"].as_array()?.len() as u64),
    }
}

impl ClientContext<'_> {
    /// One round trip: sends some queries and reads their answers. `due` is the intended time.
    fn exchange(
        &self,
        client: &mut Client,
        random: &mut Random,
        text: &mut Vec<u8>,
        seen: &mut Stats,
        due: Instant,
    ) -> Result<()> {
        let Travel { batch, pipeline } = self.travel;
        let mut asked = Vec::with_capacity(batch * pipeline);
        text.clear();
        for _ in 0..pipeline {
            let mut lines = vec![];
            for _ in 0..batch {
                let Task::Light { class, start } = self.setup.draw(random) else {
                    continue;
                };
                let request = &self.requests.0[usize::from(class)][start as usize];
                asked.push((class, start));
                if batch > 1 {
                    lines.extend_from_slice(request);
                } else {
                    text.extend_from_slice(request);
                }
            }
            if batch > 1 {
                let _ = write!(
                    text,
                    "POST /batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
                    lines.len()
                );
                text.extend_from_slice(&lines);
            }
        }
        client.send(text)?;
        for asked in asked.chunks(batch) {
            let status = client.receive()?;
            if !self.recording.load(Ordering::Relaxed) {
                continue;
            }
            if status == 503 {
                let retry = client
                    .retry_after
                    .ok_or_else(|| failed("answer", "503 without Retry-After"))?;
                seen.refused += asked.len() as u64;
                seen.retry = seen.retry.max(retry);
                continue;
            }
            if status != 200 {
                let body = String::from_utf8_lossy(&client.body);
                return Err(failed("answer", format!("{status} {body}")));
            }
            let latency = due.elapsed();
            for (n, &(class, start)) in asked.iter().enumerate() {
                seen.latencies[usize::from(class)].add(latency);
                seen.turn += 1;
                if seen.turn.is_multiple_of(SAMPLE) && seen.samples.len() < MOST_SAMPLES {
                    let line = match batch {
                        1 => Some(&client.body[..]),
                        _ => client.body.split(|b| *b == b'\n').nth(n),
                    };
                    let answer = line.and_then(|l| serde_json::from_slice(l).ok());
                    let rows = answer
                        .as_ref()
                        .and_then(rows)
                        .ok_or_else(|| failed("answer", String::from_utf8_lossy(&client.body)))?;
                    seen.samples.push((class, start, rows));
                }
            }
        }
        Ok(())
    }

    /// A client that sends heavy queries one after the other.
    fn heavy_client(&self, to: SocketAddr, number: usize, plan: &Plan) -> Result<Stats> {
        let mut client = Client::connect(to)?;
        let mut random = Random::new(plan.seed + 31 * number as u64);
        let mut seen = Stats::new(self.setup.names().count());
        let mut query = (number % self.heavy.len().max(1)) as u16;
        while self.going.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let status = client.ask(&self.heavy[usize::from(query)])?;
            let latency = begin.elapsed();
            match status {
                _ if !self.recording.load(Ordering::Relaxed) => {}
                200 => {
                    let at = self.setup.classes.len() + usize::from(query);
                    seen.latencies[at].add(latency);
                }
                503 => seen.refused += 1,
                _ => {
                    let body = String::from_utf8_lossy(&client.body);
                    return Err(failed("a heavy query", format!("{status} {body}")));
                }
            }
            if let Task::Heavy(next) = self.setup.after(query, &mut random) {
                query = next;
            }
        }
        Ok(seen)
    }

    fn client(&self, to: SocketAddr, number: usize, plan: &Plan) -> Result<Stats> {
        let mut client = Client::connect(to)?;
        let mut random = Random::new(plan.seed + 77 * number as u64);
        let mut text = vec![];
        let mut seen = Stats::new(self.setup.names().count());
        let mut due = Instant::now();
        while self.going.load(Ordering::Relaxed) {
            match plan.arrivals {
                Arrivals::Open { rate, clients } => {
                    let queries = (self.travel.batch * self.travel.pipeline) as f64;
                    let each = rate / (queries * clients.max(1) as f64);
                    due += random.gap(each);
                    let now = Instant::now();
                    let behind = now.saturating_duration_since(due);
                    if behind > MOST_BEHIND {
                        if self.recording.load(Ordering::Relaxed) {
                            seen.unsent += (behind.as_secs_f64() * each * queries) as u64;
                        }
                        due = now;
                    }
                    std::thread::sleep(due.saturating_duration_since(now));
                }
                _ => due = Instant::now(),
            }
            self.exchange(&mut client, &mut random, &mut text, &mut seen, due)?;
        }
        Ok(seen)
    }
}

/// Runs the clients against a server of this process.
pub fn run(
    setup: &Arc<Setup>,
    options: ServerOptions,
    travel: Travel,
    plan: &Plan,
) -> Result<Outcome> {
    let server = Server::start(setup.db.clone(), options).map_err(|e| failed("the server", e))?;
    let to = server.address();
    let shared = ClientContext {
        requests: requests(setup, to, travel.batch)?,
        heavy: setup.heavy.iter().map(|h| request(&h.text)).collect(),
        setup,
        travel,
        recording: AtomicBool::new(false),
        going: AtomicBool::new(true),
    };
    let clients = match plan.arrivals {
        Arrivals::Closed { clients, .. } | Arrivals::Open { clients, .. } => clients.max(1),
        Arrivals::None => 0,
    };
    let mut memory = [0; 3];
    let mut out = Outcome::default();
    let (seen, seconds, processor) = std::thread::scope(|scope| {
        let shared = &shared;
        let mut threads: Vec<_> = (0..clients)
            .map(|n| scope.spawn(move || shared.client(to, n, plan)))
            .collect();
        let heavy = 0..plan.heavy_clients;
        threads.extend(heavy.map(|n| scope.spawn(move || shared.heavy_client(to, n, plan))));
        std::thread::sleep(plan.warm_up);
        memory[0] = resident_memory().0;
        let reading = Reading::now();
        let (from, processor) = (Instant::now(), cpu_time());
        shared.recording.store(true, Ordering::Relaxed);
        std::thread::sleep(plan.duration);
        shared.recording.store(false, Ordering::Relaxed);
        let seconds = from.elapsed().as_secs_f64();
        let processor = cpu_time().saturating_sub(processor).as_secs_f64();
        out.taken = Reading::now().since(&reading);
        memory[1] = resident_memory().0;
        memory[2] = memory[0].max(memory[1]);
        shared.going.store(false, Ordering::Relaxed);
        let seen: Vec<Result<Stats>> = threads
            .into_iter()
            .map(|t| {
                t.join()
                    .unwrap_or_else(|_| Err(failed("a client", "panicked")))
            })
            .collect();
        (seen, seconds, processor)
    });
    server.stop();
    (out.seconds, out.processor, out.memory) = (seconds, processor, memory);
    for s in seen {
        out.add(setup, s?)?;
    }
    out.after.clear();
    Ok(out)
}
