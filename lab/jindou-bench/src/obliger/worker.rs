//! The work of a worker, turn by turn.

use super::counts::one;
use super::scheduler::SchedulerState;
use super::{Drawn, Dropped, Job, Policy, Ran, TaskSource, WorkClass};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest sleep of a worker that nothing wakes.
const NAP: Duration = Duration::from_millis(100);
/// Most jobs that are drawn between two that are run: after a pause (the machine had the core elsewhere) those that came in it
/// must not keep each other waiting for ever.
const MOST_DRAWN: usize = 64;
/// Times in T that a worker with work of its own looks at its neighbours' queues: no more, since looking moves their cache lines.
const LOOKS: u32 = 8;
/// Light jobs that the admission is told of at once: who counts them all moves a cache line for each.
const TOLD: u64 = 8;

/// A worker's own state.
struct Turn {
    worker: usize,
    /// How many places further the worker is that is obliged next (fig. 11).
    next: usize,
    /// When to look at neighbours' queues again.
    look: Instant,
    /// Since when it does what it does now: the end of the last job, unless it was idle since. What lies between two jobs is a
    /// part of what each costs.
    since: Instant,
    /// Since when it has found nothing to do.
    idle: Option<Instant>,
    /// Light jobs, and their time, that the admission does not know of yet.
    untold: (u64, Duration),
    /// Jobs among those that were not followed by others of their clients.
    left: usize,
}

impl<W: TaskSource> SchedulerState<W> {
    /// Works until the scheduler is closed.
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
                now = self.run(job, &mut turn, &mut local, now);
                continue;
            }
            self.tell(&mut turn);
            self.idle(&mut turn, due, now);
            now = Instant::now();
            turn.since = now;
        }
        self.tell(&mut turn);
    }

    /// Lets in what has come by itself; when more is due, if that is known.
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

    /// Works on a heavy query if there is one and few enough are at it.
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
            // Other workers will not take it, and first come is first served in the papers' private queues.
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
            self.run(job, turn, local, now);
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

    /// How long until something that waits is this worker's to take; `None` if nothing waits.
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
                // Some other worker is stuck, and the one that obliges it may be as well.
                any().then_some(t)
            }
        }
    }

    /// Nothing is there to do at `now`, and what comes by itself is `due`: looks again soon, or sleeps.
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
        // Who pushes after this look sees that the worker sleeps.
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

    /// Runs a job, whose turn began at `now`; gives the time when it is over.
    fn run(
        &self,
        job: Job<W::Task>,
        turn: &mut Turn,
        local: &mut W::Local,
        now: Instant,
    ) -> Instant {
        let counters = &self.counters[turn.worker];
        if job.deadline.is_some_and(|d| now > d) {
            one(&counters.late);
            self.drop_job(job, Dropped::Late);
            return now;
        }
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
            // A panic's message is on standard error; its task is lost, the worker is not.
            Ok(Ran::Done) | Err(_) => self.admission.leave(class, client, None),
        }
        if turn.untold.0 >= TOLD || !self.is_roomy() {
            self.tell(turn);
        }
        end
    }

    /// Lets a job of this worker's in, or drops it.
    fn enter(&self, job: Job<W::Task>) {
        match self.admission.enter(job.class, job.client) {
            Ok(()) => self.enqueue(job),
            Err(refused) => self.work.dropped(job, Dropped::Refused(refused)),
        }
    }

    /// Tells the admission that the last light jobs are over, and how long they took.
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
