//! Tests of message encoding, queues and memory limits.

use super::memory_limit::MemoryLimit;
use super::queue::{BATCH, NotQueued, Queue};
use super::wire::{FRAME, Outgoing, PIECE, Reader, kind, read, weight};
use crate::machine::{
    Beat, Blob, Echo, Group, Message, Outcome, Record, Request, RequestKey, Time, Writer,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

fn blob(random: &mut StdRng, most: usize) -> Blob {
    let length = random.random_range(0..=most);
    (0..length).map(|_| random.random()).collect()
}

fn writer(random: &mut StdRng) -> Writer {
    let length = random.random_range(0..=255);
    Writer {
        server: "x".repeat(length).into(),
        start: random.random(),
    }
}

fn echo(random: &mut StdRng) -> Option<Echo> {
    random.random::<bool>().then(|| Echo {
        start: random.random(),
        clock: Time(random.random()),
    })
}

fn done(random: &mut StdRng) -> Outcome {
    Outcome::Done {
        number: random.random(),
        fingerprint: random.random(),
        report: blob(random, 300),
    }
}

fn message(random: &mut StdRng) -> Message {
    let key = RequestKey(random.random());
    match random.random_range(0..10) {
        0 => Message::Beat(Beat {
            start: random.random(),
            clock: Time(random.random()),
            echo: echo(random),
            committed: random.random(),
            newest_known: random.random(),
            age: random
                .random::<bool>()
                .then(|| Duration::from_micros(random.random())),
            draining: random.random(),
        }),
        1 => {
            let writer = random.random::<bool>().then(|| writer(random));
            Message::Committed(random.random(), writer)
        }
        2 => Message::Acknowledged(random.random()),
        3 => Message::NotWriter(key, random.random(), random.random()),
        4 => Message::Outcome(key, done(random)),
        5 => Message::Outcome(key, Outcome::Refused(blob(random, 300))),
        6 => Message::Outcome(key, Outcome::Unknown),
        8 => Message::Outcome(key, Outcome::Missing(random.random())),
        7 => {
            let request = Request {
                key,
                fingerprint: random.random(),
            };
            Message::Forward(request, blob(random, 300), echo(random))
        }
        _ => {
            let records = (0..random.random_range(0..5)).map(|_| Record {
                key: RequestKey(random.random()),
                fingerprint: random.random(),
                report: blob(random, 20),
                bytes: blob(random, 100),
            });
            let records = records.collect();
            Message::Proposed(Arc::new(Group {
                number: random.random(),
                writer: writer(random),
                previous: random.random::<bool>().then(|| random.random()),
                records,
            }))
        }
    }
}

/// Encodes a message in steps of random length.
fn bytes(random: &mut StdRng, message: &Message) -> Vec<u8> {
    let mut outgoing = Outgoing::new(message.clone()).unwrap();
    let size = outgoing.left();
    let mut out = Vec::new();
    while outgoing.left() > 0 {
        outgoing.take(random.random_range(1..=40), &mut out);
    }
    assert_eq!(out.len(), size);
    out
}

#[test]
fn messages_are_read_back() {
    let random = &mut StdRng::seed_from_u64(1);
    for _ in 0..3000 {
        let message = message(random);
        let bytes = bytes(random, &message);
        assert_eq!(read(&bytes), Ok(message));
        assert!(weight(&bytes).unwrap() >= bytes.len());
    }
}

#[test]
fn ages_are_never_younger() {
    let beat = Beat {
        start: 1,
        clock: Time(2),
        echo: None,
        committed: 3,
        newest_known: 4,
        age: Some(Duration::from_nanos(1001)),
        draining: false,
    };
    let random = &mut StdRng::seed_from_u64(1);
    let Ok(Message::Beat(there)) = read(&bytes(random, &Message::Beat(beat))) else {
        panic!()
    };
    assert_eq!(there.age, Some(Duration::from_micros(2)));
}

#[test]
fn other_bytes_are_refused_or_another_message() {
    let random = &mut StdRng::seed_from_u64(2);
    for _ in 0..3000 {
        let original = message(random);
        let mut bytes = bytes(random, &original);
        let cut = random.random_range(0..bytes.len());
        if let Ok(shorter) = read(&bytes[..cut]) {
            // Only messages whose last field has a variable length can be decoded after truncation.
            assert!(matches!(
                shorter,
                Message::Forward(..) | Message::Outcome(..)
            ));
        }
        for _ in 0..4 {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        let _ = weight(&bytes);
        if let Ok(other) = read(&bytes) {
            let size = Outgoing::new(other).map(|other| other.left());
            assert!(size.is_none_or(|size| size <= bytes.len()));
        }
        let noise: Vec<u8> = (0..random.random_range(0..200))
            .map(|_| random.random())
            .collect();
        let _ = (weight(&noise), read(&noise));
    }
    // A number of records that exceeds the remaining bytes.
    let mut group = vec![kind::PROPOSED];
    group.extend_from_slice(&[0; 17]);
    group.extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(weight(&group).is_err() && read(&group).is_err());
}

/// Takes the next batch from a queue. Returns its frames as (kind, content).
fn batch(queue: &Queue) -> Vec<(u8, Vec<u8>)> {
    let mut out = Vec::new();
    queue.take(&mut out);
    assert!(out.len() <= BATCH + FRAME + 4);
    let mut rest = Reader(&out);
    let mut frames = Vec::new();
    while !rest.0.is_empty() {
        let length = rest.u32().unwrap() as usize;
        assert!((1..=FRAME).contains(&length));
        let frame = rest.take(length).unwrap();
        frames.push((frame[0], frame[1..].to_vec()));
    }
    frames
}

/// Takes all batches from a queue, and returns their frames.
fn batches(queue: &Queue) -> impl Iterator<Item = (u8, Vec<u8>)> {
    let next = move || Some(batch(queue)).filter(|frames| !frames.is_empty());
    std::iter::from_fn(next).flatten()
}

fn forward(key: u128, size: usize) -> Message {
    Message::Forward(RequestKey(key).into(), vec![key as u8; size].into(), None)
}

fn group(number: u64, size: usize) -> Message {
    let record = Record {
        key: RequestKey(1),
        fingerprint: 0,
        report: b"".as_slice().into(),
        bytes: vec![number as u8; size].into(),
    };
    Message::Proposed(Arc::new(Group {
        number,
        writer: Writer {
            server: "a".into(),
            start: 1,
        },
        previous: None,
        records: vec![record],
    }))
}

#[test]
fn what_is_urgent_goes_first() {
    let queue = Queue::new(1 << 30);
    queue.push(forward(1, 10 << 20)).unwrap();
    queue.push(forward(2, 100)).unwrap();
    queue.push(group(1, 5 << 20)).unwrap();
    queue.push(group(2, 100)).unwrap();
    queue.push(Message::Acknowledged(4)).unwrap();
    queue.push(Message::Acknowledged(3)).unwrap();
    queue.push(Message::Committed(2, None)).unwrap();
    let kinds = |frames: Vec<(u8, Vec<u8>)>| frames.into_iter().map(|(kind, _)| kind).collect();
    let first: Vec<u8> = kinds(batch(&queue));
    assert_eq!(
        first,
        [
            kind::ACKNOWLEDGED,
            kind::COMMITTED,
            kind::FORWARD,
            kind::PROPOSED,
            kind::FIRST
        ]
    );
    // In each later batch, urgent messages come first as well, however much of the large messages is left.
    for _ in 0..20 {
        queue.push(Message::Committed(3, None)).unwrap();
        queue.push(forward(3, 50)).unwrap();
        let next: Vec<u8> = kinds(batch(&queue));
        assert_eq!(next[..2], [kind::COMMITTED, kind::FORWARD]);
        assert!(matches!(next[2..], [kind::FIRST | kind::MORE]), "{next:?}");
    }
}

/// The pieces of interleaved large messages are reassembled.
#[test]
fn large_messages_come_in_pieces() {
    let queue = Queue::new(1 << 30);
    let messages = [forward(1, 700_000), group(1, PIECE), forward(2, 200_001)];
    for message in &messages {
        queue.push(message.clone()).unwrap();
    }
    let mut there = std::collections::BTreeMap::<u32, (usize, Vec<u8>)>::new();
    let mut order = Vec::new();
    for (kind, bytes) in batches(&queue) {
        let mut rest = Reader(&bytes);
        let number = rest.u32().unwrap();
        order.push(number);
        if kind == kind::FIRST {
            let size = rest.u32().unwrap() as usize;
            there.insert(number, (size, Vec::new()));
        }
        there.get_mut(&number).unwrap().1.extend_from_slice(rest.0);
    }
    let mut read: Vec<Message> = Vec::new();
    for (size, bytes) in there.values() {
        assert_eq!(*size, bytes.len());
        read.push(super::wire::read(bytes).unwrap());
    }
    assert!(messages.iter().all(|m| read.contains(m)) && read.len() == 3);
    // The group overtakes the updates that were queued earlier.
    assert!(matches!(&read[0], Message::Proposed(_)));
    assert_eq!(order[..6], [0, 1, 2, 0, 1, 2]);
}

#[test]
fn queues_are_bounded() {
    let queue = Queue::new(20 << 20);
    let pushed = queue.push(forward(1, 21 << 20));
    assert!(matches!(pushed, Err(NotQueued::TooLarge(size)) if size > 21 << 20));
    // Older groups are dropped in favour of the newest.
    for number in 1..=20 {
        queue.push(group(number, 10 << 20)).unwrap();
    }
    // Each update is queued once, up to the capacity.
    let mut taken = 0;
    for key in 0..100 {
        for _ in 0..2 {
            match queue.push(forward(key, 19 << 20)) {
                Ok(()) => taken += 1,
                Err(lost) => assert_eq!(lost, NotQueued::Full),
            }
        }
    }
    assert_eq!(taken, 2 * (512 / 19));
    // A realistic number of outcomes is queued completely.
    let outcome = |key| {
        let report = b"a report".as_slice().into();
        Message::Outcome(
            RequestKey(key),
            Outcome::Done {
                number: 1,
                fingerprint: 0,
                report,
            },
        )
    };
    let mut count = 0;
    while queue.push(outcome(count)).is_ok() {
        count += 1;
    }
    assert!((100_000..1_000_000).contains(&count), "{count}");
    let (mut groups, mut updates, mut outcomes) = (Vec::new(), 0, 0);
    for (kind, bytes) in batches(&queue) {
        match (kind, bytes.get(8)) {
            (kind::OUTCOME, _) => outcomes += 1,
            (kind::FIRST, Some(&kind::PROPOSED)) => groups.push(bytes[9]),
            (kind::FIRST, Some(&kind::FORWARD)) => updates += 1,
            _ => {}
        }
    }
    assert_eq!(outcomes, count);
    assert_eq!(updates, taken / 2);
    assert_eq!(groups, (15..=20).collect::<Vec<u8>>());
}

/// An update that is queued again while it is queued or being sent is sent once.
#[test]
fn updates_are_sent_once() {
    let queue = Queue::new(1 << 30);
    queue.push(forward(1, 300_000)).unwrap();
    let mut sent = 0;
    for _ in 0..3 {
        sent += batch(&queue).len();
        queue.push(forward(1, 300_000)).unwrap();
    }
    sent += batches(&queue).count();
    assert_eq!(sent, 300_000_usize.div_ceil(PIECE));
    // The update is not sent again while the receiver works on it, but at once after the receiver has rejected it.
    queue.push(forward(1, 300_000)).unwrap();
    assert_eq!(batch(&queue), []);
    queue.answered(&Message::NotWriter(RequestKey(1), 0, false));
    queue.push(forward(1, 300_000)).unwrap();
    while !batch(&queue).is_empty() {
        sent += 1;
    }
    assert_eq!(sent, 2 * 300_000_usize.div_ceil(PIECE));
    // A queued update is replaced by the one with the later time.
    for clock in [5, 6] {
        let echo = Echo {
            start: 9,
            clock: Time(clock),
        };
        let body = b"body".as_slice().into();
        queue
            .push(Message::Forward(RequestKey(7).into(), body, Some(echo)))
            .unwrap();
    }
    let frames = batch(&queue);
    let [(kind, bytes)] = &frames[..] else {
        panic!("{frames:?}");
    };
    let bytes = [&[*kind], &bytes[..]].concat();
    let Ok(Message::Forward(_, _, Some(echo))) = read(&bytes) else {
        panic!();
    };
    assert_eq!(echo.clock, Time(6));
    // Sending stops when the receiver rejects an update for lack of memory.
    queue.push(forward(2, 300_000)).unwrap();
    let first = batch(&queue);
    let number = Reader(&first[0].1).u32().unwrap();
    queue.stop(number);
    assert_eq!(batch(&queue), []);
}

#[test]
fn room_is_given_back() {
    let memory = MemoryLimit::new(1 << 20);
    let all = memory.available();
    let take = |message: &Message| {
        let held = memory.reserve(400 << 10).unwrap();
        memory.received(message, &held);
    };
    let update = forward(1, 0);
    take(&update);
    take(&update);
    take(&group(5, 0));
    assert!(memory.reserve(400 << 10).is_none());
    memory.sent(&Message::Outcome(RequestKey(1), Outcome::Unknown));
    assert!(memory.available() > 600 << 10);
    let beat = |committed| {
        Message::Beat(Beat {
            start: 1,
            clock: Time(1),
            echo: None,
            committed,
            newest_known: 9,
            age: None,
            draining: false,
        })
    };
    memory.sent(&beat(4));
    assert!(memory.available() < 700 << 10);
    memory.sent(&beat(5));
    assert_eq!(memory.available(), all);
    assert!(memory.reserve(2 << 20).is_none());
    assert!(memory.reserve(usize::MAX).is_none());
    // Messages that the driver has not taken count as well.
    let held = memory.reserve(1000).unwrap();
    assert!(memory.available() < all);
    drop(held);
    assert_eq!(memory.available(), all);
}
