//! A late put that took the name of a group that the log lost.

use crate::{EPOCH, machine, writer};
use jindou_replicas::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: RequestKey = RequestKey(7);

/// A server and what it reads from the bucket.
struct World {
    machine: Machine,
    now: Time,
    groups: BTreeMap<u64, Arc<Group>>,
    span: Option<(u64, Blob)>,
    /// A group of another server that comes with the next put.
    beside: Option<Arc<Group>>,
    /// Events that answer what the machine asked for.
    answers: Vec<Event>,
    fetches: usize,
    published: u64,
    replaced: bool,
    /// A group whose object cannot be read.
    damaged: Option<u64>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            machine: machine("own"),
            now: Time(0),
            groups: BTreeMap::new(),
            span: None,
            beside: None,
            answers: Vec::new(),
            fetches: 0,
            published: 0,
            replaced: false,
            damaged: None,
        };
        world.hears(Event::Opened(Some(Base::default())));
        world.hears(Event::Format(2));
        world
    }

    fn fetched(&self, fetch: Fetch) -> Fetched {
        let bytes = match fetch {
            Fetch::Group(number) if self.damaged == Some(number) => Some([7; 30].into()),
            Fetch::Group(number) => self.groups.get(&number).map(bytes),
            Fetch::Span(1, last) => self.span.clone().filter(|of| of.0 == last).map(|of| of.1),
            Fetch::Span(..) => None,
        };
        bytes.map_or(Fetched::Missing, Fetched::Bytes)
    }

    fn listing(&self) -> Listing {
        let span = self.span.iter().map(|(last, _)| Name::Span(1, *last));
        let names = self.groups.keys().map(|number| Name::Group(*number));
        Listing {
            log: names.chain(span).map(|name| name.text(EPOCH)).collect(),
            bases: Vec::new(),
        }
    }

    fn hears(&mut self, event: Event) {
        let mut actions = Vec::new();
        let done = self.machine.handle(self.now, event, &mut actions);
        done.expect("the machine goes on");
        for action in actions {
            match action {
                Action::List { listing_id, .. } => {
                    let listing = self.listing();
                    self.answers.push(Event::Listed(listing_id, Some(listing)));
                }
                Action::Fetch(fetch) => {
                    self.fetches += 1;
                    self.answers
                        .push(Event::Fetched(fetch, self.fetched(fetch)));
                }
                Action::Evaluate(ticket, ..) => {
                    let (bytes, report): (Blob, Blob) = ([1].into(), [2].into());
                    let evaluation = Evaluation::Record { bytes, report };
                    self.answers.push(Event::Evaluated(ticket, evaluation));
                }
                Action::Put { group, attempt, .. } => {
                    let number = group.number;
                    self.groups.insert(number, group);
                    let result = PutResult::Created;
                    self.answers.push(Event::Put(number, attempt, result));
                    // Heard first.
                    if let Some(other) = self.beside.take() {
                        self.answers.push(Event::Known(other.number));
                        self.groups.insert(other.number, other);
                    }
                }
                Action::Publish(number) => self.published = number,
                Action::Report(Problem::Gap(gap)) => {
                    self.replaced |= gap.object == GroupObjectState::Replaced
                }
                _ => {}
            }
        }
    }

    /// Ten seconds. Listings take longer than objects that were asked for after them.
    fn waits(&mut self) {
        let beat = Settings::default().beat;
        for _ in 0..10_000_000 / beat.as_micros() {
            self.now = self.now.after(beat);
            for event in std::mem::take(&mut self.answers).into_iter().rev() {
                self.hears(event);
            }
            self.hears(Event::Wake);
        }
    }
}

fn group(number: u64, by: &str, previous: u64) -> Arc<Group> {
    let record = Record {
        key: RequestKey(u128::from(number)),
        fingerprint: 0,
        report: [].into(),
        bytes: [].into(),
    };
    Arc::new(Group {
        number,
        writer: writer(by),
        previous: Some(previous),
        records: vec![record],
    })
}

fn bytes(group: &Arc<Group>) -> Blob {
    group.write(EPOCH).expect("a small group")
}

/// Groups 1 to 3 of another server, as it put them.
fn log() -> Vec<Arc<Group>> {
    let mut groups: Vec<Arc<Group>> = Vec::new();
    for number in 1..=3 {
        let previous = groups.last().map_or(0, |group| group.hash(EPOCH));
        groups.push(group(number, "other", previous));
    }
    groups
}

/// A span of groups 1 and 2 comes into the bucket; its server then has all of the log.
fn is_healed_by_a_span(world: &mut World, log: &[Arc<Group>]) {
    assert!(world.replaced && world.published == 1);
    assert!(world.machine.gap_that_blocks().is_some());
    world.span = Some((2, write_span(&[bytes(&log[0]), bytes(&log[1])])));
    world.waits();
    assert!(world.published >= 3);
    assert_eq!(world.machine.gap(), None);
}

#[test]
fn a_span_has_the_group_whose_name_another_has_now() {
    let log = log();
    let mut world = World::new();
    world.groups = log.iter().map(|g| (g.number, g.clone())).collect();
    let late = group(2, "late", log[0].hash(EPOCH));
    world.groups.insert(2, late);
    world.waits();
    // The two groups that do not fit, every two seconds or less often.
    world.fetches = 0;
    world.waits();
    assert!(world.fetches <= 12, "{} objects are read", world.fetches);
    is_healed_by_a_span(&mut world, &log);
    assert_eq!(world.published, 3);
}

#[test]
fn a_span_has_the_group_whose_name_an_own_put_has_now() {
    let log = log();
    let mut world = World::new();
    world.groups.insert(1, log[0].clone());
    world.waits();
    assert_eq!(world.published, 1);
    // The other server put 2 and 3, of which this one hears while it puts; 2 was lost.
    world.beside = Some(log[2].clone());
    world.hears(Event::Update(KEY.into(), [].into()));
    world.waits();
    assert_eq!(world.groups[&2].writer, writer("own"));
    is_healed_by_a_span(&mut world, &log);
    // Its update is made after what the log had.
    world.hears(Event::Update(KEY.into(), [].into()));
    world.waits();
    assert_eq!(world.published, 4);
    assert_eq!(world.groups[&4].records[0].key, KEY);
}

#[test]
fn an_own_put_is_not_the_group_that_a_peer_has_checked() {
    let log = log();
    let mut world = World::new();
    world.groups.insert(1, log[0].clone());
    world.waits();
    world.hears(Event::Update(KEY.into(), [].into()));
    // The other server put 2, which was lost, and nothing after it.
    let checked = Message::Committed(2, Some(writer("other")));
    world.answers.push(Event::Received("other".into(), checked));
    world.waits();
    assert_eq!(world.groups[&2].writer, writer("own"));
    assert!(world.replaced && world.published == 1);
    world.groups.insert(3, log[2].clone());
    is_healed_by_a_span(&mut world, &log);
}

#[test]
fn a_damaged_group_blocks_what_needs_it_until_a_span_has_it() {
    let log = log();
    let mut world = World::new();
    world.groups = log.iter().map(|g| (g.number, g.clone())).collect();
    world.damaged = Some(2);
    world.waits();
    assert_eq!(world.published, 1);
    let gap = world.machine.gap_that_blocks().unwrap();
    assert_eq!((gap.first, gap.newest, gap.applied), (2, 3, false));
    assert!(
        matches!(gap.object, GroupObjectState::Damaged(_)),
        "{gap:?}"
    );
    assert!(
        gap.text(EPOCH)
            .contains("0000000000000002.log is damaged: ")
    );
    // The object is read again: an operator may put it back.
    let mut mended = World::new();
    mended.groups.clone_from(&world.groups);
    mended.damaged = Some(2);
    mended.waits();
    mended.damaged = None;
    mended.waits();
    assert_eq!((mended.published, mended.machine.gap()), (3, None));
    world.span = Some((2, write_span(&[bytes(&log[0]), bytes(&log[1])])));
    world.waits();
    assert_eq!((world.published, world.machine.gap()), (3, None));
}

/// A base that cannot be used: an empty folder goes on with what there is.
#[test]
fn without_a_base_that_is_whole_an_empty_folder_waits_or_reads_all_groups() {
    for needed in [false, true] {
        let mut machine = machine("own").with_first_base(needed);
        let mut hears = |event| {
            let mut actions = Vec::new();
            machine.handle(Time(0), event, &mut actions).unwrap();
            let mut listing_ids = actions.iter().filter_map(|action| match action {
                Action::List { listing_id, .. } => Some(*listing_id),
                _ => None,
            });
            let downloads = actions.iter().any(|a| matches!(a, Action::Download));
            (listing_ids.next_back(), downloads, machine.awaits_base())
        };
        let listing = |bases: &[u64]| Listing {
            log: vec![Name::Group(1).text(EPOCH)],
            bases: bases.iter().map(|n| Name::Base(*n).text(EPOCH)).collect(),
        };
        let (listing_id, ..) = hears(Event::Opened(None));
        let (_, downloads, _) = hears(Event::Listed(listing_id.unwrap(), Some(listing(&[5]))));
        assert!(downloads);
        let (listing_id, ..) = hears(Event::NoBase);
        let (_, downloads, awaits) = hears(Event::Listed(listing_id.unwrap(), Some(listing(&[]))));
        assert_eq!((downloads, awaits), (false, needed));
    }
}
