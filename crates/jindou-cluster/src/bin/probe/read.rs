//! The reading process: random lists one by one and 64 at a time, against bare UCX reads of the same lengths.

use crate::edits::edited;
use crate::{Common, Directory, Random};
use anyhow::{Context, bail, ensure};
use clap::Args;
use jindou_cluster::remote::{Access, Lists, Pattern, RemoteSnapshot, RemoteStore};
use jindou_cluster::transport::ucx::UcxTransport;
use jindou_cluster::transport::{ByteRange, Epoch, Peer, Transport};
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use jindou_store::segment::Scope;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct Read {
    /// The serving process' address.
    #[arg(long)]
    connect: String,
    /// Lists to read.
    #[arg(long, default_value_t = 100_000)]
    count: u32,
    /// Open the same store here and check every list.
    #[arg(long)]
    verify: Option<Directory>,
    /// Placement epoch.
    #[arg(long, default_value_t = 1)]
    epoch: u64,
    /// Memory for summaries in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u64,
    /// Lists of one segment in a row; the step of a query reads all its lists from one.
    #[arg(long, default_value_t = 1)]
    run: u32,
    /// Deadline of each read in milliseconds.
    #[arg(long, default_value_t = 1000)]
    deadline: u64,
    #[command(flatten)]
    common: Common,
}

/// Keys in one `read_many`.
const MANY: usize = 64;
/// Lists that are read between two changes of what is measured, so that all sees the same noise.
const TURN: usize = 2048;

#[derive(Clone, Copy)]
struct Choice {
    p: PredicateId,
    direction: Direction,
    key: u32,
}

impl Choice {
    fn pattern(&self) -> Pattern<'static> {
        Pattern {
            predicate: self.p,
            direction: self.direction,
            scope: Scope::Default,
        }
    }
}

struct Reader<'a> {
    transport: &'a Arc<UcxTransport>,
    peer: Arc<dyn Peer>,
    snapshot: RemoteSnapshot,
    segments: Vec<Segment>,
    run: u32,
    truth: Option<Snapshot>,
    wait: Duration,
    costs: [u64; 3],
    checked: u64,
    messages: Vec<f64>,
}

/// Times in microseconds.
#[derive(Default)]
struct Many {
    /// 64 lists by `neighbours_many`.
    lists: Vec<f64>,
    /// 64 ranges by `read_many`.
    ranges: Vec<f64>,
    /// One range by `read_many`.
    range: Vec<f64>,
}

pub fn run(r: &Read) -> anyhow::Result<()> {
    let transport = UcxTransport::new(r.common.options())?;
    let wait = Duration::from_millis(r.deadline);
    let deadline = || transport.deadline(wait.max(Duration::from_secs(10)));
    let peer = transport.connect(&r.connect, deadline())?;
    let start = Instant::now();
    let store = RemoteStore::open(
        Arc::clone(&peer),
        Epoch(r.epoch),
        r.memory << 20,
        deadline(),
    )?;
    let snapshot = store.snapshot(deadline())?;
    let truth = r
        .verify
        .as_ref()
        .map(|dir| edited(dir, &r.common))
        .transpose()?;
    if let Some(t) = &truth {
        ensure!(
            t.number() == snapshot.number(),
            "the server has other edits (--edits, --seed)"
        );
    }
    // Summaries are fetched before anything is timed.
    let segments = segments(&store);
    for s in &segments {
        store.locate(s.p, s.direction, 1, deadline())?;
    }
    println!(
        "opened in {:.1} ms, summaries {:.1} MiB for {:.1} million keys",
        start.elapsed().as_secs_f64() * 1e3,
        store.memory_used() as f64 / f64::from(1 << 20),
        segments.last().map_or(0, |s| s.end) as f64 / 1e6
    );
    let mut reader = Reader {
        transport: &transport,
        peer,
        snapshot,
        segments,
        run: r.run.max(1),
        truth,
        wait,
        costs: [0; 3],
        checked: 0,
        messages: Vec::new(),
    };
    reader.measure(r)?;
    transport.close();
    Ok(())
}

/// A segment with neighbours; `end` counts all keys up to its last.
#[derive(Clone, Copy)]
struct Segment {
    p: PredicateId,
    direction: Direction,
    end: u64,
}

fn segments(store: &RemoteStore) -> Vec<Segment> {
    let mut end = 0;
    let mut out = Vec::new();
    for p in (0..store.predicates()).map(PredicateId) {
        for direction in [Direction::Out, Direction::In] {
            let keys = store.entry(p, direction).map_or(0, |e| u64::from(e.keys));
            if keys > 0 {
                end += keys;
                out.push(Segment { p, direction, end });
            }
        }
    }
    out
}

impl Reader<'_> {
    fn measure(&mut self, r: &Read) -> anyhow::Result<()> {
        let mut random = Random(r.common.seed);
        let (mut one, mut bare) = (Vec::new(), Vec::new());
        let mut many = Many::default();
        let mut left = r.count as usize;
        while left > 0 {
            let n = left.min(TURN);
            left -= n;
            // Different keys of the same distribution: a list that was read is in the caches.
            let choices = self.choose(&mut random, n)?;
            let others = self.choose(&mut random, n)?;
            self.read_singles(&choices, &others, &mut one, &mut bare)?;
            self.read_many(&mut random, n.div_ceil(MANY), &mut many)?;
        }
        let [empty, reads, messages] = self.costs;
        let asked = reads + messages;
        println!(
            "lists: {asked} with neighbours to fetch, one read for {:.2} %, a message for {:.2} %; {empty} known empty; {} checked, all right",
            percent(reads, asked),
            percent(messages, asked),
            self.checked
        );
        let (a, b, c) = (median(&mut one), median(&mut bare), median(&mut many.lists));
        let (d, e) = (median(&mut many.ranges), median(&mut many.range));
        println!(
            "one list           median {a:>8.2} us, p99 {:>8.2} us",
            at(&one, 0.99)
        );
        println!(
            "bare UCX read      median {b:>8.2} us, p99 {:>8.2} us",
            at(&bare, 0.99)
        );
        println!(
            "{MANY} lists at once  median {c:>8.2} us, p99 {:>8.2} us",
            at(&many.lists, 0.99)
        );
        println!(
            "read_many of {MANY}    median {d:>8.2} us, p99 {:>8.2} us",
            at(&many.ranges, 0.99)
        );
        println!(
            "read_many of 1     median {e:>8.2} us, p99 {:>8.2} us",
            at(&many.range, 0.99)
        );
        println!(
            "message and answer median {:>8.2} us",
            median(&mut self.messages)
        );
        println!(
            "one list / bare read {:.2}; {MANY} lists / one list {:.2}; read_many of {MANY} / of 1 {:.2}",
            a / b,
            c / a,
            d / e
        );
        Ok(())
    }

    /// Random keys that have neighbours: a segment by its share of keys, then a key of it.
    fn choose(&self, random: &mut Random, n: usize) -> anyhow::Result<Vec<Choice>> {
        let mut choices = Vec::with_capacity(n);
        let mut segment = self.choose_segment(random)?;
        let mut left = self.run;
        while choices.len() < n {
            if left == 0 {
                segment = self.choose_segment(random)?;
                left = self.run;
            }
            left -= 1;
            choices.extend(self.choose_key(random, segment)?);
        }
        Ok(choices)
    }

    fn choose_segment(&self, random: &mut Random) -> anyhow::Result<Segment> {
        let total = self.segments.last().map_or(0, |s| s.end);
        let at = random.below(total);
        let i = self.segments.partition_point(|s| s.end <= at);
        self.segments.get(i).copied().context("the store is empty")
    }

    /// A key of a segment: any with the same chance when the store is open here, else by trying ids; `None`
    /// if they are too sparse for that.
    fn choose_key(&self, random: &mut Random, s: Segment) -> anyhow::Result<Option<Choice>> {
        /// Ids to try.
        const TRIES: u32 = 1000;
        let store = self.snapshot.store();
        let (p, direction) = (s.p, s.direction);
        let entry = store.entry(p, direction).context("no such segment")?;
        if let Some(truth) = &self.truth {
            let mut key = Vec::new();
            let k = random.below(u64::from(entry.keys)) as u32;
            truth
                .edges(p, direction)
                .default
                .keys_into(k, k + 1, &mut key);
            return Ok(key.first().map(|&key| Choice { p, direction, key }));
        }
        let deadline = self.transport.deadline(self.wait);
        for _ in 0..TRIES {
            let key = random.between(entry.first_key, entry.last_key);
            if store.locate(p, direction, key, deadline)?.is_some() {
                return Ok(Some(Choice { p, direction, key }));
            }
        }
        Ok(None)
    }

    /// Our reads and bare ones in turn, so that the peer is as awake for the one as for the other.
    fn read_singles(
        &mut self,
        choices: &[Choice],
        others: &[Choice],
        one: &mut Vec<f64>,
        bare: &mut Vec<f64>,
    ) -> anyhow::Result<()> {
        let mut got = Vec::with_capacity(choices.len());
        for (c, other) in choices.iter().zip(others) {
            let mut out = Vec::with_capacity(64);
            let deadline = self.transport.deadline(self.wait);
            let start = Instant::now();
            let access = self
                .snapshot
                .neighbours(c.pattern(), c.key, &mut out, deadline)?;
            let time = start.elapsed();
            self.costs[access as usize] += 1;
            match access {
                Access::OneRead => one.push(micros(time)),
                Access::Message => self.messages.push(micros(time)),
                Access::Empty => {}
            }
            got.push(out);
            let store = self.snapshot.store();
            let place = store.locate(other.p, other.direction, other.key, deadline)?;
            if let Some((region, offset, n)) = place {
                let range = [ByteRange { offset, len: n * 4 }];
                let time = self
                    .transport
                    .bare_reads(&*self.peer, region, &range, self.wait)?;
                bare.extend(time.into_iter().map(micros));
            }
        }
        for (c, out) in choices.iter().zip(&got) {
            self.check(c, out)?;
        }
        Ok(())
    }

    fn read_many(
        &mut self,
        random: &mut Random,
        rounds: usize,
        times: &mut Many,
    ) -> anyhow::Result<()> {
        let mut batches = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            // All of one predicate, as a step of a query has it.
            let segment = self.choose_segment(random)?;
            let Some(first) = self.choose_key(random, segment)? else {
                continue;
            };
            let mut keys = vec![first.key];
            while keys.len() < MANY {
                keys.extend(self.choose_key(random, segment)?.map(|c| c.key));
            }
            batches.push((first, keys, Lists::default()));
        }
        for (first, keys, lists) in &mut batches {
            let deadline = self.transport.deadline(self.wait);
            let start = Instant::now();
            self.snapshot
                .neighbours_many(first.pattern(), keys, lists, deadline)?;
            let time = start.elapsed();
            if lists.accesses.iter().all(|a| *a == Access::OneRead) {
                times.lists.push(micros(time));
            }
        }
        self.read_ranges(random, rounds, times)?;
        for (first, keys, lists) in &batches {
            for (i, &key) in keys.iter().enumerate() {
                let choice = Choice { key, ..*first };
                self.check(&choice, lists.list(i))?;
            }
        }
        Ok(())
    }

    /// The transport alone: 64 ranges in one call, and one, in turn.
    fn read_ranges(
        &self,
        random: &mut Random,
        rounds: usize,
        times: &mut Many,
    ) -> anyhow::Result<()> {
        let mut batches = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let (mut region, mut ranges) = (None, Vec::with_capacity(MANY + 1));
            while ranges.len() <= MANY {
                for c in self.choose(random, MANY)? {
                    let deadline = self.transport.deadline(self.wait);
                    let store = self.snapshot.store();
                    // One file is one region.
                    if c.direction == Direction::Out
                        && let Some((r, offset, n)) =
                            store.locate(c.p, c.direction, c.key, deadline)?
                    {
                        region = Some(r);
                        ranges.push(ByteRange { offset, len: n * 4 });
                    }
                }
            }
            ranges.truncate(MANY + 1);
            batches.extend(region.map(|r| (r, ranges)));
        }
        let mut into = Vec::new();
        for (region, ranges) in &batches {
            let (single, many) = ranges.split_at(1);
            for (ranges, times) in [(single, &mut times.range), (many, &mut times.ranges)] {
                into.resize(ranges.iter().map(|r| r.len as usize).sum(), 0);
                let deadline = self.transport.deadline(self.wait);
                let start = Instant::now();
                self.peer.read_many(*region, ranges, &mut into, deadline)?;
                times.push(micros(start.elapsed()));
            }
        }
        Ok(())
    }

    fn check(&mut self, c: &Choice, got: &[u32]) -> anyhow::Result<()> {
        let Some(truth) = &self.truth else {
            return Ok(());
        };
        let mut scratch = Vec::new();
        let view = truth.edges(c.p, c.direction);
        let want = view.read(c.key, Scope::Default, &mut scratch);
        if want != got {
            bail!(
                "wrong: predicate {} {:?} key {}: {} neighbours read, {} expected",
                c.p.0,
                c.direction,
                c.key,
                got.len(),
                want.len()
            );
        }
        self.checked += 1;
        Ok(())
    }
}

fn micros(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e3
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    at(times, 0.5)
}

/// A quantile of sorted times.
fn at(sorted: &[f64], q: f64) -> f64 {
    let i = (sorted.len().saturating_sub(1)) as f64 * q;
    sorted.get(i as usize).copied().unwrap_or(f64::NAN)
}
