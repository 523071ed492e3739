//! `jindou bench papers`: repeats the single-server tables and figures of Wukong's paper (OSDI '16), shows the results
//! alongside the printed ones, and checks answers.

mod cost;
mod fit;
mod given;
mod lubm;
mod machine;
mod published;
mod sheet;
mod stores;

use crate::args::BenchPapers;
use crate::measure::{threads_or_all, verdict};
use jindou::{Error, Result};
use serde_json::json;
use sheet::Sheet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stores::Stores;

pub fn run(a: &BenchPapers) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let all = a.table.is_empty() && a.figure.is_empty();
    let wants = |list: &[String], n: &str| all || list.iter().any(|x| x == n);
    let given: Vec<u32> = [7, 8, 9]
        .into_iter()
        .filter(|n| a.table.contains(&n.to_string()))
        .collect();
    if !given.is_empty() && a.data.is_empty() {
        return Err(Error::Usage(format!(
            "table {} needs its data and queries: --data FILE… --queries DIR (docs/lab/papers.md says where from)",
            given[0]
        )));
    }
    if given.len() > 1 || (given.is_empty() && !a.data.is_empty()) {
        return Err(Error::Usage(
            "--data belongs to one of tables 7, 8 and 9: say --table N".into(),
        ));
    }
    let machine = machine::describe();
    let stores = Stores::new(a.store.as_deref(), threads, a.memory)?;
    let mut report = Report {
        json: a.json,
        sheets: Vec::new(),
    };
    if !a.json {
        println!(
            "jindou {}; this machine: {machine}",
            env!("CARGO_PKG_VERSION")
        );
        println!(
            "the paper's machine (OSDI '16, §7.1): {}\n",
            published::HARDWARE
        );
    }
    let n = a.universities;
    let needs_lubm = ["14", "16", "21"].iter().any(|f| wants(&a.figure, f));
    if wants(&a.table, "2") || needs_lubm {
        lubm_sheets(a, &stores, threads, n, &wants, &mut report)?;
    }
    for number in given {
        report.add(given::table(number, a, &stores, threads)?);
    }
    if all && !a.json {
        println!(
            "Tables 7, 8 and 9 are left out: they need data of their own, --table N --data FILE… --queries DIR."
        );
    }
    if a.json {
        let sheets: Vec<_> = report.sheets.iter().map(Sheet::json).collect();
        println!(
            "{:#}",
            json!({
                "version": env!("CARGO_PKG_VERSION"), "machine": machine, "threads": threads,
                "paper_machine": published::HARDWARE, "universities": n, "sheets": sheets,
            })
        );
    }
    let wrong: Vec<&String> = report.sheets.iter().flat_map(|s| &s.wrong).collect();
    Ok(verdict(&wrong))
}

/// Prints each sheet as soon as it is ready, since the next may take long. With `json`, collects them.
struct Report {
    json: bool,
    sheets: Vec<Sheet>,
}

impl Report {
    fn add(&mut self, sheet: Sheet) {
        if !self.json {
            sheet.print();
        }
        self.sheets.push(sheet);
    }
}

fn lubm_sheets(
    a: &BenchPapers,
    stores: &Stores,
    threads: usize,
    n: u32,
    wants: &dyn Fn(&[String], &str) -> bool,
    report: &mut Report,
) -> Result<()> {
    let one_size = wants(&a.table, "2") || wants(&a.figure, "14") || wants(&a.figure, "21");
    if one_size {
        if let Some(why) = stores.too_large(n) {
            return Err(Error::Usage(format!("{why}; choose a smaller -n")));
        }
        let dir: PathBuf = stores.lubm(n)?;
        let dir: &Path = &dir;
        if wants(&a.table, "2") {
            report.add(lubm::table_2(dir, n, threads, a.repeat)?);
        }
        if wants(&a.figure, "14") {
            report.add(lubm::figure_14(dir, n, threads, a.repeat)?);
        }
        if wants(&a.figure, "21") {
            report.add(lubm::figure_21(dir, n, threads)?);
        }
    }
    if wants(&a.figure, "16") {
        report.add(lubm::figure_16(stores, n, threads, a.repeat)?);
    }
    Ok(())
}
