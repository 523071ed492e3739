//! Connections over TCP from unknown, faulty and slow peers: which are refused, and how their cost is bounded.

use crate::node::{Node, SOON, beat, body, introduce, limits, meet};
use crate::raw::{Identity, VERSION, accept, closes, dial, greet, greeted, greeting, hash};
use jindou_replicas::net::{Limits, listen};
use jindou_replicas::{FromPeer, Message, Outcome, PeerProblem, Peers, RequestKey, ServerEntry};
use jindou_testing::Stopwatch;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    let (known, other, stranger) = (Identity::new(), Identity::new(), Identity::new());
    let entries = [
        a.entry.clone(),
        b.entry.clone(),
        known.entry("known", &[]),
        other.entry("other", &[]),
    ];
    a.connections.set_servers(&entries);
    b.connections.set_servers(&entries);
    meet(&mut a, &mut b).await;
    let address = a.address().to_owned();
    // The entry in the bucket has the hash of the certificate that the server presents.
    let stream = dial(&address, Some(&known)).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap();
    assert_eq!(Some(hash(&shown[0])), a.entry.certificate);
    drop(stream);
    // A known peer with its own certificate and name is accepted.
    let (mut right, answer) = greet(&address, &known, "a").await;
    assert_eq!(answer, 0);
    a.send("known", beat(1));
    assert!(!closes(&mut right, Duration::from_millis(300)).await);
    // Refused: the certificate of another peer, an unknown one, or none; the name of another peer, an unknown name, or
    // the server's own; and a greeting for another server.
    for (as_whom, name, to) in [
        (Some(&other), "known", "a"),
        (Some(&stranger), "known", "a"),
        (None, "known", "a"),
        (Some(&known), "other", "a"),
        (Some(&known), "nobody", "a"),
        (Some(&known), "a", "a"),
        (Some(&known), "known", "b"),
    ] {
        let refused = async {
            let mut stream = dial(&address, as_whom).await?;
            stream.write_all(&greeting(VERSION, name, to)).await?;
            let (_, answer) = greeted(&mut stream).await?;
            assert_eq!(answer, 2);
            assert!(closes(&mut stream, SOON).await);
            Err::<(), _>(std::io::Error::other("refused"))
        };
        assert!(timeout(SOON, refused).await.unwrap().is_err(), "{name}");
    }
    // The refused attempts caused only requests for the list of servers, and both accepted connections are still open.
    let all = a.all(Duration::from_millis(300)).await;
    let quiet = |from: &FromPeer| matches!(from, FromPeer::Unknown);
    assert!(all.iter().all(quiet) && !all.is_empty(), "{all:?}");
    assert!(!closes(&mut right, Duration::from_millis(100)).await);
    meet(&mut a, &mut b).await;
}

/// A new server notices whether its peers know it already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_known_yet_notices_it() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    let entries = [a.entry.clone(), b.entry.clone()];
    b.connections.set_servers(&entries[1..]);
    a.connections.set_servers(&entries);
    let begun = Stopwatch::start();
    while !a.connections.is_rejected_by_peer() {
        assert!(begun.elapsed() < SOON);
        sleep(Duration::from_millis(10)).await;
    }
    b.connections.set_servers(&entries);
    meet(&mut a, &mut b).await;
    assert!(!a.connections.is_rejected_by_peer());
    // A peer that has ended does not count as one that refuses.
    drop(b);
    assert!(!a.connections.is_rejected_by_peer());
}

/// Strangers cause only a few listings, and then one every ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_cost_little() {
    let mut a = Node::new("a", limits()).await;
    a.connections.set_servers(&[a.entry.clone()]);
    let address = a.address().to_owned();
    let knocking = tokio::spawn(async move {
        let stranger = Identity::new();
        loop {
            if let Ok(mut stream) = dial(&address, Some(&stranger)).await {
                closes(&mut stream, SOON).await;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    let all = a.all(Duration::from_millis(3500)).await;
    knocking.abort();
    let asked = all
        .iter()
        .filter(|from| matches!(from, FromPeer::Unknown))
        .count();
    assert_eq!(asked, all.len());
    assert!((2..=4).contains(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_frames_end_a_connection() {
    let mut a = Node::new("a", limits()).await;
    let known = Identity::new();
    let entries = [a.entry.clone(), known.entry("known", &[])];
    a.connections.set_servers(&entries);
    let address = a.address().to_owned();
    let frame = |kind: u8, rest: &[u8]| {
        let mut out = (rest.len() as u32 + 1).to_le_bytes().to_vec();
        out.push(kind);
        [out, rest.to_vec()].concat()
    };
    let first = |number: u32, size: u32, bytes: &[u8]| {
        let rest = [&number.to_le_bytes()[..], &size.to_le_bytes(), bytes].concat();
        frame(17, &rest)
    };
    let more = |number: u32, bytes: &[u8]| frame(18, &[&number.to_le_bytes()[..], bytes].concat());
    let noise: Vec<u8> = (0..70_000_u32)
        .map(|at| (at.wrapping_mul(at) >> 3) as u8 | 1)
        .collect();
    let wrong: Vec<(&str, Vec<u8>)> = vec![
        ("noise", noise.clone()),
        (
            "too long",
            [&(70_000_u32).to_le_bytes()[..], &[1], &noise].concat(),
        ),
        ("the longest", [&u32::MAX.to_le_bytes()[..], &[1]].concat()),
        ("empty", 0_u32.to_le_bytes().to_vec()),
        ("unknown kind", frame(99, &[1, 2, 3])),
        ("short beat", frame(1, &[0; 20])),
        ("long heard", frame(3, &[0; 9])),
        ("short number", frame(19, &[0; 3])),
        ("larger than taken", first(1, u32::MAX, &[7; 10])),
        (
            "begun twice",
            [first(1, 100, &[7]), first(1, 100, &[7])].concat(),
        ),
        ("longer than said", first(1, 1, &[7; 10])),
        (
            "more than said",
            [first(1, 20, &[7; 10]), more(1, &[7; 11])].concat(),
        ),
        ("nothing large", first(1, 0, &[])),
        (
            "many at once",
            (0..40).flat_map(|at| first(at, 100, &[7])).collect(),
        ),
        (
            "a count without records",
            frame(6, &[&[0; 17][..], &[255; 4]].concat()),
        ),
    ];
    for (what, bytes) in wrong {
        let (mut stream, answer) = greet(&address, &known, "a").await;
        assert_eq!(answer, 0, "{what}");
        let _ = stream.write_all(&bytes).await;
        let _ = stream.flush().await;
        assert!(
            closes(&mut stream, Duration::from_millis(1500)).await,
            "{what}"
        );
        assert!(matches!(a.next().await, FromPeer::Gone(_)), "{what}");
    }
    // Wrong bytes in place of a greeting.
    for bytes in [
        noise,
        vec![0; 14],
        [b"JDPEERS\n", &[VERSION as u8, 0, 0, 0, 255, 255][..]].concat(),
    ] {
        let mut stream = dial(&address, Some(&known)).await.unwrap();
        let _ = stream.write_all(&bytes).await;
        assert!(closes(&mut stream, Duration::from_millis(1500)).await);
    }
    // A client without TLS.
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
    assert!(closes(&mut stream, Duration::from_millis(1500)).await);
    assert_eq!(a.all(Duration::from_millis(200)).await.len(), 0);
}

/// Connections that stall or send a byte now and then, in the handshake, in the greeting or in a frame, are closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_connections_are_closed() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    let known = Identity::new();
    let entries = [a.entry.clone(), b.entry.clone(), known.entry("known", &[])];
    a.connections.set_servers(&entries);
    let address = a.address().to_owned();
    let begun = Arc::new(Stopwatch::start());
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let begun = Arc::clone(&begun);
        slow.push(tokio::spawn(async move {
            // The beginning of a TLS ClientHello of 16 KiB.
            let _ = stream.write_all(&[22, 3, 1, 64, 0, 1, 0, 63, 252]).await;
            for _ in 0..100 {
                sleep(Duration::from_millis(100)).await;
                if stream.write_all(&[3]).await.is_err() {
                    return begun.elapsed();
                }
            }
            begun.elapsed()
        }));
    }
    // The number of simultaneous handshakes per address is limited. A known peer gets in once the slow ones are closed.
    b.connections.set_servers(&entries);
    meet(&mut a, &mut b).await;
    let met = begun.elapsed();
    assert!(met < Duration::from_secs(6), "{met:?}");
    for task in slow {
        let time = task.await.unwrap();
        assert!(time < Duration::from_millis(4500), "{time:?}");
    }
    // A known peer that sends its greeting too slowly.
    let mut stream = dial(&address, Some(&known)).await.unwrap();
    let begun = Instant::now();
    for byte in greeting(VERSION, "known", "a") {
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(300)).await;
    }
    assert!(closes(&mut stream, Duration::from_secs(2)).await);
    assert!(begun.elapsed() < SOON);
    // A known peer that stalls in the middle of a frame.
    let (mut stream, answer) = greet(&address, &known, "a").await;
    assert_eq!(answer, 0);
    stream.write_all(&[5, 0, 0, 0, 3]).await.unwrap();
    assert!(closes(&mut stream, Duration::from_secs(4)).await);
    assert!(matches!(a.next().await, FromPeer::Gone(name) if *name == *"known"));
}

/// Peers of another protocol version are not dialled again after the greeting, and are reported once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_versions() {
    let mut a = Node::new("a", limits()).await;
    let address = a.address().to_owned();
    let (dialling, listening) = (Identity::new(), Identity::new());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = socket.local_addr().unwrap().to_string();
    a.connections.set_servers(&[
        a.entry.clone(),
        dialling.entry("dialling", &[]),
        listening.entry("listening", &[&place]),
    ]);
    // A later version may send anything after the version number.
    let mut later = b"JDPEERS\n".to_vec();
    later.extend_from_slice(&[7, 0, 0, 0, 4, 0, 1, 2, 3, 4]);
    for _ in 0..3 {
        let mut stream = dial(&address, Some(&dialling)).await.unwrap();
        stream.write_all(&later).await.unwrap();
        assert_eq!(greeted(&mut stream).await.unwrap(), (VERSION, 2));
    }
    let mut dialled = 0;
    let mut patience = SOON;
    while let Ok(Ok(mut stream)) = timeout(patience, accept(&socket, &listening)).await {
        dialled += 1;
        patience = Duration::from_millis(1500);
        stream.write_all(&later).await.unwrap();
        let _ = stream.flush().await;
        closes(&mut stream, SOON).await;
    }
    assert_eq!(dialled, 1);
    let mut received: Vec<_> = (a.all(Duration::from_millis(100)).await.into_iter())
        .map(|from| match from {
            FromPeer::Problem(PeerProblem::Version(name, 7)) => name.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    received.sort();
    assert_eq!(received, ["dialling", "listening"]);
    // A new process with the same name is dialled again.
    let entry = ServerEntry {
        start: 2,
        ..listening.entry("listening", &[&place])
    };
    a.connections.set_servers(&[a.entry.clone(), entry]);
    let again = timeout(SOON, accept(&socket, &listening)).await;
    assert!(matches!(again, Ok(Ok(_))));
}

/// Updates for which the receiver lacks memory are rejected at once. Messages that are too large are reported once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_beyond_the_memory_limit() {
    let mut a = Node::new("a", limits()).await;
    let small = Limits {
        message: 1 << 20,
        memory: 2 << 20,
        ..limits()
    };
    let mut b = Node::new("b", small).await;
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
    let forward = |key, size| Message::Forward(RequestKey(key).into(), body(size), None);
    a.send("b", forward(1, 900 << 10));
    assert_eq!(b.message().await.1, forward(1, 900 << 10));
    // Update 1 is not answered yet and holds its memory, so updates 2 and 3 are rejected; a small one still fits.
    for key in [2, 3] {
        a.send("b", forward(key, 900 << 10));
        let (_, refused) = a.message().await;
        assert_eq!(refused, Message::NotWriter(RequestKey(key), 0, false));
    }
    a.send("b", forward(4, 60 << 10));
    assert_eq!(b.message().await.1, forward(4, 60 << 10));
    // The answers release the memory.
    for key in [1, 4] {
        b.send("a", Message::Outcome(RequestKey(key), Outcome::Unknown));
        a.message().await;
    }
    a.send("b", forward(2, 900 << 10));
    assert_eq!(b.message().await.1, forward(2, 900 << 10));
    for key in [5, 6] {
        a.send("b", forward(key, 1100 << 10));
    }
    let received = a.received(Duration::from_millis(200)).await;
    let [FromPeer::Problem(PeerProblem::TooLarge(name, size))] = &received[..] else {
        panic!("{received:?}");
    };
    assert!(**name == *"b" && *size > 1100 << 10);
    assert_eq!(b.received(Duration::from_millis(100)).await.len(), 0);
}

/// A wrong address is reported once; the peer is dialled again until its address is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    // A bound socket that does not listen refuses connections, and no other program can get its port.
    let nowhere = TcpSocket::new_v4().unwrap();
    nowhere.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let wrong = nowhere.local_addr().unwrap().to_string();
    let right = std::mem::replace(&mut b.entry.addresses, vec![wrong.clone()]);
    a.entry.addresses.clear();
    introduce(&mut [&mut a, &mut b]);
    let begun = Instant::now();
    let mut received = Vec::new();
    while received.is_empty() && begun.elapsed() < SOON {
        received = a.received(Duration::from_millis(100)).await;
    }
    received.extend(a.received(Duration::from_secs(3)).await);
    let [FromPeer::Problem(PeerProblem::Unreachable(name, why))] = &received[..] else {
        panic!("{received:?}");
    };
    assert!(**name == *"b" && why.contains(&wrong), "{why}");
    let begun = Stopwatch::start();
    b.entry.addresses = [vec![wrong], right].concat();
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let whys = [
        listen("127.0.0.1", None, limits()).await,
        listen("127.0.0.1:x", None, limits()).await,
        listen("0.0.0.0:0", None, limits()).await,
        listen("[::]:0", None, limits()).await,
        listen("0:0", None, limits()).await,
        listen("[::ffff:0.0.0.0]:0", None, limits()).await,
        listen(":0", None, limits()).await,
        listen("::1:0", None, limits()).await,
        listen("[::1:0", Some("127.0.0.1:0"), limits()).await,
        listen("[]:0", Some("127.0.0.1:0"), limits()).await,
        listen("0.0.0.0:7979", Some("127.0.0.1:0"), limits()).await,
        listen(&b.entry.addresses[1], None, limits()).await,
        listen("127.0.0.1:0", Some("127.0.0.1"), limits()).await,
        listen("127.0.0.1:0", Some(&b.entry.addresses[1]), limits()).await,
    ];
    for why in whys {
        eprintln!("{}", why.unwrap_err());
    }
}

/// A server whose advertised address differs from the one on which it listens, as with a forwarded port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advertised_address_that_differs() {
    let all = listen("127.0.0.1:0", Some("0.0.0.0:0"), limits()).await;
    let all = all.unwrap();
    let (host, port) = all.address().rsplit_once(':').unwrap();
    assert_eq!(host, "127.0.0.1");
    let mut a = Node::new("a", limits()).await;
    let forwarded = listen("127.0.0.1:1", Some("127.0.0.1:0"), limits()).await;
    assert_eq!(forwarded.unwrap().address(), "127.0.0.1:1");
    assert_ne!(port, "0");
    let mut b = Node::over("b", all);
    introduce(&mut [&mut a, &mut b]);
    meet(&mut a, &mut b).await;
}

/// A peer that does not read delays no other peer, and its connection is closed after a time limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read() {
    let mut a = Node::new("a", limits()).await;
    let mut b = Node::new("b", limits()).await;
    let known = Identity::new();
    let entries = [a.entry.clone(), b.entry.clone(), known.entry("known", &[])];
    a.connections.set_servers(&entries);
    b.connections.set_servers(&entries);
    meet(&mut a, &mut b).await;
    let (mut stream, answer) = greet(a.address(), &known, "a").await;
    assert_eq!(answer, 0);
    let begun = Stopwatch::start();
    let mut gone = false;
    let mut number = 0;
    while !gone {
        assert!(begun.elapsed() < SOON);
        // The peer keeps sending, so it is not closed for silence.
        let _ = stream.write_all(&[1, 0, 0, 0, 16]).await;
        number += 1;
        a.send(
            "known",
            Message::Forward(RequestKey(number).into(), body(1 << 20), None),
        );
        let sent = Stopwatch::start();
        a.send("b", Message::Acknowledged(number as u64));
        let (_, message) = b.message().await;
        assert_eq!(message, Message::Acknowledged(number as u64));
        assert!(sent.elapsed() < Duration::from_millis(500));
        sleep(Duration::from_millis(50)).await;
        while let Ok(from) = a.incoming.try_recv() {
            assert!(
                matches!(&from, FromPeer::Gone(name) if **name == *"known"),
                "{from:?}"
            );
            gone = true;
        }
    }
    let time = begun.elapsed();
    eprintln!("gone after {time:?}");
    assert!(time < Duration::from_secs(6));
    let _ = stream.read(&mut [0]).await;
}
