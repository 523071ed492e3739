//! `jindou bench http`: the fixed cost of a request, next to a bare hyper server and Oxigraph. All servers are measured
//! in turn, by the same client on the same cores.

pub mod bare;
mod servers;

use crate::args::http::BenchHttp;
use crate::measure::{Times, temporary_folder, write_json};
use jindou::{Error, Result};
use jindou_testing::http::escape;
use jindou_testing::time_of_process;
use jindou_workloads::client::{Client, failed};
use jindou_workloads::queries::lubm::{Constants, LIGHT};
use serde_json::json;
use servers::{Server, Servers};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
struct Setting {
    connections: usize,
    /// Requests that are sent before their answers are read.
    pipeline: usize,
    pause: Duration,
}

const SETTINGS: [Setting; 6] = {
    let one = Setting {
        connections: 1,
        pipeline: 1,
        pause: Duration::ZERO,
    };
    let (connections, pipeline) = (4, 16);
    [
        one,
        Setting {
            pause: Duration::from_millis(1),
            ..one
        },
        Setting {
            pause: Duration::from_millis(5),
            ..one
        },
        Setting { connections, ..one },
        Setting {
            connections: 8,
            ..one
        },
        Setting { pipeline, ..one },
    ]
};

/// The measurements of one server in one setting, one for each round.
#[derive(Default)]
struct Measured {
    /// Processor time of the server for each request.
    processor: Vec<Duration>,
    /// Time from sending requests to the last of their answers: the median of each round.
    latency: Vec<Duration>,
    /// Requests per second.
    rate: Vec<f64>,
}

/// A request and the body of its answer.
struct Question {
    request: Vec<u8>,
    body: Vec<u8>,
}

pub fn run(a: &BenchHttp) -> Result<ExitCode> {
    let servers = Servers::start(a, temporary_folder(None)?)?;
    let mut light = Constants::new(1, 0, 1);
    let constant = light.draw(LIGHT[0].class).unwrap_or_default();
    let mut document = vec![];
    for (name, query) in [("ASK {}", "ASK {}"), ("light", &LIGHT[0].with(&constant))] {
        let questions = questions(&servers.all, query)?;
        println!("{name}: processor time of a request, latency, requests per second");
        for setting in SETTINGS {
            let able = servers.all.iter().zip(&questions);
            let able = able.filter(|(server, _)| server.pipelines || setting.pipeline == 1);
            let mut all: Vec<_> = able.map(|(s, q)| (s, q, Measured::default())).collect();
            for _ in 0..a.rounds {
                for (server, question, m) in &mut all {
                    m.add(measure(server, question, setting, a.requests as usize)?);
                }
            }
            print(setting, &all);
            document.extend(all.iter().map(|(server, _, m)| {
                json!({
                    "query": name, "server": server.name, "connections": setting.connections,
                    "pipeline": setting.pipeline, "pause_ms": setting.pause.as_secs_f64() * 1e3,
                    "processor_us": m.processor(), "latency_us": m.latency(), "rate": m.rate(),
                })
            }));
        }
    }
    if let Some(to) = &a.json {
        write_json(to, &json!(document))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The request for each server with its answer. The answers of all servers must have the same rows; CSV has the same
/// text for them in any order.
fn questions(servers: &[Server], query: &str) -> Result<Vec<Question>> {
    let request = |accept: &str| {
        let query = escape(query);
        format!("GET /query?query={query} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n")
            .into_bytes()
    };
    let is_ask = query.starts_with("ASK");
    let mut expected: Option<Vec<Vec<u8>>> = None;
    let mut all = vec![];
    for server in servers {
        let mut client = server.address.connect()?;
        // hyper's answer is that of ASK.
        let accept = match is_ask {
            true => "application/sparql-results+json",
            false => "text/csv",
        };
        let request = request(accept);
        ask(&mut client, &request, server.name)?;
        let body = client.body.clone();
        if server.answers {
            let mut lines: Vec<Vec<u8>> = match is_ask {
                true => {
                    let answer: serde_json::Value =
                        serde_json::from_slice(&body).map_err(|e| failed(server.name, e))?;
                    vec![answer["boolean"].to_string().into_bytes()]
                }
                false => {
                    let lines = body.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
                    lines.map(<[u8]>::to_vec).collect()
                }
            };
            lines.sort();
            let first = expected.get_or_insert_with(|| lines.clone());
            if *first != lines || lines.concat().is_empty() {
                return Err(Error::Internal(format!(
                    "{} answers {query} otherwise than {}",
                    server.name, servers[1].name
                )));
            }
        }
        all.push(Question { request, body });
    }
    Ok(all)
}

fn ask(client: &mut Client, request: &[u8], name: &str) -> Result<()> {
    match client.ask(request)? {
        200 => Ok(()),
        status => Err(failed(name, status)),
    }
}

/// Processor time of a request, latency of each, and requests per second.
type Sample = (Duration, Times, f64);

fn measure(server: &Server, question: &Question, s: Setting, requests: usize) -> Result<Sample> {
    let requests = match s.pause.is_zero() {
        true => requests,
        false => requests / 10,
    };
    let each = requests / (s.connections * s.pipeline);
    let text = question.request.repeat(s.pipeline);
    let clients: Vec<Client> = (0..s.connections)
        .map(|_| {
            let mut client = server.address.connect()?;
            ask(&mut client, &question.request, server.name)?;
            Ok(client)
        })
        .collect::<Result<_>>()?;
    let (begun, processor) = (Instant::now(), time_of_process(server.process));
    let latencies = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| converse(client, &text, question, s, each)))
            .collect();
        let mut all = vec![];
        for thread in threads {
            let joined = thread.join();
            all.extend(joined.map_err(|_| failed("a client", "panicked"))??);
        }
        Ok::<_, Error>(all)
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let processor = time_of_process(server.process).saturating_sub(processor);
    let count = (each * s.connections * s.pipeline) as u32;
    Ok((
        processor / count,
        Times::new(latencies),
        f64::from(count) / seconds,
    ))
}

/// Sends requests over one connection, and checks all answers. Returns how long each took.
fn converse(
    mut client: Client,
    text: &[u8],
    question: &Question,
    s: Setting,
    count: usize,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        if !s.pause.is_zero() {
            std::thread::sleep(s.pause);
        }
        let begun = Instant::now();
        client.send(text)?;
        for _ in 0..s.pipeline {
            let status = client.receive()?;
            if status != 200 || client.body != question.body {
                let body = String::from_utf8_lossy(&client.body);
                return Err(failed(
                    "another answer than before",
                    format!("{status} {body}"),
                ));
            }
        }
        latencies.push(begun.elapsed());
    }
    Ok(latencies)
}

impl Measured {
    fn add(&mut self, (processor, latencies, rate): Sample) {
        self.processor.push(processor);
        self.latency
            .push(Duration::from_secs_f64(latencies.median() / 1e3));
        self.rate.push(rate);
    }

    /// The median in microseconds.
    fn processor(&self) -> f64 {
        Times::new(self.processor.iter().copied()).median() * 1e3
    }

    /// The median in microseconds.
    fn latency(&self) -> f64 {
        Times::new(self.latency.iter().copied()).median() * 1e3
    }

    fn rate(&self) -> f64 {
        let mut rates = self.rate.clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }
}

fn print(s: Setting, all: &[(&Server, &Question, Measured)]) {
    println!(
        "  {} connections, {} pipelined, pause of {} ms",
        s.connections,
        s.pipeline,
        s.pause.as_millis()
    );
    for (server, _, m) in all {
        let (processor, latency, rate) = (m.processor(), m.latency(), m.rate());
        println!(
            "    {:<9} {processor:>8.1} µs {latency:>8.1} µs {rate:>9.0}/s",
            server.name
        );
    }
}
