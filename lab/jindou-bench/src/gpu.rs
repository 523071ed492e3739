//! `jindou bench gpu choose`: the decisions of `--gpu auto` for a GPU of given speeds, judged by recorded runs.
//!
//! Each prediction is made five times, with growing knowledge: the calibration alone; also the recorded runs of all
//! other queries; also those of the same query at another scale; all but those of this query on the GPU, as if only the
//! CPU had answered it so far; all. Only the last repeats known runs on both sides; the others predict runs that the
//! model has not seen.

use crate::args::gpu::{BenchChoose, BenchGpu};
use crate::measure::{temporary_folder, write_json};
use crate::set::load;
use jindou::{Error, QuadSource, Result};
use jindou_gpu::replay::{Knowledge, Records};
use jindou_gpu::{Calibration, Chooser, PlanWork, RowsUse};
use jindou_plan::{PlanOptions, Weight, parse, plan};
use jindou_store::{Snapshot, open};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::queries::bsbm::BUSINESS;
use jindou_workloads::queries::watdiv::instances;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Runs recorded on an H200.
const RECORDED: &str = include_str!("../../../crates/jindou-gpu/tests/recorded/h200.jsonl");
/// Factor within which a prediction counts as right.
const RIGHT: f64 = 2.0;
/// Characters of a query's shape that the table shows at most.
const SHAPE: usize = 60;

pub fn run(bench: &BenchGpu) -> Result<ExitCode> {
    match bench {
        BenchGpu::Choose(a) => choose(a),
    }
}

/// The speeds in a file. If it has those of several GPUs, the first plausible ones.
fn speeds(file: &Path) -> Result<Calibration> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
    let all: Value = serde_json::from_str(&text)
        .map_err(|e| Error::Usage(format!("{} is not JSON: {e}", file.display())))?;
    let cards = all.as_object().into_iter().flat_map(|m| m.values());
    cards.chain([&all]).find_map(Calibration::from_json).ok_or_else(|| {
        Error::Usage(format!(
            "{} has no speeds of a card: bench/gpu.sh writes them, or a server with JINDOU_GPU_CALIBRATION",
            file.display()
        ))
    })
}

fn words(k: Knowledge) -> &'static str {
    match k {
        Knowledge::Calibration => "calibration alone",
        Knowledge::OtherQueries => "other queries' runs",
        Knowledge::OtherScales => "and other scales'",
        Knowledge::Here => "and all on the CPU",
        Knowledge::All => "all runs (replay)",
    }
}

fn rows_words(rows: RowsUse) -> &'static str {
    match rows {
        RowsUse::Counted => "counted",
        RowsUse::Summed => "summed",
        RowsUse::Sent => "sent",
        RowsUse::Shown => "shown",
    }
}

fn choose(a: &BenchChoose) -> Result<ExitCode> {
    let speeds = speeds(&a.calibration)?;
    let records = Records::parse(RECORDED).map_err(Error::Internal)?;
    let mut out = Vec::new();
    recorded(&records, &speeds, &mut out);
    let temporary = temporary_folder(None)?;
    unrecorded(a, &speeds, temporary.path(), &mut out)?;
    if let Some(file) = &a.json {
        write_json(file, &Value::Array(out))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the predictions for recorded runs, and the choices that follow from them.
fn recorded(records: &Records, speeds: &Calibration, out: &mut Vec<Value>) {
    let predicted = Knowledge::ALL.map(|k| records.predict(speeds, k));
    println!("predicted over recorded times, by what was known");
    println!(
        "query   scale stage       on   thr rows             ms  calibration  queries   scales      cpu      all"
    );
    for (i, run) in records.runs.iter().enumerate() {
        let ratio = |k: usize| predicted[k][i].map(|ms| ms / run.ms);
        let cell = |k: usize| ratio(k).map_or("-".into(), |r| format!("{r:.2}"));
        println!(
            "{:<6} {:>6} {:<11} {:<4} {:>3} {:<8} {:>10.4}  {:>11} {:>8} {:>8} {:>8} {:>8}",
            run.query,
            run.universities,
            run.stage,
            if run.there { "gpu" } else { "cpu" },
            run.threads,
            rows_words(run.rows),
            run.ms,
            cell(0),
            cell(1),
            cell(2),
            cell(3),
            cell(4)
        );
        out.push(json!({
            "query": run.query, "universities": run.universities, "stage": run.stage, "gpu": run.there,
            "threads": run.threads, "rows": rows_words(run.rows), "ms": run.ms,
            "ratios": [ratio(0), ratio(1), ratio(2), ratio(3), ratio(4)],
        }));
    }
    println!();
    for (knows, predicted) in Knowledge::ALL.into_iter().zip(&predicted) {
        accuracy(records, speeds, knows, predicted, out);
    }
    print_choices(records, speeds);
}

/// Prints how near the predictions with this knowledge are to the recorded times, and which choices are wrong.
fn accuracy(
    records: &Records,
    speeds: &Calibration,
    knows: Knowledge,
    predicted: &[Option<f64>],
    out: &mut Vec<Value>,
) {
    let mut ratios: Vec<f64> = records
        .runs
        .iter()
        .zip(predicted)
        .filter_map(|(run, ms)| Some((ms.as_ref()? / run.ms).ln().abs().exp()))
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let within = ratios.iter().filter(|r| **r <= RIGHT).count();
    let choices = records.choose(speeds, knows);
    let matter = choices.iter().filter(|c| c.matters).count();
    let wrong: Vec<String> = choices
        .iter()
        .filter(|c| c.is_wrong)
        .map(|c| {
            let [here, there] = c.runs.map(|i| &records.runs[i]);
            format!(
                "{}({}) {} with {} threads, {}",
                there.query,
                there.universities,
                there.stage,
                here.threads,
                rows_words(there.rows)
            )
        })
        .collect();
    println!(
        "{}: {within} of {} predictions within {RIGHT} times, the farthest {:.2}; {} of {matter} choices that matter right{}{}",
        words(knows),
        ratios.len(),
        ratios.last().copied().unwrap_or(1.0),
        matter - wrong.len(),
        if wrong.is_empty() { "" } else { "; wrong: " },
        wrong.join("; ")
    );
    out.push(json!({
        "known": words(knows), "predictions": ratios.len(), "within": within, "farthest": ratios.last(),
        "choices": matter, "wrong": wrong,
    }));
}

fn print_choices(records: &Records, speeds: &Calibration) {
    println!("\nchoices that matter, all runs known: predicted ms, recorded ms");
    for c in records
        .choose(speeds, Knowledge::All)
        .iter()
        .filter(|c| c.matters)
    {
        let [here, there] = c.runs.map(|i| &records.runs[i]);
        println!(
            "{:<6} {:>6} {:<8} {:<8} cpu({:>2}) {:>9.4} {:>9.4}  gpu {:>9.4} {:>9.4}  {} {}",
            there.query,
            there.universities,
            there.stage,
            rows_words(there.rows),
            here.threads,
            c.predicted[0],
            here.ms,
            c.predicted[1],
            there.ms,
            if c.there { "gpu" } else { "cpu" },
            if c.is_wrong { "WRONG" } else { "right" }
        );
    }
}

/// Prints predictions and choices for queries that have no recorded time on a GPU; the calibration alone predicts them.
fn unrecorded(
    a: &BenchChoose,
    speeds: &Calibration,
    folder: &Path,
    out: &mut Vec<Value>,
) -> Result<()> {
    if a.watdiv > 0 {
        let source = Watdiv::new(&WatdivModel::standard(), a.watdiv, 0)?;
        let queries = instances(a.watdiv, 0, 1)?.into_iter();
        let queries = queries.map(|q| (q.template, q.text)).collect();
        let title = format!("WatDiv({})", a.watdiv);
        plans(
            a,
            speeds,
            &title,
            &folder.join("watdiv"),
            &source,
            queries,
            out,
        )?;
    }
    if a.bsbm > 0 {
        let source = Bsbm::new(a.bsbm, 0);
        let queries = BUSINESS
            .iter()
            .flat_map(|t| t.instances(&source, 1))
            .map(|q| (q.template, q.text))
            .collect();
        let title = format!("BSBM({})", a.bsbm);
        plans(
            a,
            speeds,
            &title,
            &folder.join("bsbm"),
            &source,
            queries,
            out,
        )?;
    }
    Ok(())
}

fn plans(
    a: &BenchChoose,
    speeds: &Calibration,
    title: &str,
    store: &Path,
    source: &dyn QuadSource,
    queries: Vec<(String, String)>,
    out: &mut Vec<Value>,
) -> Result<()> {
    load(store, source, None, 1)?;
    let snapshot = Snapshot::of_base(open(store)?);
    let chooser = Chooser::new(speeds.clone());
    println!(
        "\n{title}, {} threads, the calibration alone, nothing recorded: predicted ms",
        a.threads
    );
    println!("query         cpu  gpu, warm  gpu, cold  choice shape");
    for (name, text) in queries {
        let plan = plan(&parse(&text)?, &snapshot, &PlanOptions::default())?;
        let work = PlanWork::of_plan(&plan, &snapshot);
        let [warm, cold] = [true, false].map(|warm| chooser.predict(&work, a.threads, warm));
        let chosen = match plan.weight {
            Weight::Light => "light",
            Weight::Heavy if warm.is_worth_it() => "gpu",
            Weight::Heavy => "cpu",
        };
        let shape: String = work.shape().chars().take(SHAPE).collect();
        println!(
            "{name:<6} {:>10.4} {:>10.4} {:>10.4}  {chosen:<6} {shape}",
            warm.cpu * 1e3,
            warm.gpu() * 1e3,
            cold.gpu() * 1e3
        );
        out.push(json!({
            "of": title, "query": name, "cpu_ms": warm.cpu * 1e3, "gpu_ms": warm.gpu() * 1e3,
            "gpu_cold_ms": cold.gpu() * 1e3, "choice": chosen, "shape": work.shape(),
        }));
    }
    Ok(())
}
