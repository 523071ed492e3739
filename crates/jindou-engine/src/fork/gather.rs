//! The coordinator's state of a query: the rows received from its parts, the messages not processed yet, and the first
//! failure.

use super::hub::{Activity, HubState};
use super::ledger::Ledger;
use super::message::{
    Columns, PartAnswer, PartCounts, PartFailure, PartMessage, PartReport, QueryName,
};
use crate::executor::{Poll, PulledRows, Repeats, ShardWork};
use crate::options::StepProfile;
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for rows without checking the query's token.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two checks of the connections to other shards.
const LINKS: Duration = Duration::from_millis(200);
/// Time without reports after which the parts are asked whether they still exist.
const QUIET: Duration = Duration::from_secs(1);
/// Error for received rows with a wrong number of columns.
pub(crate) const NO_FIT: &str = "its rows do not match the query";
/// Time limit for telling the parts that the query has ended.
const GOODBYE: Duration = Duration::from_millis(500);

struct GatherState {
    ledger: Ledger,
    rows: VecDeque<Columns>,
    charge: Charge,
    /// Memory of the ledger's message numbers.
    names: Charge,
    failure: Option<PartFailure>,
    /// Counts of each shard's part, by shard number.
    counts: Vec<PartCounts>,
    looked: Instant,
    /// Time of the last report, or of the last confirmation that all parts exist.
    heard: Instant,
    /// True if a part did not exist when the parts were last asked. If one is missing the next time as well, the query
    /// fails.
    is_one_gone: bool,
}

/// Collects a query's rows from its parts.
pub(crate) struct Gathering {
    query: QueryName,
    hub: Arc<HubState>,
    cancel: CancelToken,
    /// The number of the connection to each shard when the query began ([`Far::link`](jindou_graph::shard::Far::link)).
    /// A different number later means that the connection was interrupted, so messages may be lost.
    links: Vec<u64>,
    state: Mutex<GatherState>,
    wake: Condvar,
    steps: usize,
    /// Number of columns of received rows: those of the last step, plus one if rows are counted.
    width: usize,
    is_counted: bool,
    /// The reason for executing the query in parts, for the profile.
    why: String,
}

impl Gathering {
    /// Creates the state for parts with `steps` steps each, `width` columns after the last step, and `repeats` as their
    /// treatment of duplicates. `numbers` are those of the messages that request the start rows.
    pub fn new(
        (query, hub): (QueryName, Arc<HubState>),
        cancel: &CancelToken,
        memory: &MemoryBudget,
        links: Vec<u64>,
        (steps, width, repeats): (usize, usize, Repeats),
        why: String,
        numbers: &[u64],
    ) -> Self {
        let mut ledger = Ledger::default();
        numbers.iter().for_each(|&n| ledger.sent(n));
        let is_counted = repeats == Repeats::Counted && width > 0;
        Self {
            query,
            hub,
            cancel: cancel.clone(),
            state: Mutex::new(GatherState {
                ledger,
                rows: VecDeque::new(),
                charge: Charge::new(Holder::Shards, memory),
                names: Charge::new(Holder::Shards, memory),
                failure: None,
                counts: vec![PartCounts::default(); links.len()],
                looked: Instant::now(),
                heard: Instant::now(),
                is_one_gone: false,
            }),
            links,
            wake: Condvar::new(),
            steps,
            width: width + usize::from(is_counted),
            is_counted,
            why,
        }
    }

    /// Handles a part's report. The answer contains the bytes of rows that wait to be consumed.
    pub fn report(&self, report: PartReport) -> PartAnswer {
        let mut state = lock(&self.state);
        if state.failure.is_some() {
            return PartAnswer::Unknown;
        }
        match self.note(&mut state, report) {
            Ok(true) => self.wake.notify_all(),
            Ok(false) => {}
            Err(e) => {
                state.failure = Some(PartFailure::at_shard(&e, self.query.home));
                self.wake.notify_all();
                return PartAnswer::Unknown;
            }
        }
        PartAnswer::Taken(state.charge.bytes())
    }

    /// Handles a part's report; returns false if it was empty.
    fn note(&self, state: &mut GatherState, report: PartReport) -> Result<bool> {
        let from = report.from;
        if report == PartReport::nothing(from) {
            return Ok(false);
        }
        if !report.rows.fits(self.width) {
            return Err(Error::shard(from, NO_FIT));
        }
        state.heard = Instant::now();
        for &n in &report.spawned {
            state.ledger.sent(n);
        }
        for &n in &report.completed {
            state.ledger.completed(n);
        }
        state.names.set(state.ledger.bytes())?;
        if let Some(sum) = state.counts.get_mut(from as usize) {
            add(sum, &report.counts, self.steps);
        }
        if report.rows.rows > 0 {
            state.charge.add(report.rows.bytes())?;
            state.rows.push_back(report.rows);
        }
        Ok(true)
    }

    /// Ends the query with a failure, unless it has already ended.
    pub fn fail(&self, failure: PartFailure) {
        lock(&self.state).failure.get_or_insert(failure);
        self.wake.notify_all();
    }

    /// After some time without reports, asks the parts whether they exist, since a part may have ended without being
    /// able to report it.
    fn check_parts(&self) -> Result<()> {
        if lock(&self.state).heard.elapsed() < QUIET {
            return Ok(());
        }
        let shards = 0..self.links.len() as u32;
        let all = shards.map(|s| (s, PartMessage::Waiting)).collect();
        let home = self.query.home;
        let answers = self.hub.posts(self.query, home, all, &self.cancel)?;
        let gone = answers
            .iter()
            .find(|(_, answer, _)| !matches!(answer, PartAnswer::Taken(_)));
        let mut state = lock(&self.state);
        match gone {
            // The failure that ended the part may still arrive.
            Some(&(shard, ..)) if std::mem::replace(&mut state.is_one_gone, true) => {
                Err(Error::shard(
                    shard,
                    "its part of the query ended without an error message",
                ))
            }
            Some(_) => Ok(()),
            None => {
                state.is_one_gone = false;
                state.heard = Instant::now();
                Ok(())
            }
        }
    }

    fn check_links(&self) -> Result<()> {
        for (shard, &link) in (0..).zip(&self.links) {
            if self.hub.link(self.query, shard)? != link {
                return Err(Error::shard(
                    shard,
                    "its server was unreachable while it had a part of the query",
                ));
            }
        }
        Ok(())
    }

    /// The profile's lines: one for each shard that took part, and one with the sums.
    fn shards(&self) -> String {
        let state = lock(&self.state);
        let mut out = format!("matched at all shards: {}\n", self.why);
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
        let held: u64 = state.counts.iter().map(|c| c.held).sum();
        if held > 0 {
            let _ = writeln!(
                out,
                "after the last step: {held} rows held back, since enough others precede them"
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
                    "step {step}: {sent} rows sent to their data, data fetched for {stayed}; rows by shard {}",
                    by.join(", ")
                );
            }
        }
        out
    }
}

/// Adds to a count. Saturates, since a peer's counts may be wrong.
fn more(sum: &mut u64, n: u64) {
    *sum = sum.saturating_add(n).min(u64::MAX >> 24);
}

fn add(sum: &mut PartCounts, news: &PartCounts, steps: usize) {
    let steps = news.steps.len().min(steps);
    if sum.steps.len() < steps {
        sum.steps.resize(steps, Default::default());
    }
    for (s, m) in sum.steps.iter_mut().zip(&news.steps) {
        add_step(&mut s.profile, &m.profile);
        more(&mut s.sent, m.sent);
        more(&mut s.stayed, m.stayed);
    }
    more(&mut sum.messages, news.messages);
    more(&mut sum.bytes, news.bytes);
    more(&mut sum.given, news.given);
    more(&mut sum.held, news.held);
    for (s, m) in sum.asked.iter_mut().zip(news.asked) {
        more(s, m);
    }
    sum.time = sum.time.saturating_add(news.time);
}

fn add_step(sum: &mut StepProfile, news: &StepProfile) {
    more(&mut sum.rows_in, news.rows_in);
    more(&mut sum.rows_out, news.rows_out);
    sum.time = sum.time.saturating_add(news.time);
    more(&mut sum.bytes, news.bytes);
    more(&mut sum.written, news.written);
}

/// The rows of [`Gathering`] as the engine's input. When no more rows are needed, or on drop, all shards are told to
/// end their parts.
pub(crate) struct GatheredRows {
    gathering: Arc<Gathering>,
    /// True if the parts were told that the query has ended.
    has_ended: AtomicBool,
}

impl GatheredRows {
    pub fn new(gathering: Arc<Gathering>) -> Self {
        Self {
            gathering,
            has_ended: AtomicBool::new(false),
        }
    }

    fn end_parts(&self) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let g = &self.gathering;
        g.hub.forget(g.query);
        // With a short deadline: the server of an unreachable shard ends its part itself (`HubState::sweep`).
        let cancel = CancelToken::with_deadline(GOODBYE);
        g.hub.end_all(g.query, &cancel);
    }
}

impl Drop for GatheredRows {
    fn drop(&mut self) {
        self.end_parts();
    }
}

impl PulledRows for GatheredRows {
    fn poll(&self) -> Result<Poll> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Ok(Poll::Done);
        }
        let g = &self.gathering;
        let mut state = lock(&g.state);
        if let Some(failure) = &state.failure {
            let error = failure.error();
            if matches!(error, Error::Timeout(_)) {
                // The part's error names the time that was left when the part began. The query's own token names the
                // query's limit.
                g.cancel.check()?;
            }
            return Err(error);
        }
        if let Some(rows) = state.rows.pop_front() {
            g.hub.begins(g.query, g.query.home, Activity::Gathered);
            let left = state.charge.bytes().saturating_sub(rows.bytes());
            state.charge.set(left)?;
            return Ok(Poll::Rows(rows.columns, rows.rows));
        }
        Ok(match state.ledger.is_even() {
            true => {
                g.hub.begins(g.query, g.query.home, Activity::Over);
                Poll::Done
            }
            false => Poll::Pending,
        })
    }

    fn wait(&self) -> Result<()> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        let g = &self.gathering;
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
            g.check_parts()?;
        }
        Ok(())
    }

    fn end(&self) {
        self.end_parts();
        let g = &self.gathering;
        let mut state = lock(&g.state);
        state.rows.clear();
        // Releasing memory never fails.
        let _ = state.charge.set(0);
        // Another thread may be waiting for rows.
        g.wake.notify_all();
    }

    fn is_counted(&self) -> bool {
        self.gathering.is_counted
    }

    fn steps(&self) -> Vec<StepProfile> {
        let g = &self.gathering;
        let mut all = vec![StepProfile::default(); g.steps];
        for c in &lock(&g.state).counts {
            for (sum, s) in all.iter_mut().zip(&c.steps) {
                add_step(sum, &s.profile);
            }
        }
        all
    }

    fn details(&self) -> String {
        self.gathering.shards()
    }

    fn work(&self) -> Vec<ShardWork> {
        let of = |c: &PartCounts| ShardWork {
            rows: c.steps.iter().map(|s| s.profile.rows_in).sum(),
            sent: c.steps.iter().map(|s| s.sent).sum::<u64>() + c.given,
            time: c.time,
        };
        lock(&self.gathering.state).counts.iter().map(of).collect()
    }
}
