//! BSBM, SP²Bench and WatDiv on a device with ever less memory, as `--gpu auto` would run them if every plan were
//! predicted to be faster there. The answers must be the CPU's.

use jindou_engine::{CollectSink, ExecOptions, Execution, Executor, ExecutorChoice, QueryTerms};
use jindou_gpu::GpuExecutor;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_model::{Progress, QuadSource, VertexId};
use jindou_parse::Sources;
use jindou_plan::{Plan, PlanOptions, Weight, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::queries::{bsbm, sp2b, watdiv};
use jindou_workloads::sp2b::Sp2b;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sizes of memory that are tried, as fractions of the memory that a plan takes without a limit.
const CAPS: [f64; 4] = [1.0, 0.8, 0.5, 0.2];
/// Largest number of rows of answers that are compared, since the shim is slow.
const MOST_ROWS: usize = 200_000;

fn stored(source: &dyn QuadSource) -> (tempfile::TempDir, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_memory(512 << 20)
        .with_threads(2);
    load(&dir, source, &options, &Progress::default()).unwrap();
    (folder, Snapshot::of_base(open(&dir).unwrap()))
}

/// The rows as terms, sorted unless their order is significant, and whether the device ran any part of the plan.
fn run(plan: &Plan, snapshot: &Snapshot, executor: &ExecutorChoice) -> (Vec<Vec<String>>, bool) {
    let (terms, mut rows) = (QueryTerms::new(), CollectSink::default());
    let options = ExecOptions::default();
    let execution = Execution {
        plan,
        snapshot,
        options: &options,
        terms: &terms,
        executor,
    };
    let ran = execution.stream(&mut rows).unwrap();
    let there = ran.profile.nodes.iter().any(|n| n.there.is_some());
    let term = |&id: &u32| {
        let mut bytes = vec![];
        let known = id == 0
            || terms.term(VertexId(id), &mut bytes)
            || snapshot.term(VertexId(id), &mut bytes);
        assert!(known, "unknown id {id}");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut out: Vec<Vec<String>> = rows.rows().map(|r| r.iter().map(term).collect()).collect();
    if out.is_empty() {
        out = vec![vec![String::new()]; rows.rows];
    }
    out.sort_unstable();
    (out, there)
}

#[derive(Debug, Default)]
struct Tally {
    queries: u32,
    /// Number of runs of which the device did a part, and number of runs left to the CPU.
    there: u32,
    here: u32,
}

/// True if two answers are the same. For a LIMIT, only their lengths are compared, since any rows are valid.
fn agree(text: &str, a: &[Vec<String>], b: &[Vec<String>]) -> bool {
    let upper = text.to_uppercase();
    if upper.contains("LIMIT") || upper.contains("SAMPLE") {
        return a.len() == b.len();
    }
    a == b
}

fn sweep(name: &str, text: &str, snapshot: &Snapshot, tally: &mut Tally) {
    let mut plan = plan(&parse(text).unwrap(), snapshot, &PlanOptions::default()).unwrap();
    plan.weight = Weight::Heavy;
    let began = Instant::now();
    let (want, _) = run(&plan, snapshot, &ExecutorChoice::Here);
    if want.len() > MOST_ROWS || began.elapsed() > Duration::from_secs(2) {
        println!("{name}: left out, {} rows", want.len());
        return;
    }
    tally.queries += 1;
    let mut at = |memory: u64| -> (bool, u64) {
        let shim = Arc::new(Shim::open(ShimOptions::default()).unwrap());
        let gpu = GpuExecutor::limited(shim.clone(), memory, Duration::from_secs(600));
        let gpu: Arc<dyn Executor> = Arc::new(gpu);
        let (got, there) = run(&plan, snapshot, &ExecutorChoice::Rather(gpu));
        let peak = shim.holdings().reserved;
        assert!(
            agree(text, &got, &want),
            "{name} in {memory} bytes: {} rows, not {}",
            got.len(),
            want.len()
        );
        assert!(peak <= memory, "{name}: {peak} bytes of {memory}");
        let held = shim.holdings();
        assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0), "{name}");
        tally.there += u32::from(there);
        tally.here += u32::from(!there);
        (there, peak)
    };
    let (there, footprint) = at(2 << 30);
    if !there {
        println!("{name}: the CPU's");
        return;
    }
    for part in CAPS {
        at((footprint as f64 * part / 0.9) as u64);
    }
    // Also tries sizes around the least memory in which the device runs a part of the plan.
    let (mut no, mut yes) = (0, footprint * 10 / 9 + 1);
    while yes - no > yes / 8 + 16 {
        let middle = no + (yes - no) / 2;
        match at(middle).0 {
            true => yes = middle,
            false => no = middle,
        }
    }
    println!(
        "{name}: {} rows, {footprint} bytes, at least {yes}",
        want.len()
    );
}

fn bsbm_in(products: u32, instances: u32, seen: u32) {
    let data = Bsbm::new(products, 0);
    let (_folder, snapshot) = stored(&data);
    let mut tally = Tally::default();
    for template in bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS) {
        for q in template.instances(&data, instances) {
            if q.text.contains("CONSTRUCT") || q.text.contains("DESCRIBE") {
                continue;
            }
            sweep(&q.name, &q.text, &snapshot, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(
        tally.queries >= seen && tally.there > tally.queries,
        "{tally:?}"
    );
}

fn sp2b_in(triples: u64, seen: u32) {
    let (_folder, snapshot) = stored(&Sp2b::new(triples, 0));
    let mut tally = Tally::default();
    for q in sp2b::QUERIES {
        sweep(q.name, &q.text(), &snapshot, &mut tally);
    }
    println!("{tally:?}");
    assert!(
        tally.queries >= seen && tally.there > tally.queries,
        "{tally:?}"
    );
}

#[test]
fn bsbm_agrees_with_the_cpu_however_little_memory_there_is() {
    bsbm_in(30, 1, 12);
}

#[test]
fn sp2bench_agrees_with_the_cpu_however_little_memory_there_is() {
    sp2b_in(4_000, 12);
}

#[test]
fn watdiv_agrees_with_the_cpu_however_little_memory_there_is() {
    let (_folder, snapshot) = stored(&Watdiv::new(&WatdivModel::standard(), 1, 0).unwrap());
    let mut tally = Tally::default();
    for q in watdiv::instances(1, 0, 1).unwrap() {
        if !q.name.starts_with('C') {
            sweep(&q.name, &q.text, &snapshot, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(
        tally.queries >= 12 && tally.there > tally.queries,
        "{tally:?}"
    );
}

#[test]
#[ignore = "minutes"]
fn larger_workloads_agree_with_the_cpu_however_little_memory_there_is() {
    bsbm_in(300, 3, 40);
    sp2b_in(30_000, 12);
    let Some(folder) = jindou_testing::shared("workloads/watdiv/sf10") else {
        return;
    };
    let sources = Sources::builder()
        .path(folder.join("watdiv-sf10-seed1024.nt.gz"))
        .build()
        .unwrap();
    let (_folder, snapshot) = stored(&sources);
    let mut tally = Tally::default();
    let counts = std::fs::read_to_string(folder.join("expected-counts-sf10.tsv")).unwrap();
    for line in counts.lines().skip(1).filter(|l| !l.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        if cells[1] == "0" {
            let name = format!("{}-{}", cells[0], cells[1]);
            let text = std::fs::read_to_string(folder.join(format!("queries/{name}.rq"))).unwrap();
            sweep(&name, &text, &snapshot, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(
        tally.queries >= 15 && tally.there > tally.queries,
        "{tally:?}"
    );
}
