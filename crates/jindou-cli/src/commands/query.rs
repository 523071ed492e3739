//! `jindou query`.

use super::{
    cancel_on_interrupt, counted, data, no_graphs, no_store, request_text, service, with_gpu,
    with_temp,
};
use crate::args::QueryArgs;
use crate::empty;
use crate::overlooked;
use crate::pages::{self, Pages, TableHead};
use crate::remote::SparqlEndpoint;
use crate::say::say;
use jindou::results::{AnswerSink, Prefixes};
use jindou::{
    Access, Database, Error, GpuChoice, OpenOptions, QueryOptions, Result, ResultFormat,
    ResultWriter,
};
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Maximum time that --explain waits for the GPU to be opened, which takes about a third of a second.
const GPU_PATIENCE: Duration = Duration::from_secs(10);

/// The prefixes with which a query's answer is written: those that the query declares, those of the store, and the
/// common ones.
fn prefixes_for(text: &str, store: Option<&Database>) -> Prefixes {
    let mut prefixes = Prefixes::common();
    if let Some(store) = store {
        prefixes.declare_all(&store.prefixes());
    }
    prefixes.declare_of(text);
    prefixes
}

pub fn run(a: &QueryArgs) -> Result<ExitCode> {
    let text = request_text("query", a.text.first(), a.file.as_ref())?;
    if let Some(endpoint) = &a.remote.endpoint {
        no_graphs(a.graphs)?;
        return ask_endpoint(a, endpoint, &text);
    }
    let cancel = cancel_on_interrupt();
    let db = if a.data.is_empty() {
        let store = a.store.as_ref().ok_or_else(no_store)?;
        let options = OpenOptions::default()
            .with_access(Access::Read)
            .with_verify(a.verify.verify)
            .with_runtime(with_temp(with_gpu(a.threads, a.memory, a.gpu_memory), &a.temp)?.build());
        let db = Database::open_with(store, &options)?;
        super::tell_copy(store);
        db
    } else {
        data::read(a, &cancel)?
    };
    let mut options = QueryOptions::default()
        .with_cancel(cancel)
        .with_timeout(a.timeout)
        .with_temp(a.temp.query_temp)
        .with_profile(a.profile)
        .with_gpu(a.gpu)
        .with_base(a.base.clone())
        .with_common_prefixes(!a.no_prefixes)
        .with_store_prefixes(!a.no_prefixes);
    options.service = service(&a.service_allow);
    options.union_default = a.graphs.union_default();
    if a.explain {
        // A server would have opened its GPU before the query came, so the plan is made with the GPU open, too.
        if options.gpu != GpuChoice::Off && !db.is_sharded() {
            db.runtime().wait_for_gpu(GPU_PATIENCE);
        }
        say!("{}", db.explain(&text, &options)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    // Opening a GPU takes longer than nearly any query, and this process runs only one query.
    if options.gpu == GpuChoice::Auto {
        options.gpu = GpuChoice::Off;
    }
    let remedy = std::io::stderr().is_terminal().then_some("--graphs all");
    let (report, overlooked) = answer(a, &text, Some(&db), |sink| match remedy {
        Some(remedy) => overlooked::run(&db, &text, &options, sink, remedy),
        None => Ok((db.run(&text, &options, sink)?, None)),
    })?
    .map_or((None, None), |(report, overlooked)| {
        (Some(report), overlooked)
    });
    // The hint is printed after the answer, where users notice it.
    let is_explained = overlooked.is_some();
    if let Some(overlooked) = overlooked {
        eprintln!("jindou: {overlooked}");
    }
    for remark in db.remarks(&text, &options)? {
        eprintln!("jindou: {remark}");
    }
    let Some(report) = report else {
        return Ok(ExitCode::SUCCESS);
    };
    if a.explain_empty {
        empty::say(&db, &text, &options, report.rows);
    } else if !is_explained {
        empty::say_why(&db, &text, &options, report.rows);
    }
    if a.time {
        eprintln!(
            "{} in {:.3} ms (plan {:.3} ms, run and write {:.3} ms)",
            counted(report.rows, "row"),
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

/// Runs a query and writes its answer to standard output, in the requested format or in a default one. On a terminal
/// the default is the beginning of a table with a line that says how many rows there are, or with `--all` the whole
/// table in a pager. Returns `None` if the answer had too many rows to count.
fn answer<T>(
    a: &QueryArgs,
    text: &str,
    store: Option<&Database>,
    run: impl FnOnce(&mut dyn AnswerSink) -> Result<T>,
) -> Result<Option<T>> {
    let stdout = std::io::stdout();
    if stdout.is_terminal() && a.format.is_none() {
        return at_terminal(a, text, store, run);
    }
    // A separate file on the same descriptor, since the lock and line buffering of Rust's standard output are slow.
    let out = stdout
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .map_err(|e| Error::io("<stdout>", e))?;
    let format = a.format.unwrap_or(ResultFormat::Tsv);
    // Without a requested format, graphs are written as N-Triples.
    let graphs = a.format.unwrap_or(ResultFormat::Table);
    let out = BufWriter::with_capacity(1 << 16, out);
    let mut writer = ResultWriter::new(out, format).with_graphs(graphs);
    if !a.no_prefixes {
        writer = writer.with_prefixes(prefixes_for(text, store));
    }
    run(&mut writer).map(Some)
}

fn at_terminal<T>(
    a: &QueryArgs,
    text: &str,
    store: Option<&Database>,
    run: impl FnOnce(&mut dyn AnswerSink) -> Result<T>,
) -> Result<Option<T>> {
    let (columns, lines) = pages::screen().unzip();
    let pager = (a.all && !a.no_pager).then(|| {
        let named = std::env::var("PAGER").ok();
        named.unwrap_or_else(|| "less".into())
    });
    let pager = pager.filter(|p| !p.trim().is_empty());
    let lines = lines.map_or(usize::MAX, |n| usize::from(n).max(2) - 1);
    let mut out = Pages::new(pager, lines);
    // Graphs are written as Turtle with prefixes, which people read more easily than N-Triples.
    let turtle = ResultFormat::Rdf(jindou::RdfFormat::Turtle);
    let mut writer = ResultWriter::new(&mut out, ResultFormat::Table).with_graphs(turtle);
    if !a.no_prefixes {
        writer = writer.with_prefixes(prefixes_for(text, store));
    }
    let (answered, footer) = if a.all {
        let answered = run(&mut writer);
        (answered.map(Some), None)
    } else {
        if let Some(columns) = columns {
            writer = writer.with_width(usize::from(columns));
        }
        let mut head = TableHead::new(&mut writer);
        let answered = run(&mut head);
        (head.settle(answered), head.footer("--all"))
    };
    drop(writer);
    let finished = out.finish();
    let answered = match answered {
        // With --all, SinkClosed means that the user quit the pager, which is not an error.
        Err(Error::SinkClosed) if a.all => None,
        answered => answered?,
    };
    match finished {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            return Err(Error::io("<stdout>", e));
        }
        _ => {}
    }
    if let Some(footer) = footer {
        say!("{footer}");
    }
    Ok(answered)
}

fn ask_endpoint(a: &QueryArgs, url: &str, text: &str) -> Result<ExitCode> {
    let token = a.remote.token.as_deref();
    let endpoint = SparqlEndpoint::new(url, token, a.timeout, !a.no_prefixes)?;
    let begun = Instant::now();
    // The endpoint does not know this base, so it is declared before the query. A BASE in the query comes later and
    // takes precedence.
    let based = a.base.as_ref().map(|base| format!("BASE <{base}> {text}"));
    let text = based.as_deref().unwrap_or(text);
    let rows = answer(a, text, None, |sink| {
        endpoint.query(text, &[], &cancel_on_interrupt(), sink)
    })?;
    if a.time {
        let time = begun.elapsed().as_secs_f64() * 1e3;
        let rows = rows.map(|n| counted(n, "row") + " in ").unwrap_or_default();
        eprintln!("{rows}{time:.3} ms");
    }
    Ok(ExitCode::SUCCESS)
}
