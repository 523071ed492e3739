//! Tests of `jindou bench parallel` with real worker processes.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn bench(more: &str, work: &Path) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_jindou-bench"));
    c.args(["parallel", "--work"]).arg(work);
    c.args(more.split_whitespace());
    c
}

fn text(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned() + &String::from_utf8_lossy(&o.stderr)
}

/// The command itself compares answers with the known counts of L1 to L7 and, on each partition, with the single store.
#[test]
fn lubm_is_answered_by_every_model_on_every_partition() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, svg) = (dir.path().join("out.csv"), dir.path().join("out.svg"));
    let o = bench(
        "--lubm 1 --workers 1,2,3 --times 1,1 --cold-times 1,1 --rounds 1 --cold-rounds 0 --instances 1 --large 0.3 --hops 1",
        &dir.path().join("work"),
    )
    .arg("--csv")
    .arg(&csv)
    .arg("--svg")
    .arg(&svg)
    .output()
    .unwrap();
    let said = text(&o);
    assert!(o.status.success(), "{said}");
    let csv = std::fs::read_to_string(csv).unwrap();
    let count = |start: &str| csv.lines().filter(|l| l.starts_with(start)).count();
    // Task parallelism has three numbers of workers and two projections, each cold and warm. Data parallelism, only
    // warm, has three partitions with two ways of gathering.
    assert_eq!(count("ST,"), 10, "{csv}");
    assert_eq!(count("SD,"), 6 * 5, "{csv}");
    assert_eq!(
        csv.matches(",projection ").count() * 5,
        2 * (csv.lines().count() - 1)
    );
    assert!(said.contains("PROJECTION, not measured"), "{said}");
    assert!(std::fs::read_to_string(svg).unwrap().ends_with("</svg>\n"));
    // L2 has a single part: courses with their names are one star, whatever the partition.
    let l2 = said.lines().filter(|l| l.starts_with("L2 ")).skip(1);
    for line in l2 {
        assert_eq!(line.split_whitespace().nth(2), Some("1"), "{line}");
    }
}

#[test]
fn any_files_and_queries_can_be_cut() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data.ttl");
    let people: String = (0..50)
        .map(|n| {
            format!(
                ":p{n} :knows :p{}, :p{} ; :age {} .\n",
                n * 7 % 50,
                n * 3 % 50,
                n % 9
            )
        })
        .collect();
    std::fs::write(&data, format!("@prefix : <http://e/> .\n{people}")).unwrap();
    let queries = dir.path().join("queries");
    std::fs::create_dir(&queries).unwrap();
    let write = |name: &str, q: &str| {
        let prefixed = format!("PREFIX : <http://e/> {q}");
        std::fs::write(queries.join(name), prefixed).unwrap();
    };
    write(
        "q1.rq",
        "SELECT * { ?a :knows ?b . ?b :knows ?c . ?c :age ?n }",
    );
    write(
        "q2.rq",
        "SELECT ?n (COUNT(*) AS ?m) { ?a :age ?n OPTIONAL { ?a :knows ?b . ?b :knows ?a } } GROUP BY ?n",
    );
    write("q3.rq", "SELECT * { :p1 :knows+ ?b }");
    let run = |counts: &str| {
        std::fs::write(queries.join("counts.tsv"), counts).unwrap();
        bench(
            "--model data --workers 2 --hops 1 --gather point --rounds 1 --cold-rounds 0",
            &dir.path().join("work"),
        )
        .args(["--queries".as_ref(), queries.as_path()])
        .args(["--files".as_ref(), data.as_path()])
        .output()
        .unwrap()
    };
    let o = run("query\trows\nq2\t9\n");
    let said = text(&o);
    assert!(o.status.success(), "{said}");
    assert!(said.contains("q3: not asked of partitions"), "{said}");
    let o = run("query\trows\nq2\t10\n");
    assert!(!o.status.success());
    assert!(
        text(&o).contains("q2: 9 rows, 10 are right"),
        "{}",
        text(&o)
    );
}

/// Process ids of the children of a process.
fn children(process: u32) -> Vec<i32> {
    std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect()
}

#[test]
fn a_worker_that_dies_ends_the_benchmark_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = bench(
        "--lubm 1 --model task --workers 2 --times 100000,100000 --cold-times 0,0 --cold-rounds 0",
        &dir.path().join("work"),
    )
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let until = Instant::now() + Duration::from_secs(100);
    // One process for the serial time, and two workers.
    while children(master.id()).len() < 3 {
        assert!(Instant::now() < until, "the workers did not start");
        assert!(master.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    for victim in children(master.id()) {
        // SAFETY: the call accesses no memory; the process was started by this test's own child.
        unsafe { libc::kill(victim, libc::SIGKILL) };
    }
    let o = master.wait_with_output().unwrap();
    assert!(!o.status.success());
    let said = text(&o);
    assert!(said.contains("ended before its work was done"), "{said}");
    assert!(said.contains("signal: 9"), "{said}");
}
