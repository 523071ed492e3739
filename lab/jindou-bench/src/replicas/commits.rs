//! `jindou bench replicas commits`: small transactions of many clients, on one server without a shared log, which syncs its own on the
//! same disk, and on one and several servers with it. Clients and servers share the machine's cores.

use super::client::{Address, Client, Request};
use super::servers::{NOTHING, Place, Server, wrong};
use crate::args::replicas::{ReplicasCommits, ReplicasSetup};
use crate::measure::Times;
use jindou::Error;
use jindou::Result;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// One client: sends, waits for the answer, sends the next.
fn send(address: Address, name: &str, end: Instant) -> Result<Vec<Duration>> {
    let mut client = Client::new(address, LIMIT);
    let mut times = Vec::new();
    for i in 0.. {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        let text = format!(
            "INSERT DATA {{ <http://e/{name}/{i}> <http://e/number> {i} ; <http://e/by> <http://e/{name}> }}"
        );
        client.succeed(&Request::update(text))?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Clients that send until `end`, each to one of the addresses. Gives the time of each transaction.
pub fn transactions(
    addresses: &[Address],
    clients: usize,
    name: &str,
    end: Instant,
) -> Result<Vec<Duration>> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|c| {
                let address = addresses[c % addresses.len()].clone();
                scope.spawn(move || send(address, &format!("{name}c{c}"), end))
            })
            .collect();
        let mut times = Vec::new();
        for client in all {
            let one = client.join().map_err(|_| wrong("a client ended"))?;
            times.extend(one?);
        }
        Ok::<_, Error>(times)
    })
}

/// The sum of a figure over servers, and over its labels.
pub fn figure(servers: &[Server], name: &str) -> f64 {
    let of = |server: &Server| -> Option<f64> {
        let answer = server.client(LIMIT).send(&Request::new("GET", "/metrics"));
        let text = answer.ok()?.text();
        let value = |line: &str| -> Option<f64> {
            let rest = line.strip_prefix(name)?;
            let is_name = rest.starts_with([' ', '{']);
            rest.rsplit(' ').next().filter(|_| is_name)?.parse().ok()
        };
        Some(text.lines().filter_map(value).sum())
    };
    servers.iter().filter_map(of).sum()
}

fn quads(server: &Server) -> Result<u64> {
    let request = Request::query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", None);
    let text = server.client(LIMIT).succeed(&request)?.text();
    let number = text.lines().nth(1).and_then(|l| l.parse().ok());
    number.ok_or_else(|| wrong(format!("{}: {text}", server.name)))
}

/// One run, as a line of the table. Gives transactions a second.
fn measure(what: &str, servers: &[Server], clients: usize, time: Duration) -> Result<f64> {
    let before = quads(&servers[0])?;
    let counts = [
        "jindou_replica_lost_puts_total",
        "jindou_replica_puts_total",
        "jindou_replica_put_seconds_total",
        "jindou_shard_requests_total",
    ];
    let earlier = counts.map(|name| figure(servers, name));
    let begun = Instant::now();
    let end = begun + time;
    let run = begun.elapsed().as_nanos() + u128::from(before);
    let addresses: Vec<Address> = servers.iter().map(|s| s.address.clone()).collect();
    let times = transactions(&addresses, clients, &format!("r{run}"), end)?;
    let seconds = begun.elapsed().as_secs_f64();
    let acknowledged = times.len() as u64;
    for server in servers {
        let came = quads(server)? - before;
        if came != 2 * acknowledged {
            return Err(wrong(format!(
                "{acknowledged} transactions of two quads were acknowledged, and {} has {came} quads more",
                server.name
            )));
        }
    }
    let now = counts.map(|name| figure(servers, name));
    let [lost, puts, spent, lookups] = [0, 1, 2, 3].map(|i| now[i] - earlier[i]);
    let times = Times::new(times);
    let a_second = acknowledged as f64 / seconds;
    println!(
        "{what:<22} {clients:>7} {a_second:>14.0} {:>11.2} {:>9.2} {puts:>8.0} {:>8.2} {lost:>6.0} {:>8.2}",
        times.median(),
        times.quantile(0.99),
        spent * 1e3 / puts.max(1.0),
        lookups / acknowledged.max(1) as f64,
    );
    Ok(a_second)
}

pub fn run(a: &ReplicasCommits) -> Result<ExitCode> {
    println!(
        "server                 clients transactions/s  median, ms  99 %, ms     puts   ms/put   lost  lookups"
    );
    let mut own = Vec::new();
    {
        let place = Place::new(&a.setup)?;
        place.load("alone", NOTHING)?;
        let alone = [place.alone("alone", &[])?];
        for &clients in &a.clients {
            own.push(measure("without --log", &alone, clients, a.time)?);
        }
    }
    let mut groups = vec![(1, None), (a.setup.servers, None)];
    groups.dedup();
    groups.extend(a.setup.shards.map(|_| (a.setup.servers, a.setup.shards)));
    let mut before = own;
    for (servers, shards) in groups {
        // Each run has a log of its own.
        let cut = if shards.is_some() { "-shards" } else { "" };
        let log = a.setup.log.as_ref();
        let setup = ReplicasSetup {
            log: log.map(|log| format!("{log}/{servers}{cut}")),
            shards,
            ..a.setup.clone()
        };
        let place = Place::new(&setup)?;
        let replicas = place.replicas(servers, &[])?;
        for (&clients, before) in a.clients.iter().zip(&mut before) {
            let (what, of) = match shards {
                None => (format!("{servers} with --log"), "those without --log"),
                Some(n) => (
                    format!("{servers} with {n} shards"),
                    "those with all data (at least 70)",
                ),
            };
            let had = measure(&what, &replicas, clients, a.time)?;
            println!("{:>45.0} % of {of}", 100.0 * had / *before);
            if servers == a.setup.servers && shards.is_none() && a.setup.shards.is_some() {
                *before = had;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
