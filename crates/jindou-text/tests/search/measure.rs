//! Measures how long searches take over many labels, and what the index costs a load.
//!
//! ```text
//! LABELS=10000000 cargo test --release -p jindou-text --test search -- --ignored --nocapture measure
//! ```

use super::support::{Rng, options, prepared, texts};
use jindou::parse::Sources;
use jindou::search::Search;
use jindou::{Database, LoadOptions, Progress};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// Syllables of generated words: there are 20,000 common words and as many rare ones.
const SYLLABLES: [&str; 32] = [
    "ba", "ber", "cor", "da", "del", "en", "fa", "gor", "hi", "il", "ja", "kan", "lo", "mar", "ne",
    "or", "pa", "qui", "ro", "sa", "tan", "ul", "va", "wen", "xi", "yor", "ze", "mi", "to", "ri",
    "lin", "stu",
];

fn word(mut n: usize) -> String {
    let mut out = String::new();
    for _ in 0..2 + n % 3 {
        out += SYLLABLES[n % 32];
        n = n / 32 + n % 7;
    }
    out
}

/// A label of one to five words, most of them common, and some numbers.
fn label(rng: &mut Rng) -> String {
    let words: Vec<String> = (0..1 + rng.below(5))
        .map(|_| match rng.below(10) {
            0 => (1000 + rng.below(1_000_000)).to_string(),
            1..6 => word(rng.below(400)),
            _ => word(rng.below(20_000)),
        })
        .collect();
    words.join(" ")
}

fn write(path: &Path, labels: usize) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    let mut rng = Rng(1);
    for n in 0..labels {
        let text = label(&mut rng);
        writeln!(
            out,
            "<http://www.example.org/entity/Q{n}> <http://www.w3.org/2000/01/rdf-schema#label> \"{text}\"@en ."
        )?;
    }
    out.flush()
}

#[test]
#[ignore = "a measurement"]
fn measure() {
    let labels = jindou_testing::from_environment("LABELS", 100_000) as usize;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labels.nt");
    write(&file, labels).unwrap();
    let dir = folder.path().join("store");
    for indexed in [false, true] {
        let sources = Sources::builder().path(&file).build().unwrap();
        let mut load = LoadOptions::default().with_replace(true);
        if indexed {
            load = load.with_indexes(texts());
        }
        let begun = Instant::now();
        let report = Database::load(&dir, &sources, &load, &Progress::default()).unwrap();
        let (seconds, bytes) = (begun.elapsed().as_secs_f64(), report.store_bytes);
        println!("{labels} labels, indexed: {indexed}: loaded in {seconds:.2} s, {bytes} bytes");
    }
    let index = std::fs::metadata(dir.join("index-text.jd")).unwrap().len();
    let state = Database::info_with(&dir, &texts()).unwrap().indexes;
    println!(
        "index-text.jd: {index} bytes, {:.1} a label; {}",
        index as f64 / labels as f64,
        state[0].1
    );
    let db = Database::open_with(&dir, &options()).unwrap();
    let begun = Instant::now();
    prepared(&db);
    println!(
        "compared with its hash in {:.0} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    let mut rng = Rng(2);
    let mut times = vec![];
    let (mut whole, mut found) = (0, 0);
    for n in 0..200 {
        let text = label(&mut rng);
        // The beginning of a label, as if a user were typing it.
        let chars: Vec<char> = text.chars().collect();
        let typed: String = chars[..1 + rng.below(chars.len())].iter().collect();
        let begun = Instant::now();
        let answer = db.search(&Search::new(&typed)).unwrap();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        times.push((took, typed));
        whole += usize::from(answer.complete);
        found += usize::from(!answer.found.is_empty());
        assert!(n > 0 || took < 10_000.0);
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].0;
    println!(
        "200 searches: 50 % {:.2} ms, 95 % {:.2} ms, 99 % {:.2} ms, longest {:.2} ms ({:?}); {found} with results, {whole} complete",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0),
        times.last().map(|t| &t.1)
    );
}
