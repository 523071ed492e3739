//! LUBM through the real loader and planner, on the device and on the CPU.

use crate::median;
use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, Output};
use jindou_model::{Error, Progress, Result};
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::sync::Arc;
use std::time::Instant;

pub fn measure(
    backend: Arc<dyn Backend>,
    n: u32,
    threads: usize,
    repeat: usize,
    bandwidth: f64,
) -> Result<()> {
    let folder = tempfile::tempdir().map_err(|e| Error::io("a temporary folder", e))?;
    let dir = folder.path().join("store");
    let began = Instant::now();
    let options = LoadOptions::default().with_threads(threads);
    load(&dir, &Lubm::new(n, 0), &options, &Progress::default())?;
    println!(
        "\nLUBM({n}) loaded in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let snapshot = Snapshot::of_base(open(&dir)?);
    let gpu = GpuExecutor::new(backend);
    println!(
        "{:<5} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "query",
        "rows",
        "cpu ms",
        "bring ms",
        "count ms",
        "sum ms",
        "rows ms",
        "segment MB",
        "kernels"
    );
    let (mut profiles, mut failed) = (String::new(), vec![]);
    for q in QUERIES {
        let plan = plan(&parse(q.text)?, &snapshot, &PlanOptions::default())?;
        let exec = ExecOptions {
            threads,
            ..ExecOptions::default()
        };
        let (mut cpu_ms, mut sum) = (vec![], ChecksumSink::default());
        for _ in 0..repeat.min(5) {
            let sink = Summed::<ChecksumSink>::default();
            let t = Instant::now();
            jindou_engine::execute(&plan, &snapshot, &exec, &QueryTerms::default(), &sink)?;
            cpu_ms.push(t.elapsed().as_secs_f64() * 1e3);
            sum = sink.into_inner();
        }
        let plain = GpuOptions::default();
        let first = match gpu.execute(&plan, &snapshot, Output::Checksum, &plain) {
            Ok(r) => r,
            Err(Error::Unsupported(why)) => {
                println!(
                    "{:<5} {:>10} {:>9.3} refused: {why}",
                    q.name,
                    sum.rows,
                    median(&mut cpu_ms)
                );
                failed.push(format!("{}: refused ({why})", q.name));
                continue;
            }
            Err(e) => return Err(e),
        };
        if (first.rows, first.checksum) != (sum.rows, Some(sum.checksum)) {
            failed.push(format!(
                "{}: {} rows, not {}, or another checksum",
                q.name, first.rows, sum.rows
            ));
        }
        if q.rows(n).is_some_and(|known| known != first.rows) {
            failed.push(format!(
                "{}: {} rows, not the published count",
                q.name, first.rows
            ));
        }
        let mut times = [vec![], vec![], vec![]];
        for _ in 0..repeat {
            for (i, times) in times.iter_mut().enumerate() {
                let mut read = 0u64;
                let mut sink = |columns: &[&[u32]], _: usize| {
                    read += columns
                        .iter()
                        .map(|c| u64::from(c.first().copied().unwrap_or(0)))
                        .sum::<u64>();
                    Ok(())
                };
                let output = match i {
                    0 => Output::Count,
                    1 => Output::Checksum,
                    _ => Output::Rows(&mut sink),
                };
                let t = Instant::now();
                gpu.execute(&plan, &snapshot, output, &plain)?;
                times.push(t.elapsed().as_secs_f64() * 1e3);
            }
        }
        let timed = GpuOptions {
            profile: true,
            ..GpuOptions::default()
        };
        let profile = gpu
            .execute(&plan, &snapshot, Output::Checksum, &timed)?
            .profile;
        let kernels: f64 = profile.steps.iter().map(|s| s.seconds()).sum();
        let [count, sums, rows] = &mut times;
        println!(
            "{:<5} {:>10} {:>9.3} {:>9.3} {:>10.3} {:>10.3} {:>10.3} {:>10.1} {:>6.3} ms",
            q.name,
            first.rows,
            median(&mut cpu_ms),
            first.profile.bring_seconds * 1e3,
            median(count),
            median(sums),
            median(rows),
            first.profile.segment_bytes as f64 / 1e6,
            kernels * 1e3,
        );
        profiles.push_str(&format!("{}: {}", q.name, profile.table(Some(bandwidth))));
    }
    println!("\n{profiles}");
    if failed.is_empty() {
        println!("all counts and checksums agree");
        return Ok(());
    }
    Err(Error::Internal(failed.join("; ")))
}
