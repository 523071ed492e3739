//! WatDiv's templates at scale factor 10, with every plan run entirely on the shim: compared with known counts and the
//! CPU engine's checksums.

use crate::common::device;
use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::{GpuExecutor, GpuOptions, ResultUse};
use jindou_model::Progress;
use jindou_parse::Sources;
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};

/// Compares the queries for which `take` returns true, given template and instance. Returns their number; `usize::MAX`
/// if the data is not there.
fn compare(take: impl Fn(&str, &str) -> bool) -> usize {
    let Some(folder) = jindou_testing::shared("workloads/watdiv/sf10") else {
        return usize::MAX;
    };
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("store");
    let options = LoadOptions::default()
        .with_memory(512 << 20)
        .with_threads(2);
    let sources = Sources::builder()
        .path(folder.join("watdiv-sf10-seed1024.nt.gz"))
        .build()
        .unwrap();
    load(&dir, &sources, &options, &Progress::default()).unwrap();
    let snapshot = Snapshot::of_base(open(&dir).unwrap());
    let gpu = GpuExecutor::new(device(0));
    let counts = std::fs::read_to_string(folder.join("expected-counts-sf10.tsv")).unwrap();
    let (mut ran, mut refused) = (0, vec![]);
    for line in counts.lines().skip(1).filter(|l| !l.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        if !take(cells[0], cells[1]) {
            continue;
        }
        let name = format!("{}-{}", cells[0], cells[1]);
        let text = std::fs::read_to_string(folder.join(format!("queries/{name}.rq"))).unwrap();
        let plan = plan(&parse(&text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
        let cpu = Summed::<ChecksumSink>::default();
        let exec = ExecOptions::default();
        jindou_engine::execute(&plan, &snapshot, &exec, &QueryTerms::default(), &cpu).unwrap();
        let cpu = cpu.into_inner();
        assert_eq!(
            cpu.rows,
            cells[2].parse::<u64>().unwrap(),
            "{name} on the CPU"
        );
        match gpu.execute(
            &plan,
            &snapshot,
            ResultUse::Checksum,
            &GpuOptions::default(),
        ) {
            Ok(r) => {
                assert_eq!(
                    (r.rows, r.checksum),
                    (cpu.rows, Some(cpu.checksum)),
                    "{name}"
                );
                ran += 1;
            }
            Err(e) => refused.push(format!("{name}: {e}")),
        }
    }
    assert!(refused.is_empty(), "refused: {refused:#?}");
    println!("{ran} plans ran on the device, none was refused");
    ran
}

#[test]
fn one_instance_of_each_small_template_agrees() {
    assert!(compare(|template, instance| instance == "0" && template != "C3") >= 19);
}

#[test]
#[ignore = "a minute"]
fn all_instances_agree() {
    assert!(compare(|_, _| true) >= 60);
}
