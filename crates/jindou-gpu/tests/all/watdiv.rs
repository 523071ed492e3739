//! WatDiv's templates at scale factor 10, with every plan run entirely on the shim: compared with known counts and the
//! CPU engine's checksums.

use crate::common::{device, planned, stored, sum_here, sum_on};
use jindou_gpu::GpuExecutor;
use jindou_parse::Sources;
use jindou_store::Snapshot;

/// A query, and the known number of its rows.
pub struct Instance {
    template: String,
    pub instance: String,
    pub text: String,
    rows: u64,
}

impl Instance {
    pub fn name(&self) -> String {
        format!("{}-{}", self.template, self.instance)
    }
}

/// A store of the data, and the queries; `None` if the data is not there.
pub fn sf10() -> Option<((tempfile::TempDir, Snapshot), Vec<Instance>)> {
    let folder = jindou_testing::shared("workloads/watdiv/sf10")?;
    let sources = Sources::builder().path(folder.join("watdiv-sf10-seed1024.nt.gz"));
    let sources = sources.build().unwrap();
    let counts = std::fs::read_to_string(folder.join("expected-counts-sf10.tsv")).unwrap();
    let lines = counts.lines().skip(1).filter(|l| !l.is_empty());
    let queries = lines.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let file = format!("queries/{}-{}.rq", cells[0], cells[1]);
        Instance {
            template: cells[0].into(),
            instance: cells[1].into(),
            text: std::fs::read_to_string(folder.join(file)).unwrap(),
            rows: cells[2].parse().unwrap(),
        }
    });
    Some((stored(&sources), queries.collect()))
}

/// Compares the queries for which `take` returns true. Returns their number; `usize::MAX` if the data is not there.
fn compare(take: impl Fn(&Instance) -> bool) -> usize {
    let Some(((_folder, snapshot), queries)) = sf10() else {
        return usize::MAX;
    };
    let gpu = GpuExecutor::new(device(0));
    let mut ran = 0;
    for q in queries.iter().filter(|q| take(q)) {
        let name = q.name();
        let plan = planned(&snapshot, &q.text);
        let cpu = sum_here(&plan, &snapshot);
        assert_eq!(cpu.0, q.rows, "{name} on the CPU");
        // It is `None` if the device refused the plan.
        let on_device = sum_on(&gpu, &plan, &snapshot).map(|done| done.0);
        assert_eq!(on_device, Some(cpu), "{name}");
        ran += 1;
    }
    println!("{ran} plans ran on the device, none was refused");
    ran
}

#[test]
fn one_instance_of_each_small_template_agrees() {
    assert!(compare(|q| q.instance == "0" && q.template != "C3") >= 19);
}

#[test]
#[ignore = "a minute"]
fn all_instances_agree() {
    assert!(compare(|_| true) >= 60);
}
