//! The Kubernetes files: the command lines in them are those of servers that start.

use super::run::writes;
use jindou_testing::http::request;
use jindou_testing::{Served, free_port};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");

/// The arguments of the container in a file.
fn arguments(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(FOLDER).join(file)).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| line.trim() != "args:")
        .skip(1);
    let lines = lines
        .map(str::trim)
        .take_while(|line| line.starts_with(['-', '#']));
    let lines = lines.filter_map(|line| line.strip_prefix("- "));
    lines.map(str::to_owned).collect()
}

/// Starts the server of a file as the pod with this name, with its log, tokens and store in a folder.
fn start(file: &str, pod: &str, folder: &Path) -> Served {
    let own = |path: &str| folder.join(path).display().to_string();
    let arguments = arguments(file);
    assert_eq!(arguments.first().map(String::as_str), Some("serve"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    for argument in arguments {
        let argument = argument
            .replace("/etc/jindou/tokens", &own("tokens"))
            .replace("s3://my-bucket/graph", &own("log"))
            .replace("$(POD_NAME)", pod)
            .replace("$(POD_IP):7979", &format!("127.0.0.1:{}", free_port()));
        command.arg(argument);
    }
    command.args(["--port", "0", "--log-level", "error", "--store", &own(pod)]);
    Served::start(&mut command)
}

#[test]
fn the_servers_of_the_kubernetes_files_start() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("tokens"),
        "write 0123456789abcdef\nread fedcba9876543210\n",
    )
    .unwrap();
    let line = "<http://e/a> <http://e/b> <http://e/c> .\n";
    std::fs::write(folder.join("d.nt"), line).unwrap();
    writes(folder, "load -q --store graph --shards 6 d.nt", 0, &[]);
    writes(folder, "cluster begin --store graph --log log", 0, &[]);
    // The pods start together; each is filled from the log.
    let pods = ["jindou-0", "jindou-1", "jindou-2"];
    let servers = std::thread::scope(|scope| {
        let all = pods.map(|pod| scope.spawn(move || start("shards.yaml", pod, folder)));
        all.map(|server| server.join().unwrap())
    });
    let held = |pod: &str| {
        let shards = (0..6).filter(|n| folder.join(pod).join(format!("shard-{n}")).exists());
        shards.collect::<Vec<_>>()
    };
    let headers = [
        ("authorization", "Bearer fedcba9876543210"),
        ("accept", "text/csv"),
    ];
    let query = "/query?query=SELECT%20*%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D";
    for server in &servers {
        let begun = Instant::now();
        while request(server.address, "GET", "/ready", &[], b"").status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(120));
            std::thread::sleep(Duration::from_millis(50));
        }
        let answer = request(server.address, "GET", query, &headers, b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            answer.text(),
            "s,p,o\r\nhttp://e/a,http://e/b,http://e/c\r\n"
        );
    }
    // Each shard on two of the three.
    assert_eq!(
        pods.map(held),
        [vec![0, 1, 3, 4], vec![1, 2, 4, 5], vec![0, 2, 3, 5]]
    );
    drop(servers);
    std::fs::rename(folder.join("log"), folder.join("log-of-shards")).unwrap();
    drop(start("replicas.yaml", "whole-0", folder));
}
