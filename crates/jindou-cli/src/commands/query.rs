//! `jindou query`.

use super::{cancel_on_interrupt, counted, no_store, request_text, runtime_with_gpu, service};
use crate::args::Query;
use crate::empty;
use crate::remote::Endpoint;
use crate::say::say;
use jindou::results::Prefixes;
use jindou::{
    Access, Database, Error, OpenOptions, QueryOptions, Result, ResultFormat, ResultWriter,
};
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Instant;

/// The prefixes that a table of a query's answer is written with: those that it declares, and the common ones.
fn prefixes_for(text: &str) -> Prefixes {
    let mut prefixes = Prefixes::common();
    prefixes.declare_of(text);
    prefixes
}

pub fn run(a: &Query) -> Result<ExitCode> {
    let text = request_text(a.text.as_ref(), a.file.as_ref())?;
    if let Some(endpoint) = &a.remote.endpoint {
        return ask_endpoint(a, endpoint, &text);
    }
    let store = a.store.as_ref().ok_or_else(no_store)?;
    let db = Database::open_with(
        store,
        &OpenOptions::default()
            .with_access(Access::Read)
            .with_verify(a.verify.verify)
            .with_runtime(runtime_with_gpu(a.threads, a.memory, a.gpu_memory)),
    )?;
    let mut options = QueryOptions::default()
        .with_cancel(cancel_on_interrupt())
        .with_timeout(a.timeout)
        .with_profile(a.profile)
        .with_gpu(a.gpu)
        .with_base(a.base.clone())
        .with_common_prefixes(!a.no_prefixes);
    options.service = service(&a.service_allow);
    if a.union_default_graph {
        options.union_default = Some(true);
    }
    if a.explain {
        say!("{}", db.explain(&text, &options)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let mut writer = writer(a, &text)?;
    let report = db.run(&text, &options, &mut writer)?;
    // After the answer, where they are seen.
    for remark in db.remarks(&text, &options)? {
        eprintln!("jindou: {remark}");
    }
    match a.explain_empty {
        true => empty::say(&db, &text, &options, report.rows),
        false => empty::say_why(&db, &text, &options, report.rows),
    }
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

/// A writer to standard output, in the format that was asked for or suits what is there.
fn writer(a: &Query, text: &str) -> Result<ResultWriter<BufWriter<File>>> {
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
    // Graphs are written as N-Triples, unless rows were asked for.
    let graphs = a.format.unwrap_or(ResultFormat::Table);
    let out = BufWriter::with_capacity(1 << 16, out);
    let writer = ResultWriter::new(out, format).with_graphs(graphs);
    Ok(match a.no_prefixes {
        true => writer,
        false => writer.with_prefixes(prefixes_for(text)),
    })
}

fn ask_endpoint(a: &Query, url: &str, text: &str) -> Result<ExitCode> {
    let token = a.remote.token.as_deref();
    let endpoint = Endpoint::new(url, token, a.timeout, !a.no_prefixes)?;
    let mut writer = writer(a, text)?;
    let begun = Instant::now();
    // An endpoint knows its own base only; a BASE of the text comes later and takes precedence.
    let based = a.base.as_ref().map(|base| format!("BASE <{base}> {text}"));
    let text = based.as_deref().unwrap_or(text);
    let rows = endpoint.query(text, &[], &cancel_on_interrupt(), &mut writer)?;
    if a.time {
        let time = begun.elapsed().as_secs_f64() * 1e3;
        eprintln!("{} in {time:.3} ms", counted(rows, "row"));
    }
    Ok(ExitCode::SUCCESS)
}
