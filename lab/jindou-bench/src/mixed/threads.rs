//! Clients that are threads of their own. They compete with the workers for cores, which on few cores dominates what
//! they measure.

use super::arrivals::Random;
use super::emulate::{Emulator, Setup};
use crate::obliger::Scheduler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A client that is more than this behind skips the queries that it missed. They count as unsent rather than in any
/// latency.
const MOST_BEHIND: Duration = Duration::from_millis(5);

/// A closed loop's client: sends a query after each answer, until the run is over.
pub fn client(
    scheduler: &Scheduler<Emulator>,
    number: u64,
    answers: &Receiver<()>,
    going: &AtomicBool,
    seed: u64,
) {
    let mut random = Random::new(seed);
    let work = scheduler.work();
    while going.load(Ordering::Relaxed) {
        match answers.recv_timeout(Duration::from_millis(20)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let task = work.setup().draw(&mut random);
        let job = work.job(task, number, None, Instant::now());
        let arrived = job.arrived;
        if let Err((refused, _)) = scheduler.submit(job) {
            work.count_refused(number as usize, arrived, refused);
        }
    }
}

/// The clients of an open loop, all in one thread.
pub struct Sender {
    rate: f64,
    clients: usize,
    due: Instant,
    random: Random,
    turn: u64,
    pub unsent: u64,
}

impl Sender {
    pub fn new(rate: f64, clients: usize, begin: Instant, seed: u64) -> Self {
        Self {
            rate,
            clients: clients.max(1),
            due: begin,
            random: Random::new(seed + 1),
            turn: 0,
            unsent: 0,
        }
    }

    /// Changes the rate from the time `from` on.
    pub fn set_rate(&mut self, rate: f64, from: Instant) {
        (self.rate, self.due) = (rate, from);
    }

    /// Sends the queries that are due, then sleeps until the next is due, at most a millisecond; returns soon after
    /// `until`.
    pub fn send(&mut self, setup: &Setup, scheduler: &Scheduler<Emulator>, until: Instant) {
        let work = scheduler.work();
        let now = Instant::now();
        let behind = now.saturating_duration_since(self.due);
        if behind > MOST_BEHIND {
            self.unsent += (behind.as_secs_f64() * self.rate) as u64;
            self.due = now;
        }
        while self.due <= now {
            self.turn += 1;
            let task = setup.draw(&mut self.random);
            // The latency counts from `due`, however late this thread is.
            let job = work.job(task, self.turn % self.clients as u64, None, self.due);
            if let Err((refused, _)) = scheduler.submit(job) {
                work.count_refused(self.turn as usize, self.due, refused);
            }
            self.due += self.random.gap(self.rate);
        }
        let now = Instant::now();
        let next = self.due.min(until).saturating_duration_since(now);
        if !next.is_zero() {
            std::thread::sleep(next.min(Duration::from_millis(1)));
        }
    }
}
