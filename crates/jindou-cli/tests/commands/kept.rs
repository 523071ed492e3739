//! Stores that earlier releases made can be opened. `data/store-VERSION.tar.gz` is a store with merged segments and a
//! log, one for each release whose format is still supported. `data/store-VERSION.nq` has the store's statements,
//! sorted by bytes.

use super::run::good;
use jindou_testing::unpack;
use std::fs;
use std::path::Path;

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn stores_of_earlier_releases_are_opened_and_changed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut seen = 0;
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(release) = name
            .strip_prefix("store-")
            .and_then(|n| n.strip_suffix(".tar.gz"))
        else {
            continue;
        };
        let t = tempfile::tempdir().unwrap();
        let at = t.path();
        unpack(&path, at);
        let kept = fs::read_to_string(data.join(format!("store-{release}.nq"))).unwrap();
        let kept = sorted(&kept);
        assert!(
            good(at, &["check", "--store", "store"]).contains("no damage"),
            "{release}"
        );
        assert_eq!(
            sorted(&good(at, &["dump", "--store", "store"])),
            kept,
            "{release}"
        );
        // A query with a join and a filter uses the store's indexes.
        let query = "SELECT ?n { ?s foaf:knows ?o . ?o foaf:name ?n . ?s <http://e/age> ?a FILTER(?a > 40) }";
        let answer = good(at, &["query", "--store", "store", query]);
        assert_eq!(
            answer, "?n\n\"Bob \\\"B\\\" \\\\ é 日本\\n\"\n",
            "{release}"
        );
        // This release can also change, merge and recluster the store.
        let insert = "INSERT DATA { <http://e/z> <http://e/z> 1 }";
        good(at, &["update", "--store", "store", insert]);
        let mut more = kept.clone();
        let new = "<http://e/z> <http://e/z> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .";
        more.push(new.to_owned());
        more.sort();
        good(at, &["merge", "--store", "store"]);
        good(at, &["recluster", "--quiet", "--store", "store"]);
        assert_eq!(
            sorted(&good(at, &["dump", "--store", "store"])),
            more,
            "{release}"
        );
        seen += 1;
    }
    assert!(seen > 0);
    // `jindou --version` prints the formats.
    let t = tempfile::tempdir().unwrap();
    assert!(good(t.path(), &["--version"]).contains("store format 1, log format 1"));
}
