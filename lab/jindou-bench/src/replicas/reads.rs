//! `jindou bench replicas reads`: processor time that a light query takes on a server without a shared log, and on the first of one, two
//! and three servers with it. All run at once and are asked in turn, so that the machine's moods hit all alike.

use super::client::{Client, Request};
use super::servers::{Place, Server, turtle, wrong};
use crate::args::replicas::ReplicasReads;
use crate::measure::Times;
use crate::process::time_of;
use jindou::Result;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const SUBJECTS: u64 = 10_000;

/// Processor time of a process so far.
pub fn used(server: &Server) -> Result<Duration> {
    let process = server.process.as_ref();
    let process = process.ok_or_else(|| wrong(format!("{} does not run", server.name)))?;
    time_of(process.id())
}

fn data() -> String {
    let mut text = String::new();
    for n in 0..SUBJECTS {
        let next = (n * 7 + 1) % SUBJECTS;
        let _ = writeln!(
            text,
            "<http://e/s{n}> <http://e/p> <http://e/s{next}> ; <http://e/q> {n} ."
        );
    }
    text
}

/// Asks, and gives the processor time of a query in microseconds.
fn ask(server: &Server, client: &mut Client, queries: u64) -> Result<Duration> {
    let before = used(server)?;
    for n in 0..queries {
        let s = n * 31 % SUBJECTS;
        let text =
            format!("SELECT ?o ?n {{ <http://e/s{s}> <http://e/p> ?o . ?o <http://e/q> ?n }}");
        let answer = client.succeed(&Request::query(text, None))?;
        if answer.body.iter().filter(|&&b| b == b'\n').count() != 2 {
            return Err(wrong(format!("{}: {}", server.name, answer.text())));
        }
    }
    Ok(used(server)?.saturating_sub(before) / queries.max(1) as u32)
}

pub fn run(a: &ReplicasReads) -> Result<ExitCode> {
    let mut groups = Vec::new();
    let place = Place::new(&a.setup)?;
    place.load("alone", &data())?;
    groups.push((place, Vec::new(), "without --log".to_owned()));
    for servers in 1..=a.setup.servers {
        let place = Place::new(&a.setup)?;
        place.load_log(&turtle(&data())?)?;
        groups.push((place, Vec::new(), format!("{servers} with --log")));
    }
    for (n, (place, servers, _)) in groups.iter_mut().enumerate() {
        *servers = match n {
            0 => vec![place.alone("alone", &[])?],
            n => place.replicas(n, &[])?,
        };
    }
    let mut clients: Vec<Client> = groups.iter().map(|g| g.1[0].client(LIMIT)).collect();
    let mut times = vec![Vec::new(); groups.len()];
    for round in 0..=a.rounds {
        for (i, (_, servers, _)) in groups.iter().enumerate() {
            let time = ask(&servers[0], &mut clients[i], a.queries)?;
            // The first warms up.
            if round > 0 {
                times[i].push(time);
            }
        }
    }
    let medians: Vec<f64> = times
        .into_iter()
        .map(|t| Times::new(t).median() * 1e3)
        .collect();
    println!("servers          microseconds of processor time a query   ratio");
    for ((_, _, name), median) in groups.iter().zip(&medians) {
        println!("{name:<16} {median:>40.2} {:>7.3}", median / medians[0]);
    }
    // Without requests: the time of beats and listings.
    let before: Vec<Duration> = groups
        .iter()
        .map(|g| used(&g.1[0]))
        .collect::<Result<_>>()?;
    std::thread::sleep(Duration::from_secs(10));
    for ((_, servers, name), before) in groups.iter().zip(before) {
        let idle = used(&servers[0])?.saturating_sub(before);
        println!(
            "{name:<16} {:.1} ms of processor time a second without queries",
            idle.as_secs_f64() * 100.0
        );
    }
    Ok(ExitCode::SUCCESS)
}
