//! `jindou peers`: installs other engines and shows comparisons.

use crate::args::peers::Peers;
use crate::peers::wrong;
use jindou::Result;
use jindou_peers::install::{PEERS, Peer, default_folder};
use jindou_peers::report::{Report, table};
use std::process::ExitCode;

pub fn run(a: Peers) -> Result<ExitCode> {
    match a {
        Peers::Install { names, engines } => {
            let into = engines.unwrap_or_else(default_folder);
            // Resolves all names first, so that a misspelt one does not stop the installation half way.
            let peers: Vec<Peer> = names
                .iter()
                .map(|n| Peer::named(n))
                .collect::<Result<_, _>>()
                .map_err(wrong)?;
            for p in peers {
                let at = p.install(&into).map_err(wrong)?;
                println!("{} {} ({}): {}", p.name, p.version, p.licence, at.display());
            }
        }
        Peers::List { engines } => {
            let into = engines.unwrap_or_else(default_folder);
            for p in PEERS {
                let at = p.installed(&into);
                println!(
                    "{:<12} {:<18} {:<18} {}",
                    p.name,
                    p.version,
                    p.licence,
                    at.map_or("not installed".into(), |d| d.display().to_string())
                );
            }
        }
        Peers::Show { json } => {
            let report = Report::read_json(&json).map_err(wrong)?;
            print!("{}", table(&report));
        }
    }
    Ok(ExitCode::SUCCESS)
}
