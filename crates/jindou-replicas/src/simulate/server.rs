//! Simulated servers: the machine, and a driver over a toy store.

use super::Counted;
use super::bucket::Op;
use super::clients::Attached;
use super::shards::Snapshot;
use super::state::fingerprint;
use super::world::{EPOCH, MS, S, SERVERS, ScheduledEvent, World};
use crate::machine::Machine;
use crate::machine::event::{Action, Base, Evaluation, Event, Message, Problem};
use crate::machine::group::{Blob, Group, Record, Request, RequestKey, Writer, write_span};
use crate::machine::settings::Time;
use std::collections::{BTreeMap, VecDeque};

/// A server, running or crashed.
pub(super) struct Server {
    pub machine: Option<Machine>,
    pub start: u64,
    /// End time of the current pause; `None` if the server is not paused.
    pub paused: Option<u64>,
    /// Events that arrived while the server was paused.
    inbox: VecDeque<ScheduledEvent>,
    /// Requests that were not sent yet when the pause started.
    pub outbox: Vec<ScheduledEvent>,
    /// Drift of the server's clock in parts per million, and the clock's value at global time 0.
    drift: i64,
    offset: u64,
    wake_at: u64,
    /// The base in the server's folder; survives crashes.
    pub disk: Option<(Base, Snapshot)>,
    pub published: (u64, Snapshot),
    pub head: Snapshot,
    /// State of the head after each evaluated record that is in no group yet.
    speculative_heads: VecDeque<Snapshot>,
    /// State of the head after each group that is not published yet.
    groups: BTreeMap<u64, Snapshot>,
    /// Updates being evaluated, one after another.
    evaluating: VecDeque<(u64, RequestKey, Blob)>,
    /// Encoded objects of the newest groups applied to the head.
    objects: BTreeMap<u64, Blob>,
    /// False once the server has left permanently.
    pub member: bool,
    /// Last time at which the server or one of its connections was faulty.
    pub disturbed: u64,
    /// Last time at which the server's connection to the bucket was faulty.
    pub cut_off: u64,
}

impl Server {
    /// All snapshots, those that are not published first.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        let ahead = self.speculative_heads.iter().chain(self.groups.values());
        ahead.chain([&self.head, &self.published.1])
    }

    pub fn is_evaluating(&self, ticket: u64) -> bool {
        (self.evaluating.front()).is_some_and(|(of, ..)| *of == ticket)
    }

    pub fn next_evaluation(&mut self) -> Option<(u64, RequestKey, Blob)> {
        self.evaluating.pop_front()
    }

    pub fn local(&self, at: u64) -> Time {
        let drift =
            at as i64 / 1_000_000 * self.drift + at as i64 % 1_000_000 * self.drift / 1_000_000;
        Time(self.offset.saturating_add_signed(at as i64 + drift))
    }

    fn keep_object(&mut self, number: u64, bytes: Blob) {
        self.objects.insert(number, bytes);
        self.objects = self.objects.split_off(&number.saturating_sub(8));
    }

    /// A global time at which the server's clock shows at least `time`.
    fn global(&self, time: Time) -> u64 {
        let local = time.0.saturating_sub(self.offset);
        let rate = (1_000_000 + self.drift).max(1) as u128;
        (u128::from(local) * 1_000_000 / rate) as u64 + 2
    }
}

impl World<'_> {
    /// Adds a server. If `first` is set, its folder usually contains the empty store.
    pub fn add_server(&mut self, first: bool) {
        if self.servers.len() == SERVERS {
            return;
        }
        if let Some(shards) = &mut self.shards {
            shards.add(self.copies);
        }
        let empty = self.empty_store(self.servers.len());
        let disk = (first && self.random.chance(80)).then(|| (Base::default(), empty));
        let server = Server {
            machine: None,
            start: 0,
            paused: None,
            inbox: VecDeque::new(),
            outbox: Vec::new(),
            drift: self.random.below(100_001) as i64 - 50_000,
            offset: self.random.below(1 << 40),
            wake_at: u64::MAX,
            disk,
            published: (0, Snapshot::default()),
            head: Snapshot::default(),
            speculative_heads: VecDeque::new(),
            groups: BTreeMap::new(),
            evaluating: VecDeque::new(),
            objects: BTreeMap::new(),
            member: true,
            disturbed: self.now,
            cut_off: self.now,
        };
        self.servers.push(server);
        self.start(self.servers.len() - 1);
    }

    pub fn start(&mut self, index: usize) {
        let seed = self.random.next();
        let start = self.random.next();
        let (now, fault) = (self.now, self.fault);
        let settings = self.settings.clone();
        let name = self.names[index].clone();
        let empty = self.empty_store(index);
        let server = &mut self.servers[index];
        if server.machine.is_some() || !server.member {
            return;
        }
        server.start = start;
        server.disturbed = server.disturbed.max(now);
        server.wake_at = u64::MAX;
        let base = server.disk.clone();
        let snapshot = base
            .as_ref()
            .map_or(empty, |(_, snapshot)| snapshot.clone());
        server.published = (base.as_ref().map_or(0, |(base, _)| base.number), snapshot);
        server.head = server.published.1.clone();
        server.speculative_heads.clear();
        server.groups.clear();
        server.evaluating.clear();
        let local = server.local(now);
        let writer = Writer {
            server: name,
            start,
        };
        server.machine = Some(Machine::new(settings, EPOCH, writer, seed, local).with_fault(fault));
        self.note([2, index as u64, start], || format!("{index} starts"));
        self.start_shards(index);
        self.deliver(index, Event::Opened(base.map(|(base, _)| base)));
        self.deliver_peers(index);
    }

    fn deliver_peers(&mut self, index: usize) {
        let names = (self.servers.iter().zip(&self.names))
            .filter(|(server, _)| server.member)
            .map(|(_, name)| name.clone());
        self.deliver(index, Event::Peers(names.collect()));
        // Servers with the old version are replaced one by one.
        let format = match self.now < self.fault_schedule.upgraded {
            true => 1,
            false => 2,
        };
        self.deliver(index, Event::Format(format));
        self.deliver(index, Event::Known(self.bucket.entries));
        if let Some(machine) = &self.servers[index].machine {
            self.bucket.entries = self.bucket.entries.max(machine.newest_known());
        }
    }

    pub fn list_peers(&mut self) {
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            if server.machine.is_some() && server.paused.is_none() {
                self.deliver_peers(index);
            }
        }
        self.after(5 * S, ScheduledEvent::Peers);
    }

    /// Crashes a server. With `forever`, the server leaves permanently.
    pub fn crash(&mut self, index: usize, forever: bool) {
        let now = self.now;
        let server = &mut self.servers[index];
        if server.machine.take().is_none() {
            return;
        }
        server.member &= !forever;
        server.paused = None;
        server.inbox.clear();
        server.outbox.clear();
        server.disturbed = server.disturbed.max(now);
        self.count(match forever {
            true => Counted::Left,
            false => Counted::Crashes,
        });
        self.note([3, index as u64, u64::from(forever)], || {
            format!("{index} dies, for good: {forever}")
        });
        for other in 0..self.servers.len() {
            if other != index && self.random.chance(80) {
                self.lose_peer(other, index);
                let event = Event::Disconnected(self.names[index].clone());
                let (start, time) = (self.servers[other].start, self.random.between(1, 50 * MS));
                self.after(time, ScheduledEvent::Deliver(other, start, event, None));
            }
        }
        self.lose_clients(index);
    }

    pub fn pause(&mut self, index: usize, time: u64) {
        let until = self.now + time;
        let server = &mut self.servers[index];
        if server.machine.is_some() && server.paused.is_none() {
            server.paused = Some(until);
            server.disturbed = server.disturbed.max(until);
            self.count(Counted::Pauses);
            self.note([4, index as u64, time], || {
                format!("{index} pauses for {} ms", time / MS)
            });
            self.at(until, ScheduledEvent::Resume(index));
        }
    }

    pub fn resume(&mut self, index: usize) {
        let now = self.now;
        let server = &mut self.servers[index];
        if server.paused.is_none_or(|until| until > now) {
            return;
        }
        server.paused = None;
        server.disturbed = server.disturbed.max(now);
        self.note([5, index as u64, 0], || format!("{index} goes on"));
        let start = self.servers[index].start;
        for request in std::mem::take(&mut self.servers[index].outbox) {
            let time = self.random.between(1, 5 * MS);
            let late = match &request {
                ScheduledEvent::Arrive { op, .. } if self.random.chance(50) => op.unknown(),
                _ => None,
            };
            // The request's time limit passed during the pause, so the driver treats it as timed out. The request may
            // still be sent.
            if let (Some(event), ScheduledEvent::Arrive { server, op, .. }) = (late, &request) {
                self.after(time, ScheduledEvent::Deliver(*server, start, event, None));
                if self.random.chance(50) {
                    let op = op.clone();
                    let time = self.random.between(1, 50 * MS);
                    self.after(
                        time,
                        ScheduledEvent::Arrive {
                            server: index,
                            start,
                            op,
                            answered: false,
                        },
                    );
                }
                continue;
            }
            self.after(time, request);
        }
        // A machine that wakes up may have lost its connections, with everything buffered in them, and its network may
        // be bad at first. Clients query the server in this state. No new faults start once faults have ended.
        let lost = self.random.chance(40) && now < self.until;
        if lost {
            let until = now + self.random.between(S, 5 * S);
            let bad = &mut self.fault_schedule.bucket_bad[index];
            *bad = until.max(*bad);
            let server = &mut self.servers[index];
            server.cut_off = server.cut_off.max(until);
            for n in 1..=20 {
                self.after(n * 20 * MS, ScheduledEvent::QueryAny(index));
            }
        }
        let inbox = std::mem::take(&mut self.servers[index].inbox);
        for scheduled in inbox {
            if lost && matches!(scheduled, ScheduledEvent::Message { .. }) {
                continue;
            }
            // Buffered events are handled in order, interleaved with the results of the server's own actions.
            self.deliver_or_buffer(scheduled);
        }
        self.deliver(index, Event::Wake);
    }

    pub fn wake(&mut self, index: usize, at: u64) {
        let server = &mut self.servers[index];
        if server.wake_at == at {
            server.wake_at = u64::MAX;
            if server.paused.is_none() && server.machine.is_some() {
                self.deliver(index, Event::Wake);
            }
        }
    }

    /// Delivers an event to a server if it is running, or buffers the event if the server is paused.
    pub fn deliver_or_buffer(&mut self, scheduled: ScheduledEvent) {
        let (index, start) = match &scheduled {
            ScheduledEvent::Deliver(index, start, ..) => (*index, Some(*start)),
            ScheduledEvent::Evaluated(index, start, ..) => (*index, Some(*start)),
            ScheduledEvent::Shard(index, start, _) => (*index, Some(*start)),
            ScheduledEvent::Message { to, start, .. } => (*to, Some(*start)),
            ScheduledEvent::Ask(index, ..) => (*index, None),
            ScheduledEvent::Query(query) => (self.queries[*query].server, None),
            _ => return,
        };
        let server = &mut self.servers[index];
        if server.machine.is_none() || start.is_some_and(|start| start != server.start) {
            return;
        }
        if server.paused.is_some() {
            server.inbox.push_back(scheduled);
            return;
        }
        match scheduled {
            // The store is replaced when everything before that is done.
            ScheduledEvent::Deliver(_, start, event @ Event::Downloaded(_), state)
                if self.is_waiting(index) =>
            {
                self.after(
                    100 * MS,
                    ScheduledEvent::Deliver(index, start, event, state),
                );
            }
            ScheduledEvent::Deliver(_, _, event, snapshot) => {
                if let (Event::Downloaded(Some(base)), Some(snapshot)) = (&event, snapshot) {
                    self.install(index, base.clone(), snapshot);
                }
                self.deliver(index, event);
            }
            ScheduledEvent::Shard(_, _, event) => self.handle_shard_event(index, event),
            ScheduledEvent::Evaluated(_, _, ticket) => self.evaluated(index, ticket),
            ScheduledEvent::Message { from, message, .. } => {
                let name = self.names[from].clone();
                self.deliver(index, Event::Received(name, message));
            }
            ScheduledEvent::Ask(_, update, attempt) => {
                let update = &self.updates[update];
                // Skip updates whose client has closed the connection.
                if update.attempt == attempt && update.attached == Attached::To(index) {
                    let request = Request {
                        key: update.key,
                        fingerprint: fingerprint(update.key),
                    };
                    let event = Event::Update(request, update.body.clone());
                    self.deliver(index, event);
                }
            }
            ScheduledEvent::Query(query) => {
                let now = self.now;
                self.queries[query].asked = now;
                self.queries[query].start = self.servers[index].start;
                let consistency = self.queries[query].consistency;
                self.deliver(index, Event::Read(query as u64, consistency));
            }
            _ => {}
        }
    }

    /// Completes an evaluation, unless the head was rolled back, and starts the next one.
    fn evaluated(&mut self, index: usize, ticket: u64) {
        let next = self.servers[index].evaluating.front();
        if let Some((_, _, body)) = next.filter(|(of, ..)| *of == ticket).cloned()
            && self.is_looked_up(index, ticket, &body)
        {
            self.finish_evaluation(index);
        }
    }

    pub fn finish_evaluation(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let Some((ticket, key, body)) = server.next_evaluation() else {
            return;
        };
        let record = match Self::is_proposal(key) {
            true => self.evaluate_proposal(index, key, &body),
            false => server.head.state.evaluate(key, &body),
        };
        let evaluation = match record {
            Some(record) => {
                self.apply_to_head(index, &record);
                let server = &mut self.servers[index];
                server.speculative_heads.push_back(server.head.clone());
                let Record { report, bytes, .. } = record;
                Evaluation::Record { bytes, report }
            }
            None => Evaluation::Refused(b"refused".as_slice().into()),
        };
        self.begin_evaluation(index);
        self.deliver(index, Event::Evaluated(ticket, evaluation));
    }

    pub fn begin_evaluation(&mut self, index: usize) {
        let server = &self.servers[index];
        let Some(&(ticket, ..)) = server.evaluating.front() else {
            return;
        };
        let start = server.start;
        // On average, evaluations take less time than the interval between updates.
        let time = match self.random.below(500) {
            0 => self.random.between(S, 5 * S),
            1..10 => self.random.between(20 * MS, 100 * MS),
            _ => self.random.between(100, 2 * MS),
        };
        self.after(time, ScheduledEvent::Evaluated(index, start, ticket));
    }

    fn install(&mut self, index: usize, base: Base, mut snapshot: Snapshot) {
        self.count(Counted::Downloads);
        if base.number >= self.servers[index].published.0 {
            self.received(index, &mut snapshot);
        }
        let server = &mut self.servers[index];
        if base.number >= server.published.0 {
            server.published = (base.number, snapshot.clone());
            server.head = snapshot.clone();
            server.speculative_heads.clear();
            server.groups.clear();
            server.evaluating.clear();
            server.disk = Some((base, snapshot));
            self.published_view(index);
        }
    }

    /// Passes an event to the machine and executes the resulting actions.
    pub fn deliver(&mut self, index: usize, event: Event) {
        let kind = match &event {
            Event::Received(_, Message::Beat(beat)) => beat.committed,
            Event::Put(number, attempt, result) => {
                number ^ u64::from(*attempt) << 32 ^ (*result as u64) << 60
            }
            Event::Read(read, _) => *read,
            Event::Evaluated(ticket, _) => *ticket,
            _ => 0,
        };
        self.note([6, index as u64, kind], || format!("{index} <- {event:?}"));
        let server = &mut self.servers[index];
        let local = server.local(self.now);
        let Some(machine) = &mut server.machine else {
            return;
        };
        let mut actions = Vec::new();
        if let Err(impossible) = machine.handle(local, event, &mut actions) {
            return self.fail(format!("{index}: {impossible}"));
        }
        for action in actions {
            self.act(index, action);
        }
        let server = &mut self.servers[index];
        if let Some(machine) = &server.machine {
            let at = server.global(machine.wake()).max(self.now + 1);
            if at < server.wake_at {
                server.wake_at = at;
                self.at(at, ScheduledEvent::Wake(index, at));
            }
        }
    }

    /// Forms a group from the oldest evaluated records.
    fn take_layers(&mut self, index: usize, group: &Group) {
        let server = &mut self.servers[index];
        if server.groups.contains_key(&group.number) {
            return;
        }
        let count = group.records.len();
        let snapshot = match server.speculative_heads.len() >= count {
            true => server.speculative_heads.drain(..count).next_back(),
            // Reached only with injected faults.
            false => {
                for record in &group.records {
                    self.apply_to_head(index, record);
                }
                None
            }
        };
        let server = &mut self.servers[index];
        let snapshot = snapshot.unwrap_or_else(|| server.head.clone());
        server.groups.insert(group.number, snapshot);
    }

    /// Merges the store of a random server into the server's folder.
    pub fn merge(&mut self) {
        let index = self.random.below(self.servers.len() as u64) as usize;
        let server = &mut self.servers[index];
        if let Some(machine) = &server.machine
            && server.paused.is_none()
        {
            if self.shards.is_some() {
                self.start_merge(index);
            } else {
                let (number, snapshot) = server.published.clone();
                server.disk = Some((machine.base(number), snapshot));
                self.deliver(index, Event::Merged(number));
            }
        }
        let time = self.random.between(100 * MS, self.fault_schedule.merges);
        self.after(time, ScheduledEvent::Merge);
    }

    fn act(&mut self, index: usize, action: Action) {
        if let Some(action) = self.hold_back(index, action) {
            self.act_now(index, action);
        }
    }

    pub fn act_now(&mut self, index: usize, action: Action) {
        if let Action::Send(to, message) = action {
            return self.send_message(index, &to, message);
        }
        if self.lines.is_some() {
            self.note([7, index as u64, 0], || format!("{index} -> {action:?}"));
        } else {
            self.note([7, index as u64, 0], String::new);
        }
        match action {
            Action::Evaluate(ticket, key, body) => {
                let evaluating = &mut self.servers[index].evaluating;
                evaluating.push_back((ticket, key, body));
                if evaluating.len() == 1 {
                    self.begin_evaluation(index);
                }
            }
            Action::Put {
                group,
                bytes,
                attempt,
            } => {
                self.take_layers(index, &group);
                self.servers[index].keep_object(group.number, bytes.clone());
                if let Some(time) = self.fault_schedule.ambush[index].take() {
                    self.pause(index, time);
                }
                self.request(index, Op::Put(group.number, attempt, bytes));
            }
            Action::Apply(group) => {
                for record in &group.records {
                    self.apply_to_head(index, record);
                }
                let server = &mut self.servers[index];
                server.groups.insert(group.number, server.head.clone());
                if let Ok(bytes) = group.write(EPOCH) {
                    server.keep_object(group.number, bytes);
                }
            }
            Action::Publish(number) => self.publish(index, number),
            Action::Rollback => {
                let server = &mut self.servers[index];
                server.head = server.published.1.clone();
                server.speculative_heads.clear();
                server.groups.clear();
                server.evaluating.clear();
            }
            Action::List {
                listing_id,
                after,
                all,
            } => {
                self.request(index, Op::List(listing_id, after, all));
            }
            Action::WriteBack(number) => self.write_back(index, number),
            Action::Fetch(fetch) => self.request(index, Op::Fetch(fetch)),
            Action::Span(first, last) => {
                // Use the objects in memory, since the bucket may no longer have the first objects created under these
                // names.
                let objects = &self.servers[index].objects;
                let objects: Option<Vec<Blob>> =
                    (first..=last).map(|n| objects.get(&n).cloned()).collect();
                if let Some(objects) = objects {
                    self.request(index, Op::Span(first, last, write_span(&objects)));
                }
            }
            Action::Upload(base) => {
                if self.shards.is_some() {
                    self.create_document(index, base);
                } else if let Some((there, snapshot)) = self.servers[index].disk.clone()
                    && there.number == base.number
                {
                    self.request(index, Op::Upload(base, snapshot));
                }
            }
            Action::Download => self.request(index, Op::Download),
            Action::Trim(number) => self.request(index, Op::Trim(number)),
            Action::Send(..) => {}
            Action::Answer(key, outcome) => self.answered(index, key, outcome),
            Action::AnswerRead(query) => self.served(index, query),
            Action::Refuse(query, refusal) => {
                self.count(Counted::Refused);
                if let Some(query) = self.queries.get_mut(query as usize) {
                    query.refused = Some(refusal);
                }
            }
            Action::Report(problem) => self.reported(index, &problem),
        }
    }

    fn publish(&mut self, index: usize, number: u64) {
        let server = &mut self.servers[index];
        match server.groups.get(&number) {
            Some(snapshot) => {
                server.published = (number, snapshot.clone());
                server.groups = server.groups.split_off(&(number + 1));
                self.published_view(index);
            }
            None if server.published.0 == number => {}
            None => self.fail(format!("{index} publishes {number}, which is not applied")),
        }
    }

    /// Handles a report of a server: it may only report gaps, and only if the bucket has lost objects.
    fn reported(&mut self, index: usize, problem: &Problem) {
        let Problem::Gap(gap) = problem else {
            return self.fail(format!("{index} reports {problem:?}"));
        };
        self.count(Counted::Gaps);
        self.note([15, index as u64, gap.first], || {
            format!("{index}: {gap:?}")
        });
        if !self.bucket.has_lost() {
            self.fail(format!("{index} finds a gap where there is none: {gap:?}"));
        }
    }

    /// Restores the object of a group that the bucket has lost, or uploads a base that contains the group.
    fn write_back(&mut self, index: usize, number: u64) {
        self.count(Counted::WrittenBack);
        let server = &mut self.servers[index];
        if let Some(bytes) = server.objects.get(&number).cloned() {
            // This put is not an attempt of the machine, so the machine is not informed of its outcome.
            return self.request(index, Op::Put(number, u32::MAX, bytes));
        }
        // A store in shards is merged by all servers or none.
        if let Some(machine) = &server.machine
            && self.shards.is_none()
        {
            let (number, snapshot) = server.published.clone();
            let base = machine.base(number);
            server.disk = Some((base.clone(), snapshot.clone()));
            self.request(index, Op::Upload(base, snapshot));
        }
    }
}
