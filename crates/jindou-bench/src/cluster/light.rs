//! `jindou bench cluster light`: light queries over HTTP, of one server over the uncut store and of two over its shards, which ask one
//! another over TLS on loopback. Each answer is compared with the other side's.

use super::servers::{Servers, alone};
use super::stores;
use crate::args::cluster::BenchClusterLight;
use crate::measure::Times;
use jindou::{CancelToken, Database, Error, QueryOptions, Result};
use jindou_peers::http::Endpoint;
use jindou_store::shard::{Cluster, Far, Near, Reply, Request, open_shards};
use jindou_store::{Base, Snapshot};
use jindou_workloads::queries::lubm::query;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Shards in this process that count what is asked of them.
struct Counting {
    near: Near,
    rounds: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counting {
    fn take(&self) -> [u64; 3] {
        [&self.rounds, &self.messages, &self.bytes].map(|n| n.swap(0, Ordering::Relaxed))
    }
}

impl Far for Counting {
    fn ask(&self, requests: &[(u32, Request)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        let replies = self.near.ask(requests, cancel)?;
        let messages = requests.chunk_by(|a, b| a.0 == b.0).count();
        let sent: u64 = requests.iter().map(|r| r.1.bytes()).sum();
        let got: u64 = replies.iter().map(Reply::bytes).sum();
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(sent + got, Ordering::Relaxed);
        Ok(replies)
    }
}

/// The cut store, read from each of its shards in turn.
fn counted(store: &Path) -> Result<Vec<(Arc<Counting>, Database)>> {
    let cluster =
        Cluster::read(store)?.ok_or_else(|| Error::Store("the store is not cut".into()))?;
    let near = open_shards(store, &cluster)?;
    let from = |base: &Arc<Base>| {
        let far = Arc::new(Counting {
            near: near.clone(),
            rounds: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        let way = Arc::clone(&far) as Arc<dyn Far>;
        let snapshot = Snapshot::of_shard(Arc::clone(base), way)?;
        Ok((far, Database::of_snapshot(snapshot)))
    };
    near.shards().iter().map(from).collect()
}

pub fn run(a: &BenchClusterLight) -> Result<ExitCode> {
    let failed = |name: &str, e: &dyn std::fmt::Display| Error::Store(format!("{name}: {e}"));
    let stores = stores(&a.setup)?;
    let cut = counted(&stores.cut)?;
    let (_whole, url) = alone(&stores.whole)?;
    let servers = Servers::start(&stores.cut, stores.folder.path(), 2, false)?;
    let mut one = Endpoint::new(url, &[]);
    let mut two: Vec<Endpoint> = servers
        .known
        .iter()
        .map(|k| Endpoint::new(&k.2, &[]))
        .collect();
    println!(
        "LUBM({}), {} shards; medians of {} over HTTP, microseconds; the most rounds, messages and bytes of any shard that runs the planned query, with every shard on a server of its own",
        a.setup.universities, a.setup.shards, a.repeat
    );
    println!("query    rows  one server  two servers   ratio  rounds  messages     bytes");
    let mut sums = [0.0; 2];
    for name in ["L4", "L5", "L6"] {
        let q = query(name).ok_or_else(|| failed(name, &"no such query"))?;
        let want = one.check(q.text, LIMIT).map_err(|e| failed(name, &e))?;
        for server in &mut two {
            let got = server.check(q.text, LIMIT).map_err(|e| failed(name, &e))?;
            if got != want {
                println!("{name}: {got:?} from two servers, {want:?} from one");
                return Ok(ExitCode::from(3));
            }
        }
        let options = QueryOptions::default();
        let mut most = [0; 3];
        for (far, db) in &cut {
            let plan = db.plan(q.text, &options)?;
            far.take();
            db.checksum(&plan, &options)?;
            let ran = far.take();
            most = std::array::from_fn(|i| ran[i].max(most[i]));
        }
        let [rounds, messages, bytes] = most;
        let mut times = [Vec::new(), Vec::new()];
        // In turn, so that the machine's moods hit both alike.
        for i in 0..a.repeat {
            let other = &mut two[i % 2];
            for (endpoint, times) in [&mut one, other].into_iter().zip(&mut times) {
                let timed = endpoint.time(q.text, LIMIT).map_err(|e| failed(name, &e))?;
                times.push(Duration::from_secs_f64(timed.seconds));
            }
        }
        let [one, two] = times.map(|t| {
            let sum = t.iter().sum::<Duration>().as_secs_f64();
            (Times::of(t).median() * 1e3, sum)
        });
        sums[0] += one.1;
        sums[1] += two.1;
        println!(
            "{name:<6} {:>6} {:>11.0} {:>12.0} {:>7.2} {:>7} {:>9} {:>9}",
            want.rows,
            one.0,
            two.0,
            two.0 / one.0,
            rounds,
            messages,
            bytes
        );
    }
    let asked = 3.0 * a.repeat as f64;
    println!(
        "one client, L4 to L6 in turn: {:.0} answers/s from one server, {:.0} from two",
        asked / sums[0],
        asked / sums[1]
    );
    Ok(ExitCode::SUCCESS)
}
