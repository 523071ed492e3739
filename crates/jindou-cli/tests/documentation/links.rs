//! Checks links within the documentation: the file exists, and so does the heading.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A message for every broken link of the pages. A page listed in `docs/SUMMARY.md` counts as existing, even if it is
/// not written yet.
pub fn faults(root: &Path) -> Vec<String> {
    let mut pages: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .iter()
    .map(|p| root.join(p))
    .collect();
    let folders =
        ["docs", "docs/internals", "docs/lab"].map(|f| fs::read_dir(root.join(f)).expect(f));
    for entry in folders.into_iter().flatten() {
        let path = entry.expect("an entry").path();
        // The links of the table of contents are relative to the site; scripts/site.sh checks them.
        if path.extension().is_some_and(|e| e == "md") && !path.ends_with("SUMMARY.md") {
            pages.push(path);
        }
    }
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).expect("docs/SUMMARY.md");
    let planned: HashSet<PathBuf> = targets(&summary)
        .into_iter()
        .map(|(_, t)| clean(&root.join("docs").join(t)))
        .collect();

    let mut anchors = HashMap::new();
    let mut faults = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        let folder = page.parent().expect("its folder");
        for (line, target) in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = if file.is_empty() {
                page.clone()
            } else {
                clean(&folder.join(file))
            };
            let name = clean(&page);
            let name = name.strip_prefix(clean(root)).unwrap_or(&name).display();
            if !there.exists() {
                if planned.contains(&there) {
                    println!("{name}:{line}: {file} is in docs/SUMMARY.md, but not written yet");
                } else {
                    faults.push(format!("{name}:{line}: there is no {file}"));
                }
            } else if !anchor.is_empty() && there.extension().is_some_and(|e| e == "md") {
                let known = anchors
                    .entry(there.clone())
                    .or_insert_with(|| headings(&fs::read_to_string(&there).expect("a page")));
                if !known.contains(anchor) {
                    faults.push(format!("{name}:{line}: {file} has no heading #{anchor}"));
                }
            }
        }
    }
    faults
}

/// The lines outside of code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((n + 1, line))
    })
}

/// Targets of links and images, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in prose(text) {
        // Text in backquotes is code, which contains no links.
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (open, close) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            for part in line.split(open).skip(1) {
                if let Some(target) = part.split(close).next() {
                    found.push((n, target.to_owned()));
                }
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn headings(text: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let name: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let mut unique = name.clone();
        let mut n = 1;
        while !names.insert(unique.clone()) {
            unique = format!("{name}-{n}");
            n += 1;
        }
    }
    names
}

/// A path without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[test]
fn links_and_headings_are_found() {
    let text = "# A `b` c: d\n[x](y.md#z) `[no](no.md)` ![p](p.svg)\n```\n[no](no)\n# no\n```\n## A b c d\n";
    let seen: Vec<_> = targets(text).into_iter().map(|(_, t)| t).collect();
    assert_eq!(seen, ["y.md#z", "p.svg"]);
    assert_eq!(
        headings(text),
        HashSet::from(["a-b-c-d".to_owned(), "a-b-c-d-1".to_owned()])
    );
}
