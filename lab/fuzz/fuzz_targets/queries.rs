//! Any text as a query of a small store, from parser to written answer: no panic, no limit exceeded, and what is written can be
//! read. The first byte chooses format and threads. `crates/jindou/tests/fuzz` does the same without a fuzzer.
#![no_main]

#[path = "../../../crates/jindou/tests/fuzz/check.rs"]
mod check;

use check::{Ground, ground};
use jindou::ResultFormat;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const FORMATS: [ResultFormat; 6] = [
    ResultFormat::Json,
    ResultFormat::Xml,
    ResultFormat::Tsv,
    ResultFormat::Csv,
    ResultFormat::Table,
    ResultFormat::Rdf(oxrdfio::RdfFormat::Turtle),
];

fuzz_target!(|data: &[u8]| {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let format = FORMATS[usize::from(choice >> 2) % FORMATS.len()];
    let threads = 1 + usize::from(choice & 1);
    let patient = choice & 2 != 0;
    if let Err(wrong) = check::check(GROUND.get_or_init(ground), text, format, threads, patient) {
        panic!("{wrong}");
    }
});
