//! Random queries with all operators over a store in shards, by fork-join and in place, compared with a store that is not
//! sharded.

use super::check::Difference;
use super::servers::{PATIENCE, Place, wrong};
use jindou::oxrdf::{GraphName, NamedNode, Quad, Term};
use jindou::replica::{Bucket, BucketLimits, Consistency, HeldShards, SharedLog};
use jindou::{
    Access, Answer, Database, Error, MemoryBudget, OpenOptions, QueryOptions, Result, ShardMode,
};
use jindou_testing::Rng;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Changes after which they are asked.
pub const ROUND: u64 = 1000;
/// Number of queries each time.
const COUNT: u64 = 500;
/// A query that takes longer is left out.
const LIMIT: Duration = Duration::from_secs(1);
const MEMORY: u64 = 256 << 20;

/// A server of the log in this process, with one shard, or nothing for a store that has its own log.
pub struct Queries {
    server: Option<Database>,
    shards: usize,
    rng: Rng,
    asked: u64,
    rows: u64,
    left_out: u64,
    rounds: u64,
    /// Rounds in which all shards ran parts of a query.
    forked: u64,
}

impl fmt::Display for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} random queries with {} rows by fork-join and in place, {} more took too long; parts ran at all shards in {} of {} rounds",
            self.asked, self.rows, self.left_out, self.forked, self.rounds
        )
    }
}

fn read(store: &Path) -> Result<Database> {
    Database::open_with(store, &OpenOptions::default().with_access(Access::Read))
}

fn rows(db: &Database, text: &str, mode: ShardMode) -> Result<Vec<String>> {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_timeout(LIMIT)
        .with_memory(MemoryBudget::new(MEMORY))
        .with_shard_mode(mode);
    let cell = |term: &Option<Term>| match term {
        None => String::new(),
        Some(Term::BlankNode(_)) => "_:b".to_owned(),
        Some(term) => term.to_string(),
    };
    let answer = match db.query_with(text, &options)? {
        Answer::Boolean(holds) => return Ok(vec![holds.to_string()]),
        answer => answer,
    };
    let rows = answer.solutions().iter();
    let mut rows: Vec<String> = rows
        .map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t"))
        .collect();
    rows.sort_unstable();
    Ok(rows)
}

impl Queries {
    pub fn new(place: &Place, shards: u32, over_log: bool, seed: u64) -> Result<Self> {
        let mut queries = Self {
            server: None,
            shards: shards as usize,
            rng: Rng::new(seed),
            asked: 0,
            rows: 0,
            left_out: 0,
            rounds: 0,
            forked: 0,
        };
        if over_log {
            let bucket = Bucket::open(&place.log, BucketLimits::default()).map_err(wrong)?;
            let mut log = SharedLog::new(bucket, "queries");
            log.peer_address = Some("127.0.0.1:0".into());
            log.shards = HeldShards::Listed(vec![0]);
            let options = OpenOptions::default().with_log(log);
            let server = Database::open_with(place.path("queries"), &options)?;
            if !server
                .replica()
                .is_some_and(|r| r.wait_until_ready(PATIENCE))
            {
                return Err(wrong("the server in this process is not ready"));
            }
            queries.server = Some(server);
        }
        Ok(queries)
    }

    fn query(&mut self) -> jindou_testing::Query {
        let graph = |n: u64| {
            let node = |text: String| NamedNode::new_unchecked(text);
            let of = GraphName::from(node(format!("http://e/g{n}")));
            let any = node("http://e/p0".into());
            Quad::new(any.clone(), any.clone(), any, of)
        };
        let all: Vec<Quad> = (0..4).map(graph).collect();
        let mut query = jindou_testing::query(&mut self.rng, &all);
        query.text = query.text.replace("http://e/v", "http://e/s");
        query
    }

    /// Compares the answers over a store that is not sharded and over the store in shards, here the one of a process with its
    /// own log if there is no other.
    pub fn compare(&mut self, alone: &Path, in_shards: &Path) -> Result<Option<Difference>> {
        let alone = read(alone)?;
        let server = match &self.server {
            Some(server) => {
                if let Some(replica) = server.replica() {
                    replica.wait_for(Consistency::Strict)?;
                }
                server.clone()
            }
            None => read(in_shards)?,
        };
        for _ in 0..COUNT {
            let query = self.query();
            let is_over = |e: &Error| matches!(e, Error::Timeout(_) | Error::Limit(_));
            let want = match rows(&alone, &query.text, ShardMode::Dynamic) {
                Err(e) if is_over(&e) => {
                    self.left_out += 1;
                    continue;
                }
                want => want.map_err(|e| wrong(format!("{e}: {}", query.text)))?,
            };
            self.asked += 1;
            self.rows += want.len() as u64;
            for mode in [ShardMode::Fork, ShardMode::InPlace] {
                let got = match rows(&server, &query.text, mode) {
                    Err(e) if is_over(&e) => {
                        self.left_out += 1;
                        continue;
                    }
                    got => got,
                };
                let is_same = got.as_ref().is_ok_and(|got| match query.counts_only {
                    true => got.len() == want.len(),
                    false => *got == want,
                });
                if !is_same {
                    return Ok(Some(format!(
                        "{mode:?} has {got:?} and the store that is not sharded {want:?}: {}",
                        query.text
                    )));
                }
            }
        }
        self.rounds += 1;
        self.forked += u64::from(parts(&server)? == self.shards);
        Ok(None)
    }
}

/// The number of shards that ran a part of a query.
fn parts(server: &Database) -> Result<usize> {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_shard_mode(ShardMode::Fork);
    let text = "SELECT * { ?a <http://e/p0> ?b . ?b <http://e/p1> ?c }";
    let plan = server.plan(text, &options)?;
    Ok(server.checksum(&plan, &options)?.shards.len())
}
