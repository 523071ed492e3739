//! The coordinator's side of a query: the rows that its parts give, what is still under way, and the first failure.

use super::hub::Inner;
use super::ledger::Ledger;
use super::message::{Answer, Columns, Counts, QueryName, Report};
use crate::executor::{Poll, PulledRows, ShardWork};
use crate::options::StepProfile;
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a wait for rows lasts before the query's token and the connections are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two looks at the connections.
const LINKS: Duration = Duration::from_millis(200);
/// Time for the last message to the parts.
const GOODBYE: Duration = Duration::from_millis(500);

struct State {
    ledger: Ledger,
    rows: VecDeque<Columns>,
    charge: Charge,
    failure: Option<Error>,
    /// By shard.
    counts: Vec<Counts>,
    looked: Instant,
}

/// A query's rows as its parts give them.
pub(crate) struct Gathering {
    query: QueryName,
    hub: Arc<Inner>,
    cancel: CancelToken,
    /// The number of the connection to each shard when the query began.
    links: Vec<u64>,
    state: Mutex<State>,
    wake: Condvar,
    steps: usize,
}

impl Gathering {
    /// For parts that have `steps` steps each and begin with messages of these numbers.
    pub fn new(
        (query, hub): (QueryName, Arc<Inner>),
        cancel: &CancelToken,
        memory: &MemoryBudget,
        links: Vec<u64>,
        steps: usize,
        numbers: &[u64],
    ) -> Self {
        let mut ledger = Ledger::default();
        numbers.iter().for_each(|&n| ledger.sent(n));
        Self {
            query,
            hub,
            cancel: cancel.clone(),
            state: Mutex::new(State {
                ledger,
                rows: VecDeque::new(),
                charge: Charge::new(Holder::Shards, memory),
                failure: None,
                counts: vec![Counts::default(); links.len()],
                looked: Instant::now(),
            }),
            links,
            wake: Condvar::new(),
            steps,
        }
    }

    /// Takes a part's news. Bytes of rows that wait.
    pub fn report(&self, report: Report) -> Answer {
        let mut state = lock(&self.state);
        if state.failure.is_some() {
            return Answer::Unknown;
        }
        for &n in &report.spawned {
            state.ledger.sent(n);
        }
        for &n in &report.completed {
            state.ledger.completed(n);
        }
        if let Some(sum) = state.counts.get_mut(report.from as usize) {
            add(sum, &report.counts);
        }
        if report.rows.rows > 0 {
            if let Err(e) = state.charge.add(report.rows.bytes()) {
                state.failure = Some(e);
                self.wake.notify_all();
                return Answer::Unknown;
            }
            state.rows.push_back(report.rows);
        }
        self.wake.notify_all();
        Answer::Taken(state.charge.bytes())
    }

    /// Bytes of rows that wait.
    pub fn waiting(&self) -> Answer {
        let state = lock(&self.state);
        match state.failure {
            Some(_) => Answer::Unknown,
            None => Answer::Taken(state.charge.bytes()),
        }
    }

    /// Ends the query, unless something else did.
    pub fn fail(&self, error: Error) {
        lock(&self.state).failure.get_or_insert(error);
        self.wake.notify_all();
    }

    fn check_links(&self) -> Result<()> {
        for (shard, &link) in (0..).zip(&self.links) {
            if self.hub.link(shard)? != link {
                return Err(Error::Shard {
                    shard,
                    message: "its server was away while it had a part of the query".into(),
                });
            }
        }
        Ok(())
    }

    /// A line for each shard that did something, and one for all.
    fn shards(&self) -> String {
        let state = lock(&self.state);
        let mut out = String::new();
        for (shard, c) in state.counts.iter().enumerate() {
            let sent: u64 = c.steps.iter().map(|s| s.sent).sum();
            let worked: u64 = c.steps.iter().map(|s| s.profile.rows_in).sum();
            if worked == 0 && c.messages == 0 {
                continue;
            }
            let _ = writeln!(
                out,
                "shard {shard}: {worked} rows in, {sent} sent on, {} messages of {} bytes, {} rounds of {} bytes in place, {:.1} ms",
                c.messages,
                c.bytes,
                c.asked[0],
                c.asked[2],
                c.time.as_secs_f64() * 1e3
            );
        }
        for step in 0..self.steps {
            let of = |f: fn(&super::message::StepCounts) -> u64| -> u64 {
                state
                    .counts
                    .iter()
                    .filter_map(|c| c.steps.get(step))
                    .map(f)
                    .sum()
            };
            let (sent, stayed) = (of(|s| s.sent), of(|s| s.stayed));
            if sent + stayed > 0 {
                let by: Vec<String> = (0..)
                    .zip(&state.counts)
                    .filter_map(|(shard, c): (u32, _)| {
                        Some((shard, c.steps.get(step)?.profile.rows_in))
                    })
                    .filter(|(_, rows)| *rows > 0)
                    .map(|(shard, rows)| format!("{shard}: {rows}"))
                    .collect();
                let _ = writeln!(
                    out,
                    "step {step}: {sent} rows sent to their data, {stayed} had it fetched; rows by shard {}",
                    by.join(", ")
                );
            }
        }
        out
    }
}

fn add(sum: &mut Counts, more: &Counts) {
    if sum.steps.len() < more.steps.len() {
        sum.steps.resize(more.steps.len(), Default::default());
    }
    for (s, m) in sum.steps.iter_mut().zip(&more.steps) {
        add_step(&mut s.profile, &m.profile);
        s.sent += m.sent;
        s.stayed += m.stayed;
    }
    sum.messages += more.messages;
    sum.bytes += more.bytes;
    sum.given += more.given;
    for (s, m) in sum.asked.iter_mut().zip(more.asked) {
        *s += m;
    }
    sum.time += more.time;
}

fn add_step(sum: &mut StepProfile, more: &StepProfile) {
    sum.rows_in += more.rows_in;
    sum.rows_out += more.rows_out;
    sum.time += more.time;
    sum.bytes += more.bytes;
    sum.written += more.written;
}

/// The rows of [`Gathering`], for the engine; the parts end when it is dropped.
pub(crate) struct Gathered(pub Arc<Gathering>);

impl Drop for Gathered {
    fn drop(&mut self) {
        let g = &self.0;
        g.hub.forget(g.query);
        // Whoever is away has no part any more.
        let cancel = CancelToken::with_deadline(GOODBYE);
        g.hub.end_all(g.query, &cancel);
    }
}

impl PulledRows for Gathered {
    fn poll(&self) -> Result<Poll> {
        let g = &self.0;
        let mut state = lock(&g.state);
        if let Some(e) = &state.failure {
            return Err(super::message::Failure::of(e, g.query.home).error());
        }
        if let Some(rows) = state.rows.pop_front() {
            let left = state.charge.bytes().saturating_sub(rows.bytes());
            state.charge.set(left)?;
            return Ok(Poll::Rows(rows.columns, rows.rows));
        }
        Ok(match state.ledger.is_even() {
            true => Poll::Done,
            false => Poll::Pending,
        })
    }

    fn wait(&self) -> Result<()> {
        let g = &self.0;
        let look = {
            let state = lock(&g.state);
            if !state.rows.is_empty() || state.failure.is_some() || state.ledger.is_even() {
                return Ok(());
            }
            let waited = g.wake.wait_timeout(state, LOOK);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let look = state.looked.elapsed() >= LINKS;
            if look {
                state.looked = Instant::now();
            }
            look
        };
        g.cancel.check()?;
        if look {
            g.check_links()?;
        }
        Ok(())
    }

    fn steps(&self) -> Vec<StepProfile> {
        let g = &self.0;
        let mut all = vec![StepProfile::default(); g.steps];
        for c in &lock(&g.state).counts {
            for (sum, s) in all.iter_mut().zip(&c.steps) {
                add_step(sum, &s.profile);
            }
        }
        all
    }

    fn details(&self) -> String {
        self.0.shards()
    }

    fn work(&self) -> Vec<ShardWork> {
        let of = |c: &Counts| ShardWork {
            rows: c.steps.iter().map(|s| s.profile.rows_in).sum(),
            sent: c.steps.iter().map(|s| s.sent).sum::<u64>() + c.given,
            time: c.time,
        };
        lock(&self.0.state).counts.iter().map(of).collect()
    }
}
