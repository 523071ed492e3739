//! Servers that keep one store over one log: processes that are killed, lose their disks, and come back.

use super::run::{bad, eventually, good, jindou, refuses, writes};
use jindou_testing::http::{Answer, request};
use jindou_testing::{Served, free_port};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub struct Server(pub Served);

/// The snapshot that an answer names.
fn snapshot(answer: &Answer) -> u64 {
    let number = answer.header("jindou-snapshot").parse();
    number.unwrap_or_else(|_| panic!("{answer:?}"))
}

/// Asserts an answer's status, and that its text has all `parts`.
pub fn assert_says(answer: &Answer, status: u16, parts: &[&str]) {
    let text = answer.text();
    let has_all = parts.iter().all(|part| text.contains(part));
    assert!(answer.status == status && has_all, "no {parts:?} in {text}");
}

impl Server {
    pub fn start(folder: &Path, name: &str) -> Self {
        Self::start_with(folder, name, &[])
    }

    pub fn start_with(folder: &Path, name: &str, more: &[&str]) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = jindou(folder);
        command
            .args(["serve", "--port", "0", "--log-level", "error", "--writable"])
            .args(["--name", name, "--peer-address", &address])
            .args(["--log", "log", "--store", name])
            .args(more);
        Self(Served::start(&mut command))
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        request(self.0.address, method, path, headers, body.as_bytes())
    }

    pub fn update(&self, text: &str, more: &[(&str, &str)]) -> Answer {
        let headers = [&[("content-type", "application/sparql-update")], more].concat();
        self.send("POST", "/update", &headers, text)
    }

    pub fn try_insert(&self, n: usize) -> Answer {
        let text = format!("INSERT DATA {{ <http://e/s> <http://e/p> {n} }}");
        self.update(&text, &[])
    }

    pub fn insert(&self, n: usize) -> Answer {
        let done = self.try_insert(n);
        assert_eq!(done.status, 200, "{}", done.text());
        done
    }

    pub fn merge(&self) {
        let merged = self.send("POST", "/admin/merge", &[], "");
        assert_eq!(merged.status, 200, "{}", merged.text());
    }

    /// Objects of `http://e/s`, ascending.
    pub fn objects(&self, consistency: &str) -> (Vec<usize>, u64) {
        let path = format!(
            "/query?consistency={consistency}&query=SELECT%20%3Fo%20%7B%3Chttp%3A%2F%2Fe%2Fs%3E%20%3Chttp%3A%2F%2Fe%2Fp%3E%20%3Fo%7D"
        );
        let answer = self.send("GET", &path, &[("accept", "text/csv")], "");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut all: Vec<usize> = answer
            .text()
            .lines()
            .filter_map(|l| l.trim().parse().ok())
            .collect();
        all.sort_unstable();
        (all, snapshot(&answer))
    }

    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Sends SIGTERM to the process.
    pub fn terminate(&self) {
        // SAFETY: sends a signal to a process that this one started and has not waited for.
        unsafe { libc::kill(self.0.child.id() as i32, libc::SIGTERM) };
    }
}

#[test]
fn servers_may_die() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let start = |name: &str| Server::start(folder, name);
    let mut servers = [start("one"), start("two"), start("three")];
    let names = ["one", "two", "three"];
    let mut done: Vec<usize> = Vec::new();
    let insert = |server: &Server, n: usize, done: &mut Vec<usize>| {
        let number = snapshot(&server.insert(n));
        done.push(n);
        done.sort_unstable();
        number
    };
    for n in 1000..1006 {
        let number = insert(&servers[n % 3], n, &mut done);
        // What was acknowledged is seen by every later query, wherever it is asked.
        for server in &servers {
            let (seen, at) = server.objects("default");
            assert_eq!(seen, done);
            assert!(at >= number, "{at} {number}");
        }
    }
    let (_, number) = servers[0].objects("strict");
    assert!(servers[1].objects(&format!("at-least={number}")).1 >= number);
    let wrong = "/query?consistency=often&query=ASK%20%7B%7D";
    assert_eq!(servers[0].send("GET", wrong, &[], "").status, 400);
    let ready = servers[1].send("GET", "/ready", &[], "");
    assert_eq!(ready.status, 200, "{}", ready.text());

    // The writer is the author of the newest group: that of the last update's server or the one that it went to. All die in turn.
    for victim in 0..3 {
        servers[victim].kill();
        let other = &servers[(victim + 1) % 3];
        let begun = Instant::now();
        insert(other, 2000 + victim, &mut done);
        let away = begun.elapsed();
        assert!(
            away < Duration::from_secs(30),
            "updates were away for {away:?}"
        );
        assert_eq!(other.objects("default").0, done);
        if victim == 1 {
            std::fs::remove_dir_all(folder.join(names[victim])).unwrap();
        }
        servers[victim] = start(names[victim]);
        assert_eq!(servers[victim].objects("strict").0, done);
        insert(&servers[victim], 3000 + victim, &mut done);
    }

    other_changes(&servers);
    done.push(4000);
    done.sort_unstable();

    // One is asked to end.
    servers[0].terminate();
    insert(&servers[1], 5000, &mut done);
    assert!(servers[0].0.child.wait().unwrap().success());
    servers[0] = start("one");
    for server in &servers {
        assert_eq!(server.objects("strict").0, done);
    }
    all_are_listed(folder, &servers[1], &names);
    // Without the log the copy cannot be changed.
    servers[2].kill();
    let told = bad(folder, &["update", "--store", "three", "CLEAR ALL"]);
    assert!(told.contains("follows a shared log"), "{told}");
}

/// An update with a name inserts the object 4000 once, a graph is put and merged, and reclustering is refused.
fn other_changes(servers: &[Server; 3]) {
    let text = "INSERT DATA { <http://e/s> <http://e/p> 4000 }";
    let named = |server: &Server| server.update(text, &[("idempotency-key", "four")]);
    let first = named(&servers[0]);
    assert_eq!(snapshot(&named(&servers[2])), snapshot(&first));
    let put = servers[1].send(
        "PUT",
        "/store?graph=http%3A%2F%2Fe%2Fg",
        &[("content-type", "text/turtle")],
        "<http://e/a> <http://e/b> <http://e/c> .",
    );
    assert_eq!(put.status, 201, "{}", put.text());
    let conflict = servers[2].update("CREATE GRAPH <http://e/g>", &[]);
    assert_eq!(conflict.status, 409, "{}", conflict.text());
    servers[0].merge();
    let refused = servers[0].send("POST", "/admin/recluster", &[], "");
    assert_eq!(refused.status, 501, "{}", refused.text());
    let refused = servers[0].send("POST", "/admin/backup", &[], "");
    assert_says(&refused, 404, &["jindou restore"]);
}

/// The status of the log and one server's metrics name all servers.
fn all_are_listed(folder: &Path, second: &Server, names: &[&str; 3]) {
    let listed = names.map(|name| format!("{name}: at 127.0.0.1:"));
    let empty = "with the empty store\nnewest group: ";
    let parts = [&*listed[0], &listed[1], &listed[2], empty];
    let text = writes(folder, "cluster status --log log", 0, &parts);
    assert_eq!(text.matches(" s ago\n").count(), 3, "{text}");
    let metrics = second.send("GET", "/metrics", &[], "");
    let metrics = metrics.text();
    for part in [
        "jindou_replica_servers_listed 3\n",
        "jindou_replica_servers_in_contact 2\n",
        &format!("jindou_replica_info{{server=\"{}\",writer=\"", names[1]),
        &format!("jindou_replica_server_group{{server=\"{}\"}} ", names[0]),
        &format!(
            "jindou_replica_contact_age_seconds{{server=\"{}\"}} 0",
            names[2]
        ),
    ] {
        assert!(metrics.contains(part), "{metrics}");
    }
}

#[test]
fn a_process_whose_name_is_taken_over_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, other) = (folder.path(), folder.path().join("elsewhere"));
    let one = Server::start(folder, "one");
    let mut earlier = Server::start(folder, "two");
    earlier.insert(1);
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(folder.join("log"), other.join("log")).unwrap();
    let later = Server::start(&other, "two");
    eventually(|| match earlier.0.is_alive() {
        true => Err("it still runs".to_owned()),
        false => Ok(()),
    });
    later.insert(2);
    for server in [&one, &later] {
        assert_eq!(server.objects("default").0, [1, 2]);
    }
}

#[test]
fn a_mistake_is_undone_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = folder.join("log");
    let count = |store: &str| {
        let text = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        let out = good(
            folder,
            &["query", "--store", store, "--format", "csv", text],
        );
        out.lines().last().unwrap().trim().parse::<usize>().unwrap()
    };
    let one = Server::start(folder, "one");
    for n in 0..3 {
        one.insert(n);
    }
    std::thread::sleep(Duration::from_millis(50));
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    let before = jindou::time_text(since.as_micros() as u64);
    std::thread::sleep(Duration::from_millis(50));
    let mistake = one.update("CLEAR ALL", &[]);
    assert_eq!((mistake.status, snapshot(&mistake)), (200, 4));

    // While the server runs.
    let restored = |store: &str, which: &str, begins: &str| {
        let line = format!("restore --from log --store {store}{which}");
        let out = writes(folder, &line, 0, &[]);
        assert!(
            out.starts_with(&format!("{store}: snapshot {begins}")),
            "{out}"
        );
        out
    };
    let out = restored("a", &format!(" --at {before}"), "3, committed at 20");
    assert!(out.ends_with(", 3 quads, from log\n"), "{out}");
    assert_eq!(count("a"), 3);
    restored("b", " --snapshot 2", "2, ");
    assert_eq!(count("b"), 2);
    restored("c", "", "4, ");
    assert_eq!(count("c"), 0);
    let restore = "restore --from log --store d";
    let late = format!("{restore} --snapshot 5");
    refuses(folder, &late, &["snapshots 0 to 4"]);
    refuses(folder, &format!("{restore} --backup x"), &["no backups"]);
    assert!(!folder.join("d").exists());
    assert_eq!(std::fs::read_dir(log.join("servers")).unwrap().count(), 1);

    // What was lost goes back into the same store,
    good(folder, &["dump", "--store", "a", "--out", "lost.nt"]);
    let lost = std::fs::read_to_string(folder.join("lost.nt")).unwrap();
    let back = one.send(
        "POST",
        "/store",
        &[("content-type", "application/n-quads")],
        &lost,
    );
    assert!(back.status < 300, "{}", back.text());
    assert_eq!(one.objects("default").0, [0, 1, 2]);
    // or the restored one begins a new log.
    let insert = "INSERT DATA { <http://e/s> <http://e/p> 7 }";
    good(folder, &["update", "--store", "a", insert]);
    let elsewhere = folder.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(folder.join("a"), elsewhere.join("first")).unwrap();
    let first = Server::start(&elsewhere, "first");
    let second = Server::start(&elsewhere, "second");
    first.insert(8);
    assert_eq!(second.objects("default").0, [0, 1, 2, 7, 8]);
}

#[test]
fn a_server_is_drained_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Server::start(folder.path(), "one");
    let two = Server::start(folder.path(), "two");
    one.insert(1);
    let url = format!("http://{}", one.0.address);
    let drain = format!("cluster drain {url}");
    writes(folder.path(), &format!("{drain} --wait 1s"), 0, &[]);
    assert_eq!(one.send("GET", "/ready", &[], "").status, 503);
    assert_eq!(two.send("GET", "/ready", &[], "").status, 200);
    // Both take updates, and the other one writes.
    one.insert(2);
    let seen = snapshot(&two.insert(3));
    assert_eq!(two.objects("default").0, [1, 2, 3]);
    let begun = Instant::now();
    assert!(one.0.child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(snapshot(&two.insert(4)) > seen);
    refuses(folder.path(), &drain, &[]);
}

/// The number at the end of a metric's line.
fn metric(server: &Server, name: &str) -> i64 {
    let metrics = server.send("GET", "/metrics", &[], "");
    let metrics = metrics.text();
    let line = metrics.lines().find_map(|l| l.strip_prefix(name));
    let number = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
    number.trim().parse().unwrap()
}

#[test]
fn a_server_whose_log_is_away_says_so_and_ends_in_time() {
    const FAILED: &str = "jindou_replica_failed_requests_total ";
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let more = ["--grace", "2s", "--max-staleness", "4s"];
    let mut one = Server::start_with(folder, "one", &more);
    one.insert(1);
    std::fs::rename(folder.join("log"), folder.join("away")).unwrap();
    let failed = metric(&one, FAILED);
    // A query that asks the log first is refused after a few attempts.
    let strict = "/query?consistency=strict&query=ASK%20%7B%7D";
    let begun = Instant::now();
    let refused = one.send("GET", strict, &[], "");
    assert_says(&refused, 503, &["consistency=strict"]);
    assert!(begun.elapsed() > Duration::from_secs(4));
    let failed = metric(&one, FAILED) - failed;
    assert!((4..=30).contains(&failed), "{failed} requests failed");
    let ready = one.send("GET", "/ready", &[], "");
    let why = "neither the log nor another server that reaches it has answered for ";
    assert_says(&ready, 503, &[why, "it is at snapshot 1"]);
    assert_eq!(one.objects("any").0, [1]);

    // What waits when it ends is answered.
    let begun = std::thread::scope(|scope| {
        let more = [("idempotency-key", "mine")];
        let text = "INSERT DATA { <http://e/s> <http://e/p> 2 }";
        let sender = &one;
        let waiting = scope.spawn(move || sender.update(text, &more));
        std::thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        sender.terminate();
        let answer = waiting.join().unwrap();
        let told = ["outcome-unknown", "Idempotency-Key: mine"];
        assert_says(&answer, 503, &told);
        assert!(answer.header("retry-after").starts_with('1'), "{answer:?}");
        begun
    });
    assert!(one.0.child.wait().unwrap().success());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "it took {took:?}");

    // The update is sent again with its idempotency key: it takes effect once.
    std::fs::rename(folder.join("away"), folder.join("log")).unwrap();
    let one = Server::start(folder, "one");
    let again = || {
        one.update(
            "INSERT DATA { <http://e/s> <http://e/p> 2 }",
            &[("idempotency-key", "mine")],
        )
    };
    assert_eq!(snapshot(&again()), snapshot(&again()));
    assert_eq!(one.objects("strict").0, [1, 2]);
}

#[test]
fn what_cannot_start_says_why_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refused = |store: &str, more: &str, parts: &[&str]| {
        let line = format!("serve --port 0 --log log --name one --store {store} {more}");
        refuses(folder, &line, parts);
    };
    std::fs::write(folder.join("tokens"), "write short\n").unwrap();
    refused("one", "--token-file tokens", &["at least 16 characters"]);
    let tls = "--tls-cert tokens --tls-key tokens";
    refused("one", tls, &["tokens: it has no certificate"]);
    assert!(!folder.join("log").exists() && !folder.join("one").exists());
    refused("none/one", "--writable", &["mkdir -p none"]);

    // A server without a store was first.
    drop(Server::start(folder, "first"));
    let line = "<http://e/a> <http://e/b> <http://e/c> .\n";
    std::fs::write(folder.join("d.nt"), line).unwrap();
    good(folder, &["load", "-q", "--store", "two", "d.nt"]);
    let parts = [
        "began with an empty one",
        "a new place for its log",
        "nothing of this store",
    ];
    refused("two", "--writable", &parts);
}

#[test]
fn servers_that_are_started_together_begin_with_the_store_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("d.ttl"), "<http://e/s> <http://e/p> 7 .\n").unwrap();
    std::fs::create_dir(folder.join("copies")).unwrap();
    good(folder, &["load", "-q", "--store", "copies/two", "d.ttl"]);
    let mut all = jindou(folder)
        .args(["cluster", "start", "--log", "log", "--store", "copies"])
        .args(["--servers", "3", "--port", "0"])
        .env("JINDOU_LOG_LEVEL", "error")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut addresses = Vec::new();
    let mut lines = BufReader::new(all.stdout.take().unwrap()).lines();
    while addresses.len() < 3 {
        let line = lines.next().unwrap().unwrap();
        if let Some((_, address)) = line
            .split_once("serving ")
            .and_then(|(_, l)| l.split_once("http://"))
        {
            addresses.push(address.trim_end_matches("/query").to_owned());
        }
    }
    for address in addresses {
        let endpoint = format!("http://{address}/query");
        let text = "SELECT ?o { <http://e/s> <http://e/p> ?o }";
        let args = ["query", "--format", "csv", "--endpoint", &endpoint, text];
        let out = good(folder, &args);
        assert_eq!(out.trim_end().lines().last(), Some("7"), "{out}");
    }
    let parts = [
        "with the store of its first server",
        "base 0: ",
        "0 groups since",
    ];
    writes(folder, "cluster status --log log", 0, &parts);
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(all.id() as i32, libc::SIGTERM) };
    all.wait().unwrap();
}

#[test]
fn a_read_that_waits_is_listed_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let one = Server::start(folder.path(), "one");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let path = "/query?consistency=at-least=99&query=ASK%20%7B%7D";
            one.send("GET", path, &[], "")
        });
        let id = eventually(|| {
            let listed = one.send("GET", "/admin/queries", &[], "");
            let listed = listed.text();
            if listed.contains("waiting for the shared log") && listed.contains("at-least=99") {
                let id = listed.split("\"id\": ").nth(1).unwrap();
                return Ok(id.split([',', '\n']).next().unwrap().trim().to_owned());
            }
            Err(listed.to_owned())
        });
        let cancelled = one.send("DELETE", &format!("/admin/queries/{id}"), &[], "");
        assert_eq!(cancelled.status, 202, "{}", cancelled.text());
        let answer = waiting.join().unwrap();
        assert_says(&answer, 503, &["cancelled at /admin/queries"]);
    });
}
