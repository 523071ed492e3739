//! `jindou query`.

use super::{cancel_on_interrupt, request_text, runtime, service};
use crate::args::Query;
use jindou::{
    Access, Database, Error, OpenOptions, QueryOptions, Result, ResultFormat, ResultWriter,
};
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitCode;

pub fn run(a: &Query) -> Result<ExitCode> {
    let text = request_text(a.text.as_ref(), a.file.as_ref())?;
    let db = Database::open_with(
        &a.store,
        &OpenOptions::default()
            .with_access(Access::Read)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(a.threads, a.memory)),
    )?;
    let mut options = QueryOptions::default()
        .with_cancel(cancel_on_interrupt())
        .with_timeout(a.timeout)
        .with_profile(a.profile)
        .with_gpu(a.gpu)
        .with_common_prefixes(!a.no_common_prefixes);
    options.service = service(&a.service_allow);
    if a.union_default_graph {
        options.union_default = Some(true);
    }
    if a.explain {
        print!("{}", db.explain(&text, &options)?);
        return Ok(ExitCode::SUCCESS);
    }
    let stdout = std::io::stdout();
    let format = a.format.unwrap_or(if stdout.is_terminal() {
        ResultFormat::Table
    } else {
        ResultFormat::Tsv
    });
    // A file of its own on the same descriptor: standard output's own lock and line buffering cost a lot.
    let out = stdout
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .map_err(|e| Error::io("<stdout>", e))?;
    // A graph that nobody wants as rows is N-Triples.
    let graphs = a.format.unwrap_or(ResultFormat::Table);
    let out = BufWriter::with_capacity(1 << 16, out);
    let mut writer = ResultWriter::new(out, format).with_graphs(graphs);
    let report = db.run(&text, &options, &mut writer)?;
    if a.time {
        eprintln!(
            "{} row{} in {:.3} ms (plan {:.3} ms, run and write {:.3} ms)",
            report.rows,
            if report.rows == 1 { "" } else { "s" },
            (report.plan_time + report.run_time).as_secs_f64() * 1e3,
            report.plan_time.as_secs_f64() * 1e3,
            report.run_time.as_secs_f64() * 1e3,
        );
    }
    if a.profile {
        eprint!("{}", report.profile);
    }
    Ok(ExitCode::SUCCESS)
}
