//! The structure of help texts: common tasks come first, and `-h` is short.

use super::examples::{FIRST, of_commands};
use clap::Command;

/// Options that `-h` lists; `--help` lists all. Commands that are not listed here have few options.
const SHORT: &[(&str, &str)] = &[
    (
        "serve",
        "at store host port writable token_file graphs timeout memory backup_to tls_cert tls_key",
    ),
    (
        "load",
        "store into files format graph lenient errors replace memory quiet",
    ),
    (
        "query",
        "store data endpoint text file format graphs all no_pager explain profile time timeout memory",
    ),
    (
        "shell",
        "at store endpoint write format graphs all no_pager limit timeout",
    ),
    ("update", "store text file timeout memory load_from json"),
];

/// The command line with its examples, and with short lists of options for `-h`.
pub fn shaped(command: Command) -> Command {
    command.after_help(FIRST).mut_subcommands(|mut sub| {
        let name = sub.get_name().to_owned();
        let examples = of_commands().find(|e| e.0 == name).map(|e| e.1);
        let Some((_, short)) = SHORT.iter().find(|s| s.0 == name) else {
            // The command is not in SHORT, so `-h` and `--help` are the same.
            return match examples {
                Some(examples) => sub.after_help(examples),
                None => sub,
            };
        };
        sub = sub.after_help(format!(
            "'jindou {name} --help' lists all options, with examples."
        ));
        if let Some(examples) = examples {
            sub = sub.after_long_help(examples);
        }
        sub.mut_args(|arg| {
            let is_short = short.split(' ').any(|id| arg.get_id() == id);
            arg.hide_short_help(!is_short)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn short_lists_name_options_that_there_are() {
        let mut command = Args::command();
        command.build();
        for (name, short) in SHORT {
            let sub = command.find_subcommand(name).expect(name);
            for id in short.split(' ') {
                let found = sub.get_arguments().any(|a| a.get_id() == id);
                assert!(found, "{name} has no {id}");
            }
        }
        for (name, _) in of_commands() {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }
}
