//! `jindou bench cluster updates bounds`: what it costs a server that does not write to apply a change.

use super::merging::{MERGE, change};
use crate::args::replicas::ReplicasSetup;
use crate::args::updates::UpdatesBounds;
use crate::replicas::client::Request;
use crate::replicas::commits::figure;
use crate::replicas::reads::used;
use crate::replicas::servers::{Place, wrong};
use jindou::Result;
use jindou_workloads::lubm::Lubm;
use std::process::ExitCode;

/// Processor microseconds and bytes of a change at the last server, which forwards and writes nothing.
fn of_a_change(setup: &ReplicasSetup, changes: u64) -> Result<(f64, f64)> {
    let place = Place::new(setup)?;
    place.load_log(&Lubm::new(1, 0))?;
    let servers = place.replicas(setup.servers, &["--merge".into(), "off".into()])?;
    let last = &servers[servers.len() - 1..];
    let before = used(&last[0])?;
    change(&mut servers[0].client(MERGE), changes)?;
    let request = Request::query("ASK { ?s <http://e/of> ?o }", Some("strict"));
    let answer = last[0].client(MERGE).send(&request);
    let answer = answer.map_err(|e| wrong(format!("a query: {e}")))?;
    if !answer.is_success() {
        return Err(wrong(answer.text()));
    }
    let spent = used(&last[0])?.saturating_sub(before).as_secs_f64() * 1e6 / changes as f64;
    let edits = figure(last, "jindou_delta_edits");
    Ok((spent, figure(last, "jindou_delta_bytes") / edits.max(1.0)))
}

pub fn run(a: &UpdatesBounds) -> Result<ExitCode> {
    let whole = ReplicasSetup {
        shards: None,
        ..a.setup.clone()
    };
    let (time_of_whole, bytes_of_whole) = of_a_change(&whole, a.changes)?;
    let (time, bytes) = of_a_change(&a.setup, a.changes)?;
    println!("{} changes          CPU us each  bytes each", a.changes);
    println!("servers with all data  {time_of_whole:>13.2} {bytes_of_whole:>11.1}");
    println!("servers of shards      {time:>13.2} {bytes:>11.1}");
    println!(
        "{:.2} times the time (bound: 1.15); bytes of a change: bound 60",
        time / time_of_whole
    );
    Ok(ExitCode::SUCCESS)
}
