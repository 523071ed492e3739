//! Rows that another executor delivers in blocks. Any worker processes them, few blocks exist at a time, and whatever
//! ends the query also ends the executor.

use crate::fall_back::{All, execution, ring, steps_alone};
use crate::support::{plan_of, with_threads};
use jindou_engine::{
    CollectSink, ExecOptions, ExecutionOutcome, Executor, ExecutorChoice, ParallelSink, Profile,
    QueryTerms, RowBlock, Sink, StepProfile, Task, execute, execute_streaming,
};
use jindou_graph::Graph;
use jindou_model::{CancelToken, Error, MemoryBudget, Resource, Result};
use jindou_plan::{Plan, Slot, Weight};
use jindou_store::Snapshot;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Number of blocks that exist, the largest such number, and the number of blocks delivered.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
    given: AtomicUsize,
}

/// A block of rows, which is counted while it exists.
struct Block {
    columns: Vec<Vec<u32>>,
    rows: usize,
    count: Arc<Count>,
}

impl RowBlock for Block {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.columns.len()
    }

    fn column(&self, at: usize) -> &[u32] {
        &self.columns[at]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.count.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An executor that runs plans on the CPU, and delivers all rows `times` times, in blocks of a given size.
struct Blocks {
    plan: Plan,
    times: usize,
    block: usize,
    count: Arc<Count>,
    /// True if it runs whole plans.
    whole: bool,
    /// The error of the first delivery that failed.
    ended: Arc<Mutex<Option<Error>>>,
}

impl Blocks {
    fn new(plan: &Plan, times: usize, block: usize, whole: bool) -> Self {
        Self {
            plan: plan.clone(),
            times,
            block,
            whole,
            count: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Runs the plan on the CPU, and delivers its rows.
    fn run(&self, plan: &Plan, snapshot: &dyn Graph, sink: &mut dyn Sink) -> Result<Profile> {
        let (terms, mut rows) = (QueryTerms::new(), CollectSink::default());
        let options = ExecOptions::default();
        let profile = execute_streaming(plan, snapshot, &options, &terms, &mut rows)?;
        self.give(&rows, sink)?;
        Ok(profile)
    }

    fn give(&self, rows: &CollectSink, sink: &mut dyn Sink) -> Result<()> {
        let columns: Vec<Vec<u32>> = (0..rows.width)
            .map(|c| rows.rows().map(|r| r[c]).collect())
            .collect();
        for _ in 0..self.times {
            for from in (0..rows.rows).step_by(self.block) {
                let n = self.block.min(rows.rows - from);
                let parts = columns.iter().map(|c| c[from..from + n].to_vec());
                let block = Block {
                    columns: parts.collect(),
                    rows: n,
                    count: Arc::clone(&self.count),
                };
                let now = self.count.now.fetch_add(1, Ordering::SeqCst) + 1;
                self.count.most.fetch_max(now, Ordering::SeqCst);
                self.count.given.fetch_add(1, Ordering::SeqCst);
                sink.block(Box::new(block)).inspect_err(|e| {
                    let text = Error::Internal(e.to_string());
                    self.ended.lock().unwrap().get_or_insert(text);
                })?;
            }
        }
        Ok(())
    }
}

impl Executor for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        let (steps, slots) = steps_alone(&self.plan, task)?;
        self.run(&steps, task.snapshot, sink)?;
        Ok(slots)
    }

    fn whole(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        _options: &ExecOptions,
        sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        if !self.whole {
            return Err(Error::Unsupported("whole plans".into()));
        }
        Ok(ExecutionOutcome {
            profile: self.run(plan, snapshot, sink)?,
            details: "there".into(),
            ..ExecutionOutcome::default()
        })
    }
}

/// A sink that takes a while for each batch, and records the threads that call it.
#[derive(Default)]
struct Slow {
    threads: Mutex<HashSet<ThreadId>>,
    rows: AtomicUsize,
    each: Duration,
    /// Number of rows after which it fails.
    fails: Option<usize>,
}

struct SlowPart<'s>(&'s Slow);

impl Sink for SlowPart<'_> {
    fn batch(&mut self, _: &[&[u32]], rows: usize) -> Result<()> {
        std::thread::sleep(self.0.each);
        let threads = &self.0.threads;
        threads.lock().unwrap().insert(std::thread::current().id());
        let before = self.0.rows.fetch_add(rows, Ordering::SeqCst);
        match self.0.fails {
            Some(most) if before + rows > most => {
                Err(Error::limit(Resource::Memory, "no room for rows"))
            }
            _ => Ok(()),
        }
    }
}

impl<'s> ParallelSink for &'s Slow {
    type Local = SlowPart<'s>;

    fn local(&self) -> SlowPart<'s> {
        SlowPart(self)
    }

    fn merge(&self, _: SlowPart<'s>) -> Result<()> {
        Ok(())
    }
}

fn heavy(text: &str, snapshot: &Snapshot) -> Plan {
    let mut plan = plan_of(snapshot, &format!("PREFIX : <http://e/> {text}"));
    plan.weight = Weight::Heavy;
    plan
}

/// Each choice of an executor, with a new executor, its counts, and whether rows are buffered before they are
/// delivered.
fn choices(new: impl Fn() -> Blocks) -> Vec<(ExecutorChoice, Arc<Count>, bool)> {
    [false, true]
        .into_iter()
        .map(|hold| {
            let other = new();
            let count = Arc::clone(&other.count);
            let other: Arc<dyn Executor> = Arc::new(other);
            let choice = match hold {
                true => ExecutorChoice::Rather(other),
                false => ExecutorChoice::Demanded(other),
            };
            (choice, count, hold)
        })
        .collect()
}

#[test]
fn any_thread_takes_blocks_and_few_are_there_at_a_time() {
    let (_folder, snapshot, mut plan) = ring();
    plan.weight = Weight::Heavy;
    let terms = QueryTerms::new();
    for (whole, threads) in [(true, 1), (true, 4), (false, 4)] {
        for (choice, count, hold) in choices(|| Blocks::new(&plan, 20, 50, whole)) {
            let options = with_threads(threads);
            let slow = Slow {
                each: Duration::from_millis(2),
                ..Slow::default()
            };
            let execution = execution(&plan, &snapshot, &options, &terms, &choice);
            let ran = execution.run(&&slow).unwrap();
            assert_eq!(slow.rows.load(Ordering::SeqCst), 4000);
            assert_eq!((ran.profile.rows, ran.why_here), (4000, None));
            assert_eq!(count.given.load(Ordering::SeqCst), 80);
            let seen = slow.threads.lock().unwrap().len();
            assert!(
                (seen > 1) == (threads > 1) && seen <= threads,
                "{seen} of {threads}"
            );
            assert!(ran.profile.threads >= seen);
            let most = count.most.load(Ordering::SeqCst);
            // The block being delivered, those in the queue, and one at each worker.
            assert!(
                most <= 2 * threads,
                "{most} blocks, {threads} threads, {hold}"
            );
            assert_eq!(count.now.load(Ordering::SeqCst), 0);
            assert_eq!(options.memory.used(), 0);
        }
    }
}

/// Operators above the exploration: compares their rows with those that the CPU alone produces.
#[test]
fn operators_take_blocks_as_they_take_morsels() {
    let (_folder, snapshot, _) = ring();
    for text in [
        "SELECT ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?c",
        "SELECT DISTINCT ?c { ?a :p ?b . ?b :p ?c }",
        "SELECT ?a ?c { ?a :p ?b . ?b :p ?c FILTER(STR(?a) < STR(?c)) }",
        "SELECT ?a ?c { { ?a :p ?b . ?b :p ?c } UNION { ?c :p ?b . ?b :p ?a } }",
        "SELECT ?a ?d { ?a :p ?b . ?b :p ?c OPTIONAL { ?c :p ?d . ?d :p ?e FILTER(STR(?d) < 'http://e/n5') } }",
        "SELECT ?a ?x { { SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a } \
         { SELECT ?a (MAX(?y) AS ?x) { ?a :p ?b . ?b :p ?y } GROUP BY ?a } }",
        "SELECT ?a ?c { ?a :p ?b . ?b :p ?c } ORDER BY ?c ?a",
    ] {
        let plan = heavy(text, &snapshot);
        let (want, terms) = (All::default(), QueryTerms::new());
        execute(&plan, &snapshot, &with_threads(1), &terms, &want).unwrap();
        let mut want = want.0.into_inner().unwrap();
        want.sort_unstable();
        for threads in [1, 3] {
            for (choice, count, _) in choices(|| Blocks::new(&plan, 1, 7, false)) {
                let (options, terms, got) =
                    (with_threads(threads), QueryTerms::new(), All::default());
                let execution = execution(&plan, &snapshot, &options, &terms, &choice);
                let ran = execution.run(&got).unwrap();
                assert_eq!(ran.why_here, None, "{text}");
                let mut got = got.0.into_inner().unwrap();
                got.sort_unstable();
                // Computed numbers are query-local terms, whose ids may differ.
                assert_eq!(got.len(), want.len(), "{text}");
                if !text.contains("COUNT") {
                    assert_eq!(got, want, "{text}");
                }
                assert!(count.given.load(Ordering::SeqCst) > 20, "{text}");
                assert_eq!(count.now.load(Ordering::SeqCst), 0, "{text}");
                drop(terms);
                assert_eq!(options.memory.used(), 0, "{text}");
            }
        }
    }
}

#[test]
fn enough_rows_end_the_executor() {
    let (_folder, snapshot, _) = ring();
    // The executor runs the steps; the LIMIT is applied here.
    let plan = heavy("SELECT ?a ?c { ?a :p ?b . ?b :p ?c } LIMIT 60", &snapshot);
    for threads in [1, 4] {
        let other = Blocks::new(&plan, 1000, 50, false);
        let (count, ended) = (Arc::clone(&other.count), Arc::clone(&other.ended));
        let choice = ExecutorChoice::Demanded(Arc::new(other));
        let (options, terms, got) = (with_threads(threads), QueryTerms::new(), All::default());
        let execution = execution(&plan, &snapshot, &options, &terms, &choice);
        let ran = execution.run(&got).unwrap();
        assert_eq!((got.0.lock().unwrap().len(), ran.profile.rows), (60, 60));
        assert!(count.given.load(Ordering::SeqCst) < 20);
        assert!(ended.lock().unwrap().is_some());
        assert_eq!(count.now.load(Ordering::SeqCst), 0);
        assert_eq!(options.memory.used(), 0);
    }
}

/// If the sink fails, the query is cancelled, or its time is over, the executor ends and no blocks are left.
#[test]
fn what_ends_the_query_ends_the_executor() {
    let (_folder, snapshot, mut plan) = ring();
    plan.weight = Weight::Heavy;
    for (whole, threads) in [(true, 1), (false, 1), (true, 4), (false, 4)] {
        for how in ["sink", "cancelled", "deadline"] {
            for (choice, count, hold) in choices(|| Blocks::new(&plan, 2000, 50, whole)) {
                let cancel = match how {
                    "deadline" => CancelToken::with_deadline(Duration::from_millis(40)),
                    _ => CancelToken::new(),
                };
                let options = ExecOptions {
                    cancel: cancel.clone(),
                    ..with_threads(threads)
                };
                let terms = QueryTerms::new();
                let slow = Slow {
                    each: Duration::from_millis(1),
                    fails: (how == "sink").then_some(777),
                    ..Slow::default()
                };
                let execution = execution(&plan, &snapshot, &options, &terms, &choice);
                let began = Instant::now();
                let e = std::thread::scope(|scope| {
                    if how == "cancelled" {
                        scope.spawn(|| {
                            std::thread::sleep(Duration::from_millis(30));
                            cancel.cancel();
                        });
                    }
                    execution.run(&&slow).map(|_| ()).unwrap_err()
                });
                let right = match how {
                    "sink" => matches!(&e, Error::Limit(_)),
                    "cancelled" => matches!(&e, Error::Cancelled),
                    _ => matches!(&e, Error::Timeout(_)),
                };
                assert!(right, "{how}, {hold}: {e}");
                assert!(began.elapsed() < Duration::from_secs(20));
                assert_eq!(count.now.load(Ordering::SeqCst), 0, "{how}");
                assert_eq!(options.memory.used(), 0, "{how}");
                if !hold {
                    assert!(count.given.load(Ordering::SeqCst) < 4000, "{how}");
                }
            }
        }
    }
}

/// Buffered rows are charged. If there is not enough memory, the CPU runs the plan; no rows were delivered before.
#[test]
fn rows_that_cannot_be_held_are_made_here() {
    let (_folder, snapshot, mut plan) = ring();
    plan.weight = Weight::Heavy;
    for whole in [true, false] {
        let other = Blocks::new(&plan, 1000, 100, whole);
        let count = Arc::clone(&other.count);
        let choice = ExecutorChoice::Rather(Arc::new(other));
        let options = ExecOptions {
            memory: MemoryBudget::new(400_000),
            ..with_threads(3)
        };
        let (terms, got) = (QueryTerms::new(), All::default());
        let execution = execution(&plan, &snapshot, &options, &terms, &choice);
        let ran = execution.run(&got).unwrap();
        assert_eq!(got.0.lock().unwrap().len(), 200);
        assert!(ran.why_here.is_some());
        assert!(count.given.load(Ordering::SeqCst) < 2000);
        assert_eq!(count.now.load(Ordering::SeqCst), 0);
        assert_eq!(options.memory.used(), 0);
    }
}
