//! The cost of a message between two servers, measured over TLS on loopback: this process is one of them.

use super::schedule::{Cost, Fabric};
use crate::measure::median;
use crate::process::time_of;
use jindou::replica::Replica;
use jindou::{CancelToken, Database, Error, Indexes, Result};
use jindou_cluster::shards::{Reply, RequestGraphs, ShardClient, ShardRequest, answer};
use jindou_model::Direction;
use jindou_store::Base;
use jindou_store::shard::{Cluster, open_shard};
use jindou_testing::process_time;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asks of a message of one size, in one of the turns.
const REPEAT: u32 = 100;
/// Turns, of which the median counts.
const TURNS: usize = 5;
/// Bytes of the longer messages.
const SIZES: [u32; 3] = [8_192, 32_768, 131_072];

/// This process as the first of two servers.
struct Joined {
    far: Arc<dyn ShardClient>,
    base: Arc<Base>,
    other: Arc<Base>,
    /// The other server's process.
    process: u32,
}

impl Joined {
    fn new(db: &Database, store: &Path, process: u32) -> Result<Self> {
        let cluster =
            Cluster::read(store)?.ok_or_else(|| Error::external("the store is not sharded"))?;
        let indexes = Indexes::new();
        let far = db.replica().and_then(Replica::shards);
        Ok(Self {
            far: far.ok_or_else(|| Error::external("the server has no shards"))?,
            base: open_shard(store, &cluster, 0, &indexes)?,
            other: open_shard(store, &cluster, 1, &indexes)?,
            process,
        })
    }

    /// A request for this many bytes of ids: subjects of the predicate that has most.
    fn keys(&self, bytes: u32) -> ShardRequest {
        let known = &self.base.statistics().predicates;
        let predicate = (0..).zip(known).max_by_key(|p| p.1.subjects);
        ShardRequest::Keys {
            predicate: predicate.map_or(0, |p| p.0),
            direction: Direction::Out,
            graphs: RequestGraphs::Default,
            from: 0,
            most: bytes / 4,
        }
    }

    fn measure(&self, request: &ShardRequest) -> Result<Seen> {
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            turns.push(self.turn(request)?);
        }
        // Each by itself: what disturbs one need not disturb the other.
        let mid = |of: fn(&Seen) -> f64| median(turns.iter().map(of));
        Ok(Seen {
            sent: turns[0].sent,
            received: turns[0].received,
            whole: mid(|s| s.whole),
            asking: mid(|s| s.asking),
            serving: mid(|s| s.serving),
        })
    }

    fn turn(&self, request: &ShardRequest) -> Result<Seen> {
        let begun = process_time();
        let mut reply: Option<Reply> = None;
        for _ in 0..REPEAT / 10 {
            reply = Some(answer(&self.other, request)?);
        }
        let answering = (process_time() - begun).as_nanos() as f64 / f64::from(REPEAT / 10);
        let requests = [(1, request.clone())];
        let cancel = CancelToken::default();
        self.far.ask(&requests, &cancel)?;
        let (own, other) = (process_time(), time_of(self.process)?);
        let mut times = Vec::new();
        for _ in 0..REPEAT {
            let start = Instant::now();
            let got = self.far.ask(&requests, &cancel)?;
            times.push(start.elapsed().as_nanos() as f64);
            if got.first() != reply.as_ref() {
                return Err(Error::external("the other server's answer differs"));
            }
        }
        let each = |from: Duration, to: Duration| (to - from).as_nanos() as f64 / f64::from(REPEAT);
        Ok(Seen {
            sent: request.bytes() as f64,
            received: reply.map_or(0, |r| r.bytes()) as f64,
            whole: median(times) - answering,
            asking: each(own, process_time()),
            serving: (each(other, time_of(self.process)?) - answering).max(0.0),
        })
    }
}

/// A request of this many bytes, to which the answer is short: for the id of one term that does not exist.
fn long(bytes: u32) -> ShardRequest {
    ShardRequest::Lookup {
        ends: vec![bytes],
        bytes: vec![b'-'; bytes as usize],
    }
}

/// Measures the cost of messages between the first server, which is in this process, and the second one, which is `process`.
pub fn calibrate(db: &Database, store: &Path, process: u32) -> Result<Fabric> {
    let joined = Joined::new(db, store, process)?;
    let short = joined.measure(&long(8))?;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for size in SIZES {
        sent.push(joined.measure(&long(size))?);
        received.push(joined.measure(&joined.keys(size))?);
    }
    let cost = |of: fn(&Seen) -> f64| Cost {
        fixed: of(&short),
        sent: slope(sent.iter().map(|s| (s.sent, of(s) - of(&short)))),
        received: slope(received.iter().map(|s| (s.received, of(s) - of(&short)))),
    };
    let (asking, serving, whole) = (cost(|s| s.asking), cost(|s| s.serving), cost(|s| s.whole));
    // Both sides work at parts of a long message at the same time, so a byte may take less than the sum of both.
    let byte = |of: fn(&Cost) -> f64| of(&whole) - of(&asking) - of(&serving);
    Ok(Fabric {
        name: "TLS on loopback",
        latency: ((whole.fixed - asking.fixed - serving.fixed) / 2.0).max(0.0),
        byte: byte(|c| c.sent).min(byte(|c| c.received)).max(0.0),
        asking,
        serving,
    })
}

/// A message: nanoseconds from asking to the answer without the answer's own work, and of processor time on both sides.
struct Seen {
    sent: f64,
    received: f64,
    whole: f64,
    asking: f64,
    serving: f64,
}

/// The slope of a line through the origin and the mean of the points; not below 0.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (x, y) = points.fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
    if x > 0.0 { f64::max(y / x, 0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_slope_is_found_again() {
        let line = slope([1.0, 10.0, 500.0].iter().map(|&x| (x, 1.5 * x)));
        assert!((line - 1.5).abs() < 1e-9);
        assert_eq!(slope([(2.0, -1.0)].into_iter()), 0.0);
        assert_eq!(slope(std::iter::empty()), 0.0);
    }
}
