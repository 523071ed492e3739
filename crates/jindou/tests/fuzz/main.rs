//! Runs damaged and random query texts, from parsing to the written answer, and checks that there is no panic, that
//! limits hold, and that other parsers can read what is written. This is a process of its own, since its allocator
//! counts memory and its panic hook counts panics.
//!
//! `JINDOU_SECONDS` sets the duration, `JINDOU_SEED` the seed. The current text is stored in
//! `target/tmp/fuzz-query.txt`, in case that it ends the process.

mod check;
mod seeds;

use check::{End, MEMORY, TIME, check, ground};
use jindou::ResultFormat;
use jindou_testing::{Counting, Mutator, Rng, counted, from_environment, process_time};
use oxrdfio::RdfFormat;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Time, and memory in bytes, that a query may use beyond its limits: parsing, planning and writing are not charged,
/// and operators check the clock only from time to time.
const MORE_TIME: Duration = Duration::from_secs(3);
const MORE_MEMORY: usize = 192 << 20;

const FORMATS: [ResultFormat; 9] = [
    ResultFormat::Json,
    ResultFormat::Json,
    ResultFormat::Xml,
    ResultFormat::Tsv,
    ResultFormat::Csv,
    ResultFormat::Table,
    ResultFormat::Rdf(RdfFormat::Turtle),
    ResultFormat::Rdf(RdfFormat::TriG),
    ResultFormat::Rdf(RdfFormat::RdfXml),
];

/// A text that takes longer than this, by the clock, is reported as one that never ends.
const FOREVER: Duration = Duration::from_secs(120);

/// Starts a thread that prints the text and ends the process if one text takes longer than [`FOREVER`], since a thread
/// that hangs cannot be stopped otherwise.
fn watch(asked: Arc<AtomicU64>, place: std::path::PathBuf) {
    std::thread::spawn(move || {
        let (mut at, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            match asked.load(Relaxed) {
                u64::MAX => return,
                now if now != at => (at, since) = (now, Instant::now()),
                _ if since.elapsed() < FOREVER => {}
                _ => {
                    let text = std::fs::read_to_string(&place).unwrap_or_default();
                    eprintln!("FOUND, case {}: it does not end\n{text}\n----", at + 1);
                    std::process::exit(101);
                }
            }
        }
    });
}

fn fuzz(seconds: u64, seed: u64, most: u64) {
    let ground = ground();
    let mut rng = Rng::new(seed);
    let words = seeds::words();
    let mut mutator = Mutator::new(seeds::all(&mut rng), &words);
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-query.txt");
    let progress = Arc::new(AtomicU64::new(0));
    watch(Arc::clone(&progress), place.clone());
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        usual(info);
    }));
    let start = Instant::now();
    let mut told = start;
    let mut ends: BTreeMap<End, u64> = BTreeMap::new();
    let mut found = Vec::new();
    let (mut asked, mut slowest, mut largest) = (0u64, Duration::ZERO, 0);
    while start.elapsed().as_secs() < seconds && asked < most && found.len() < 50 {
        let text = if rng.chance(10) {
            seeds::random(&mut rng)
        } else {
            String::from_utf8_lossy(&mutator.text(&mut rng)).into_owned()
        };
        let (format, threads, patient) = (rng.one(&FORMATS), 1 + rng.below(2), rng.chance(5));
        std::fs::write(&place, &text).expect("a place for the text");
        let (panics, processor) = (PANICS.load(Relaxed), process_time());
        let (ended, taken) = counted(|| {
            catch_unwind(AssertUnwindSafe(|| {
                check(&ground, &text, format, threads, patient)
            }))
            .unwrap_or_else(|_| Err("it panicked".into()))
        });
        let (took, held) = (process_time() - processor, taken.most_copied);
        (slowest, largest) = (slowest.max(took), largest.max(held));
        asked += 1;
        progress.store(asked, Relaxed);
        let mut wrong = ended.as_ref().err().cloned();
        if PANICS.load(Relaxed) > panics {
            wrong = Some("something in it panicked".into());
        } else if took > (TIME + MORE_TIME) * threads as u32 {
            wrong = Some(format!("it took {took:?} of processor time"));
        } else if held > MEMORY as usize + MORE_MEMORY {
            wrong = Some(format!("it held {held} bytes"));
        }
        if let Ok(end) = ended {
            *ends.entry(end).or_default() += 1;
            if end == End::Answered || end == End::Unsupported {
                mutator.keep(&mut rng, text.as_bytes());
            }
        }
        if let Some(wrong) = wrong {
            println!(
                "FOUND, case {asked} of seed {seed}, {format:?}, {threads} threads: {wrong}\n{text}\n----"
            );
            found.push(wrong);
        }
        if told.elapsed().as_secs() >= 300 {
            told = Instant::now();
            println!(
                "{asked} texts in {:?}: {ends:?}, {} found",
                start.elapsed(),
                found.len()
            );
        }
    }
    progress.store(u64::MAX, Relaxed);
    println!(
        "{asked} texts in {:?}, seed {seed}: {ends:?}; most processor time {slowest:?}, most memory {largest} bytes",
        start.elapsed()
    );
    assert!(found.is_empty(), "{} texts went wrong", found.len());
    assert!(ends.contains_key(&End::Answered) && ends.contains_key(&End::Refused));
}

#[test]
fn some_thousand_texts() {
    fuzz(5, 1, 3000);
}

/// Texts that once failed this test.
#[test]
fn texts_that_went_wrong_once() {
    let ground = ground();
    // An inner pattern that never has rows may lack columns that operators above it read.
    let text = "PREFIX : <http://e/> SELECT * { ?b ((:p2/:p2+)|:p1) ?a . \
                GRAPH ?g { ?a a ?b . ?a :p1 :v4 . MINUS { OPTIONAL { VALUES (?b ?a) { (:v4 :v1) } } } } }";
    // The same, where the condition that never holds is one of several.
    let more = "PREFIX : <http://e/> SELECT ?b ?c { ?b :p2 ?c . ?a :p1 ?c . { ?c :p2 ?c . :v1 :p0 ?c . \
                GRAPH ?a { ?a (:p1|:p0)+ ?c } ?a :p2 ?c FILTER(BOUND(?a) && isIRI(?a)) } }";
    // With this many conditions, the planner compares orders of patterns without considering them.
    let many: String = (0..40)
        .map(|n| format!("FILTER(STR(?a) != \"{n}\") "))
        .collect();
    let many = more.replace("FILTER(BOUND(?a) && isIRI(?a))", &many);
    for text in [text, more, &many] {
        for threads in [1, 2] {
            let ended = check(&ground, text, ResultFormat::Xml, threads, true);
            assert_eq!(ended, Ok(End::Answered), "{text}");
        }
    }
    // JSON-LD cannot express this triple; that must not be reported as a failure to write.
    let text = "PREFIX : <http://e/> CONSTRUCT { << :s :p :o >> :q :z } WHERE {}";
    let ended = check(&ground, text, ResultFormat::Json, 1, true);
    assert_eq!(ended, Ok(End::Unsupported), "{text}");
    let ended = check(&ground, text, ResultFormat::Xml, 1, true);
    assert_eq!(ended, Ok(End::Answered), "{text}");
}

#[test]
#[ignore = "as long as JINDOU_SECONDS says; see docs/testing.md"]
fn texts_for_an_hour() {
    fuzz(
        from_environment("JINDOU_SECONDS", 60),
        from_environment("JINDOU_SEED", 1),
        u64::MAX,
    );
}
