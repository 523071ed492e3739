//! Seeds of the simulator, and faults that it must find.

use jindou_replicas::simulate::{Counted, Fault, Seeds, Setup, run, seeds, trace};
use jindou_replicas::*;
use std::time::{Duration, Instant};

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text}"))
    })
}

/// The fault that the environment names.
fn fault_asked_for() -> Option<Fault> {
    let name = std::env::var("JINDOU_FAULT").ok()?;
    Some(Fault::named(&name).unwrap_or_else(|| panic!("JINDOU_FAULT={name}")))
}

/// All of them hold, else how to look at the seed.
fn held(seeds: &Seeds) {
    if let (Some(why), Some((seed, _))) = (seeds.failure(), &seeds.failed) {
        panic!("{why}; JINDOU_SEED={seed} … one_seed -- --ignored --nocapture");
    }
}

#[test]
fn guarantees_hold() {
    let seeds = seeds(0..200, Setup::default(), 1, |_| ());
    held(&seeds);
    // What the seeds are for did happen.
    let counts = seeds.counts;
    assert_eq!(seeds.held, 200);
    for (what, least) in [
        (Counted::Groups, 1000),
        (Counted::Downloads, 10),
        (Counted::Trimmed, 100),
        (Counted::Answered, 10 * counts[Counted::Refused]),
        (Counted::Crashes, 100),
        (Counted::Emptied, 10),
        (Counted::Pauses, 100),
        (Counted::CutOneWay, 100),
        (Counted::CutOff, 100),
        (Counted::SlowLinks, 100),
        (Counted::BucketCut, 100),
        (Counted::BucketBad, 100),
        (Counted::Joined, 10),
        (Counted::Left, 10),
        (Counted::LostMessages, 1000),
        (Counted::LostRequests, 100),
        (Counted::LostAnswers, 100),
        (Counted::Late, 100),
        (Counted::Conflicts, 100),
        (Counted::Doubled, 10),
    ] {
        assert!(counts[what] > least, "{what:?}: {counts}");
    }
}

/// Servers that each have some shards.
const SHARDS: Setup = Setup {
    shards: true,
    fault: None,
};

#[test]
fn guarantees_hold_with_shards() {
    let seeds = seeds(0..100, SHARDS, 1, |_| ());
    held(&seeds);
    let counts = seeds.counts;
    for (what, least) in [
        (Counted::Merges, 1000),
        (Counted::Released, 1000),
        (Counted::ShardsUploaded, 500),
        (Counted::Downloads, 10),
        (Counted::Moved, 2),
        (Counted::BaseRequests, 1000),
        (Counted::Parts, 1000),
        (Counted::RunAgain, 20),
        (Counted::HeldBack, 20),
        (Counted::Answered, 10 * counts[Counted::Unavailable]),
    ] {
        assert!(counts[what] > least, "{what:?}: {counts}");
    }
}

/// The first seed that finds each fault. After a change of machine or simulator other seeds find them:
/// `planted_faults_are_found` prints which.
#[test]
fn planted_faults_are_found_in_their_seeds() {
    let table = [
        (Fault::NextNumberAfterUnknown, 1),
        (Fault::NotEvaluatedAgain, 0),
        (Fault::NoProof, 71),
        (Fault::TrimsBelowNewest, 1),
        (Fault::TrimsTheYoung, 141),
        (Fault::RequestsForgotten, 1),
        (Fault::ProposedIsRead, 1),
        (Fault::ReadsIgnoreKnownGroups, 2),
        (Fault::StrictUsesEarlierListing, 77),
        (Fault::AcknowledgedUnconfirmed, 2),
        (Fault::UnknownIsNotDone, 1),
        (Fault::ExistsIsOurs, 0),
        (Fault::HeartbeatFreshOnArrival, 3),
        (Fault::OldListingFails, 1002),
        (Fault::GapIsTheEnd, 40),
        (Fault::WriterTrustsGap, 143),
    ];
    let of_shards = [
        (Fault::AnsweredFromNewest, 6),
        (Fault::PartsReadNewest, 6),
        (Fault::HeadIsRead, 11),
        (Fault::LookupsKept, 6),
        (Fault::MergesOwnSnapshot, 1),
        (Fault::CommittedTooEarly, 6),
        (Fault::ReleasedInUse, 937),
        (Fault::UploadForgotten, 5),
        (Fault::NewKeysLost, 0),
        (Fault::DocumentOfTwoBases, 1),
        (Fault::RowsOfFirstRun, 6),
        (Fault::StatisticsOfOneShard, 0),
        (Fault::ReusedWhileRead, 3),
        (Fault::FreeListDiffers, 1),
    ];
    assert_eq!(table.map(|(fault, _)| fault), Fault::ALL);
    assert_eq!(of_shards.map(|(fault, _)| fault), Fault::OF_SHARDS);
    for (fault, seed) in table.into_iter().chain(of_shards) {
        let setup = Setup::from(fault);
        let found = run(seed, setup).violation;
        assert!(found.is_some(), "{fault:?} is not found in seed {seed}");
        let setup = Setup {
            fault: None,
            ..setup
        };
        assert_eq!(run(seed, setup).violation, None, "seed {seed}");
    }
}

#[test]
fn a_seed_replays_to_the_byte() {
    for (seed, setup) in (0..8).flat_map(|seed| [(seed, Setup::default()), (seed, SHARDS)]) {
        let first = trace(seed, setup);
        assert_eq!(first, trace(seed, setup));
        assert_eq!(first.0, run(seed, setup));
    }
}

/// Prints what happens in a seed, with the fault of `JINDOU_FAULT`; of servers with shards if that is one of theirs.
#[test]
#[ignore = "for people"]
fn one_seed() {
    let setup = fault_asked_for().map_or_else(Setup::default, Setup::from);
    let (run, lines) = trace(number("JINDOU_SEED", 0), setup);
    println!("{}\n{run:?}", lines.join("\n"));
}

/// Values that come from outside: random messages, names and objects, with numbers at the ends of their range.
struct Rubbish(u64);

impl Rubbish {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn number(&mut self) -> u64 {
        const LARGE: u64 = 1 << 62;
        let numbers = [0, 1, 2, 3, 4, 5, LARGE, LARGE + 1, u64::MAX - 1, u64::MAX];
        numbers[self.below(numbers.len() as u64) as usize]
    }

    /// An event with these numbers; `listing` is the number of the last listing that was asked for.
    fn event(&mut self, [n, m, k]: [u64; 3], listing: u64) -> Event {
        let peer: ServerName = ["a", "b", "c"][self.below(3) as usize].into();
        let record = Record {
            key: RequestKey(u128::from(n)),
            fingerprint: k,
            report: [1].into(),
            bytes: [2].into(),
        };
        let group = Group {
            number: m,
            writer: writer(&peer, self.below(2)),
            previous: [None, Some(0), Some(k)][self.below(3) as usize],
            records: vec![record; self.below(3) as usize],
        };
        let bytes = group.write(7 + self.below(20) / 19).unwrap();
        let echo = Some(Echo {
            start: self.below(3),
            clock: Time(n),
        });
        let fetch = match self.below(2) {
            0 => Fetch::Group(m),
            _ => Fetch::Span(n, m),
        };
        match self.below(16) {
            0 => Event::Peers(vec![peer]),
            1 => Event::Update(RequestKey(u128::from(n)).into(), [].into()),
            2 => Event::Read(n, Consistency::AtLeast(m)),
            3 => Event::Put(
                n,
                1,
                [PutResult::Created, PutResult::Exists][self.below(2) as usize],
            ),
            4 => Event::Listed(listing, None),
            5 => Event::Listed(
                listing,
                Some(Listing {
                    log: vec![
                        Name::Group(n).text(7),
                        Name::Span(m, k).text(7),
                        format!("log/{n}"),
                    ],
                    bases: vec![Name::Base(k).text(7), "base/".into()],
                }),
            ),
            6 => Event::Fetched(fetch, Fetched::Missing),
            7 => Event::Fetched(fetch, Fetched::Bytes(bytes)),
            8 => Event::Fetched(
                fetch,
                Fetched::Bytes(bytes[..self.below(bytes.len() as u64) as usize].into()),
            ),
            9 => Event::Downloaded(Some(Base {
                number: n,
                hash: k,
                keys: Vec::new(),
            })),
            10 => Event::Evaluated(
                self.below(4),
                Evaluation::Record {
                    bytes: [].into(),
                    report: [].into(),
                },
            ),
            11 => Event::Received(peer, Message::Proposed(group.into())),
            14 => Event::Known(k),
            13 => Event::Format(k as u32),
            12 => Event::Received(peer, Message::Committed(m, Some(group.writer))),
            _ => Event::Received(
                peer,
                match self.below(4) {
                    0 => Message::Acknowledged(n),
                    1 => Message::Forward(RequestKey(u128::from(m)).into(), [].into(), echo),
                    2 => Message::NotWriter(RequestKey(u128::from(m)), n, true),
                    _ => Message::Beat(Beat {
                        start: self.below(3),
                        clock: Time(m),
                        echo,
                        committed: k,
                        newest_known: n,
                        age: Some([Duration::ZERO, Duration::MAX][self.below(2) as usize]),
                        draining: self.below(2) == 0,
                    }),
                },
            ),
        }
    }
}

fn writer(name: &str, start: u64) -> Writer {
    Writer {
        server: name.into(),
        start,
    }
}

/// Rubbish from outside, and a clock that jumps: the machine neither panics nor finds itself in a state that must not be.
#[test]
fn rubbish_from_outside_does_no_harm() {
    for seed in 0..300_u64 {
        let mut rubbish = Rubbish((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64));
        let me = writer("a", 1);
        let mut machine = Machine::new(Settings::default(), 7, me, seed, Time(0));
        let base = (rubbish.below(2) == 0).then(Base::default);
        let mut actions = Vec::new();
        machine
            .handle(Time(0), Event::Opened(base), &mut actions)
            .unwrap();
        let (mut time, mut listing) = (0, 0);
        for _ in 0..300 {
            let numbers = [rubbish.number(), rubbish.number(), rubbish.number()];
            for action in actions.drain(..) {
                if let Action::List { listing_id, .. } = action {
                    listing = listing_id;
                }
            }
            let event = rubbish.event(numbers, listing);
            time = match rubbish.below(30) {
                0 => numbers[0],
                _ => time.saturating_add(rubbish.below(1 << 20)),
            };
            machine.handle(Time(time), event, &mut actions).unwrap();
        }
    }
}

#[test]
#[ignore = "minutes"]
fn guarantees_hold_in_many_seeds() {
    let from = number("JINDOU_SEED", 0);
    let count = number("JINDOU_RUNS", 10_000);
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for setup in [Setup::default(), SHARDS] {
        let seeds = seeds(from..from + count, setup, threads, |_| ());
        println!(
            "{} in {:?} on {threads} threads",
            seeds.counts,
            begun.elapsed()
        );
        held(&seeds);
    }
}

#[test]
#[ignore = "a minute"]
fn planted_faults_are_found() {
    let count = number("JINDOU_RUNS", 2000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut missed = Vec::new();
    let asked = fault_asked_for();
    let all = Fault::ALL.into_iter().chain(Fault::OF_SHARDS);
    for fault in all.filter(|fault| asked.is_none_or(|asked| asked == *fault)) {
        let begun = Instant::now();
        match seeds(0..count, Setup::from(fault), threads, |_| ()).failure() {
            Some(why) => println!("{fault:?}: {why}, in {:?}", begun.elapsed()),
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found in {count} seeds: {missed:?}");
}
