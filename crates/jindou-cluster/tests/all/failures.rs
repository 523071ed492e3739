//! A reader's view when the serving process dies, stops, or is cut off: correct bytes or a clear error, by the
//! deadline.

use crate::support::{Store, named_edges, neighbours, store};
use jindou_cluster::remote::{Exposed, RemoteStore, StoreFiles};
use jindou_cluster::transport::ucx::{Fabric, UcxOptions, UcxTransport, available};
use jindou_cluster::transport::{Epoch, Message, Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(5);
/// Deadline of a read.
const LIMIT: Duration = Duration::from_millis(200);
/// Time that the scheduler may add on a busy machine.
const SLACK: Duration = Duration::from_millis(300);

/// The serving process; killed when dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Arguments of the serving process, in its environment.
const STORE: &str = "JINDOU_TEST_STORE";
const FABRIC: &str = "JINDOU_TEST_FABRIC";
const LISTEN: &str = "JINDOU_TEST_LISTEN";
const DEVICES: &str = "JINDOU_TEST_DEVICES";
/// The message that requests the catalogue.
const CATALOGUE: u16 = 1;
const LISTENING: &str = "listening on ";

fn options(fabric: &str, listen: Option<String>, devices: Option<String>) -> UcxOptions {
    let fabric = match fabric {
        "tcp" => Fabric::Tcp,
        _ => Fabric::SharedMemory,
    };
    let loopback = UcxOptions::loopback(fabric);
    UcxOptions {
        listen: listen.unwrap_or_else(|| loopback.listen.clone()),
        devices: devices.unwrap_or_else(|| loopback.devices.clone()),
        ..loopback
    }
}

/// The serving process for the store named by [`STORE`]. Each line of its input steps to the next epoch; the end of the
/// input ends it.
#[test]
fn child_that_serves() {
    let Some(store) = std::env::var_os(STORE) else {
        return;
    };
    let variable = |name| std::env::var(name).ok();
    let options = options(
        &variable(FABRIC).unwrap_or_default(),
        variable(LISTEN),
        variable(DEVICES),
    );
    let transport = UcxTransport::new(options).unwrap();
    transport.advance(Epoch(1)).unwrap();
    let store = Path::new(&store);
    let base = jindou_store::open(store).unwrap();
    let exposed = Exposed::new(StoreFiles::open(store).unwrap(), &named_edges(&base));
    let (catalogue, _) = exposed.register(&*transport).unwrap();
    let answer = move |_: &Message<'_>, reply: &mut Vec<u8>| {
        reply.extend_from_slice(&catalogue);
        Ok(())
    };
    transport.handle(CATALOGUE, Arc::new(answer)).unwrap();
    println!("\n{LISTENING}{}", transport.address());
    let mut epoch = 1;
    for line in std::io::stdin().lines() {
        line.unwrap();
        epoch += 1;
        transport.advance(Epoch(epoch)).unwrap();
    }
    transport.close();
}

/// Starts the serving process: this program again, after `prefix`.
fn serve(store: &Store, transport: &str, prefix: &[&str], more: &[(&str, &str)]) -> Server {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<OsString> = prefix.iter().map(OsString::from).collect();
    words.push(program.into());
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args(["--exact", "failures::child_that_serves", "--nocapture"])
        .env(STORE, store.folder.path().join("store"))
        .env(FABRIC, transport)
        .envs(more.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let address = lines
        .filter_map(|l| l.strip_prefix(LISTENING).map(str::to_owned))
        .next();
    let address = address.expect("the server says where it listens");
    Server { child, address }
}

struct Reader {
    transport: Arc<UcxTransport>,
    store: RemoteStore,
}

fn reader(server: &Server, options: UcxOptions) -> Reader {
    let transport = UcxTransport::new(options).unwrap();
    let deadline = || transport.deadline(WAIT);
    let peer = transport.connect(&server.address, deadline()).unwrap();
    let mut catalogue = Vec::new();
    peer.call(CATALOGUE, Epoch(1), &[], &mut catalogue, deadline())
        .unwrap();
    let store = RemoteStore::of_catalogue(peer, &catalogue, |_| 1 << 30, deadline()).unwrap();
    Reader { transport, store }
}

impl Reader {
    /// Performs one read of a list; returns its outcome and duration.
    fn read(&self, store: &Store, i: usize) -> (Result<(), TransportError>, Duration) {
        let &(subject, p, _, _) = store
            .truth
            .iter()
            .filter(|q| q.3 == 0)
            .nth(i * 37 % 500)
            .unwrap();
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        let of = (PredicateId(p), Direction::Out);
        let deadline = self.transport.deadline(LIMIT);
        let start = jindou_testing::Stopwatch::start();
        let into = (&mut ends, &mut values);
        let done = self.store.lists(of, &[subject], 1 << 20, into, deadline);
        let time = start.elapsed();
        if let Ok(is_read) = &done {
            assert!(is_read);
            assert_eq!(values, neighbours(&store.truth, p, true, subject));
        }
        (done.map(drop), time)
    }

    /// Reads until one fails; each read must end by its deadline, and one must fail within `limit`.
    fn read_until_failure(&self, store: &Store, limit: Duration) -> TransportError {
        let start = Instant::now();
        for i in 0.. {
            let (result, time) = self.read(store, i);
            assert!(time < LIMIT + SLACK, "a read took {time:?}");
            if let Err(e) = result {
                return e;
            }
            assert!(start.elapsed() < limit, "reads still succeed");
        }
        unreachable!()
    }
}

fn each_fabric(test: impl Fn(Fabric, &str)) {
    match available() {
        Ok(()) => {
            test(Fabric::Tcp, "tcp");
            test(Fabric::SharedMemory, "shm");
        }
        Err(e) => println!("skipped: {e}"),
    }
}

fn signal(server: &Server, signal: i32) {
    // SAFETY: a signal to our own child, which is not yet reaped.
    unsafe { libc::kill(server.child.id() as libc::pid_t, signal) };
}

#[test]
fn a_killed_server_is_a_dead_peer() {
    let store = store();
    each_fabric(|fabric, name| {
        let server = serve(&store, name, &[], &[]);
        let reader = reader(&server, UcxOptions::loopback(fabric));
        (0..200).for_each(|i| assert!(reader.read(&store, i).0.is_ok()));
        signal(&server, libc::SIGKILL);
        let e = reader.read_until_failure(&store, WAIT);
        assert!(
            matches!(
                e,
                TransportError::PeerDead { .. } | TransportError::Deadline { .. }
            ),
            "{fabric:?}: {e}"
        );
        // Soon at the latest, and from then on, it is known to be dead.
        std::thread::sleep(Duration::from_millis(100));
        let (e, time) = reader.read(&store, 0);
        assert!(
            matches!(e, Err(TransportError::PeerDead { .. })),
            "{fabric:?}: {e:?}"
        );
        assert!(time < Duration::from_millis(20) + SLACK);
    });
}

#[test]
fn a_stopped_server_is_a_deadline_and_then_a_dead_peer() {
    let store = store();
    each_fabric(|fabric, name| {
        let server = serve(&store, name, &[], &[]);
        let reader = reader(&server, UcxOptions::loopback(fabric));
        (0..200).for_each(|i| assert!(reader.read(&store, i).0.is_ok()));
        signal(&server, libc::SIGSTOP);
        // Shared memory answers although its owner is stopped; the bytes are then correct.
        let e = reader.read_until_failure(&store, WAIT);
        assert!(
            matches!(
                e,
                TransportError::Deadline { .. } | TransportError::PeerDead { .. }
            ),
            "{fabric:?}: {e}"
        );
        std::thread::sleep(Duration::from_millis(800));
        let e = reader.read(&store, 0).0;
        assert!(
            matches!(e, Err(TransportError::PeerDead { .. })),
            "{fabric:?}: {e:?}"
        );
        signal(&server, libc::SIGCONT);
        let e = reader.read(&store, 0).0;
        assert!(e.is_err(), "the dead stay dead");
        // A reader that connects again is served.
        let again = UcxTransport::new(UcxOptions::loopback(fabric)).unwrap();
        again
            .connect(&server.address, again.deadline(WAIT))
            .unwrap();
    });
}

#[test]
fn a_server_in_a_later_epoch_refuses_the_earlier_one() {
    let store = store();
    each_fabric(|fabric, name| {
        let mut server = serve(&store, name, &[], &[]);
        let reader = reader(&server, UcxOptions::loopback(fabric));
        assert!(reader.read(&store, 0).0.is_ok());
        server
            .child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .unwrap();
        let e = reader.read_until_failure(&store, WAIT);
        assert_eq!(
            e,
            TransportError::StaleEpoch {
                held: Epoch(1),
                current: Epoch(2)
            }
        );
    });
}

/// Needs root and `ip`: the server lives in a network namespace of its own, whose only wire is cut. Run by
/// `scripts/partition-test.sh`.
#[test]
#[ignore = "needs root; run scripts/partition-test.sh"]
fn a_cut_wire_is_a_deadline_and_then_a_dead_peer() {
    let Ok(namespace) = std::env::var("JINDOU_NETNS") else {
        println!("skipped: JINDOU_NETNS is not set (scripts/partition-test.sh sets it)");
        return;
    };
    let store = store();
    let prefix = ["ip", "netns", "exec", &namespace];
    let more = [(LISTEN, "10.213.7.2:0"), (DEVICES, "jindou1")];
    let server = serve(&store, "tcp", &prefix, &more);
    let options = UcxOptions {
        devices: "jindou0".to_owned(),
        ..UcxOptions::loopback(Fabric::Tcp)
    };
    let reader = reader(&server, options);
    (0..200).for_each(|i| assert!(reader.read(&store, i).0.is_ok()));
    let cut = Command::new("ip")
        .args(["link", "set", "jindou0", "down"])
        .status()
        .unwrap();
    assert!(cut.success());
    let e = reader.read_until_failure(&store, WAIT);
    assert!(
        matches!(
            e,
            TransportError::Deadline { .. } | TransportError::PeerDead { .. }
        ),
        "{e}"
    );
    println!("first failure: {e}");
    std::thread::sleep(Duration::from_millis(1000));
    let e = reader.read(&store, 0).0;
    assert!(matches!(e, Err(TransportError::PeerDead { .. })), "{e:?}");
    println!("after a second: {}", e.unwrap_err());
}
