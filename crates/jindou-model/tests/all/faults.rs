//! Mapped files that are truncated while they are read. Cases that end their process run in one of their own.

use jindou_model::Error;
use jindou_model::mapped::{MappedFile, contradicts};
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 1 << 16;

/// A file of non-zero bytes.
fn file(dir: &Path, len: usize) -> std::path::PathBuf {
    let path = dir.join("some.jd");
    std::fs::write(&path, vec![7u8; len]).unwrap();
    path
}

fn cut(path: &Path, len: usize) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(len as u64).unwrap();
}

fn sum(map: &MappedFile) -> u64 {
    map.iter().map(|b| u64::from(*b)).sum()
}

fn assert_shrunk(map: &MappedFile, from: usize, to: usize) {
    let Err(said @ Error::Damaged { .. }) = map.check() else {
        panic!("the cut was not seen");
    };
    let wanted = format!("some.jd: the file has shrunk from {from} to {to} bytes");
    let said = said.to_string();
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn a_cut_anywhere_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let len = 3 * PAGE + 100;
    for to in [0, 1, PAGE - 1, PAGE, 2 * PAGE + 5, 3 * PAGE, 3 * PAGE + 99] {
        for read_before in [false, true] {
            let path = file(dir.path(), len);
            let map = MappedFile::open(&path).unwrap();
            if read_before {
                assert_eq!(sum(&map), 7 * len as u64);
            }
            map.check().unwrap();
            cut(&path, to);
            assert!(sum(&map) <= 7 * to as u64, "cut to {to}");
            assert_shrunk(&map, len, to);
            // A failed file stays failed, even if it is restored.
            std::fs::write(&path, vec![7u8; len]).unwrap();
            assert!(map.check().is_err());
            drop(map);
            let map = MappedFile::open(&path).unwrap();
            assert_eq!(sum(&map), 7 * len as u64);
            map.check().unwrap();
        }
    }
}

#[test]
fn a_reader_may_say_that_a_file_contradicts_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let [map, other] = [(); 2].map(|()| MappedFile::open(&path).unwrap());
    contradicts(&map[PAGE..PAGE]);
    contradicts(&[1u8, 2]);
    map.check().unwrap();
    contradicts(&map[PAGE + 5..]);
    let said = map.check().unwrap_err().to_string();
    assert!(
        said.contains("some.jd: parts of the file contradict"),
        "{said}"
    );
    other.check().unwrap();
}

#[test]
fn zeros_at_the_end_are_no_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some.jd");
    for (ones, zeros) in [(10, 10), (0, 10), (PAGE, PAGE), (PAGE + 1, 3 * PAGE)] {
        let mut bytes = vec![1u8; ones];
        bytes.resize(ones + zeros, 0);
        std::fs::write(&path, &bytes).unwrap();
        let map = MappedFile::open(&path).unwrap();
        assert_eq!(sum(&map), ones as u64);
        map.check().unwrap();
        cut(&path, ones / 2);
        let now = sum(&map);
        // If the truncation did not change what is read, the check need not fail.
        assert!(map.check().is_err() || now == ones as u64);
    }
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(MappedFile::open(&path), Err(Error::Io { .. })));
}

#[test]
fn threads_that_fault_together_go_on() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let len = 8 * PAGE;
        let path = file(dir.path(), len);
        let map = MappedFile::open(&path).unwrap();
        let start = std::sync::Barrier::new(5);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..20 {
                        let sum = sum(&map);
                        // The sum is right, or the check fails.
                        assert!(sum == 7 * len as u64 || map.check().is_err());
                    }
                });
            }
            start.wait();
            cut(&path, PAGE + 3);
        });
        assert_shrunk(&map, len, PAGE + 3);
    }
}

#[test]
fn only_the_file_that_was_cut_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    let (a, b) = (file(&one, 2 * PAGE), file(&two, 2 * PAGE));
    let [x, y, z] = [&a, &b, &a].map(|p| MappedFile::open(p).unwrap());
    cut(&a, 0);
    assert_eq!(sum(&x) + sum(&z), 0);
    assert!(x.check().is_err() && z.check().is_err());
    assert_eq!(sum(&y), 14 * PAGE as u64);
    y.check().unwrap();
}

/// Environment variable for the processes that `run` starts: what they do.
const CHILD: &str = "JINDOU_FAULTS_CHILD";

/// Does something in a process of its own.
fn run(what: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "faults::child"])
        .env(CHILD, what)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Does something by which the signal must end the process.
fn assert_killed(what: &str) {
    let output = run(what);
    let signal = output.status.signal();
    assert_eq!(signal, Some(libc::SIGBUS), "{what}: {}", said(&output));
}

#[test]
fn other_faults_end_the_process_as_before() {
    assert_killed("fault elsewhere");
    assert_killed("be sent the signal");
    let overflow = run("overflow the stack");
    let text = said(&overflow);
    assert!(text.contains("has overflowed its stack"), "{text}");
    assert!(overflow.status.signal().is_some());
}

#[test]
fn a_program_may_keep_the_signal() {
    assert_killed("leave the signal alone");
    let own = run("have a handler before");
    assert!(own.status.success(), "{}", said(&own));
    assert!(said(&own).contains("own handler: 1"), "{}", said(&own));
}

/// A truncated mapping that is not in the table.
fn foreign() -> memmap2::Mmap {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let open = std::fs::File::open(&path).unwrap();
    // SAFETY: the mapping is read-only; this test truncates its file on purpose.
    let map = unsafe { memmap2::Mmap::map(&open) }.unwrap();
    cut(&path, 0);
    map
}

/// Number of signals that the program's own handler got.
static CALLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn own_handler(_: i32) {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

fn raise() {
    // SAFETY: the call takes no pointers.
    unsafe { libc::raise(libc::SIGBUS) };
}

fn deep(n: u64) -> u64 {
    let here = std::hint::black_box([n; 64]);
    if n == u64::MAX {
        return 0;
    }
    deep(n + 1) + here[0]
}

#[test]
#[ignore = "ends its process: other tests run it"]
fn child() {
    // Otherwise this would end a run of all ignored tests.
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    if what == "have a handler before" {
        let handler = own_handler as extern "C" fn(i32) as usize;
        // SAFETY: the handler only adds to an atomic.
        unsafe { libc::signal(libc::SIGBUS, handler) };
    } else if what == "leave the signal alone" {
        jindou_model::mapped::leave_signal_alone();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 2 * PAGE);
    let map = MappedFile::open(&path).unwrap();
    match &*what {
        "fault elsewhere" => {
            let map = foreign();
            println!("{}", map.iter().map(|b| u64::from(*b)).sum::<u64>());
        }
        "be sent the signal" => {
            raise();
            // The previous handler, that of Rust's runtime, restores the default action and returns.
            raise();
        }
        "overflow the stack" => println!("{}", deep(0)),
        "leave the signal alone" => {
            cut(&path, 0);
            println!("{}", sum(&map));
        }
        _ => {
            cut(&path, 0);
            assert_eq!(sum(&map), 0);
            assert!(map.check().is_err());
            // The fault was not passed to the program's own handler, but a signal that a process sends is.
            assert_eq!(CALLED.load(Ordering::Relaxed), 0);
            raise();
            println!("own handler: {}", CALLED.load(Ordering::Relaxed));
        }
    }
}
