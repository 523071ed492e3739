//! Sharing of a device by concurrent queries: which one may queue work, how many share its memory, and when it is idle.

use crate::device::Device;
use jindou_model::{CancelToken, Result, sync};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Interval at which waiting threads check whether their query was cancelled.
const LOOK: Duration = Duration::from_millis(2);

/// The queue of queries for a device. One query at a time may queue work (it has the turn), for one step of its plan;
/// then the query that has waited longest gets the turn. After some idle time, unused memory is returned to the system.
pub(crate) struct Turns {
    device: Arc<Device>,
    idle: Duration,
    state: Mutex<TurnState>,
    handed_on: Condvar,
}

#[derive(Default)]
struct TurnState {
    running: u64,
    /// True while some query has the turn.
    held: bool,
    /// Ticket numbers of the waiting queries, in order, and the next number.
    line: VecDeque<u64>,
    next: u64,
    /// Number of times that a query had to wait so far.
    waits: u64,
    /// Time when the last query ended.
    ended: Option<Instant>,
    /// True while a thread waits for the device to be idle, to release memory.
    waiting: bool,
}

/// Guard of a query that uses the device.
pub(crate) struct DeviceTurn {
    turns: Arc<Turns>,
    cancel: CancelToken,
    /// True while the query has the turn.
    held: bool,
    /// Time during which other queries used the device, or this query did not need it.
    away: Duration,
}

impl Turns {
    pub fn new(device: &Arc<Device>, idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            device: Arc::clone(device),
            idle,
            state: Mutex::default(),
            handed_on: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, TurnState> {
        sync::lock(&self.state)
    }

    /// Registers a query and waits for its first turn. The query ends when the guard is dropped.
    ///
    /// # Errors
    /// Errors of `cancel`.
    pub fn begin(self: &Arc<Self>, cancel: &CancelToken) -> Result<DeviceTurn> {
        self.state().running += 1;
        let mut turn = DeviceTurn {
            turns: Arc::clone(self),
            cancel: cancel.clone(),
            held: false,
            away: Duration::ZERO,
        };
        turn.take(true)?;
        Ok(turn)
    }

    /// Number of queries that use the device or wait for it.
    pub fn queries(&self) -> u64 {
        self.state().running
    }

    /// Number of times that a query had to wait so far. If it is the same before and after a run, the run had the
    /// device to itself.
    pub fn waits(&self) -> u64 {
        self.state().waits
    }

    /// [`Self::queries`], at least 1.
    pub fn running(&self) -> u64 {
        self.queries().max(1)
    }
}

impl DeviceTurn {
    /// The query's token.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Time since the query began during which it did not use the device: it waited for a turn, or was in
    /// [`Self::aside`].
    pub fn away(&self) -> Duration {
        self.away
    }

    /// Gives up the turn and waits for the next one, if other queries wait.
    pub fn pass(&mut self) -> Result<()> {
        self.take(false)
    }

    /// Calls a function that does not need the device, which other queries may use in the meantime.
    pub fn aside<T>(&mut self, what: impl FnOnce() -> Result<T>) -> Result<T> {
        self.hand_on();
        let began = Instant::now();
        let done = what();
        self.away += began.elapsed();
        let done = done?;
        self.take(true)?;
        Ok(done)
    }

    fn hand_on(&mut self) {
        if std::mem::take(&mut self.held) {
            self.turns.state().held = false;
            self.turns.handed_on.notify_all();
        }
    }

    /// Takes the turn, at the end of the queue if other queries wait. If `anew` is false, the query has the turn
    /// already, and gives it up first if others wait.
    fn take(&mut self, anew: bool) -> Result<()> {
        let turns = Arc::clone(&self.turns);
        let mut state = turns.state();
        if state.line.is_empty() && (!anew || !state.held) {
            state.held = true;
            self.held = true;
            return Ok(());
        }
        if !anew && self.held {
            self.held = false;
            state.held = false;
            turns.handed_on.notify_all();
        }
        let began = Instant::now();
        let me = state.next;
        state.next += 1;
        state.waits += 1;
        state.line.push_back(me);
        loop {
            if !state.held && state.line.front() == Some(&me) {
                state.line.pop_front();
                state.held = true;
                self.held = true;
                self.away += began.elapsed();
                return Ok(());
            }
            if let Err(e) = self.cancel.check() {
                state.line.retain(|&other| other != me);
                // The next query in the queue may have waited only for this one to leave it.
                turns.handed_on.notify_all();
                return Err(e);
            }
            state = turns
                .handed_on
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for DeviceTurn {
    fn drop(&mut self) {
        self.hand_on();
        let mut state = self.turns.state();
        state.running -= 1;
        if state.running > 0 {
            return;
        }
        state.ended = Some(Instant::now());
        if !state.waiting {
            let (turns, idle) = (Arc::downgrade(&self.turns), self.turns.idle);
            let waiter = std::thread::Builder::new().name("gpu-idle".into());
            // If the system cannot start a thread, the end of the next query tries again.
            state.waiting = waiter.spawn(move || trim_when_idle(&turns, idle)).is_ok();
        }
    }
}

fn trim_when_idle(turns: &Weak<Turns>, idle: Duration) {
    let mut wait = idle;
    loop {
        std::thread::sleep(wait);
        let Some(turns) = turns.upgrade() else {
            return;
        };
        let mut state = turns.state();
        let past = state.ended.map_or(idle, |at| at.elapsed());
        if state.running > 0 {
            state.waiting = false;
            return;
        }
        if past >= idle {
            state.waiting = false;
            drop(state);
            turns.device.trim();
            return;
        }
        wait = idle - past;
    }
}

#[cfg(all(test, feature = "shim"))]
mod tests {
    use super::*;
    use crate::shim::{Shim, ShimOptions};
    use jindou_model::Error;
    use std::sync::mpsc::channel;

    fn turns() -> Arc<Turns> {
        let shim = Arc::new(Shim::open(ShimOptions::default()).unwrap());
        Turns::new(&Device::new(shim), Duration::from_secs(60))
    }

    /// Waits until this many queries are in the queue.
    fn in_line(turns: &Turns, n: usize) {
        let began = Instant::now();
        while turns.state().line.len() != n {
            assert!(began.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn queries_take_turns_step_by_step_in_the_order_in_which_they_came() {
        let turns = turns();
        let (say, said) = channel();
        let none = CancelToken::new();
        let mut long = turns.begin(&none).unwrap();
        std::thread::scope(|s| {
            for name in ["b", "c"] {
                let (turns, none, say) = (&turns, &none, say.clone());
                s.spawn(move || {
                    let mut turn = turns.begin(none).unwrap();
                    for _ in 0..3 {
                        say.send(name).unwrap();
                        turn.pass().unwrap();
                    }
                });
                in_line(turns, if name == "b" { 1 } else { 2 });
            }
            for _ in 0..5 {
                say.send("a").unwrap();
                long.pass().unwrap();
            }
        });
        drop((long, say));
        let order: String = said.iter().collect();
        assert_eq!(order, "abcabcabcaa");
        assert_eq!((turns.queries(), turns.state().held), (0, false));
    }

    #[test]
    fn who_is_cancelled_in_line_leaves_it_and_who_reads_rows_keeps_nobody() {
        let turns = turns();
        let none = CancelToken::new();
        let mut holder = turns.begin(&none).unwrap();
        let late = CancelToken::with_deadline(Duration::from_millis(20));
        assert!(matches!(turns.begin(&late), Err(Error::Timeout(_))));
        assert_eq!((turns.queries(), turns.state().line.len()), (1, 0));
        // While the query's rows are consumed, another query runs from beginning to end.
        holder.aside(|| turns.begin(&none).map(drop)).unwrap();
        assert!(turns.state().held);
        // If the consumer needs no more rows, the query ends and the device is free.
        assert!(holder.aside(|| Err::<(), _>(Error::SinkClosed)).is_err());
        turns.begin(&none).map(drop).unwrap();
        drop(holder);
        assert_eq!(turns.queries(), 0);
    }
}
