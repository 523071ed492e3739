//! The reading process: random lists one by one and 64 at a time, against bare UCX reads of the same lengths.

use crate::edits::edited;
use crate::{Common, Directory, Random};
use anyhow::{Context, bail, ensure};
use clap::Args;
use jindou_cluster::remote::{Access, Lists, Pattern, RemoteSnapshot, RemoteStore};
use jindou_cluster::transport::ucx::UcxTransport;
use jindou_cluster::transport::{ByteRange, Epoch, Peer, RemoteRegion, Transport};
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
struct Singles {
    /// One list by `neighbours`.
    one: Vec<f64>,
    /// A bare read.
    bare: Vec<f64>,
    /// Finding where a list lies, without reading it.
    find: Vec<f64>,
    /// Reading one that was found before, by `read_many`.
    range: Vec<f64>,
}

/// Times in microseconds.
#[derive(Default)]
struct Many {
    /// 64 lists by `neighbours_many`.
    lists: Vec<f64>,
    /// Bytes of those.
    bytes: Vec<f64>,
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
        let mut singles = Singles::default();
        let mut many = Many::default();
        let mut left = r.count as usize;
        while left > 0 {
            let n = left.min(TURN);
            left -= n;
            // Different keys of the same distribution: a list that was read is in the caches.
            let choices = self.choose(&mut random, n)?;
            let others = [(); 3].map(|()| self.choose(&mut random, n));
            let [a, b, c] = others;
            self.read_singles(&choices, [&a?, &b?, &c?], &mut singles)?;
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
        let Singles {
            mut one,
            mut bare,
            mut find,
            mut range,
        } = singles;
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
            "halves of a list   median {:>8.2} us to find one, {:.2} us to read a found one",
            median(&mut find),
            median(&mut range)
        );
        println!(
            "{MANY} lists at once  median {c:>8.2} us, p99 {:>8.2} us",
            at(&many.lists, 0.99)
        );
        println!(
            "              of      {:>8.0} bytes in the median, {:.0} at p99",
            median(&mut many.bytes),
            at(&many.bytes, 0.99)
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
            "one list / bare read {:.2}; {MANY} lists / one list {:.2}; read_many of {MANY} / of 1 {:.2}; {MANY} lists / read_many of {MANY} {:.2}, of 1 {:.2}",
            a / b,
            c / a,
            d / e,
            c / d,
            c / e
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
                .default()
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

    /// Our reads and bare ones in turn, each first every other time, so that the peer is as awake and the caches
    /// are as full for the one as for the other. What a bare read needs to know is looked up before.
    fn read_singles(
        &mut self,
        choices: &[Choice],
        [for_bare, to_read, to_find]: [&[Choice]; 3],
        times: &mut Singles,
    ) -> anyhow::Result<()> {
        let mut places = Vec::with_capacity(choices.len());
        for (c, d) in for_bare.iter().zip(to_read) {
            places.push((self.place(c)?, self.place(d)?));
        }
        let mut room = Vec::new();
        let mut got = Lists::default();
        // One buffer for all, as a step of a query has it: a new one is memory that no cache holds.
        let mut out = Vec::new();
        for (i, ((c, find), (place, found))) in choices.iter().zip(to_find).zip(places).enumerate()
        {
            if i % 2 == 1 {
                self.read_bare(place, &mut times.bare)?;
            }
            let deadline = self.transport.deadline(self.wait);
            let start = Instant::now();
            let access = self
                .snapshot
                .neighbours(c.pattern(), c.key, &mut out, deadline)?;
            let time = start.elapsed();
            self.costs[access as usize] += 1;
            match access {
                Access::OneRead => times.one.push(micros(time)),
                Access::Message => self.messages.push(micros(time)),
                Access::Empty => {}
            }
            got.values.extend_from_slice(&out);
            got.ends.push(got.values.len());
            if i % 2 == 0 {
                self.read_bare(place, &mut times.bare)?;
            }
            // The two halves of our read, each alone.
            let deadline = self.transport.deadline(self.wait);
            if let Some((region, range)) = found {
                room.resize(range.len as usize, 0);
                let start = Instant::now();
                self.peer.read_many(region, &[range], &mut room, deadline)?;
                times.range.push(micros(start.elapsed()));
            }
            let start = Instant::now();
            self.place(find)?;
            times.find.push(micros(start.elapsed()));
        }
        for (i, c) in choices.iter().enumerate() {
            self.check(c, got.list(i))?;
        }
        Ok(())
    }

    /// Where a key's list lies.
    fn place(&self, c: &Choice) -> anyhow::Result<Option<(RemoteRegion, ByteRange)>> {
        let deadline = self.transport.deadline(self.wait);
        let store = self.snapshot.store();
        let place = store.locate(c.p, c.direction, c.key, deadline)?;
        Ok(place.map(|(region, offset, n)| (region, ByteRange { offset, len: n * 4 })))
    }

    fn read_bare(
        &self,
        place: Option<(RemoteRegion, ByteRange)>,
        times: &mut Vec<f64>,
    ) -> anyhow::Result<()> {
        if let Some((region, range)) = place {
            let time = self
                .transport
                .bare_reads(&*self.peer, region, &[range], self.wait)?;
            times.extend(time.into_iter().map(micros));
        }
        Ok(())
    }

    /// [`MANY`] random keys of one segment, as a step of a query has them.
    fn choose_many(&self, random: &mut Random) -> anyhow::Result<Vec<Choice>> {
        let segment = self.choose_segment(random)?;
        let mut keys = Vec::with_capacity(MANY);
        // Keys may be too sparse to be found by trying.
        for _ in 0..4 * MANY {
            if keys.len() < MANY {
                keys.extend(self.choose_key(random, segment)?);
            }
        }
        Ok(keys)
    }

    /// 64 lists of a segment by `neighbours_many`; 64 others, located before, by `read_many`; one of 64 others
    /// by `read_many`: in turn, from one distribution.
    fn read_many(
        &mut self,
        random: &mut Random,
        rounds: usize,
        times: &mut Many,
    ) -> anyhow::Result<()> {
        let mut batches = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let choices = self.choose_many(random)?;
            let keys: Vec<u32> = choices.iter().map(|c| c.key).collect();
            let mut places = [Vec::new(), Vec::new()];
            for places in &mut places {
                for c in self.choose_many(random)? {
                    places.extend(self.place(&c)?);
                }
            }
            batches.push((choices, keys, places, Lists::default()));
        }
        let mut into = Vec::new();
        let mut read = |places: &[(RemoteRegion, ByteRange)]| {
            let ranges: Vec<ByteRange> = places.iter().map(|p| p.1).collect();
            let Some((region, _)) = places.first() else {
                return Ok(None);
            };
            into.resize(ranges.iter().map(|r| r.len as usize).sum(), 0);
            let deadline = self.transport.deadline(self.wait);
            let start = Instant::now();
            self.peer.read_many(*region, &ranges, &mut into, deadline)?;
            anyhow::Ok(Some(micros(start.elapsed())))
        };
        for (choices, keys, [many, single], lists) in &mut batches {
            let Some(first) = choices.first() else {
                continue;
            };
            let deadline = self.transport.deadline(self.wait);
            let start = Instant::now();
            self.snapshot
                .neighbours_many(first.pattern(), keys, lists, deadline)?;
            let time = start.elapsed();
            if lists.accesses.iter().all(|a| *a == Access::OneRead) {
                times.lists.push(micros(time));
                times.bytes.push(lists.values.len() as f64 * 4.0);
            }
            times.ranges.extend(read(many)?);
            times
                .range
                .extend(read(single.get(..1).unwrap_or_default())?);
        }
        for (choices, _, _, lists) in &batches {
            for (i, c) in choices.iter().enumerate() {
                self.check(c, lists.list(i))?;
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
