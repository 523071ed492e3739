//! The UCX transport between two ends, over shared memory and TCP on loopback.

use jindou_cluster::transport::ucx::{Fabric, UcxOptions, UcxTransport, available};
use jindou_cluster::transport::{ByteRange, Epoch, Memory, Message, Transport, TransportError};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(5);

/// False, with a message, if UCX is not installed.
fn ucx() -> bool {
    match available() {
        Ok(()) => true,
        Err(e) => {
            println!("skipped: {e}");
            false
        }
    }
}

fn pair(fabric: Fabric) -> (Arc<UcxTransport>, Arc<UcxTransport>) {
    let new = || UcxTransport::new(UcxOptions::loopback(fabric)).unwrap();
    (new(), new())
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 256) as u8).collect()
}

fn reads_and_messages(fabric: Fabric) {
    if !ucx() {
        return;
    }
    let (server, client) = pair(fabric);
    let data = pattern(3 << 20);
    let region = server.register(Arc::new(data.clone())).unwrap();
    let one_way = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&one_way);
    server
        .handle(
            7,
            Arc::new(|m: &Message<'_>, reply: &mut Vec<u8>| {
                reply.extend(m.payload.iter().rev());
                Ok(())
            }),
        )
        .unwrap();
    server
        .handle(
            8,
            Arc::new(move |m: &Message<'_>, _: &mut Vec<u8>| {
                seen.fetch_add(m.payload.len() as u64, Ordering::SeqCst);
                Ok(())
            }),
        )
        .unwrap();
    server
        .handle(
            9,
            Arc::new(|_: &Message<'_>, _: &mut Vec<u8>| Err("not today".to_owned())),
        )
        .unwrap();
    let peer = client
        .connect(&server.address(), client.deadline(WAIT))
        .unwrap();
    let region = peer.attach(&region).unwrap();
    let read = |ranges: &[ByteRange]| {
        let total = ranges.iter().map(|r| r.len as usize).sum();
        let mut got = vec![0; total];
        peer.read_many(region, ranges, &mut got, client.deadline(WAIT))
            .unwrap();
        let want: Vec<u8> = ranges
            .iter()
            .flat_map(|r| data[r.offset as usize..][..r.len as usize].iter().copied())
            .collect();
        assert_eq!(got, want);
    };
    read(&[]);
    read(&[ByteRange { offset: 5, len: 0 }]);
    for len in [1, 4, 64, 4097, 100_000, 1 << 20] {
        read(&[ByteRange {
            offset: 12_345,
            len,
        }]);
    }
    for n in [2, 64, 500] {
        let ranges: Vec<_> = (0..n)
            .map(|i| ByteRange {
                offset: i * 5001 % (2 << 20),
                len: (i * 97 % 3000) as u32,
            })
            .collect();
        read(&ranges);
    }
    let mut into = [0; 8];
    let outside = [ByteRange {
        offset: (3 << 20) - 4,
        len: 8,
    }];
    let e = peer.read_many(region, &outside, &mut into, client.deadline(WAIT));
    assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");

    for len in [0, 5, 10_000, 1 << 20] {
        let payload = pattern(len);
        let mut reply = Vec::new();
        peer.call(7, Epoch(0), &payload, &mut reply, client.deadline(WAIT))
            .unwrap();
        reply.reverse();
        assert_eq!(reply, payload);
    }
    let e = peer.call(9, Epoch(0), &[], &mut Vec::new(), client.deadline(WAIT));
    assert_eq!(e, Err(TransportError::Refused("not today".into())));
    let e = peer.call(99, Epoch(0), &[], &mut Vec::new(), client.deadline(WAIT));
    assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
    for _ in 0..10 {
        peer.send(8, Epoch(0), b"abc", client.deadline(WAIT))
            .unwrap();
    }
    let until = client.deadline(WAIT);
    while one_way.load(Ordering::SeqCst) < 30 && client.now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(one_way.load(Ordering::SeqCst), 30);
    let past = peer.call(7, Epoch(0), &[], &mut Vec::new(), client.now());
    assert!(
        matches!(past, Err(TransportError::Deadline { .. })),
        "{past:?}"
    );
}

#[test]
fn reads_and_messages_over_shared_memory() {
    reads_and_messages(Fabric::SharedMemory);
}

#[test]
fn reads_and_messages_over_tcp() {
    reads_and_messages(Fabric::Tcp);
}

#[test]
fn many_threads_share_one_end() {
    if !ucx() {
        return;
    }
    let (server, client) = pair(Fabric::Tcp);
    let data = pattern(1 << 20);
    let region = server.register(Arc::new(data.clone())).unwrap();
    let peer = client
        .connect(&server.address(), client.deadline(WAIT))
        .unwrap();
    let region = peer.attach(&region).unwrap();
    std::thread::scope(|s| {
        for t in 0..4u64 {
            let (peer, client, data) = (&peer, &client, &data);
            s.spawn(move || {
                for i in 0..200u64 {
                    let offset = (t * 7919 + i * 5003) % 1_000_000;
                    let mut got = [0; 100];
                    let range = ByteRange { offset, len: 100 };
                    peer.read_many(region, &[range], &mut got, client.deadline(WAIT))
                        .unwrap();
                    assert_eq!(got[..], data[offset as usize..][..100]);
                }
            });
        }
    });
}

#[test]
fn a_stale_epoch_is_refused_on_both_sides() {
    if !ucx() {
        return;
    }
    let (server, client) = pair(Fabric::Tcp);
    server
        .handle(1, Arc::new(|_: &Message<'_>, _: &mut Vec<u8>| Ok(())))
        .unwrap();
    let descriptor = server.register(Arc::new(pattern(100))).unwrap();
    let peer = client
        .connect(&server.address(), client.deadline(WAIT))
        .unwrap();
    let region = peer.attach(&descriptor).unwrap();
    let mut into = [0; 8];
    let range = [ByteRange { offset: 0, len: 8 }];
    peer.read_many(region, &range, &mut into, client.deadline(WAIT))
        .unwrap();
    peer.call(1, Epoch(0), &[], &mut Vec::new(), client.deadline(WAIT))
        .unwrap();

    server.advance(Epoch(2)).unwrap();
    let stale = TransportError::StaleEpoch {
        held: Epoch(0),
        current: Epoch(2),
    };
    // The far end refuses a message whether or not this end has heard of the step.
    let e = peer.call(1, Epoch(0), &[], &mut Vec::new(), client.deadline(WAIT));
    assert_eq!(e, Err(stale.clone()));
    let e = peer.read_many(region, &range, &mut into, client.deadline(WAIT));
    assert_eq!(e, Err(stale));
    peer.call(1, Epoch(2), &[], &mut Vec::new(), client.deadline(WAIT))
        .unwrap();
    assert!(matches!(
        server.advance(Epoch(1)),
        Err(TransportError::StaleEpoch { .. })
    ));
}

#[test]
fn closing_ends_both_sides() {
    if ucx() {
        closing(Fabric::Tcp);
        // Mapped memory outlives the transport, but must not be read any more.
        closing(Fabric::SharedMemory);
    }
}

fn closing(fabric: Fabric) {
    let (server, client) = pair(fabric);
    let descriptor = server.register(Arc::new(pattern(100))).unwrap();
    let peer = client
        .connect(&server.address(), client.deadline(WAIT))
        .unwrap();
    let region = peer.attach(&descriptor).unwrap();
    let mut into = [0; 8];
    let range = [ByteRange { offset: 0, len: 8 }];
    peer.read_many(region, &range, &mut into, client.deadline(WAIT))
        .unwrap();
    assert_eq!(into[..], pattern(100)[..8]);
    server.close();
    // It takes the reader's control thread a moment to hear of it.
    let gone = client.deadline(WAIT);
    while peer.failure().is_none() && client.now() < gone {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let e = peer
        .read_many(region, &range, &mut into, client.deadline(WAIT))
        .unwrap_err();
    assert!(matches!(e, TransportError::PeerDead { .. }), "{e}");
    client.close();
    let e = peer
        .read_many(region, &range, &mut into, client.deadline(WAIT))
        .unwrap_err();
    assert_eq!(e, TransportError::Closed);
    assert!(matches!(
        client.register(Arc::new(vec![1u8])),
        Err(TransportError::Closed)
    ));
    let e = client.connect("127.0.0.1:1", client.deadline(WAIT)).err();
    assert_eq!(e, Some(TransportError::Closed));
}

#[test]
fn who_never_ends_a_greeting_does_not_hold_up_the_end() {
    if !ucx() {
        return;
    }
    let server = UcxTransport::new(UcxOptions::loopback(Fabric::SharedMemory)).unwrap();
    let mut slow = TcpStream::connect(server.address()).unwrap();
    let dripping = std::thread::spawn(move || {
        for byte in b"JDCTRL1\n".iter().cycle().take(40) {
            if slow.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    let begun = jindou_testing::Stopwatch::start();
    server.close();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(4), "closing took {took:?}");
    dripping.join().unwrap();
}

/// The words before the address that the child of the test below prints.
const AT: &str = "listens at ";

/// An end in a process of its own, until its standard input ends.
#[test]
fn child_that_listens() {
    if std::env::var_os("JINDOU_TEST_CHILD").is_some() {
        let server = UcxTransport::new(UcxOptions::loopback(Fabric::SharedMemory)).unwrap();
        println!("\n{AT}{}", server.address());
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}

#[test]
fn too_many_open_files_end_no_port() {
    if !ucx() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ucx::child_that_listens", "--nocapture"])
        .env("JINDOU_TEST_CHILD", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines.find_map(|l| Some(l.unwrap().strip_prefix(AT)?.to_owned()));
    let address = address.unwrap();
    let limit = |files| {
        let limit = libc::rlimit {
            rlim_cur: files,
            rlim_max: 4096,
        };
        let id = child.id() as libc::pid_t;
        // SAFETY: the call reads a limit from a local, and writes none.
        let done = unsafe { libc::prlimit(id, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()) };
        assert_eq!(done, 0);
    };
    limit(0);
    let waits = TcpStream::connect(&address).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    limit(1024);
    drop(waits);
    let client = UcxTransport::new(UcxOptions::loopback(Fabric::SharedMemory)).unwrap();
    let connected = client.connect(&address, client.deadline(WAIT));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(connected.is_ok(), "{:?}", connected.err());
}

/// A file that a server has mapped.
struct MappedFile(jindou_store::directory::Bytes, std::path::PathBuf);

// SAFETY: a file that is cut, but not written to, while it is mapped; reads of what is gone then give zeros.
unsafe impl Memory for MappedFile {
    fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    fn file(&self) -> Option<&std::path::Path> {
        Some(&self.1)
    }
}

/// A file's memory is mapped by its reader; truncating it is an error and not a signal, and a replaced file is not
/// mapped.
#[test]
fn files_are_read_where_they_are() {
    if !ucx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("segments");
    let data = pattern(300_000);
    std::fs::write(&path, &data).unwrap();
    let file = || {
        let bytes = jindou_store::directory::Bytes::map(&path).unwrap();
        Arc::new(MappedFile(bytes, path.clone()))
    };
    for direct in [true, false] {
        let new = || {
            let mut options = UcxOptions::loopback(Fabric::SharedMemory);
            options.direct = direct;
            UcxTransport::new(options).unwrap()
        };
        let (server, client) = (new(), new());
        let descriptor = server.register(file()).unwrap();
        let is_named = descriptor.key.windows(8).any(|w| w == b"segments");
        assert_eq!(is_named, direct);
        let connect = || client.connect(&server.address(), client.deadline(WAIT));
        let peer = connect().unwrap();
        let region = peer.attach(&descriptor).unwrap();
        let read = |at: u64, len: u32| {
            let mut got = vec![0; len as usize];
            let range = ByteRange { offset: at, len };
            let read = peer.read_many(region, &[range], &mut got, client.deadline(WAIT));
            read.map(|()| got)
        };
        for (at, len) in [(0, 300_000), (299_999, 1), (300_000, 0), (4095, 8192)] {
            assert_eq!(read(at, len).unwrap(), data[at as usize..][..len as usize]);
        }
        let e = read(299_999, 2);
        assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
        // Each connection maps it for itself, and not for ever.
        let other = connect().unwrap();
        let attached = (0..300).filter(|_| other.attach(&descriptor).is_ok());
        assert_eq!(attached.count(), if direct { 256 } else { 300 });
        if direct {
            let cut = std::fs::OpenOptions::new().write(true).open(&path);
            cut.unwrap().set_len(4096).unwrap();
            let e = read(200_000, 100);
            assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
            let e = connect().unwrap().attach(&descriptor);
            assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
            server.release(descriptor.region).unwrap();
            std::fs::write(folder.path().join("new"), &data).unwrap();
            std::fs::rename(folder.path().join("new"), &path).unwrap();
            let e = connect().unwrap().attach(&descriptor);
            assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
        }
        client.close();
        server.close();
    }
}
