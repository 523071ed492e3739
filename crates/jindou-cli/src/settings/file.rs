//! The settings file: TOML whose keys are the names of options, with a table for each command's own options.

use super::{EVERYWHERE, ONE_CALL, SECRET, WITHOUT, is_setting, settings_of, wrong};
use clap::{Arg, ArgAction, Command};
use jindou::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The settings in a file. All of them were checked to be options of a command.
pub struct SettingsFile {
    pub path: PathBuf,
    entries: Vec<FileSetting>,
}

/// A setting in the file.
pub struct FileSetting {
    /// The command to which it applies; `None` for all that have the option.
    command: Option<String>,
    option: String,
    pub values: Vec<String>,
    pub line: usize,
}

impl FileSetting {
    /// True if the setting applies to every command that has the option.
    pub fn is_common(&self) -> bool {
        self.command.is_none()
    }
}

impl SettingsFile {
    /// Reads a settings file and checks it against the options of the command line `command`.
    ///
    /// # Errors
    /// [`Error::Io`]; an error with file and line for invalid TOML, an unknown setting, or a value that the option does
    /// not accept; and an error if the file contains secrets and other users can read it.
    pub fn read(path: &Path, command: &Command) -> Result<Self> {
        let text = text_of(path)?;
        let file = Self {
            path: path.to_owned(),
            entries: SettingsReader {
                path,
                text: &text,
                command,
            }
            .read()?,
        };
        let secret = |e: &&FileSetting| SECRET.contains(&e.option.as_str());
        if let Some(secret) = file.entries.iter().find(secret) {
            let mode = path
                .metadata()
                .map_err(|e| Error::io(path, e))?
                .permissions()
                .mode();
            if mode & 0o007 != 0 {
                return Err(wrong(format!(
                    "{}:{}: this file holds a {} and every user of this machine can read it; run `chmod 600 {}`",
                    path.display(),
                    secret.line,
                    secret.option,
                    path.display(),
                )));
            }
        }
        Ok(file)
    }

    /// The setting for an option of a command, if the file has one.
    pub fn get(&self, command: &str, option: &str) -> Option<&FileSetting> {
        let of = |name: Option<&str>| {
            let mut all = self.entries.iter();
            all.find(|e| e.option == option && e.command.as_deref() == name)
        };
        of(Some(command)).or_else(|| of(None).filter(|_| EVERYWHERE.contains(&option)))
    }
}

/// Maximum size of a settings file, 1 MiB. A longer file is not a settings file; it may be a device without an end.
const LONGEST: u64 = 1 << 20;

fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
        .map_err(|e| Error::io(path, e))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!(
            "{}: too long for a settings file (more than {LONGEST} bytes)",
            path.display()
        )));
    }
    Ok(text)
}

struct SettingsReader<'a> {
    path: &'a Path,
    text: &'a str,
    command: &'a Command,
}

impl SettingsReader<'_> {
    fn read(&self) -> Result<Vec<FileSetting>> {
        let table = DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            self.wrong(at, e.message())
        })?;
        let mut entries = vec![];
        for (key, value) in table.get_ref() {
            match value.get_ref() {
                DeValue::Table(section) => {
                    let command = self.section(key)?;
                    for (key, value) in section {
                        let arg = self.option_of(command, key)?;
                        entries.push(self.entry(Some(command.get_name()), arg, key, value)?);
                    }
                }
                _ => {
                    let arg = self.option(key)?;
                    entries.push(self.entry(None, arg, key, value)?);
                }
            }
        }
        Ok(entries)
    }

    fn wrong(&self, at: usize, message: impl std::fmt::Display) -> Error {
        let line = self.line(at);
        wrong(format!("{}:{line}: {message}", self.path.display()))
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().filter(|b| **b == b'\n').count() + 1
    }

    /// The command whose name is the key of a table.
    fn section(&self, key: &Spanned<std::borrow::Cow<'_, str>>) -> Result<&Command> {
        let name = key.get_ref().as_ref();
        let all = || {
            let subs = self.command.get_subcommands();
            subs.filter(|c| !WITHOUT.contains(&c.get_name()))
        };
        all().find(|c| c.get_name() == name).ok_or_else(|| {
            let nearest = nearest(name, all().map(Command::get_name), |n| format!("[{n}]"));
            self.wrong(
                key.span().start,
                format!("no command {name} with settings{nearest}"),
            )
        })
    }

    /// The option that a key at the top level names, as the first command that has it defines it.
    fn option(&self, key: &Spanned<std::borrow::Cow<'_, str>>) -> Result<&Arg> {
        let name = key.get_ref().as_ref();
        let with = |name: &str| {
            let subs = self.command.get_subcommands();
            let subs = subs.filter(|c| !WITHOUT.contains(&c.get_name()));
            let mut found = subs.flat_map(|c| {
                settings_of(c).filter_map(|a| a.get_long().map(|l| (c.get_name(), l, a)))
            });
            found.find(|f| f.1 == name)
        };
        if EVERYWHERE.contains(&name)
            && let Some(found) = with(name)
        {
            return Ok(found.2);
        }
        let message = match with(name) {
            Some((command, ..)) => {
                format!("{name} is a setting of a single command; write it below [{command}]")
            }
            None if ONE_CALL.contains(&name) => {
                format!("--{name} applies to a single call and cannot be a setting")
            }
            None => format!(
                "unknown setting {name}{}",
                nearest(name, EVERYWHERE.iter().copied(), str::to_owned)
            ),
        };
        Err(self.wrong(key.span().start, message))
    }

    fn option_of<'c>(
        &self,
        command: &'c Command,
        key: &Spanned<std::borrow::Cow<'_, str>>,
    ) -> Result<&'c Arg> {
        let name = key.get_ref().as_ref();
        let section = command.get_name();
        let found = settings_of(command).find(|a| a.get_long() == Some(name));
        found.ok_or_else(|| {
            let any = command.get_arguments().any(|a| a.get_long() == Some(name));
            let message = if any && !is_setting(section, name) {
                format!("--{name} applies to a single call and cannot be a setting")
            } else {
                let names = settings_of(command).filter_map(Arg::get_long);
                format!(
                    "jindou {section} has no setting {name}{}",
                    nearest(name, names, str::to_owned)
                )
            };
            self.wrong(key.span().start, message)
        })
    }

    fn entry(
        &self,
        command: Option<&str>,
        arg: &Arg,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<FileSetting> {
        let option = arg.get_long().unwrap_or_default();
        let at = value.span().start;
        let many = matches!(arg.get_action(), ArgAction::Append);
        let values: Vec<String> = match value.get_ref() {
            DeValue::Array(all) if many => {
                let all = all.iter().map(|v| self.scalar(option, v));
                all.collect::<Result<_>>()?
            }
            _ => vec![self.scalar(option, value)?],
        };
        // The option's parser checks the value, so that errors can name the file and the line.
        let flag = matches!(arg.get_action(), ArgAction::SetTrue);
        for value in &values {
            if flag {
                if !matches!(value.as_str(), "true" | "false") {
                    return Err(
                        self.wrong(at, format!("{option} must be true or false, not {value}"))
                    );
                }
                continue;
            }
            let of_one = Command::new("jindou")
                .no_binary_name(true)
                .arg(Arg::clone(arg).required(false).long(option.to_owned()));
            let given = format!("--{option}={value}");
            if let Err(e) = of_one.try_get_matches_from([given]) {
                let e = e.to_string();
                let e = e.lines().next().unwrap_or_default();
                let e = e.strip_prefix("error: ").unwrap_or(e);
                if !e.contains("required") && !e.contains("cannot be used") {
                    return Err(self.wrong(at, e));
                }
            }
        }
        Ok(FileSetting {
            command: command.map(str::to_owned),
            option: option.to_owned(),
            values,
            line: self.line(key.span().start),
        })
    }

    fn scalar(&self, option: &str, value: &Spanned<DeValue<'_>>) -> Result<String> {
        Ok(match value.get_ref() {
            DeValue::String(s) => s.to_string(),
            DeValue::Integer(i) if i.radix() == 10 => i.as_str().replace('_', ""),
            DeValue::Float(f) => f.as_str().replace('_', ""),
            DeValue::Boolean(b) => b.to_string(),
            other => {
                let message = format!(
                    "{option} must be a string, a number, true or false, not a TOML {}",
                    other.type_str()
                );
                return Err(self.wrong(value.span().start, message));
            }
        })
    }
}

/// `; did you mean …?`, if one of the names is similar.
fn nearest<'n>(
    name: &str,
    names: impl Iterator<Item = &'n str>,
    shown: impl Fn(&str) -> String,
) -> String {
    let scored = names.map(|n| (strsim::jaro_winkler(name, n), n));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, n)) if score > 0.8 => format!("; did you mean {}?", shown(n)),
        _ => "; `jindou settings --all` lists them".into(),
    }
}
