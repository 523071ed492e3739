//! A reader's view when the serving process dies, stops, or is cut off: correct bytes or a clear error, by the
//! deadline.

use crate::support::{Store, neighbours, store};
use jindou_cluster::remote::{RemoteStore, expose, summary::summarise};
use jindou_cluster::transport::ucx::{UcxTransport, available};
use jindou_cluster::transport::{Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(20);
/// Deadline of a read.
const LIMIT: Duration = Duration::from_millis(200);
/// Time that the scheduler may add on a busy machine.
const SLACK: Duration = Duration::from_secs(1);

/// The serving process; killed when dropped.
struct Server {
    child: Child,
    /// The address of its end, and the catalogue.
    says: [Vec<u8>; 2],
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Arguments of the serving process, in its environment.
const STORE: &str = "JINDOU_TEST_STORE";
const DEVICES: &str = "JINDOU_TEST_DEVICES";
const SERVING: &str = "serving ";

fn to_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

fn of_text(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The serving process for the store named by [`STORE`], until the end of its input.
#[test]
fn child_that_serves() {
    let Some(store) = std::env::var_os(STORE) else {
        return;
    };
    let devices = std::env::var(DEVICES).unwrap_or_else(|_| "lo".into());
    let transport = UcxTransport::new(&devices).unwrap();
    let base = jindou_store::open(Path::new(&store)).unwrap();
    let (catalogue, _) = expose(&base, &*transport).unwrap();
    let address = transport.address().unwrap();
    println!("\n{SERVING}{} {}", to_text(&address), to_text(&catalogue));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    transport.close();
}

/// Starts the serving process: this program again, after `prefix`.
fn serve(store: &Store, prefix: &[&str], devices: &str) -> Server {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<OsString> = prefix.iter().map(OsString::from).collect();
    words.push(program.into());
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args(["--exact", "failures::child_that_serves", "--nocapture"])
        .env(STORE, store.folder.path().join("store"))
        .env(DEVICES, devices)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let says = lines.find_map(|l| l.strip_prefix(SERVING).map(str::to_owned));
    let says = says.expect("the server says what it serves");
    let (address, catalogue) = says.split_once(' ').unwrap();
    Server {
        child,
        says: [of_text(address), of_text(catalogue)],
    }
}

struct Reader {
    store: RemoteStore,
    _transport: Arc<UcxTransport>,
}

fn reader(store: &Store, server: &Server, devices: &str) -> Reader {
    let transport = UcxTransport::new(devices).unwrap();
    let [address, catalogue] = &server.says;
    let link = transport.connect(address).unwrap();
    let remote = RemoteStore::open(link, catalogue, |_| 1 << 30, Box::new(|_, _| {})).unwrap();
    for p in 0..store.base.statistics().predicates.len() as u32 {
        let summary = summarise(&store.base, PredicateId(p), Direction::Out);
        assert!(remote.put(PredicateId(p), Direction::Out, &summary));
    }
    // UCX connects at the first read.
    remote.touch(1, Instant::now() + WAIT).unwrap();
    Reader {
        store: remote,
        _transport: transport,
    }
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
        let start = jindou_testing::Stopwatch::start();
        let into = (&mut ends, &mut values);
        let deadline = Instant::now() + LIMIT;
        let done = self.store.lists(of, &[subject], 1 << 20, into, deadline);
        let time = start.elapsed();
        if let Ok(is_read) = &done {
            assert!(is_read);
            assert_eq!(values, neighbours(&store.truth, p, true, subject));
        }
        (done.map(drop), time)
    }

    /// Reads until one fails; each read must end by its deadline.
    fn read_until_failure(&self, store: &Store) -> TransportError {
        let start = Instant::now();
        for i in 0.. {
            let (result, time) = self.read(store, i);
            assert!(time < LIMIT + SLACK, "a read took {time:?}");
            if let Err(e) = result {
                return e;
            }
            assert!(start.elapsed() < WAIT, "reads still succeed");
        }
        unreachable!()
    }

    /// Reads that succeed, then reads until one fails after `fault`.
    fn fails_after(&self, store: &Store, fault: impl FnOnce()) {
        let some = (0..200).filter(|&i| self.read(store, i).0.is_ok());
        assert!(some.count() > 100);
        fault();
        let e = self.read_until_failure(store);
        assert!(
            matches!(e, TransportError::Deadline(_) | TransportError::PeerDead(_)),
            "{e}"
        );
        println!("first failure: {e}");
    }
}

fn signal(server: &Server, signal: i32) {
    // SAFETY: a signal to our own child, which is not yet reaped.
    unsafe { libc::kill(server.child.id() as libc::pid_t, signal) };
}

#[test]
fn reads_of_a_process_that_was_killed_or_stopped_end() {
    if let Err(e) = available() {
        println!("skipped: {e}");
        return;
    }
    let store = store();
    for number in [libc::SIGKILL, libc::SIGSTOP] {
        let server = serve(&store, &[], "lo");
        let reader = reader(&store, &server, "lo");
        reader.fails_after(&store, || signal(&server, number));
    }
}

/// Needs root and `ip`: the server lives in a network namespace of its own, whose only wire is cut. Run by
/// `scripts/partition-test.sh`.
#[test]
#[ignore = "needs root; run scripts/partition-test.sh"]
fn reads_over_a_wire_that_was_cut_end() {
    let Ok(namespace) = std::env::var("JINDOU_NETNS") else {
        println!("skipped: JINDOU_NETNS is not set (scripts/partition-test.sh sets it)");
        return;
    };
    let store = store();
    let server = serve(&store, &["ip", "netns", "exec", &namespace], "jindou1");
    let reader = reader(&store, &server, "jindou0");
    reader.fails_after(&store, || {
        let cut = Command::new("ip")
            .args(["link", "set", "jindou0", "down"])
            .status()
            .unwrap();
        assert!(cut.success());
    });
}
