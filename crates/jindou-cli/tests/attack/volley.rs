//! Sends one text, or several at once, to a server, and finds the broken promises.

use crate::requests::{Flight, Outcome, Request, ask};
use crate::server::{Machine, Server, Setting};
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The way in which a request is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The client waits for the answer.
    Wait,
    /// The clients close their connections this long after all texts were sent.
    Leave(Duration),
    /// The queries are deleted at `/admin/queries` this long after all texts were sent.
    Delete(Duration),
    /// The server gets SIGTERM this long after all texts were sent.
    Terminate(Duration),
}

/// A kind of broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The process ended.
    Died,
    /// The process used more memory than allowed.
    Memory,
    /// The server computed for longer than the time limit + 1 s.
    Late,
    /// The server did not end a request for [`STUCK`] after the time limit, although it did not compute.
    Stuck,
    /// The server computed for longer than 1 s after its clients had left.
    Outlives,
    /// The server computed after DELETE.
    Undeletable,
    /// The server computed for a query that `/admin/queries` did not list.
    Unlisted,
    /// The server computed after SIGTERM for longer than a shutdown may take.
    Unstoppable,
    /// A missing answer, or one with status 500.
    Broken,
    /// A thread panicked.
    Panic,
    /// Light queries were refused or not answered in the meantime.
    Others,
}

/// A broken promise, with its figures.
#[derive(Clone, Debug)]
pub struct Fault {
    pub class: Class,
    pub figures: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.class, self.figures)
    }
}

/// The results of a volley.
#[derive(Debug, Default)]
pub struct Seen {
    pub outcomes: Vec<Outcome>,
    pub faults: Vec<Fault>,
    pub peak: u64,
    /// Processor time after the time limit, or after the end that the plan asked for.
    pub over: Duration,
    pub took: Duration,
    /// The longest wait of a light query.
    pub wait: Duration,
    /// True if the process was killed because it used far too much memory.
    killed: bool,
}

/// Processor time that is allowed after the limit. A program built without optimisation gets more.
#[derive(Clone, Copy, Debug)]
pub struct Slack(pub Duration);

/// Multiple of the allowed processor time after which the process is killed. It shows that the process would not have
/// ended soon.
const WATCHED: u32 = 3;
/// Multiple of the allowed memory after which the process is killed.
const FAR_TOO_MUCH: u64 = 4;
/// A process that neither computes nor answers for this long is stuck.
const STUCK: Duration = Duration::from_secs(15);
/// Time that a server has for running requests before it exits (`--grace`).
pub const GRACE: Duration = Duration::from_secs(1);
/// Time between two checks of the process.
const LOOK: Duration = Duration::from_millis(5);

/// Sends a light query again and again.
pub struct Light {
    at: Arc<Mutex<Option<SocketAddr>>>,
    worst: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Light {
    pub fn start() -> Self {
        let light = Self {
            at: Arc::default(),
            worst: Arc::default(),
            asked: Arc::default(),
            failed: Arc::default(),
        };
        let (at, worst) = (light.at.clone(), light.worst.clone());
        let (asked, failed) = (light.asked.clone(), light.failed.clone());
        std::thread::spawn(move || {
            for n in 0u64.. {
                let to = *at.lock().expect("no thread panicked");
                if let Some(to) = to {
                    let path = format!(
                        "/query?query=SELECT%20*%20%7B%20%3Chttp://e/s{}%3E%20%3Chttp://e/n%3E%20?o%20%7D",
                        n % 300
                    );
                    let begun = Instant::now();
                    let (status, _) = ask(to, "GET", &path, "", "", Duration::from_secs(5));
                    worst.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                    asked.fetch_add(1, Ordering::Relaxed);
                    failed.fetch_add(u64::from(status != 200), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        light
    }

    /// Sets the server that gets the light queries; with `None` they stop.
    pub fn ask(&self, at: Option<SocketAddr>) {
        *self.at.lock().expect("no thread panicked") = at;
    }

    /// The longest wait, the number of queries, and the number of failed ones, since the last call.
    fn take(&self) -> (Duration, u64, u64) {
        let take = |n: &AtomicU64| n.swap(0, Ordering::Relaxed);
        (
            Duration::from_millis(take(&self.worst)),
            take(&self.asked),
            take(&self.failed),
        )
    }
}

/// Sends these requests at once, and watches the server until all have ended according to the plan. The server may have
/// been killed then.
pub fn throw(
    server: &mut Server,
    setting: &Setting,
    slack: Slack,
    plan: Plan,
    requests: &[Request],
    light: &Light,
    machine: &Machine,
) -> Seen {
    let mut watch = Watch {
        setting,
        slack,
        plan,
        many: requests.len() > 1,
        begun: Instant::now(),
        all_sent: None,
        limit: None,
        told: None,
        unlisted: None,
        listed: false,
        quiet_since: None,
        seen: Seen::default(),
    };
    server.reset_peak();
    light.take();
    machine.late();
    let to = server.address;
    let flights: Vec<Arc<Flight>> = requests.iter().map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        for (flight, request) in flights.iter().zip(requests) {
            scope.spawn(|| flight.fly(to, request));
        }
        while watch.look(server, &flights) {
            std::thread::sleep(LOOK);
        }
        // Clients that still read would wait in vain, so their connections are closed.
        flights.iter().for_each(|f| f.leave());
    });
    let (mut seen, begun) = (watch.seen, watch.begun);
    seen.took = begun.elapsed();
    seen.outcomes = flights.iter().map(|f| f.outcome()).collect();
    let fault = |class, figures: String| Fault { class, figures };
    let terminated = matches!(plan, Plan::Terminate(_));
    if seen.faults.is_empty() && !terminated {
        if !server.is_alive() && !seen.killed {
            seen.faults.push(fault(Class::Died, last(&server.errors())));
        }
        for (flight, got) in flights.iter().zip(&seen.outcomes) {
            if got.status == 0 && !seen.killed && !flight.has_left() && !got.enough {
                let said = format!("no answer: {}", got.said);
                seen.faults.push(fault(Class::Broken, said));
            }
        }
    }
    for got in seen.outcomes.iter().filter(|o| o.status == 500) {
        let said = format!("status 500: {}", got.said);
        seen.faults.push(fault(Class::Broken, said));
    }
    let errors = server.errors();
    if errors.contains("panicked") {
        seen.faults.push(fault(Class::Panic, last(&errors)));
    }
    seen.peak = seen.peak.max(server.peak());
    if seen.peak > setting.most() {
        seen.faults
            .insert(0, fault(Class::Memory, format!("{} MiB", seen.peak >> 20)));
    }
    let (wait, asked, failed) = light.take();
    seen.wait = wait;
    let late = machine.late();
    if asked >= 6
        && failed * 2 > asked
        && !terminated
        && late < Duration::from_millis(500)
        && server.is_alive()
    {
        let figures = format!("{failed} of {asked} light queries failed");
        seen.faults.push(fault(Class::Others, figures));
    }
    seen
}

/// The last lines of the server's messages, as one line.
fn last(errors: &str) -> String {
    let mut lines: Vec<&str> = errors.lines().rev().take(3).collect();
    lines.reverse();
    lines.join(" / ").chars().take(400).collect()
}

struct Watch<'a> {
    setting: &'a Setting,
    slack: Slack,
    plan: Plan,
    many: bool,
    begun: Instant,
    all_sent: Option<Instant>,
    /// The time from which computing counts as too long, and the process's processor time at that moment.
    limit: Option<(Instant, Duration)>,
    /// The time at which SIGTERM was sent.
    told: Option<Instant>,
    /// The process's processor time at the first DELETE round, to measure computing for unlisted queries.
    unlisted: Option<Duration>,
    /// True once one of the queries was listed.
    listed: bool,
    quiet_since: Option<Instant>,
    seen: Seen,
}

impl Watch<'_> {
    /// Checks the process once. Returns false if the volley has ended.
    fn look(&mut self, server: &mut Server, flights: &[Arc<Flight>]) -> bool {
        let now = Instant::now();
        let resident = server.resident();
        self.seen.peak = self.seen.peak.max(resident);
        if resident > self.setting.most() * FAR_TOO_MUCH {
            self.seen.peak = self.seen.peak.max(server.peak());
            self.seen.killed = true;
            server.kill();
            return false;
        }
        let open = flights.iter().filter(|f| !f.is_done()).count();
        if self.all_sent.is_none() && flights.iter().all(|f| f.is_sent()) {
            self.all_sent = Some(now);
        }
        if !server.is_alive() {
            self.judge(self.seen.over, now);
            return false;
        }
        if self.limit.is_none() {
            self.begin(server, flights, open, now);
        }
        let over = match self.limit {
            Some((_, cpu)) => server.cpu().saturating_sub(cpu),
            None => Duration::ZERO,
        };
        self.seen.over = over;
        if self.has_ended(server, open, now) {
            self.judge(over, now);
            return false;
        }
        let Some((since, _)) = self.limit else {
            return true;
        };
        let waited = now - since;
        if over >= self.allowed() * WATCHED {
            self.judge(over, now);
            self.seen.peak = self.seen.peak.max(server.peak());
            server.kill();
            return false;
        }
        if waited > STUCK + self.slack.0 && !server.is_busy() {
            let figures = format!(
                "{:.1} s without an end, and without computing",
                waited.as_secs_f64()
            );
            self.seen.faults.push(Fault {
                class: Class::Stuck,
                figures,
            });
            server.kill();
            return false;
        }
        true
    }

    /// Sets `limit` when the time limit is over, or carries out the plan when its time has come.
    fn begin(&mut self, server: &Server, flights: &[Arc<Flight>], open: usize, now: Instant) {
        let timeout = self.setting.timeout;
        let at = |since: Instant| Some((since, server.cpu()));
        if now - self.begun > timeout && !matches!(self.plan, Plan::Terminate(_)) {
            self.limit = at(now);
        }
        let Some(sent) = self.all_sent else { return };
        match self.plan {
            Plan::Leave(after) if now - sent >= after && open > 0 => {
                flights.iter().for_each(|f| f.leave());
                self.limit = at(now);
            }
            Plan::Terminate(after) if now - sent >= after => match self.told {
                None => {
                    server.terminate();
                    self.told = Some(now);
                }
                Some(told) if now - told >= GRACE => self.limit = at(now),
                Some(_) => {}
            },
            Plan::Delete(after) if now - sent >= after && open > 0 => {
                self.delete(server, open, now)
            }
            _ => {}
        }
    }

    /// Deletes the listed queries. Computing for a long time without a listed query is a fault.
    fn delete(&mut self, server: &Server, open: usize, now: Instant) {
        let short = Duration::from_secs(2);
        let (_, list) = ask(server.address, "GET", "/admin/queries", "", "", short);
        let list: serde_json::Value = serde_json::from_str(&list).unwrap_or_default();
        let ids = list["queries"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let ids: BTreeSet<String> = ids
            .iter()
            .filter(|q| {
                !q["query"]
                    .as_str()
                    .unwrap_or_default()
                    .starts_with("SELECT * { <http://e/s")
            })
            .map(|q| q["id"].to_string())
            .collect();
        self.listed |= !ids.is_empty();
        for id in &ids {
            ask(
                server.address,
                "DELETE",
                &format!("/admin/queries/{id}"),
                "",
                "",
                short,
            );
        }
        let cpu = server.cpu();
        let first = *self.unlisted.get_or_insert(cpu);
        if ids.len() >= open {
            self.limit = Some((now, cpu));
        } else if !self.listed && cpu - first > Duration::from_millis(400) && server.is_busy() {
            let figures = format!(
                "{} ms of computing after the text came",
                (cpu - first).as_millis()
            );
            self.seen.faults.push(Fault {
                class: Class::Unlisted,
                figures,
            });
            // From now on only the time limit ends the query.
            self.plan = Plan::Wait;
        }
    }

    fn has_ended(&mut self, server: &mut Server, open: usize, now: Instant) -> bool {
        match self.plan {
            Plan::Terminate(_) => false,
            // No client waits for an answer any more, so the end is when the process stops computing.
            Plan::Leave(_) if self.limit.is_some() => {
                if server.is_busy() {
                    self.quiet_since = None;
                    return false;
                }
                let since = *self.quiet_since.get_or_insert(now);
                now - since > Duration::from_millis(60)
            }
            _ => open == 0,
        }
    }

    /// Processor time that is allowed after the limit. Several queries may use several cores.
    fn allowed(&self) -> Duration {
        match self.many {
            true => self.slack.0 * 2,
            false => self.slack.0,
        }
    }

    fn judge(&mut self, over: Duration, now: Instant) {
        let waited = self.limit.map_or(Duration::ZERO, |(since, _)| now - since);
        if over <= self.allowed() || waited <= self.slack.0 {
            return;
        }
        let class = match self.plan {
            Plan::Wait => Class::Late,
            Plan::Leave(_) => Class::Outlives,
            Plan::Delete(_) => Class::Undeletable,
            Plan::Terminate(_) => Class::Unstoppable,
        };
        let figures = format!("{:.1} s of computing too long", over.as_secs_f64());
        self.seen.faults.push(Fault { class, figures });
    }
}
