//! The loop of a worker thread.

use super::counts::one;
use super::scheduler::SchedulerState;
use super::{Drawn, Dropped, Job, Policy, Ran, TaskSource, WorkClass};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest sleep of a worker that is not woken.
const NAP: Duration = Duration::from_millis(100);
/// Most jobs that are drawn between two runs. After a pause (another process had the core), drawing all arrivals at
/// once would delay the jobs that already wait.
const MOST_DRAWN: usize = 64;
/// A worker with work of its own looks at other queues only this many times per T, since looking moves their cache
/// lines.
const LOOKS: u32 = 8;
/// Number of finished light jobs that are reported to admission at once; reporting each would move a shared cache line
/// every time.
const TOLD: u64 = 8;

/// A worker's own state.
struct Turn {
    worker: usize,
    /// Distance to the next worker that may need help (fig. 11).
    next: usize,
    /// Next time to look at the other workers' queues.
    look: Instant,
    /// Beginning of the current work: the end of the last job, unless the worker was idle since. The time between two
    /// jobs counts as part of the second.
    since: Instant,
    /// Since when it has been idle; `None` if it is not.
    idle: Option<Instant>,
    /// Number and total time of the light jobs not yet reported to admission.
    untold: (u64, Duration),
    /// Number of those jobs whose clients sent no next job.
    left: usize,
}

impl<W: TaskSource> SchedulerState<W> {
    /// Runs jobs until the scheduler is closed.
    pub(crate) fn serve(&self, worker: usize) {
        self.queues[worker].set_thread(std::thread::current());
        let mut local = self.work.local(worker);
        let mut now = Instant::now();
        let mut turn = Turn {
            worker,
            next: 1,
            look: now,
            since: now,
            idle: None,
            untold: (0, Duration::ZERO),
            left: 0,
        };
        while !self.closed.load(Ordering::Relaxed) {
            let due = self.draw(&mut local, now);
            if self.heavy_turn(&mut turn, &mut local, now) {
                turn.idle = None;
                now = Instant::now();
                turn.since = now;
                continue;
            }
            if let Some(job) = self.next_light(&mut turn, now) {
                turn.idle = None;
                now = self.run(job, &mut turn, &mut local);
                continue;
            }
            self.tell(&mut turn);
            self.idle(&mut turn, due, now);
            now = Instant::now();
            turn.since = now;
        }
        self.tell(&mut turn);
    }

    /// Draws and admits the jobs that have arrived. Returns the time of the next arrival, if known.
    fn draw(&self, local: &mut W::Local, now: Instant) -> Option<Instant> {
        for _ in 0..MOST_DRAWN {
            match self.work.draw(local, now) {
                Drawn::Job(job) => {
                    let waited = now.saturating_duration_since(job.arrived);
                    match self.enter_late(&job, waited) {
                        Ok(()) => self.enqueue(job),
                        Err(refused) => self.work.refused(local, job, refused),
                    }
                }
                Drawn::At(due) => return Some(due),
                Drawn::Never => return None,
            }
        }
        Some(now)
    }

    /// Works on a heavy query, if there is one and the limit allows. False if it did not.
    fn heavy_turn(&self, turn: &mut Turn, local: &mut W::Local, now: Instant) -> bool {
        let worker = turn.worker;
        let wanted = self.heavy.is_wanted();
        if worker < self.heavy_from() || !wanted && self.heavy_queue.is_empty() {
            return false;
        }
        if self.options.policy == Policy::Private
            && let (Some(heavy), Some(light)) =
                (self.heavy_queue.oldest(), self.queues[worker].oldest())
            && light < heavy
        {
            // Light jobs that arrived earlier come first, since with private queues no other worker will take them.
            return false;
        }
        if !self.heavy.enter() {
            return false;
        }
        let is_light = worker < self.light_workers;
        if is_light {
            self.admission.go_away(true);
        }
        self.queues[worker].away(worker, now);
        let helped = wanted && self.heavy.help();
        if helped {
            one(&self.counters[worker].helped);
        }
        let job = if helped {
            None
        } else {
            self.heavy_queue.take()
        };
        let did = helped || job.is_some();
        if let Some(job) = job {
            self.tell(turn);
            turn.since = now;
            self.run(job, turn, local);
        }
        self.heavy.leave();
        if is_light {
            self.admission.go_away(false);
        }
        let more = !self.heavy_queue.is_empty() || self.heavy.is_wanted();
        if did && more {
            self.wake_for_heavy(1);
        }
        did
    }

    fn next_light(&self, turn: &mut Turn, now: Instant) -> Option<Job<W::Task>> {
        let worker = turn.worker;
        if worker >= self.light_workers {
            return None;
        }
        let t = self.options.stuck_after;
        let queues = &self.queues[..self.light_workers];
        let taken = &self.counters[worker].taken;
        match self.options.policy {
            Policy::Shared => queues[0].take(),
            Policy::Private => queues[worker].take(),
            Policy::Stealing => queues[worker].take().or_else(|| {
                let job =
                    (1..queues.len()).find_map(|n| queues[(worker + n) % queues.len()].take())?;
                one(taken);
                Some(job)
            }),
            Policy::Oblige => {
                let idle = queues[worker].is_empty();
                if turn.next < queues.len() && (idle || now >= turn.look) {
                    let at = (worker + turn.next) % queues.len();
                    match queues[at].oblige(worker, now, t, idle) {
                        Some(obliged) => {
                            turn.next += 1;
                            if obliged.is_some() {
                                one(taken);
                                return obliged;
                            }
                        }
                        None => turn.look = now.checked_add(t / LOOKS).unwrap_or(now),
                    }
                }
                turn.next = 1;
                queues[worker].take_own(worker, now, t)
            }
        }
    }

    /// Time until the worker can take a job that waits somewhere; `None` if none waits.
    fn has_work(&self, worker: usize) -> Option<Duration> {
        let heavy = worker >= self.heavy_from()
            && self.heavy.has_place()
            && (!self.heavy_queue.is_empty() || self.heavy.is_wanted());
        if heavy {
            return Some(Duration::ZERO);
        }
        if worker >= self.light_workers {
            return None;
        }
        let queues = &self.queues[..self.light_workers];
        let any = || queues.iter().any(|q| !q.is_empty());
        match self.options.policy {
            Policy::Shared => (!queues[0].is_empty()).then_some(Duration::ZERO),
            Policy::Private => (!queues[worker].is_empty()).then_some(Duration::ZERO),
            Policy::Stealing => any().then_some(Duration::ZERO),
            Policy::Oblige => {
                if !queues[worker].is_empty() {
                    return Some(Duration::ZERO);
                }
                let t = self.options.stuck_after;
                let next = &queues[(worker + 1) % queues.len()];
                if !next.is_empty() {
                    return Some(next.stuck_in(Instant::now(), t));
                }
                // Another worker is stuck, and the one that would help it may be stuck as well.
                any().then_some(t)
            }
        }
    }

    /// Called when there is nothing to do at `now`, and the next arrival is `due`: polls for a while, or sleeps.
    fn idle(&self, turn: &mut Turn, due: Option<Instant>, now: Instant) {
        let since = *turn.idle.get_or_insert(now);
        let spin = self.options.spin;
        let left = due.map(|due| due.saturating_duration_since(now));
        if now.saturating_duration_since(since) < spin || left.is_some_and(|left| left <= spin) {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
            return;
        }
        let own = &self.queues[turn.worker];
        own.lie_down();
        // A thread that pushes after this check sees that the worker sleeps.
        let soon = self.has_work(turn.worker);
        if soon != Some(Duration::ZERO) && !self.closed.load(Ordering::Relaxed) {
            if soon.is_some() {
                own.watch();
            }
            let longest = left.unwrap_or(NAP).min(NAP);
            one(&self.counters[turn.worker].slept);
            std::thread::park_timeout(soon.map_or(longest, |s| s.min(longest)));
        }
        own.get_up();
    }

    /// Runs a job, and returns the time when it is over.
    fn run(&self, job: Job<W::Task>, turn: &mut Turn, local: &mut W::Local) -> Instant {
        let counters = &self.counters[turn.worker];
        let (class, client) = (job.class, job.client);
        let (threads, counter) = match class {
            WorkClass::Light => (1, &counters.light),
            WorkClass::Heavy => (self.options.heavy_threads.max(1), &counters.heavy),
        };
        one(counter);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.work.run(job, local, &self.pool, threads)
        }));
        let end = Instant::now();
        let time = end.saturating_duration_since(turn.since);
        turn.since = end;
        match class {
            WorkClass::Light => turn.untold = (turn.untold.0 + 1, turn.untold.1 + time),
            WorkClass::Heavy => self.admission.served(class, time),
        }
        match ran {
            Ok(Ran::Done) if class == WorkClass::Light => {
                self.admission.gone(class, client);
                turn.left += 1;
            }
            Ok(Ran::Next(next)) if next.class == class && next.client == client => {
                self.enqueue(next);
            }
            Ok(Ran::Next(next)) => {
                self.admission.leave(class, client, None);
                self.enter(next);
            }
            Ok(Ran::TooLong(mut job)) => {
                self.admission.leave(class, client, None);
                one(&counters.moved);
                (job.class, job.moved) = (WorkClass::Heavy, true);
                self.enter(job);
            }
            // A panic has printed its message to standard error. It ends the task, not the worker.
            Ok(Ran::Done) | Err(_) => self.admission.leave(class, client, None),
        }
        if turn.untold.0 >= TOLD || !self.is_roomy() {
            self.tell(turn);
        }
        end
    }

    /// Admits a job that this worker got from its client or made heavy, or drops it.
    fn enter(&self, job: Job<W::Task>) {
        match self.admission.enter(job.class, job.client) {
            Ok(()) => self.enqueue(job),
            Err(refused) => self.work.dropped(job, Dropped::Refused(refused)),
        }
    }

    /// Reports the last light jobs and their time to admission.
    fn tell(&self, turn: &mut Turn) {
        let (n, time) = std::mem::take(&mut turn.untold);
        if n > 0 {
            self.admission.served_many(WorkClass::Light, time, n);
        }
        match std::mem::take(&mut turn.left) {
            0 => {}
            left => self.admission.left(WorkClass::Light, left),
        }
    }
}
