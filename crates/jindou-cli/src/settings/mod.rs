//! Settings: values of options that are not given on the command line, from the environment or from a file.
//!
//! A value in the file becomes the default of its option, so that clap's own precedence applies: command line,
//! environment, file, built-in default.

mod file;
mod show;

pub use file::SettingsFile;
pub use show::show;

use crate::args::LABORATORY;
use clap::builder::{BoolishValueParser, OsStr};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use jindou::{Error, Result};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Options that mean the same in every command that has them. In a file they may stand at the top level, and each has
/// an environment variable.
const EVERYWHERE: &[&str] = &[
    "allow-url",
    "durability",
    "gpu",
    "gpu-memory",
    "graphs",
    "load-allow",
    "load-from",
    "max-url-bytes",
    "memory",
    "merge-memory",
    "merge-rate",
    "no-prefixes",
    "query-temp",
    "service-allow",
    "store",
    "temp-dir",
    "temp-limit",
    "threads",
    "timeout",
    "token",
    "union-default-graph",
    "verify",
];

/// Options that only make sense for one call of a command, so they are not settings.
const ONE_CALL: &[&str] = &[
    "at",
    "check",
    "config",
    "data",
    "data-format",
    "endpoint",
    "errors",
    "explain",
    "file",
    "from",
    "graph",
    "help",
    "idempotency-key",
    "into",
    "list",
    "out",
    "replace",
    "snapshot",
    "version",
    "default-graph",
    "drop-graphs",
    "keep-graph",
];

/// Commands whose options are not settings.
const WITHOUT: &[&str] = &[
    "cluster",
    "generate",
    "bench",
    "peers",
    "health",
    "settings",
    "completions",
    "man",
    "help",
];

/// Settings whose values are never shown.
const SECRET: &[&str] = &["token"];

/// Options without an environment variable. `JINDOU_GPU` is already used by tests to select how kernels are run.
const NO_VARIABLE: &[&str] = &["gpu"];

fn wrong(message: impl Into<String>) -> Error {
    Error::Usage(message.into())
}

/// True if the option of the command is a setting.
fn is_setting(command: &str, option: &str) -> bool {
    !WITHOUT.contains(&command) && !ONE_CALL.contains(&option)
}

/// The environment variable of a setting, if it has one.
fn variable(command: &str, option: &str) -> Option<String> {
    let has =
        (EVERYWHERE.contains(&option) || command == "serve") && !NO_VARIABLE.contains(&option);
    has.then(|| format!("JINDOU_{}", option.replace('-', "_").to_uppercase()))
}

/// The options of a command that are settings.
fn settings_of(command: &Command) -> impl Iterator<Item = &Arg> {
    let name = command.get_name();
    command
        .get_arguments()
        .filter(move |a| a.get_long().is_some_and(|l| is_setting(name, l)))
}

/// Adds an environment variable to the options that are settings, and makes the file's values their defaults.
pub fn apply(command: Command, file: Option<&SettingsFile>) -> Command {
    command.mut_subcommands(|sub| {
        let name = sub.get_name().to_owned();
        if WITHOUT.contains(&name.as_str()) {
            return sub;
        }
        sub.mut_args(|arg| apply_to(&name, arg, file))
    })
}

fn apply_to(command: &str, mut arg: Arg, file: Option<&SettingsFile>) -> Arg {
    let Some(option) = arg.get_long().map(str::to_owned) else {
        return arg;
    };
    if !is_setting(command, &option) {
        return arg;
    }
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    // `load` may be called with `--into` although JINDOU_STORE is set, and the two exclude each other. So for `load`
    // the variable is only a default of `--store`.
    let late = command == "load" && option == "store";
    let variable = variable(command, &option);
    if let Some(name) = &variable
        && !late
    {
        arg = arg.env(OsStr::from(name.clone())).hide_env_values(true);
    }
    if is_flag {
        arg = arg.value_parser(BoolishValueParser::new());
    }
    let value = variable
        .filter(|_| late)
        .and_then(std::env::var_os)
        .map(|v| vec![v]);
    let given = file.and_then(|f| f.get(command, &option));
    let value = value.or_else(|| given.map(|g| g.values.iter().map(OsString::from).collect()));
    match value {
        None => arg,
        Some(values) => arg
            .required(false)
            .hide_default_value(SECRET.contains(&option.as_str()))
            .default_values(values.into_iter().map(OsStr::from)),
    }
}

/// The address at which a server that `jindou serve` starts with these settings can be reached from this machine.
pub fn own_address(file: Option<&SettingsFile>) -> String {
    let set = |option: &str| {
        let named = variable("serve", option).and_then(std::env::var_os);
        let named = named.map(|v| v.to_string_lossy().into_owned());
        let in_file = || file?.get("serve", option)?.values.first().cloned();
        named.or_else(in_file).filter(|v| !v.is_empty())
    };
    let host = set("host").and_then(|host| host.parse::<IpAddr>().ok());
    let host = match host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)) {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let port = set("port").and_then(|port| port.parse().ok());
    let scheme = if set("tls-cert").is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}", SocketAddr::new(host, port.unwrap_or(7878)))
}

/// The environment variable that contains the value which clap did not accept; `None` if the option is on the command
/// line.
pub fn variable_at_fault(fault: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let text = |kind| match fault.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // The argument's text is for example "--memory <BYTES>".
    let option = text(ContextKind::InvalidArg)?.strip_prefix("--")?;
    let option = option.split([' ', '=', '[']).next()?;
    let value = text(ContextKind::InvalidValue)?;
    let typed = arguments.iter().any(|a| {
        let rest = a.as_bytes().strip_prefix(b"--");
        rest.and_then(|a| a.strip_prefix(option.as_bytes()))
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'=')
    });
    let name = variable("serve", option)?;
    let set = std::env::var_os(&name)?;
    (!typed && set.to_string_lossy().contains(value)).then_some(name)
}

/// The settings file to use: that of `--config`; or that of `$JINDOU_CONFIG`, which is a file, a folder with
/// `jindou.toml`, or empty for no file; or `jindou/config.toml` in the user's folder for settings, if it exists.
///
/// # Errors
/// If the file cannot be read or contains a mistake. The error has the file, the line and the likely intention.
pub fn find(arguments: &[OsString], command: &Command) -> Result<Option<SettingsFile>> {
    let path = match named(arguments).or_else(|| std::env::var_os("JINDOU_CONFIG")) {
        Some(none) if none.is_empty() => return Ok(None),
        Some(path) => {
            let path = PathBuf::from(path);
            if path.is_dir() {
                path.join("jindou.toml")
            } else {
                path
            }
        }
        None => match own_folder("XDG_CONFIG_HOME", ".config").map(|f| f.join("config.toml")) {
            Some(path) if path.exists() => path,
            _ => return Ok(None),
        },
    };
    SettingsFile::read(&path, command).map(Some)
}

/// The folder `jindou` in the folder that the variable names, or else in `below_home` in the user's home folder.
pub fn own_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| Path::new(v).is_absolute());
    let folder = match set(variable) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(below_home),
    };
    Some(folder.join("jindou"))
}

/// The value of `--config`, found before clap parses the arguments.
fn named(arguments: &[OsString]) -> Option<OsString> {
    let mut rest = arguments.iter().skip(1);
    // The arguments of these commands are for `jindou-bench`.
    if arguments
        .get(1)
        .is_some_and(|a| LABORATORY.iter().any(|command| a == command))
    {
        return None;
    }
    while let Some(argument) = rest.next() {
        if argument == "--" {
            return None;
        }
        if argument == "--config" {
            return rest.next().cloned();
        }
        // File names need not be valid UTF-8.
        if let Some(file) = argument.as_bytes().strip_prefix(b"--config=") {
            return Some(OsString::from_vec(file.to_vec()));
        }
    }
    None
}
