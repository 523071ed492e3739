//! Measures the costs of ORDER BY with LIMIT, with and without shards that leave out rows.

use super::Shards;
use super::top::{held, sum};
use jindou_engine::{
    CollectSink, ExecOptions, Execution, Executor, ExecutorChoice, Needs, PulledRows, QueryTerms,
    ShardMode, Sink, StepProfile, Task,
};
use jindou_model::Result;
use jindou_plan::Slot;
use jindou_store::shard::{Placement, Sharding};
use jindou_testing::{Rng, named, triple};
use oxrdf::{Literal, Quad, Term};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An executor that does not tell the shards that only the first rows are needed.
struct Untold(Arc<dyn Executor>);

impl Executor for Untold {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn runs_nested(&self) -> bool {
        self.0.runs_nested()
    }

    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        self.0.prefix(task)
    }

    fn is_pulled(&self) -> bool {
        true
    }

    fn pull(&self, task: &Task<'_>, needs: Needs) -> Result<Option<Box<dyn PulledRows>>> {
        self.0.pull(task, Needs { top: None, ..needs })
    }

    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        self.0.stream(task, sink, profile)
    }
}

/// The costs of one query.
struct Costs {
    /// Rows that were sent to the coordinator.
    rows: u64,
    /// Round trips and bytes of the coordinator's requests for data.
    coordinator: [u64; 2],
    /// Messages of the parts, and their bytes.
    parts: [u64; 2],
    /// Round trips and bytes of the parts' requests for data.
    questions: [u64; 2],
    time: Duration,
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [[rounds, asked], [messages, sent], [part_rounds, part_asked]] =
            [self.coordinator, self.parts, self.questions];
        write!(
            f,
            "{} rows given in {messages} messages of {sent} bytes; asked {rounds} rounds of {asked} bytes at the coordinator, {part_rounds} of {part_asked} at the parts",
            self.rows
        )
    }
}

fn costs(shards: &Shards, text: &str, is_told: bool, all: u64) -> Costs {
    let plan = shards.plan(text);
    let snapshot = shards.snapshot.for_new_query();
    let options = ExecOptions::default();
    snapshot.begin(&options.cancel);
    let executor: Arc<dyn Executor> = Arc::new(shards.hub.executor(ShardMode::Fork));
    let executor = match is_told {
        true => executor,
        false => Arc::new(Untold(executor)),
    };
    let (mut sink, terms) = (CollectSink::default(), QueryTerms::new());
    let execution = Execution {
        plan: &plan,
        snapshot: &*snapshot,
        options: &options,
        terms: &terms,
        executor: &ExecutorChoice::Shards(executor),
    };
    let begun = Instant::now();
    let ran = execution.stream(&mut sink).unwrap();
    let time = begun.elapsed();
    let traffic = snapshot.as_sharded().unwrap().traffic();
    let in_place = |l: &str| {
        let (_, after) = l.split_once(" rounds of ")?;
        after.split(' ').next()?.parse::<u64>().ok()
    };
    Costs {
        rows: all - held(&ran),
        coordinator: [traffic.rounds, traffic.bytes],
        parts: [sum(&ran, " messages"), sum(&ran, " bytes, ")],
        questions: [
            sum(&ran, " rounds"),
            ran.details.lines().filter_map(in_place).sum(),
        ],
        time,
    }
}

/// Students with distinct names, few departments and grades, and scores some of which are equal.
fn students(n: usize) -> Vec<Quad> {
    let mut rng = Rng::new(1);
    let mut out = Vec::new();
    for i in 0..n {
        let student = format!("www.University{}.edu/Student{i}", i % 10);
        let mut quad = |p: &str, o: Term| out.push(triple(&student, p, o));
        let name = format!("{:08x} of students", rng.below(1 << 31));
        quad("name", Literal::from(name.as_str()).into());
        quad("score", Literal::from(rng.below(1 << 20) as i64).into());
        quad("grade", Literal::from(rng.below(20) as i64).into());
        let department = format!("department{}", rng.below(500));
        quad("member", named(&department).into());
    }
    for d in 0..500 {
        let name = Literal::from(format!("Department {d}").as_str());
        out.push(triple(&format!("department{d}"), "name", name));
    }
    out
}

/// See docs/testing.md.
#[test]
#[ignore = "measures: the costs of the first rows with and without holding rows back"]
fn costs_of_the_first_rows() {
    let n = 100_000;
    let data = students(n);
    for placement in [Placement::Range, Placement::Hash] {
        let sharding = Sharding::new(4).with_placement(placement);
        let shards = Shards::new(&data, sharding, 1, 1);
        for text in [
            "?s ?x { ?s :member ?d ; :name ?x } ORDER BY ?x LIMIT 10",
            "?s ?x { ?s :member ?d ; :score ?x } ORDER BY DESC(?x) LIMIT 10",
            "?s ?x { ?s :member ?d ; :grade ?x } ORDER BY ?x LIMIT 10",
            "?s ?x { ?s :member ?d ; :grade ?x ; :name ?y } ORDER BY ?x ?y LIMIT 10",
            "?s ?x { ?s :member ?d . ?d :name ?x } ORDER BY ?x LIMIT 10",
            "?s { ?s :member ?d ; :score ?x } ORDER BY DESC(?s) LIMIT 10",
            "?s ?x { ?s :member ?d ; :name ?x } ORDER BY ?x LIMIT 1000",
            "?s ?x { ?s :member ?d ; :name ?x } ORDER BY ?x LIMIT 10000",
        ] {
            let text = format!("PREFIX : <http://e/> SELECT {text}");
            println!("{placement:?} {text}");
            let mut times = [vec![], vec![]];
            for turn in 0..6 {
                let is_told = turn % 2 == 1;
                let costs = costs(&shards, &text, is_told, n as u64);
                if turn < 2 {
                    println!("  {}: {costs}", ["before", "now"][turn]);
                }
                let is_fewer = costs.rows < n as u64 / 4;
                assert_eq!(is_fewer, is_told && !text.ends_with("LIMIT 10000"));
                times[usize::from(is_told)].push(costs.time.as_secs_f64() * 1e3);
            }
            for list in &mut times {
                list.sort_by(f64::total_cmp);
            }
            let [before, after] = [times[0][1], times[1][1]];
            println!(
                "  {before:.1} ms before, {after:.1} ms now: {:.2} of it",
                after / before
            );
        }
    }
}
