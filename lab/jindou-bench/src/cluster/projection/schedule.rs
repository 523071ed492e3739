//! Recorded queries on servers that are not there: a discrete-event simulation of cores that are taken in turn, links of a bandwidth and a
//! latency, and what a message costs a processor. The same queries in the same order always take the same time.
//!
//! A core does a slice of work at a time. Messages and their answers come before the work of parts, as threads that were asleep come before
//! those that computed long. Work of a part is begun in the order of the recording as far as the messages are there that cause it, by as many
//! threads as a part may have.

use super::trace::{Message, Op, Trace, TraceKind};
use jindou::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Nanoseconds for which a core works at one thing while others wait.
const SLICE: u64 = 20_000;

/// Processor time of one side of a message and its answer, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Whatever their length: half of it with the message, half with the answer.
    pub fixed: f64,
    /// Each byte of the message.
    pub sent: f64,
    /// Each byte of the answer.
    pub received: f64,
}

impl Cost {
    fn message(&self, m: &Message) -> u64 {
        (self.fixed / 2.0 + self.sent * m.sent as f64) as u64
    }

    fn answer(&self, m: &Message) -> u64 {
        (self.fixed / 2.0 + self.received * m.received as f64) as u64
    }
}

/// A network between servers. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    pub name: &'static str,
    /// One way, without the processors' work.
    pub latency: f64,
    /// A byte on the link out of a server.
    pub byte: f64,
    /// Cost to the one who asks.
    pub asking: Cost,
    /// Cost to the one who answers, without the answer's own work.
    pub serving: Cost,
}

impl Fabric {
    /// A small message and its answer.
    pub fn round(&self) -> f64 {
        2.0 * self.latency + self.asking.fixed + self.serving.fixed
    }
}

/// Servers of one shard each.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    pub servers: usize,
    /// Cores of a server.
    pub cores: usize,
    /// Threads of a query's part at most.
    pub workers: usize,
}

/// The continuation after the operations of a thread.
#[derive(Clone, Copy)]
enum Then<'t> {
    /// The query's end.
    Home,
    /// The end of a job of a part.
    Job { part: usize, job: usize },
    /// The answer to a message of another thread.
    Answer { to: usize, message: &'t Message },
}

/// A thread at some place of its operations.
struct Thread<'t> {
    query: usize,
    server: usize,
    ops: &'t [Op],
    at: usize,
    /// Answers for which it waits.
    waiting: usize,
    /// True while the thread waits for the message of its present operation.
    is_parked: bool,
    then: Then<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum JobState {
    Pending,
    Running,
    Done,
}

struct ServerQueue {
    jobs: Vec<JobState>,
    /// Jobs before this one are done.
    first: usize,
    running: usize,
}

struct Query<'t> {
    trace: &'t Trace,
    client: usize,
    /// The server of shard 0.
    turned: usize,
    began: u64,
    told: Vec<bool>,
    parts: Vec<ServerQueue>,
    home: usize,
}

/// A core's next action when it has done some work.
#[derive(Clone, Copy)]
enum Next<'t> {
    /// The thread goes on.
    Thread(usize),
    /// A message of a thread leaves its server.
    Leaves { thread: usize, message: &'t Message },
    /// A message was received, and its answer is made.
    Taken { thread: usize, message: &'t Message },
    /// An answer leaves for the thread that waits for it.
    Answers { thread: usize, message: &'t Message },
    /// An answer was received.
    Back { thread: usize },
}

#[derive(Clone, Copy)]
enum Event<'t> {
    /// A slice of a core's work is done.
    Worked {
        server: usize,
        left: u64,
        next: Next<'t>,
    },
    /// A message is at its server.
    Asked { thread: usize, message: &'t Message },
    /// Its answer is at who asked.
    Answered { thread: usize, message: &'t Message },
}

#[derive(Default)]
struct Server<'t> {
    busy: usize,
    /// Messages and answers: nanoseconds of work, and what follows.
    soon: VecDeque<(u64, Next<'t>)>,
    /// Parts and coordinators.
    later: VecDeque<(u64, Next<'t>)>,
    /// When the link out is free.
    link: u64,
    /// Nanoseconds of work that was done.
    worked: u64,
}

/// A query that has ended: its client, when it began and ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub client: usize,
    pub began: u64,
    pub ended: u64,
}

pub struct Simulation<'t> {
    fabric: Fabric,
    machines: Machines,
    now: u64,
    count: u64,
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Slots<Event<'t>>,
    servers: Vec<Server<'t>>,
    queries: Vec<Option<Query<'t>>>,
    threads: Slots<Thread<'t>>,
    ended: VecDeque<Ended>,
}

/// Things that are known by their place, which is used again.
struct Slots<T> {
    all: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    fn put(&mut self, one: T) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.all[at] = Some(one);
                at
            }
            None => {
                self.all.push(Some(one));
                self.all.len() - 1
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<T> {
        let one = self.all.get_mut(at)?.take();
        if one.is_some() {
            self.free.push(at);
        }
        one
    }

    fn get(&mut self, at: usize) -> Option<&mut T> {
        self.all.get_mut(at)?.as_mut()
    }
}

impl<'t> Simulation<'t> {
    pub fn new(fabric: Fabric, machines: Machines) -> Self {
        let mut servers = Vec::new();
        servers.resize_with(machines.servers, Server::default);
        Self {
            fabric,
            machines,
            now: 0,
            count: 0,
            heap: BinaryHeap::new(),
            events: Slots::new(),
            servers,
            queries: Vec::new(),
            threads: Slots::new(),
            ended: VecDeque::new(),
        }
    }

    /// Lets a client ask a recorded query now, at a server.
    pub fn ask(&mut self, client: usize, server: usize, trace: &'t Trace) {
        let n = self.machines.servers;
        let turned = (server + n - trace.home as usize % n) % n;
        let part = |p: &super::trace::PartTrace| ServerQueue {
            jobs: vec![JobState::Pending; p.jobs.len()],
            first: 0,
            running: 0,
        };
        let query = self.queries.len();
        self.queries.push(Some(Query {
            trace,
            client,
            turned,
            began: self.now,
            told: vec![false; trace.waits.len()],
            parts: trace.parts.iter().map(part).collect(),
            home: usize::MAX,
        }));
        let home = self
            .threads
            .put(Thread::new(query, server, &trace.ops, Then::Home));
        if let Some(q) = &mut self.queries[query] {
            q.home = home;
        }
        for part in 0..trace.parts.len() {
            self.pump(query, part);
        }
        self.go_on(home);
    }

    /// Goes on until a query ends; `None` if nothing is left to do.
    pub fn next_ended(&mut self) -> Option<Ended> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let Reverse((time, _, at)) = self.heap.pop()?;
            self.now = time;
            if let Some(event) = self.events.take(at) {
                self.happen(event);
            }
        }
    }

    /// Nanoseconds that the cores of all servers have worked.
    pub fn worked(&self) -> u64 {
        self.servers.iter().map(|s| s.worked).sum()
    }

    fn after(&mut self, time: u64, event: Event<'t>) {
        let at = self.events.put(event);
        self.count += 1;
        self.heap.push(Reverse((self.now + time, self.count, at)));
    }

    /// Gives work to a server's cores.
    fn work(&mut self, server: usize, time: u64, next: Next<'t>) {
        let s = &mut self.servers[server];
        match next {
            Next::Thread(thread) if !self.threads.get(thread).is_some_and(|t| t.is_answer()) => {
                s.later.push_back((time, next));
            }
            _ => s.soon.push_back((time, next)),
        }
        self.occupy(server);
    }

    fn occupy(&mut self, server: usize) {
        let s = &mut self.servers[server];
        if s.busy >= self.machines.cores {
            return;
        }
        let Some((time, next)) = s.soon.pop_front().or_else(|| s.later.pop_front()) else {
            return;
        };
        s.busy += 1;
        let slice = time.min(SLICE);
        s.worked += slice;
        let left = time - slice;
        self.after(slice, Event::Worked { server, left, next });
    }

    fn send(&mut self, from: usize, bytes: u64, event: Event<'t>) {
        let s = &mut self.servers[from];
        s.link = s.link.max(self.now) + (bytes as f64 * self.fabric.byte) as u64;
        let time = s.link - self.now + self.fabric.latency as u64;
        self.after(time, event);
    }

    /// The server of a message's receiver, for the query of a thread.
    fn receiver(&mut self, thread: usize, m: &Message) -> (usize, usize) {
        let n = self.machines.servers;
        let query = self.threads.get(thread).map_or(0, |t| t.query);
        let turned = self.queries[query].as_ref().map_or(0, |q| q.turned);
        (query, (m.to as usize + turned) % n)
    }

    fn server_of(&mut self, thread: usize) -> usize {
        self.threads.get(thread).map_or(0, |t| t.server)
    }

    fn happen(&mut self, event: Event<'t>) {
        let fabric = self.fabric;
        match event {
            Event::Worked { server, left, next } => {
                self.servers[server].busy -= 1;
                if left > 0 {
                    self.work(server, left, next);
                    return;
                }
                self.occupy(server);
                self.done(next);
            }
            Event::Asked { thread, message } => {
                let (_, to) = self.receiver(thread, message);
                let time = fabric.serving.message(message);
                self.work(to, time, Next::Taken { thread, message });
            }
            Event::Answered { thread, message } => {
                let server = self.server_of(thread);
                let time = fabric.asking.answer(message);
                self.work(server, time, Next::Back { thread });
            }
        }
    }

    fn done(&mut self, next: Next<'t>) {
        match next {
            Next::Thread(thread) => self.go_on(thread),
            Next::Leaves { thread, message } => {
                let server = self.server_of(thread);
                self.send(server, message.sent, Event::Asked { thread, message });
            }
            Next::Taken { thread, message } => {
                let (query, server) = self.receiver(thread, message);
                let answering = self.threads.put(Thread::new(
                    query,
                    server,
                    &message.answer,
                    Then::Answer {
                        to: thread,
                        message,
                    },
                ));
                self.go_on(answering);
            }
            Next::Answers { thread, message } => {
                let (_, server) = self.receiver(thread, message);
                self.send(
                    server,
                    message.received,
                    Event::Answered { thread, message },
                );
            }
            Next::Back { thread } => {
                let Some(t) = self.threads.get(thread) else {
                    return;
                };
                t.waiting -= 1;
                if t.waiting == 0 {
                    self.go_on(thread);
                }
            }
        }
    }

    /// A thread's next operations, until one takes time.
    fn go_on(&mut self, thread: usize) {
        loop {
            let Some(t) = self.threads.get(thread) else {
                return;
            };
            let (query, server) = (t.query, t.server);
            let Some(op) = t.ops.get(t.at) else {
                return self.end(thread);
            };
            match op {
                Op::Work(time) => {
                    t.at += 1;
                    return self.work(server, *time, Next::Thread(thread));
                }
                Op::Round(messages) => {
                    t.at += 1;
                    if messages.is_empty() {
                        continue;
                    }
                    t.waiting = messages.len();
                    for message in messages {
                        let time = self.fabric.asking.message(message);
                        self.work(server, time, Next::Leaves { thread, message });
                    }
                    return;
                }
                Op::Tell(n) => {
                    t.at += 1;
                    self.tell(query, *n);
                }
                Op::Await(n) => {
                    let told = self.queries[query].as_ref().map(|q| q.told[*n as usize]);
                    t.is_parked = told == Some(false);
                    if t.is_parked {
                        return;
                    }
                    t.at += 1;
                }
            }
        }
    }

    fn end(&mut self, thread: usize) {
        let Some(t) = self.threads.take(thread) else {
            return;
        };
        match t.then {
            Then::Home => {
                if let Some(q) = &mut self.queries[t.query] {
                    q.home = usize::MAX;
                    self.ended.push_back(Ended {
                        client: q.client,
                        began: q.began,
                        ended: self.now,
                    });
                }
                self.forget(t.query);
            }
            Then::Job { part, job } => {
                if let Some(q) = &mut self.queries[t.query] {
                    let p = &mut q.parts[part];
                    p.jobs[job] = JobState::Done;
                    p.running -= 1;
                    while p.jobs.get(p.first) == Some(&JobState::Done) {
                        p.first += 1;
                    }
                }
                self.pump(t.query, part);
                self.forget(t.query);
            }
            Then::Answer { to, message } => {
                let time = self.fabric.serving.answer(message);
                let next = Next::Answers {
                    thread: to,
                    message,
                };
                // It leaves before the thread that waited for the message works.
                self.work(t.server, time, next);
                for &n in &message.tells {
                    self.tell(t.query, n);
                }
            }
        }
    }

    /// Drops a query that has ended with all its parts.
    fn forget(&mut self, query: usize) {
        let is_over =
            |q: &Query<'_>| q.home == usize::MAX && q.parts.iter().all(|p| p.first == p.jobs.len());
        if self.queries[query].as_ref().is_some_and(is_over) {
            self.queries[query] = None;
        }
    }

    fn tell(&mut self, query: usize, number: u32) {
        let Some(q) = &mut self.queries[query] else {
            return;
        };
        q.told[number as usize] = true;
        let home = q.home;
        match q.trace.waits[number as usize] {
            Some(part) => self.pump(query, part as usize),
            // The coordinator goes on if it waits for this one.
            None => {
                let at = self.threads.get(home).filter(|t| t.is_parked);
                let waits = at
                    .is_some_and(|t| matches!(t.ops.get(t.at), Some(Op::Await(n)) if *n == number));
                if waits {
                    self.go_on(home);
                }
            }
        }
    }

    /// Begins the jobs of a part that can be.
    fn pump(&mut self, query: usize, part: usize) {
        loop {
            let Some(q) = &mut self.queries[query] else {
                return;
            };
            let recorded = &q.trace.parts[part];
            let p = &mut q.parts[part];
            if p.running >= self.machines.workers {
                return;
            }
            let mut all_before = true;
            let mut found = None;
            for job in p.first..p.jobs.len() {
                if p.jobs[job] == JobState::Pending {
                    let j = &recorded.jobs[job];
                    let is_caused = j.cause.is_none_or(|n| q.told[n as usize]);
                    if is_caused && (j.kind == TraceKind::Rows || all_before) {
                        found = Some(job);
                        break;
                    }
                }
                all_before &= p.jobs[job] == JobState::Done;
            }
            let Some(job) = found else {
                return;
            };
            p.jobs[job] = JobState::Running;
            p.running += 1;
            let n = self.machines.servers;
            let server = (recorded.shard as usize + q.turned) % n;
            let thread = self.threads.put(Thread::new(
                query,
                server,
                &recorded.jobs[job].ops,
                Then::Job { part, job },
            ));
            self.go_on(thread);
        }
    }
}

impl<'t> Thread<'t> {
    fn new(query: usize, server: usize, ops: &'t [Op], then: Then<'t>) -> Self {
        Self {
            query,
            server,
            ops,
            at: 0,
            waiting: 0,
            is_parked: false,
            then,
        }
    }

    fn is_answer(&self) -> bool {
        matches!(self.then, Then::Answer { .. })
    }
}

/// Nanoseconds of a query that runs alone.
///
/// # Errors
/// `Internal` for a recording that waits for what never comes.
pub fn alone(trace: &Trace, fabric: Fabric, machines: Machines) -> Result<f64> {
    let mut simulation = Simulation::new(fabric, machines);
    simulation.ask(0, trace.home as usize, trace);
    let ended = simulation.next_ended();
    let ended = ended.ok_or_else(|| Error::Internal("a recorded query never ends".into()))?;
    Ok(ended.ended as f64)
}

#[cfg(test)]
mod tests;
