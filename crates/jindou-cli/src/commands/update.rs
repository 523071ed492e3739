//! `jindou update`.

use super::{
    cancel_on_interrupt, counted, documents, request_text, runtime, service, show_recovery,
};
use crate::args::UpdateArgs;
use crate::remote::SparqlEndpoint;
use crate::say::say;
use jindou::{Access, Database, Error, OpenOptions, Result, UpdateOptions, UpdateReport};
use std::process::ExitCode;

pub fn run(a: &UpdateArgs) -> Result<ExitCode> {
    let text = request_text("update", a.text.as_ref(), a.file.as_ref())?;
    if let Some(endpoint) = &a.remote.endpoint {
        return send(a, endpoint, &text);
    }
    let Some(store) = &a.store else {
        return Err(Error::Usage(
            "nothing to update: pass a store with --store DIR (or JINDOU_STORE), or an endpoint with --endpoint URL".into(),
        ));
    };
    let documents = documents(&a.documents)?;
    let db = Database::open_with(
        store,
        &OpenOptions::default()
            .with_access(Access::Write)
            .with_durability(a.durability.durability)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(a.threads, a.memory)),
    )?;
    show_recovery(&db);
    let mut options = UpdateOptions::default()
        .with_cancel(cancel_on_interrupt())
        .with_timeout(a.timeout)
        .with_common_prefixes(!a.no_prefixes)
        .with_store_prefixes(!a.no_prefixes);
    options.base.clone_from(&a.base);
    options.service = service(&a.service_allow);
    options.documents = documents;
    let report = db.update(&text, &options)?;
    if a.json {
        say!(
            "{{\"snapshot\": {}, \"operations\": {}, \"added\": {}, \"removed\": {}}}",
            report.snapshot,
            report.operations,
            report.added,
            report.removed
        );
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends an update to an endpoint, and prints the endpoint's response.
fn send(a: &UpdateArgs, url: &str, text: &str) -> Result<ExitCode> {
    let token = a.remote.token.as_deref();
    let endpoint = SparqlEndpoint::new(url, token, a.timeout, !a.no_prefixes)?;
    // The endpoint does not know this base, so it is declared before the update. A BASE in the text comes later and
    // takes precedence.
    let based = a.base.as_ref().map(|base| format!("BASE <{base}> {text}"));
    let text = based.as_deref().unwrap_or(text);
    let said = endpoint.update(text, &[], a.key.as_deref(), &cancel_on_interrupt())?;
    match document(&said).filter(|_| !a.json) {
        Some(line) => say!("{line}"),
        None if said.is_empty() => {}
        None => say!("{said}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// A line with the results of an update in the JSON that Jindou's server returns; `None` for other responses.
fn document(said: &str) -> Option<String> {
    let report: serde_json::Value = serde_json::from_str(said).ok()?;
    let number = |name: &str| report.get(name)?.as_u64();
    Some(format!(
        "snapshot {}: {} added, {} removed by {}",
        number("snapshot")?,
        counted(number("added")?, "quad"),
        number("removed")?,
        counted(number("operations")?, "operation"),
    ))
}

/// Prints the results of an update in one line.
pub fn print(report: &UpdateReport) {
    let time = report.parse_time + report.wait_time + report.run_time + report.commit_time;
    say!(
        "snapshot {}: {} added, {} removed by {} in {:.3} s ({:.3} ms to commit)",
        report.snapshot,
        counted(report.added, "quad"),
        report.removed,
        counted(report.operations as u64, "operation"),
        time.as_secs_f64(),
        report.commit_time.as_secs_f64() * 1e3,
    );
}
