//! Tests with tasks that report to the test by sending their numbers.

use super::*;
use jindou::WorkerPool;
use jindou_server::RefusalReason;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A gate at which tasks wait until it opens.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[derive(Clone)]
enum Task {
    /// Reports its number.
    Say(usize),
    /// Waits at the gate, then reports its number.
    Wait(Arc<Gate>, usize),
    /// Returns [`Ran::TooLong`] unless it runs as a heavy job.
    Long(usize),
    /// Asks for this many helpers, and ends when each that came has counted itself once.
    Help(usize, Arc<AtomicUsize>, usize),
    Panic,
    /// Computes for this long.
    Spin(Duration, usize),
    /// Reports its number, and is followed by a task with the next number, up to the second.
    Chain(usize, usize),
}

struct Sayer {
    said: Mutex<Sender<(usize, ThreadId)>>,
    dropped: Mutex<Sender<(usize, Dropped)>>,
    /// Jobs for `draw`, in the order in which they arrive.
    coming: Mutex<VecDeque<Job<Task>>>,
}

impl Sayer {
    fn say(&self, n: usize) {
        let _ = self
            .said
            .lock()
            .unwrap()
            .send((n, std::thread::current().id()));
    }
}

fn number(task: &Task) -> usize {
    match task {
        Task::Say(n)
        | Task::Wait(_, n)
        | Task::Long(n)
        | Task::Help(_, _, n)
        | Task::Spin(_, n)
        | Task::Chain(n, _) => *n,
        Task::Panic => usize::MAX,
    }
}

impl TaskSource for Sayer {
    type Task = Task;
    type Local = ();

    fn local(&self, _: usize) {}

    fn run(
        &self,
        job: Job<Task>,
        (): &mut (),
        pool: &Arc<dyn WorkerPool>,
        threads: usize,
    ) -> Ran<Task> {
        match &job.task {
            Task::Say(n) => self.say(*n),
            Task::Wait(gate, n) => {
                gate.wait();
                self.say(*n);
            }
            Task::Long(n) => {
                if job.class == WorkClass::Light {
                    return Ran::TooLong(job);
                }
                self.say(*n);
            }
            Task::Help(helpers, count, n) => {
                let until = Instant::now() + SOON;
                let both = || {
                    count.fetch_add(1, Ordering::SeqCst);
                    while count.load(Ordering::SeqCst) <= *helpers && Instant::now() < until {
                        std::thread::yield_now();
                    }
                };
                pool.work(&both, &mut |ask| {
                    ask((*helpers).min(threads - 1));
                    both();
                });
                self.say(*n);
            }
            Task::Spin(time, n) => {
                let end = Instant::now() + *time;
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
                self.say(*n);
            }
            Task::Chain(n, last) => {
                self.say(*n);
                if n < last {
                    let next = Task::Chain(n + 1, *last);
                    return Ran::Next(Job {
                        home: Some(*n),
                        ..Job::new(next, job.class, job.client)
                    });
                }
            }
            Task::Panic => panic!("a task panics, on purpose"),
        }
        Ran::Done
    }

    fn dropped(&self, job: Job<Task>, why: Dropped) {
        let _ = self.dropped.lock().unwrap().send((number(&job.task), why));
    }

    fn draw(&self, (): &mut (), now: Instant) -> Drawn<Task> {
        let mut coming = self.coming.lock().unwrap();
        match coming.front().map(|j| j.arrived) {
            None => Drawn::Never,
            Some(due) if due > now => Drawn::At(due),
            Some(_) => coming.pop_front().map_or(Drawn::Never, Drawn::Job),
        }
    }
}

struct Started {
    scheduler: Scheduler<Sayer>,
    said: Receiver<(usize, ThreadId)>,
    dropped: Receiver<(usize, Dropped)>,
}

const SOON: Duration = Duration::from_secs(20);

impl Started {
    fn new(options: Options) -> Self {
        Self::with(options, VecDeque::new())
    }

    fn with(options: Options, coming: VecDeque<Job<Task>>) -> Self {
        let (a, said) = channel();
        let (b, dropped) = channel();
        let work = Sayer {
            said: Mutex::new(a),
            dropped: Mutex::new(b),
            coming: Mutex::new(coming),
        };
        Self {
            scheduler: Scheduler::start(work, options).unwrap(),
            said,
            dropped,
        }
    }

    fn submit(&self, task: Task, class: WorkClass) {
        let job = Job::new(task, class, 0);
        assert!(self.scheduler.submit(job).is_ok());
    }

    fn light(&self, task: Task) {
        self.submit(task, WorkClass::Light);
    }

    fn heard(&self) -> usize {
        self.said
            .recv_timeout(SOON)
            .expect("somebody says something")
            .0
    }

    /// Asserts that the next reports are these numbers, in any order.
    fn hears(&self, numbers: std::ops::Range<usize>) {
        let mut heard: Vec<usize> = numbers.clone().map(|_| self.heard()).collect();
        heard.sort_unstable();
        assert_eq!(heard, numbers.collect::<Vec<_>>());
    }

    /// Submits a task that waits at a gate.
    fn stuck(&self, number: usize, class: WorkClass) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        self.submit(Task::Wait(Arc::clone(&gate), number), class);
        gate
    }

    fn counts(&self) -> Counts {
        self.scheduler.counts()
    }
}

fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "never");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn options(workers: usize, policy: Policy) -> Options {
    Options {
        workers,
        policy,
        stuck_after: Duration::from_millis(1),
        spin: Duration::from_micros(50),
        heavy_threads: 1,
        heavy_workers: 1,
        isolate: false,
        limits: AdmissionLimits {
            light_workers: workers,
            light_wait: Duration::MAX,
            heavy_wait: Duration::MAX,
            ..AdmissionLimits::default()
        },
    }
}

#[test]
fn every_job_is_run_once_whoever_has_the_turn() {
    for policy in [
        Policy::Shared,
        Policy::Private,
        Policy::Stealing,
        Policy::Oblige,
    ] {
        for isolate in [false, true] {
            let s = Started::new(Options {
                isolate,
                ..options(3, policy)
            });
            for n in 0..3000 {
                let class = if n % 100 == 7 {
                    WorkClass::Heavy
                } else {
                    WorkClass::Light
                };
                s.submit(Task::Say(n), class);
            }
            s.hears(0..3000);
            let c = s.counts();
            assert_eq!((c.light, c.heavy), (2970, 30));
        }
    }
}

/// Two workers, one of which waits at a gate while its queue fills.
fn behind_a_stuck_worker(policy: Policy) -> (Started, Arc<Gate>) {
    let s = Started::new(options(2, policy));
    let gate = s.stuck(1000, WorkClass::Light);
    for n in 0..20 {
        s.light(Task::Say(n));
    }
    (s, gate)
}

#[test]
fn who_waits_behind_a_stuck_worker_is_obliged() {
    for policy in [Policy::Oblige, Policy::Stealing, Policy::Shared] {
        let (s, gate) = behind_a_stuck_worker(policy);
        s.hears(0..20);
        if policy == Policy::Oblige {
            assert!(s.counts().taken > 0);
        }
        gate.open();
        assert_eq!(s.heard(), 1000);
    }
}

#[test]
fn private_queues_wait_for_their_worker() {
    let (s, gate) = behind_a_stuck_worker(Policy::Private);
    let first: Vec<usize> = (0..10).map(|_| s.heard()).collect();
    assert!(!first.contains(&1000));
    assert!(
        s.said.recv_timeout(Duration::from_millis(50)).is_err(),
        "ten are stuck"
    );
    gate.open();
    let rest: Vec<usize> = (0..11).map(|_| s.heard()).collect();
    assert!(rest.contains(&1000));
    assert_eq!(s.counts().taken, 0);
}

#[test]
fn heavy_queries_are_held_to_few_workers() {
    let s = Started::new(options(3, Policy::Oblige));
    let gate = Arc::new(Gate::default());
    for n in 0..6 {
        s.submit(Task::Wait(Arc::clone(&gate), 100 + n), WorkClass::Heavy);
    }
    for n in 0..100 {
        s.light(Task::Say(n));
    }
    let light: Vec<usize> = (0..100).map(|_| s.heard()).collect();
    assert!(light.iter().all(|n| *n < 100));
    assert_eq!(s.scheduler.waiting(), (0, 5), "one of them is at work");
    gate.open();
    s.hears(100..106);
}

#[test]
fn workers_help_as_far_as_they_are_let() {
    for (heavy_workers, helpers) in [(1, 0), (2, 1), (3, 2)] {
        let s = Started::new(Options {
            heavy_threads: 3,
            heavy_workers,
            ..options(3, Policy::Oblige)
        });
        for round in 0..20 {
            let count = Arc::new(AtomicUsize::new(0));
            let task = Task::Help(helpers, Arc::clone(&count), round);
            s.submit(task, WorkClass::Heavy);
            assert_eq!(s.heard(), round);
            assert_eq!(count.load(Ordering::SeqCst), helpers + 1);
        }
        until(|| s.counts().helped == 20 * helpers as u64);
    }
}

#[test]
fn a_light_query_that_is_none_is_moved() {
    let s = Started::new(options(2, Policy::Oblige));
    s.light(Task::Long(5));
    assert_eq!(s.heard(), 5);
    let c = s.counts();
    assert_eq!((c.light, c.heavy, c.moved), (1, 1, 1));
    // With no heavy job allowed, the move is refused.
    let mut o = options(2, Policy::Oblige);
    o.limits.heavy = 0;
    let s = Started::new(o);
    s.light(Task::Long(5));
    let (n, why) = s.dropped.recv_timeout(SOON).unwrap();
    assert_eq!(n, 5);
    assert!(matches!(why, Dropped::Refused(r) if r.reason == RefusalReason::Full));
}

#[test]
fn what_is_too_much_is_not_let_in() {
    let mut o = options(1, Policy::Oblige);
    o.limits.light = 3;
    let s = Started::new(o);
    let gate = s.stuck(1, WorkClass::Light);
    s.light(Task::Say(2));
    s.light(Task::Say(3));
    let (refused, job) = s
        .scheduler
        .submit(Job::new(Task::Say(4), WorkClass::Light, 0))
        .map_err(|(refused, job)| (refused, number(&job.task)))
        .expect_err("the fourth of three");
    assert_eq!((refused.reason, job), (RefusalReason::Full, 4));
    assert!(refused.retry_after > Duration::ZERO);
    gate.open();
    s.hears(1..4);
}

#[test]
fn a_panic_ends_its_task_only_and_closing_drops_what_waits() {
    let s = Started::new(options(1, Policy::Oblige));
    s.light(Task::Panic);
    s.light(Task::Say(1));
    assert_eq!(s.heard(), 1);
    until(|| s.scheduler.admission().within(WorkClass::Light) == 0);
    let gate = s.stuck(2, WorkClass::Light);
    s.light(Task::Say(3));
    // Waits until the worker is at the gate, so that the second job is queued.
    until(|| s.scheduler.waiting().0 == 1);
    let Started {
        mut scheduler,
        said,
        dropped,
    } = s;
    let submit = scheduler.submitter();
    let closing = std::thread::spawn(move || {
        scheduler.close();
        scheduler.admission().within(WorkClass::Light)
    });
    // Waits until jobs are refused; those submitted before that are queued behind the gate.
    until(|| !submit(Job::new(Task::Say(9), WorkClass::Heavy, 0)));
    gate.open();
    assert_eq!(closing.join().unwrap(), 0);
    assert_eq!(said.recv_timeout(SOON).unwrap().0, 2);
    assert_eq!(dropped.recv_timeout(SOON).unwrap(), (3, Dropped::Closed));
}

#[test]
fn overload_is_refused_at_once_and_leaves_nothing_behind() {
    let mut o = options(2, Policy::Oblige);
    o.limits.light_wait = Duration::from_millis(5);
    let s = Started::new(o);
    let spin = |n| Task::Spin(Duration::from_micros(100), n);
    // The first jobs teach admission how long a job takes.
    s.light(spin(0));
    assert_eq!(s.heard(), 0);
    let (mut accepted, mut refused, mut most) = (0, 0u64, 0);
    let mut longest_refusal = Duration::ZERO;
    let end = Instant::now() + Duration::from_secs(1);
    // Submits without pause, some hundred times the rate that two workers can do.
    while Instant::now() < end {
        let begin = Instant::now();
        match s.scheduler.submit(Job::new(spin(1), WorkClass::Light, 0)) {
            Ok(()) => accepted += 1,
            Err((r, _)) => {
                assert_eq!(r.reason, RefusalReason::Slow);
                assert!(r.retry_after >= Duration::from_millis(1));
                refused += 1;
                longest_refusal = longest_refusal.max(begin.elapsed());
            }
        }
        most = most.max(s.scheduler.waiting().0);
    }
    assert!(
        accepted > 20 && refused > 5 * accepted,
        "{accepted} in, {refused} not"
    );
    // 5 ms on two workers are 100 of these jobs; more are admitted, since the mean time lags behind.
    assert!(most < 1000, "{most} waited");
    let begin = Instant::now();
    for _ in 0..accepted {
        assert_eq!(s.heard(), 1);
    }
    s.light(Task::Say(2));
    assert_eq!(s.heard(), 2);
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "what was let in is soon over"
    );
    println!(
        "{accepted} in, {refused} refused (the slowest in {longest_refusal:?}), {most} waited"
    );
}

/// `n` light jobs, one every 20 µs from `begin` on, for the queues in turn.
fn arrivals(n: usize, begin: Instant, task: impl Fn(usize) -> Task) -> VecDeque<Job<Task>> {
    (0..n)
        .map(|i| Job {
            home: Some(i),
            arrived: begin + Duration::from_micros(20) * i as u32,
            ..Job::new(task(i), WorkClass::Light, i as u64 % 3)
        })
        .collect()
}

#[test]
fn what_comes_by_itself_is_run_once_and_not_before_its_time() {
    for spin in [Duration::ZERO, Duration::from_micros(50)] {
        for policy in [Policy::Shared, Policy::Stealing, Policy::Oblige] {
            let begin = Instant::now() + Duration::from_millis(5);
            let coming = arrivals(2000, begin, Task::Say);
            let s = Started::with(
                Options {
                    spin,
                    ..options(3, policy)
                },
                coming,
            );
            let gate = s.stuck(5000, WorkClass::Heavy);
            s.hears(0..2000);
            assert!(begin.elapsed() >= Duration::from_micros(20) * 1999);
            gate.open();
            assert_eq!(s.heard(), 5000);
            until(|| s.scheduler.admission().within(WorkClass::Light) == 0);
        }
    }
}

#[test]
fn too_much_of_what_comes_by_itself_is_refused() {
    let mut o = options(2, Policy::Oblige);
    o.limits.light_wait = Duration::from_millis(5);
    // Each takes 100 µs and 50,000 arrive per second, while two workers can do 20,000.
    let spin = |n| Task::Spin(Duration::from_micros(100), n);
    let s = Started::with(o, arrivals(20_000, Instant::now(), spin));
    let (mut ran, mut refused) = (0, 0);
    let mut all = vec![false; 20_000];
    let end = Instant::now() + SOON;
    while ran + refused < all.len() {
        assert!(Instant::now() < end, "{ran} ran and {refused} were refused");
        if let Ok((n, _)) = s.said.recv_timeout(Duration::from_millis(1)) {
            assert!(!std::mem::replace(&mut all[n], true), "{n} twice");
            ran += 1;
        }
        while let Ok((n, why)) = s.dropped.try_recv() {
            assert!(matches!(why, Dropped::Refused(r) if r.reason != RefusalReason::Full));
            assert!(!std::mem::replace(&mut all[n], true), "{n} twice");
            refused += 1;
        }
    }
    assert!(ran > 20 && refused > 2000, "{ran} ran, {refused} did not");
    until(|| s.scheduler.admission().within(WorkClass::Light) == 0);
}

#[test]
fn a_clients_next_query_takes_the_place_of_its_last() {
    let mut o = options(2, Policy::Oblige);
    o.limits.light = 2;
    let s = Started::new(o);
    s.light(Task::Chain(0, 5000));
    let heard: Vec<usize> = (0..=5000).map(|_| s.heard()).collect();
    assert_eq!(heard, (0..=5000).collect::<Vec<_>>());
    until(|| s.scheduler.admission().within(WorkClass::Light) == 0);
    assert_eq!(s.counts().light, 5001);
}

#[test]
fn a_worker_at_a_heavy_query_is_obliged_at_once() {
    let mut o = options(2, Policy::Oblige);
    o.stuck_after = SOON * 10;
    let s = Started::new(o);
    let gate = s.stuck(1000, WorkClass::Heavy);
    until(|| s.scheduler.waiting().1 == 0);
    for n in 0..100 {
        s.light(Task::Say(n));
    }
    s.hears(0..100);
    gate.open();
    assert_eq!(s.heard(), 1000);
}

#[test]
fn who_is_idle_helps_one_that_is_slow_and_not_stuck() {
    let s = Started::new(options(2, Policy::Oblige));
    // Each is shorter than T = 1 ms, but the last would wait 40 times T.
    for n in 0..200 {
        let task = Task::Spin(Duration::from_micros(200), n);
        let job = Job {
            home: Some(0),
            ..Job::new(task, WorkClass::Light, 0)
        };
        assert!(s.scheduler.submit(job).is_ok());
    }
    for _ in 0..200 {
        s.heard();
    }
    assert!(s.counts().taken > 0);
}
