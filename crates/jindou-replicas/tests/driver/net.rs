//! Connections over TCP: delivery of messages, and when connections end.

use crate::node::{Node, SOON, beat, body, introduce, limits, meet};
use crate::raw::{Identity, Relay, VERSION, accept, closes, greet, greeted, greeting};
use jindou_replicas::{FromPeer, Group, Message, Outcome, Peers, Record, RequestKey, Writer, now};
use jindou_testing::Stopwatch;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_comes() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
    let writer = Writer {
        server: "someone".into(),
        start: 5,
    };
    let record = |size| Record {
        key: RequestKey(size as u128),
        fingerprint: 5,
        report: body(size / 10),
        bytes: body(size),
    };
    let group = |number, sizes: &[usize]| {
        Message::Proposed(Arc::new(Group {
            number,
            writer: writer.clone(),
            previous: Some(number),
            records: sizes.iter().map(|&size| record(size)).collect(),
        }))
    };
    let messages = [
        beat(3),
        group(1, &[]),
        group(2, &[1, 0, 500]),
        group(3, &[100_000, 5, 3_000_000]),
        Message::Committed(9, None),
        Message::Committed(10, Some(writer.clone())),
        Message::Acknowledged(u64::MAX),
        Message::Forward(RequestKey(u128::MAX).into(), body(0), None),
        Message::Forward(RequestKey(1).into(), body(20_000_000), None),
        Message::Outcome(
            RequestKey(2),
            Outcome::Done {
                number: 4,
                fingerprint: 9,
                report: body(10),
            },
        ),
        Message::Outcome(RequestKey(3), Outcome::Refused(body(200_000))),
        Message::Outcome(RequestKey(4), Outcome::Unknown),
        Message::NotWriter(RequestKey(5), 6, true),
    ];
    for (from, to) in [(true, "b"), (false, "a")] {
        let (sender, receiver) = match from {
            true => (&mut a, &mut b),
            false => (&mut b, &mut a),
        };
        for message in &messages {
            sender.send(to, message.clone());
        }
        let mut come = Vec::new();
        for _ in &messages {
            let (name, message) = receiver.message().await;
            assert_eq!(name, sender.name);
            come.push(message);
        }
        for message in &messages {
            assert!(come.contains(message), "{message:?}");
        }
        assert_eq!(receiver.received(Duration::from_millis(100)).await.len(), 0);
    }
    // To an unknown server, and to the sender itself.
    a.send("nobody", beat(1));
    a.send("a", beat(1));
    assert_eq!(a.received(Duration::from_millis(100)).await.len(), 0);
}

/// Prints the figure for the documentation: `-- round_trips --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
    let answering = tokio::spawn(async move {
        while let Some(come) = b.incoming.recv().await {
            if let FromPeer::Message(from, message, _) = come {
                b.connections.send(&from, message);
            }
        }
    });
    let mut times = Vec::new();
    let watch = Stopwatch::start();
    for number in 0..2000 {
        let begun = Instant::now();
        a.send("b", Message::Committed(number, None));
        let (_, message) = a.message().await;
        assert_eq!(message, Message::Committed(number, None));
        times.push(begun.elapsed());
    }
    // Half of the round trips took longer than the median. If the time without a processor was spread over these, each
    // waited this long.
    let waited = watch.waited() / 1000;
    times.sort();
    let begun = Instant::now();
    let large = body(64 << 20);
    a.send(
        "b",
        Message::Forward(RequestKey(1).into(), large.clone(), None),
    );
    let (_, message) = a.message().await;
    let time = begun.elapsed();
    assert!(matches!(message, Message::Forward(_, body, _) if body == large));
    eprintln!("64 MiB there and back: {time:?}");
    answering.abort();
    let [half, most] = [1000, 1980].map(|at| times[at]);
    eprintln!("a round trip over loopback: {half:?}, 99 %: {most:?}");
    assert!(half < Duration::from_millis(20) + waited);
}

/// Heartbeats arrive in time in both directions while a slow connection carries a large update and a large group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beats_pass_large_messages() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    let relay = Relay::new(b.address(), 24 << 20).await;
    b.entry.addresses = vec![relay.address.clone()];
    a.entry.addresses.clear();
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
    let large = body(64 << 20);
    a.send(
        "b",
        Message::Forward(RequestKey(1).into(), large.clone(), None),
    );
    let begun = Instant::now();
    let (mut worst, mut beats, mut small) = (Duration::ZERO, 0, 0);
    let watch = Stopwatch::start();
    let mut come = false;
    let mut number = 0;
    while !come {
        assert!(begun.elapsed() < 6 * SOON);
        a.send("b", beat(number));
        a.send("b", Message::Committed(number, None));
        a.send(
            "b",
            Message::Forward(RequestKey(100).into(), body(500), None),
        );
        b.send("a", beat(number));
        number += 1;
        sleep(Duration::from_millis(25)).await;
        for node in [&mut a, &mut b] {
            while let Ok(from) = node.incoming.try_recv() {
                match from {
                    FromPeer::Message(_, Message::Beat(beat), _) => {
                        worst = worst.max(now().since(beat.clock));
                        beats += 1;
                    }
                    FromPeer::Message(_, Message::Forward(request, body, _), _)
                        if request.key == RequestKey(1) =>
                    {
                        assert!(*body == *large);
                        come = true;
                    }
                    FromPeer::Message(_, Message::Forward(..), _) => small += 1,
                    FromPeer::Message(..) | FromPeer::Unknown => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    let time = begun.elapsed();
    eprintln!(
        "64 MiB in {time:?}, {beats} beats meanwhile, {worst:?} at most; {small} small updates"
    );
    assert!(time > Duration::from_secs(2) && beats > 100 && small > 50);
    let waited = watch.waited();
    assert!(
        worst < Duration::from_millis(500) + waited,
        "{worst:?}, {waited:?} without a processor"
    );
}

/// A connection ends if its peer disappears without closing it, or if one direction is cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_ends_a_connection() {
    for ways in [&[0, 1][..], &[0], &[1]] {
        let mut a = Node::new("a", limits()).await;
        let mut b = Node::new("b", limits()).await;
        let relay = Relay::new(b.address(), 1 << 30).await;
        b.entry.addresses = vec![relay.address.clone()];
        a.entry.addresses.clear();
        introduce(&mut [&mut a, &mut b]);
        meet(&mut a, &mut b).await;
        // An idle connection stays open.
        assert_eq!(a.received(Duration::from_millis(3500)).await.len(), 0);
        assert_eq!(b.received(Duration::ZERO).await.len(), 0);
        for way in ways {
            relay.swallow[*way].store(true, Ordering::SeqCst);
        }
        let begun = Stopwatch::start();
        for node in [&mut a, &mut b] {
            assert!(matches!(node.next().await, FromPeer::Gone(_)));
        }
        let time = begun.elapsed();
        eprintln!("{ways:?}: {time:?}");
        assert!(time < Duration::from_millis(4500), "{time:?}");
        for way in ways {
            relay.swallow[*way].store(false, Ordering::SeqCst);
        }
        meet(&mut a, &mut b).await;
    }
}

/// When a process ends, its peers are notified at once. Its successor is accepted once they read the list of servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_run_of_a_name() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let mut stays = Node::new(first, limits()).await;
        let mut ends = Node::new(second, limits()).await;
        introduce(&mut [&mut stays, &mut ends]);
        meet(&mut stays, &mut ends).await;
        let begun = Stopwatch::start();
        drop(ends);
        assert!(matches!(stays.next().await, FromPeer::Gone(name) if *name == *second));
        assert!(begun.elapsed() < Duration::from_millis(500));
        let mut again = Node::new(second, limits()).await;
        let entries = [stays.entry.clone(), again.entry.clone()];
        again.connections.set_servers(&entries);
        // The new process dials, and the peer requests the list of servers.
        let asked = timeout(SOON, async {
            while !matches!(stays.incoming.recv().await.unwrap(), FromPeer::Unknown) {}
        });
        asked.await.unwrap();
        stays.connections.set_servers(&entries);
        meet(&mut stays, &mut again).await;
        // A process with the same name starts while the earlier one seems alive: the earlier one is reported as gone.
        let other = Node::new(second, limits()).await;
        stays
            .connections
            .set_servers(&[stays.entry.clone(), other.entry.clone()]);
        assert!(matches!(stays.next().await, FromPeer::Gone(_)));
    }
}

/// Two servers dial each other at the same time: one connection stays, and neither server is reported as gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_dial() {
    for _ in 0..10 {
        let mut nodes = Vec::new();
        for name in ["a", "b", "c"] {
            nodes.push(Node::new(name, limits()).await);
        }
        let [a, b, c] = &mut nodes[..] else {
            unreachable!()
        };
        introduce(&mut [a, b, c]);
        meet(a, b).await;
        meet(b, c).await;
        meet(c, a).await;
        for node in &mut nodes {
            let received = node.received(Duration::from_millis(100)).await;
            assert!(received.is_empty(), "{received:?}");
        }
    }
}

/// Of two connections between the same processes, the one dialled by the lower name stays; if the lower name dialled
/// both, the later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_connections_of_a_pair() {
    let mut a = Node::new("a", limits()).await;
    let mut z = Node::new("z", limits()).await;
    let known = Identity::new();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = socket.local_addr().unwrap().to_string();
    a.connections
        .set_servers(&[a.entry.clone(), known.entry("known", &[&place])]);
    let mut first = accept(&socket, &known).await.unwrap();
    assert_eq!(greeted(&mut first).await.unwrap(), (VERSION, 0));
    first
        .write_all(&greeting(VERSION, "known", "a"))
        .await
        .unwrap();
    first.flush().await.unwrap();
    sleep(Duration::from_millis(200)).await;
    let (mut second, answer) = greet(a.address(), &known, "a").await;
    assert_eq!(answer, 1);
    assert!(closes(&mut second, SOON).await);
    a.send("known", Message::Acknowledged(258));
    let mut frame = [0; 13];
    first.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame, [9, 0, 0, 0, 3, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(a.all(Duration::from_millis(100)).await.len(), 0);
    // The lower name dials twice.
    z.connections
        .set_servers(&[z.entry.clone(), known.entry("known", &[])]);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let (stream, answer) = greet(z.address(), &known, "z").await;
        assert_eq!(answer, 0);
        streams.push(stream);
    }
    assert!(closes(&mut streams[0], Duration::from_secs(1)).await);
    z.send("known", Message::Acknowledged(258));
    streams[1].read_exact(&mut frame).await.unwrap();
    assert_eq!(frame, [9, 0, 0, 0, 3, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(z.all(Duration::from_millis(100)).await.len(), 0);
}
