//! Heavy and light clients over HTTP, with `--gpu` off, on and auto. Each setting has its own server in this process,
//! started as by `jindou serve`. Each query is measured alone, then all together.

use crate::figures::{Goal, say_figure, say_wrong};
use crate::{Options, median};
use jindou::{Database, GpuChoice, OpenOptions, Runtime};
use jindou_model::Result;
use jindou_server::{Server, ServerOptions};
use jindou_workloads::client::{Client, failed, request};
use jindou_workloads::queries::lubm::{Constants, LIGHT, QUERIES};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counting queries that were recorded over HTTP on an H200: a triangle over five predicates, and the distinct ends of
/// a join.
const SERVED: &str = include_str!("../../../../crates/jindou-gpu/tests/recorded/served.tsv");
/// Milliseconds that they took on the H200 with LUBM-10240.
const RECORDED: [(&str, f64); 2] = [("T", 4.7), ("D", 7.0)];
const HEAVY: usize = 8;
const LIGHT_CLIENTS: usize = 4;
/// Constants of each light template.
const CONSTANTS: usize = 500;
/// The longest time for which all clients run together.
const TOGETHER: Duration = Duration::from_secs(8);
/// Timeout for opening a device and measuring its speeds.
const OPENED: Duration = Duration::from_secs(10);
/// Factor by which the time of `auto` may exceed the better time of `on` and `off`, and its rate may fall short of the
/// better rate. `KEPT` is the share of their rate that light queries should reach alongside a GPU's heavy ones.
const SLACK: f64 = 1.1;
const KEPT: f64 = 0.8;

/// A heavy query: a request for its count.
struct HeavyQuery {
    name: String,
    request: Vec<u8>,
}

fn heavy_queries() -> Vec<HeavyQuery> {
    let counts = QUERIES
        .iter()
        .filter(|q| ["L1", "L2", "L7"].contains(&q.name));
    let counts = counts.map(|q| (q.name, counted(q.text)));
    let served = SERVED.lines().filter_map(|l| l.split_once('\t'));
    let served = served.map(|(name, text)| (name, text.to_owned()));
    let all = counts.chain(served);
    all.map(|(name, text)| HeavyQuery {
        name: name.to_owned(),
        request: request(&text),
    })
    .collect()
}

/// The query that counts the rows of another query.
fn counted(text: &str) -> String {
    match (text.find("SELECT"), text.find("WHERE")) {
        (Some(select), Some(wher)) => {
            format!(
                "{}SELECT (COUNT(*) AS ?n) {}",
                &text[..select],
                &text[wher..]
            )
        }
        _ => text.to_owned(),
    }
}

fn light_requests(universities: u32) -> Vec<Vec<u8>> {
    let mut out = vec![];
    for (i, template) in LIGHT.iter().enumerate() {
        let mut constants = Constants::new(universities, 0, i as u64 + 1);
        let drawn = (0..CONSTANTS).filter_map(|_| constants.draw(template.class));
        out.extend(drawn.map(|iri| request(&template.with(&iri))));
    }
    out
}

/// Rates and times of the answers when all clients run together.
struct Together {
    heavy_a_second: f64,
    light_a_second: f64,
    light_median: f64,
    light_p99: f64,
    refused: u64,
}

/// Runs heavy and light clients together for this long.
fn together(
    to: SocketAddr,
    heavy: &[HeavyQuery],
    light: &[Vec<u8>],
    time: Duration,
) -> Result<Together> {
    let refused = AtomicU64::new(0);
    let began = Instant::now();
    let client = |number: usize| -> Result<Vec<f64>> {
        let is_heavy = number < HEAVY;
        let mut client = Client::connect(to)?;
        let (mut ms, mut next) = (vec![], number * 131);
        while began.elapsed() < time {
            let request = match is_heavy {
                true => &heavy[next % heavy.len()].request,
                false => &light[next % light.len()],
            };
            next += 1;
            let asked = Instant::now();
            match client.ask(request)? {
                200 => ms.push(asked.elapsed().as_secs_f64() * 1e3),
                503 => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                status => {
                    let body = String::from_utf8_lossy(&client.body);
                    return Err(failed("an answer", format!("{status} {body}")));
                }
            }
        }
        Ok(ms)
    };
    let client = &client;
    let seen: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let clients = (0..HEAVY + LIGHT_CLIENTS).map(|n| scope.spawn(move || client(n)));
        let clients: Vec<_> = clients.collect();
        let joined = clients.into_iter().map(|c| {
            c.join()
                .unwrap_or_else(|_| Err(failed("a client", "panicked")))
        });
        joined.collect::<Result<_>>()
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let (heavy, light) = seen.split_at(HEAVY);
    let mut light: Vec<f64> = light.concat();
    light.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| light.get((light.len().max(1) - 1) * (q * 100.0) as usize / 100);
    Ok(Together {
        heavy_a_second: heavy.iter().map(Vec::len).sum::<usize>() as f64 / seconds,
        light_a_second: light.len() as f64 / seconds,
        light_median: at(0.5).copied().unwrap_or(0.0),
        light_p99: at(0.99).copied().unwrap_or(0.0),
        refused: refused.into_inner(),
    })
}

/// Figures of the earlier runs (GPU off, then on), for each heavy query: its first time, and the best of the medians.
#[derive(Default)]
struct Before {
    first: Vec<Option<f64>>,
    best: Vec<Option<f64>>,
    heavy: f64,
    light: Option<(f64, f64)>,
}

struct Served<'o> {
    o: &'o Options,
    heavy: Vec<HeavyQuery>,
    light: Vec<Vec<u8>>,
    /// The first answer to each heavy query, with which later ones are compared.
    answers: Vec<Option<Vec<u8>>>,
    before: Before,
    right: bool,
    left_out: Vec<String>,
}

impl Served<'_> {
    /// Runs each heavy query alone, until the time `until`.
    fn alone(&mut self, to: SocketAddr, how: &str, until: Instant) -> Result<()> {
        let mut client = Client::connect(to)?;
        for i in 0..self.heavy.len() {
            let name = self.heavy[i].name.clone();
            let what = format!("{name} over HTTP, --gpu {how}");
            if Instant::now() > until {
                self.left_out.push(what);
                continue;
            }
            let mut ms = vec![];
            for _ in 0..self.o.repeat + 4 {
                if ms.len() > 4 && Instant::now() > until {
                    break;
                }
                let asked = Instant::now();
                let status = client.ask(&self.heavy[i].request)?;
                ms.push(asked.elapsed().as_secs_f64() * 1e3);
                let body = &client.body;
                let text = || String::from_utf8_lossy(body).into_owned();
                if status != 200 {
                    return Err(failed(&what, format!("{status} {}", text())));
                }
                let wanted = self.answers[i].get_or_insert_with(|| body.clone());
                if wanted != body {
                    self.right = false;
                    say_wrong(&what, &String::from_utf8_lossy(wanted), &text());
                }
            }
            let (first, runs) = (ms[0], ms.len());
            // The first runs upload segments and teach the cost model, so they do not count.
            let had = median(&mut ms[4..]);
            let before = (self.before.first[i], self.before.best[i]);
            let recorded = RECORDED.iter().find(|r| r.0 == name).map(|r| r.1);
            let goal = match (how, before.1) {
                ("auto", Some(best)) => Some(Goal::AtMost(SLACK * best)),
                ("on", _) if self.o.universities == 10_240 => recorded.map(Goal::AtMost),
                _ => None,
            };
            let more =
                json!({ "query": name, "gpu": how, "threads": self.o.threads, "runs": runs });
            say_figure(self.o, &what, "ms", goal, Some(had), more.clone());
            // With `auto`, no query waits until the device is open.
            let goal = match (how, before.0) {
                ("auto", Some(off)) => Some(Goal::AtMost(2.0 * off.max(1.0))),
                _ => None,
            };
            say_figure(
                self.o,
                &format!("{what}, first time"),
                "ms",
                goal,
                Some(first),
                more,
            );
            if how == "off" {
                self.before.first[i] = Some(first);
            }
            let best = self.before.best[i].map_or(had, |b| b.min(had));
            self.before.best[i] = Some(best);
        }
        Ok(())
    }

    fn mixed(&mut self, to: SocketAddr, how: &str, time: Duration) -> Result<()> {
        let t = together(to, &self.heavy, &self.light, time)?;
        let (before, off) = (self.before.heavy, self.before.light);
        let heavy_goal = match how {
            "off" => None,
            "on" => Some(Goal::AtLeast(before)),
            _ => Some(Goal::AtLeast(before / SLACK)),
        };
        let more = json!({
            "gpu": how, "heavy_clients": HEAVY, "light_clients": LIGHT_CLIENTS, "threads": self.o.threads,
            "seconds": time.as_secs_f64(), "refused": t.refused,
        });
        let say = |what: &str, unit: &str, goal, had: f64| {
            let what = format!("{what}, --gpu {how}");
            say_figure(self.o, &what, unit, goal, Some(had), more.clone());
        };
        let rate = off.map(|l| Goal::AtLeast(KEPT * l.0));
        let slowest = off.map(|l| Goal::AtMost(l.1 / KEPT));
        say("mixed, heavy answers", "1/s", heavy_goal, t.heavy_a_second);
        say("mixed, light answers", "1/s", rate, t.light_a_second);
        say("mixed, light queries' median", "ms", None, t.light_median);
        say(
            "mixed, light queries' 99th percentile",
            "ms",
            slowest,
            t.light_p99,
        );
        self.before.heavy = before.max(t.heavy_a_second);
        if how == "off" {
            self.before.light = Some((t.light_a_second, t.light_p99));
        }
        Ok(())
    }
}

pub fn measure(o: &Options) -> Result<bool> {
    let heavy = heavy_queries();
    let none = vec![None; heavy.len()];
    let mut served = Served {
        o,
        answers: vec![None; heavy.len()],
        before: Before {
            first: none.clone(),
            best: none,
            ..Before::default()
        },
        light: light_requests(o.universities),
        heavy,
        right: true,
        left_out: vec![],
    };
    let choices = [
        (GpuChoice::Off, "off"),
        (GpuChoice::On, "on"),
        (GpuChoice::Auto, "auto"),
    ];
    for (i, (choice, how)) in choices.into_iter().enumerate() {
        if o.is_over() {
            served.left_out.push(format!("--gpu {how}"));
            continue;
        }
        // Half of this setting's share of the time is for the queries alone.
        let share = (o.left() / (choices.len() - i) as u32).min(6 * TOGETHER);
        let until = Instant::now() + share / 2;
        let runtime = Runtime::builder().threads(o.threads).build();
        let opened = runtime.clone();
        let mut options = ServerOptions::on(&runtime);
        (options.port, options.gpu) = (0, choice);
        let db = Database::open_with(&o.store, &OpenOptions::default().with_runtime(runtime))?;
        let server = Server::start(db, options).map_err(|e| failed("the server", e))?;
        let to = server.address();
        // Opening a device takes some 0.3 s, in which `auto` answers a hundred queries on the CPU.
        if matches!(choice, GpuChoice::Auto) {
            opened.wait_for_gpu(OPENED);
        }
        let ran = served
            .alone(to, how, until)
            .and_then(|()| served.mixed(to, how, (share / 3).min(TOGETHER)));
        server.stop();
        ran?;
    }
    o.say_left_out(&served.left_out);
    Ok(served.right)
}
