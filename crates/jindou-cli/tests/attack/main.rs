//! Sends random hostile texts of every construct, of up to megabytes, by every route, one at a time and eight at once,
//! to servers with three settings of limits. A server may use no more memory than its limit + 10 % + 96 MiB. A text may
//! be computed no longer than its time limit + 1 s, and no longer than 1 s after its client has left, or after DELETE
//! or SIGTERM. No thread may panic, and light queries must be answered meanwhile.
//!
//! Times are the server's processor time after the limit, so that other programs on the machine cause no faults.
//!
//! `JINDOU_TEXTS`: number of texts; `JINDOU_SEED`: seed of the texts; `JINDOU_FROM`: number of the first text (each
//! text depends only on the seed and its number); `JINDOU_SLOW`: factor for time limits (measured by default, for
//! machines with other work); `JINDOU_KIB`: maximum length of a text; `JINDOU_BIN`: another program than the one built
//! next to the test; `JINDOU_SHRINK`: number of attempts to make each fault's recipe smaller; `JINDOU_RECIPE` with
//! `JINDOU_LANGUAGE` (`query`, `update`, or a media type): sends only this text, by each route of its language. Recipes
//! are in the notation of `jindou_testing::attack::Recipe`.

mod audit;
mod campaign;
mod requests;
mod server;
mod volley;

use campaign::{Campaign, number, slowness};
use jindou_testing::attack::{Attack, Language, Recipe};
use server::Setting;
use std::time::Duration;
use volley::Slack;

const MIB: u64 = 1 << 20;

/// Three settings of limits: usual, small and large ones.
const SETTINGS: [Setting; 3] = [
    Setting {
        memory: 512 * MIB,
        query_memory: 256 * MIB,
        timeout: Duration::from_secs(1),
        more: &[],
    },
    Setting {
        memory: 256 * MIB,
        query_memory: 96 * MIB,
        timeout: Duration::from_millis(500),
        more: &[
            "--threads",
            "1",
            "--heavy-slots",
            "1",
            "--max-result-bytes",
            "16M",
        ],
    },
    Setting {
        memory: 1024 * MIB,
        query_memory: 1024 * MIB,
        timeout: Duration::from_secs(2),
        more: &["--union-default-graph", "--max-result-rows", "1000000"],
    },
];

#[test]
#[ignore = "hours; see docs/testing.md"]
fn random_texts() {
    let slow = number("JINDOU_SLOW", slowness()) as u32;
    println!("time limits {slow} times as long as on an idle machine");
    let settings = SETTINGS.map(|s| Setting {
        timeout: s.timeout * slow,
        ..s
    });
    let subjects = number("JINDOU_SUBJECTS", 5_000);
    let mut campaign = Campaign::new(&settings, subjects, Slack(Duration::from_secs(1)));
    campaign.most = number("JINDOU_KIB", 8 << 10) << 10;
    campaign.tries = number("JINDOU_SHRINK", 12);
    if let Ok(recipe) = std::env::var("JINDOU_RECIPE") {
        let recipe: Recipe = recipe.parse().expect("JINDOU_RECIPE");
        let language = match std::env::var("JINDOU_LANGUAGE").as_deref() {
            Err(_) | Ok("query") => Language::Query,
            Ok("update") => Language::Update,
            Ok(media) => Language::Document(String::leak(media.to_owned())),
        };
        campaign.one(&Attack::new(language, recipe));
    } else {
        campaign.texts(
            number("JINDOU_SEED", 1),
            number("JINDOU_FROM", 0),
            number("JINDOU_TEXTS", 20_000),
        );
    }
    campaign.end();
}

/// Texts with which a server once broke a promise. Each line is a language and a recipe.
const FOUND: &str = include_str!("found.txt");

/// Texts with which a server once broke a promise within one batch of rows or one row: long strings, wide rows, long
/// numbers.
const BATCH: &str = include_str!("batch.txt");

fn listed(texts: &'static str) -> impl Iterator<Item = Attack> {
    texts.lines().map(|line| {
        let (language, recipe) = line.split_once(' ').expect("a language and a recipe");
        let language = match language {
            "query" => Language::Query,
            "update" => Language::Update,
            media if media.contains('/') => Language::Document(media),
            other => panic!("{other} is not a language"),
        };
        Attack::new(language, recipe.parse().expect(recipe))
    })
}

/// All texts of [`FOUND`] at their full length.
#[test]
#[ignore = "a minute; see docs/testing.md"]
fn found_texts() {
    let slow = number("JINDOU_SLOW", slowness()) as u32;
    let usual = Setting {
        timeout: SETTINGS[0].timeout * slow,
        ..SETTINGS[0]
    };
    let mut campaign = Campaign::new(&[usual], 20_000, Slack(Duration::from_secs(1)));
    campaign.most = 12 << 20;
    listed(FOUND).for_each(|attack| campaign.plain(&attack));
    campaign.end();
}

/// The limits of memory and time also hold within one batch of rows and within one row.
#[test]
fn texts_that_are_long_within_a_batch() {
    let mut campaign = Campaign::new(&SETTINGS[..1], 2000, Slack(Duration::from_secs(2)));
    campaign.most = 12 << 20;
    listed(BATCH).for_each(|attack| campaign.plain(&attack));
    campaign.end();
}

/// A short campaign of texts of up to 256 KiB.
#[test]
fn some_random_texts() {
    let settings = [Setting {
        timeout: Duration::from_millis(300),
        ..SETTINGS[0]
    }];
    // The slack is large, since a program built without optimisation is many times slower.
    let mut campaign = Campaign::new(&settings, 2000, Slack(Duration::from_secs(4)));
    campaign.most = 256 << 10;
    campaign.texts(36, 0, 150);
    campaign.end();
}
