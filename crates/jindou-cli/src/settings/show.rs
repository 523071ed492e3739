//! `jindou settings`: the value of each setting, and where it comes from.

use super::{EVERYWHERE, SECRET, SettingsFile, WITHOUT, settings_of, variable};
use crate::args::Settings;
use crate::say::say;
use clap::{Arg, ArgAction, Command};
use jindou::Result;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// One line of the output.
struct SettingLine {
    option: String,
    value: Option<String>,
    from: String,
    is_set: bool,
}

/// Prints the settings. `command` is the definition of the command line without the file's values.
pub fn show(a: &Settings, command: &Command, file: Option<&SettingsFile>) -> Result<ExitCode> {
    let commands = || {
        let subs = command.get_subcommands();
        subs.filter(|c| !WITHOUT.contains(&c.get_name()))
    };
    let mut sections: Vec<(&str, Vec<SettingLine>)> = vec![];
    let mut seen = BTreeSet::new();
    let mut top = vec![];
    for sub in commands() {
        for arg in settings_of(sub) {
            let option = arg.get_long().unwrap_or_default();
            let own = file.is_some_and(|f| {
                f.get(sub.get_name(), option)
                    .is_some_and(|e| !e.is_common())
            });
            if EVERYWHERE.contains(&option) && !own && seen.insert(option) {
                top.push(line("", arg, option, file));
            }
        }
    }
    top.sort_by(|a, b| a.option.cmp(&b.option));
    sections.push(("", top));
    for sub in commands() {
        let name = sub.get_name();
        let lines = settings_of(sub).filter_map(|arg| {
            let option = arg.get_long()?;
            let own = file
                .and_then(|f| f.get(name, option))
                .is_some_and(|e| !e.is_common());
            (own || !EVERYWHERE.contains(&option)).then(|| line(name, arg, option, file))
        });
        sections.push((name, lines.filter(|l| a.all || l.is_set).collect()));
    }
    if a.json {
        print_json(file, &sections);
        return Ok(ExitCode::SUCCESS);
    }
    match file {
        Some(file) => say!("# {}", file.path.display()),
        None => say!("# no settings file"),
    }
    for (name, lines) in &sections {
        if !name.is_empty() && !lines.is_empty() {
            say!("\n[{name}]");
        }
        for l in lines {
            let value = l.value.as_deref().unwrap_or("-");
            say!("{:<22} {:<30} {}", l.option, value, l.from);
        }
    }
    if !a.all {
        say!("\n# settings of single commands that are not set: --all");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(command: &str, arg: &Arg, option: &str, file: Option<&SettingsFile>) -> SettingLine {
    let secret = SECRET.contains(&option);
    let shown = |v: String| if secret { "(not shown)".into() } else { v };
    if let Some(name) = variable(command, option)
        && let Some(value) = std::env::var_os(&name)
    {
        return SettingLine {
            option: option.into(),
            value: Some(shown(value.to_string_lossy().into_owned())),
            from: format!("environment {name}"),
            is_set: true,
        };
    }
    // Settings at the top level apply to every command, so they are listed without one.
    if let Some(file) = file
        && let Some(entry) = file.get(command, option)
    {
        return SettingLine {
            option: option.into(),
            value: Some(shown(entry.values.join(", "))),
            from: format!("{}:{}", file.path.display(), entry.line),
            is_set: true,
        };
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|v| v.to_string_lossy().into_owned())
        .collect();
    let value = match arg.get_action() {
        ArgAction::SetTrue => Some("false".into()),
        _ if defaults.is_empty() => None,
        _ => Some(defaults.join(", ")),
    };
    SettingLine {
        option: option.into(),
        value,
        from: "default".into(),
        is_set: false,
    }
}

fn print_json(file: Option<&SettingsFile>, sections: &[(&str, Vec<SettingLine>)]) {
    let settings = sections.iter().flat_map(|(name, lines)| {
        lines.iter().map(move |l| {
            serde_json::json!({
                "command": (!name.is_empty()).then_some(*name),
                "setting": l.option,
                "value": l.value,
                "from": l.from,
            })
        })
    });
    let all = serde_json::json!({
        "file": file.map(|f| f.path.display().to_string()),
        "settings": settings.collect::<Vec<_>>(),
    });
    say!("{all:#}");
}
