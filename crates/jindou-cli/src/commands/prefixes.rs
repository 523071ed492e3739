//! `jindou prefixes`.

use super::{runtime, show_recovery};
use crate::args::{PrefixCommand, PrefixesArgs};
use crate::say::say;
use jindou::{
    Access, Database, Error, OpenOptions, PrefixOrigin, Result, UpdateOptions, prefixes_in_effect,
};
use jindou_server::documents;
use std::process::ExitCode;

pub fn run(a: &PrefixesArgs) -> Result<ExitCode> {
    let store = a
        .store
        .as_ref()
        .ok_or_else(|| Error::Usage("which store? Pass --store DIR, or set JINDOU_STORE".into()))?;
    let access = match a.command {
        None => Access::Read,
        Some(_) => Access::Write,
    };
    let db = Database::open_with(
        store,
        &OpenOptions::default()
            .with_access(access)
            .with_durability(a.durability.durability)
            .with_verify(a.verify.verify)
            .with_runtime(runtime(Some(1), None)),
    )?;
    show_recovery(&db);
    match &a.command {
        None => list(a, &db),
        Some(PrefixCommand::Set { name, iri }) => {
            let (name, iri) = (bare(name), iri.trim_matches(['<', '>']));
            db.set_prefix(name, iri, &UpdateOptions::default())?;
            say!("{name}: <{iri}> {}", PrefixOrigin::Set.name());
        }
        Some(PrefixCommand::Remove { name }) => {
            let name = bare(name);
            db.remove_prefix(name, &UpdateOptions::default())?;
            // Prints the prefix that is in effect now, if the removed one had overridden it.
            let prefixes = db.prefixes();
            let all = prefixes_in_effect(Some(&prefixes), true);
            match all.iter().find(|p| p.0 == name) {
                Some((_, iri, origin)) => say!("{name}: <{iri}> {}", origin.name()),
                None => say!("{name}: removed"),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A name without its colon.
fn bare(name: &str) -> &str {
    name.strip_suffix(':').unwrap_or(name)
}

fn list(a: &PrefixesArgs, db: &Database) {
    let prefixes = db.prefixes();
    let all = prefixes_in_effect(Some(&prefixes), a.all);
    if a.json {
        say!("{}", documents::prefixes(&all));
        return;
    }
    let names = all.iter().map(|p| p.0.chars().count()).max();
    let iris = all.iter().map(|p| p.1.chars().count()).max();
    let (names, iris) = (names.unwrap_or(0) + 1, iris.unwrap_or(0).min(80) + 2);
    for (name, iri, origin) in &all {
        say!(
            "{:names$} {:iris$} {}",
            format!("{name}:"),
            format!("<{iri}>"),
            origin.name()
        );
    }
}
