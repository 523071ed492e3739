//! The installed engines on LUBM(1): published row counts, and every engine's terms against every other's.

use jindou_parse::write::{TagCase, write_source};
use jindou_peers::engines::{Setup, open};
use jindou_peers::install::{PEERS, Peer, default_folder};
use jindou_peers::{Named, Options, compare};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

fn folder() -> PathBuf {
    std::env::var_os("JINDOU_PEERS").map_or_else(default_folder, PathBuf::from)
}

#[test]
#[ignore = "needs engines that `jindou peers install` has put into JINDOU_PEERS or the cache folder"]
fn installed_engines_agree_on_lubm_1() {
    let engines = folder();
    let mut names: Vec<&str> = PEERS
        .iter()
        .filter(|p| p.installed(&engines).is_some())
        .map(|p| p.name)
        .collect();
    if Peer::named("duckdb").unwrap().installed(&engines).is_some() {
        names.push("duckdb-text");
    }
    if names.is_empty() {
        println!("skipped: no engine is installed in {}", engines.display());
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("lubm-1.nt");
    let mut out = BufWriter::new(File::create(&data).unwrap());
    write_source(&Lubm::new(1, 0), TagCase::Lower, &mut out).unwrap();
    drop(out);
    let all = names
        .iter()
        .map(|name| {
            let setup = Setup {
                engines: engines.clone(),
                work: work.path().join(name),
                memory: 1 << 30,
                threads: 2,
            };
            open(name, &setup).unwrap()
        })
        .collect();
    let queries: Vec<Named> = QUERIES
        .iter()
        .map(|q| Named {
            rows: q.rows(1),
            ..Named::new(q.name, q.text)
        })
        .collect();
    let options = Options {
        rounds: 1,
        limit: Duration::from_secs(60),
        work: work.path().to_owned(),
        title: "LUBM(1)".into(),
        command: String::new(),
    };
    let report = compare(all, &data, None, &queries, &options, &mut |s| {
        println!("{s}")
    })
    .unwrap();
    assert_eq!(report.differences(), Vec::<String>::new());
    for (i, e) in report.engines.iter().enumerate() {
        assert_eq!(e.failed, None);
        let l = e.loaded.unwrap();
        assert!(
            l.seconds > 0.0 && l.disk > 1 << 20 && l.memory.resident > 1 << 20,
            "{l:?}"
        );
        assert!(e.serving.resident > 1 << 20, "{e:?}");
        for q in &report.queries {
            let a = &q.answers[i];
            assert_eq!(a.seen.unwrap().rows, q.known_rows.unwrap(), "{}", q.name);
            assert!(a.bytes > 0 && a.median_ms().unwrap() > 0.0);
        }
    }
}
