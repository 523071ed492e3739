//! Replays runs that were recorded on an H200: what the cost model would have predicted and chosen before each, knowing
//! only the calibration, or also runs of other queries, of other scales, or all runs.

use jindou_gpu::replay::{Knowledge, Records};
use jindou_gpu::{Calibration, Chooser, RowsUse};

/// The recorded runs; the first line says where they come from.
const RECORDED: &str = include_str!("../recorded/h200.jsonl");

/// The speeds that `bench/gpu.sh` measured on that GPU, with impossible figures lowered.
fn speeds() -> Calibration {
    let measured = include_str!("../recorded/h200-speeds.json");
    Calibration::from_json(&serde_json::from_str(measured).unwrap()).unwrap()
}

/// The number of predictions within a factor of two of the recorded time, the number of all predictions, and the
/// largest factor.
fn within(records: &Records, knows: Knowledge) -> (usize, usize, f64) {
    let predicted = records.predict(&speeds(), knows);
    let ratios: Vec<f64> = predicted
        .iter()
        .zip(&records.runs)
        .map(|(ms, run)| ms.expect("its work is recorded") / run.ms)
        .map(|ratio| ratio.max(1.0 / ratio))
        .collect();
    let near = ratios.iter().filter(|r| **r <= 2.0).count();
    (near, ratios.len(), ratios.into_iter().fold(1.0, f64::max))
}

#[test]
fn choices_are_those_of_one_who_knew_both_times() {
    let records = Records::parse(RECORDED).unwrap();
    assert!(records.runs.len() > 300);
    for knows in Knowledge::ALL {
        let (near, all, farthest) = within(&records, knows);
        let choices = records.choose(&speeds(), knows);
        let matter = choices.iter().filter(|c| c.matters).count();
        let wrong: Vec<String> = choices
            .iter()
            .filter(|c| c.is_wrong)
            .map(|c| {
                let gpu = &records.runs[c.runs[1]];
                format!("{} {:?}", gpu.query, gpu.rows)
            })
            .collect();
        let message =
            format!("{knows:?}: {near} of {all}, farthest {farthest:.2}, wrong {wrong:?}");
        println!("{message}; {matter} choices");
        assert!(matter > 60, "{matter}");
        // The planner underestimates the rows of L7. That the GPU would have to return many rows is learned when the
        // CPU has run it. Only with `All` has the model learned from the runs that it predicts.
        let (least, l7_may_be_wrong) = match knows {
            Knowledge::Calibration => (0.65, true),
            Knowledge::OtherQueries => (0.7, true),
            Knowledge::OtherScales => (0.85, true),
            Knowledge::Here => (0.95, false),
            Knowledge::All => (1.0, false),
        };
        let may_be_wrong = |w: &String| l7_may_be_wrong && w == "L7 Shown";
        assert!(wrong.iter().all(may_be_wrong), "{message}");
        assert!(near as f64 >= least * all as f64, "{message}");
    }
}

/// Runs whose rows were decoded to text were slow because one thread processed the rows, and they are predicted as
/// such. Now all threads do, so these queries are predicted to take about as long on either side.
#[test]
fn rows_of_a_device_are_taken_by_all_threads() {
    let records = Records::parse(RECORDED).unwrap();
    let chooser = Chooser::new(speeds());
    let shown = |r: &&_| {
        let r: &jindou_gpu::replay::RecordedRun = r;
        r.there && r.rows == RowsUse::Shown && r.universities == 10_240 && r.query == "L2"
    };
    let runs: Vec<_> = records.runs.iter().filter(shown).collect();
    assert!(!runs.is_empty());
    for run in runs {
        assert_eq!(run.takers, 1);
        let work = records.work_of(run).unwrap();
        let now = chooser.predict(&work, 16, true);
        let then = chooser.predict(&work.taken_by(1), 16, true);
        assert!(now.gpu() < 1.2 * now.cpu, "{now}");
        assert!(then.gpu() > 6.0 * then.cpu && then.cpu == now.cpu, "{then}");
    }
}

#[test]
fn records_that_are_none_are_named() {
    for line in [
        "[",
        r#"{"ms": 1}"#,
        r#"{"work": {}}"#,
        r#"{"ms": -1, "query": "x"}"#,
        r#"{"query": "x", "universities": 1, "stage": "s", "on": "gpu", "threads": 1, "rows": "sent", "ms": 1, "gave": 1, "takers": -1}"#,
    ] {
        let why = Records::parse(line).unwrap_err();
        assert!(why.contains("not a record"), "{line}");
    }
    let none = Records::parse("{\"from\": \"somewhere\"}\n").unwrap();
    assert!(none.runs.is_empty());
}
