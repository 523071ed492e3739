//! The format of the files: cases begin with `== NAME`, their sections with `-- KIND`.

use jindou::RdfFormat;
use jindou::parse::Format;

/// A case: steps that are taken in order over one store.
pub struct Case {
    pub name: String,
    /// Line of its name.
    pub line: usize,
    /// Documents that are loaded before the first step.
    pub data: Vec<Document>,
    /// Words in the message with which loading them must fail.
    pub load_error: Option<Vec<String>>,
    pub steps: Vec<CaseStep>,
}

/// A document to load.
#[derive(Clone)]
pub struct Document {
    pub format: Format,
    pub text: String,
}

/// A step, and what it must give.
pub enum CaseStep {
    Query(String, Expected),
    /// An update, and whether it fails, with these words in the message.
    Update(String, Option<Vec<String>>),
    /// A query and the reasons why it has no answer.
    Reasons(String, Vec<String>),
    /// All that the store holds, as a TriG document.
    Quads(String),
    /// Expressions with their values; no value is an error.
    Values(Vec<(String, Option<String>)>),
}

/// The answer to a query.
pub enum Expected {
    Rows {
        header: Vec<String>,
        rows: Vec<Vec<String>>,
        in_order: bool,
    },
    Boolean(bool),
    /// Triples, as a Turtle document.
    Graph(String),
    /// Words that the message has.
    Error(Vec<String>),
}

/// A section: the words after `--`, and the lines up to the next section.
struct Section<'a> {
    kind: &'a str,
    lines: Vec<&'a str>,
    at: usize,
}

impl Section<'_> {
    fn text(&self) -> String {
        self.lines.join("\n")
    }

    fn words(&self) -> Vec<String> {
        let lines = self.lines.iter().map(|l| l.trim());
        lines.filter(|l| !l.is_empty()).map(str::to_owned).collect()
    }

    /// Lines `EXPRESSION => TERM`, or `EXPRESSION => error`.
    fn values(&self) -> Result<CaseStep, String> {
        let mut all = vec![];
        for (n, line) in self.lines.iter().enumerate() {
            if line.trim().is_empty() || line.starts_with("# ") {
                continue;
            }
            let (expression, value) = line
                .rsplit_once(" => ")
                .ok_or(format!("line {}: no value: {line}", self.at + n + 1))?;
            let value = Some(value.trim().to_owned()).filter(|v| v != "error");
            all.push((expression.trim().to_owned(), value));
        }
        Ok(CaseStep::Values(all))
    }

    /// A header and rows, cells between tabs or ` | `; the last one may be empty.
    fn table(&self, in_order: bool) -> Result<Expected, String> {
        let cells = |line: &str| -> Vec<String> {
            if line.contains('\t') {
                return line.split('\t').map(|c| c.trim().to_owned()).collect();
            }
            // Editors strip the space after a last cell that is empty.
            let cells = format!("{} ", line.trim_end());
            cells.split(" | ").map(|c| c.trim().to_owned()).collect()
        };
        let mut lines = self.lines.clone();
        while lines.last().is_some_and(|l| l.trim().is_empty()) {
            lines.pop();
        }
        let mut lines = lines.into_iter();
        let header = lines
            .next()
            .ok_or(format!("line {}: rows without a header", self.at))?;
        let header: Vec<String> = if header.trim().is_empty() {
            vec![]
        } else {
            cells(header)
        };
        let rows: Vec<Vec<String>> = match header.len() {
            0 => lines.map(|_| vec![]).collect(),
            // An empty line is a row whose one cell is unbound.
            1 => lines.map(|l| vec![l.trim().to_owned()]).collect(),
            _ => lines.map(cells).collect(),
        };
        if let Some(row) = rows.iter().find(|r| r.len() != header.len()) {
            return Err(format!(
                "line {}: {} cells under {} columns: {row:?}",
                self.at,
                row.len(),
                header.len()
            ));
        }
        Ok(Expected::Rows {
            header,
            rows,
            in_order,
        })
    }
}

impl Case {
    /// The cases of a file.
    pub fn all(text: &str) -> Result<Vec<Self>, String> {
        let mut cases: Vec<(String, usize, Vec<Section<'_>>)> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            if let Some(name) = line.strip_prefix("== ") {
                cases.push((name.trim().to_owned(), n + 1, vec![]));
                continue;
            }
            let kind = line.strip_prefix("-- ");
            match (cases.last_mut(), kind) {
                (Some((_, _, sections)), Some(kind)) => sections.push(Section {
                    kind: kind.trim(),
                    lines: vec![],
                    at: n + 1,
                }),
                (Some((_, _, sections)), None) if !sections.is_empty() => {
                    sections
                        .last_mut()
                        .into_iter()
                        .for_each(|s| s.lines.push(line));
                }
                // Comments, before the first case and after a case's name.
                _ if line.starts_with('#') || line.trim().is_empty() => {}
                _ => {
                    return Err(format!(
                        "line {}: neither a case, a section nor a comment: {line}",
                        n + 1
                    ));
                }
            }
        }
        cases
            .into_iter()
            .map(|(name, line, sections)| Self::parse(name, line, sections))
            .collect()
    }

    fn parse(name: String, line: usize, sections: Vec<Section<'_>>) -> Result<Self, String> {
        let mut case = Self {
            name,
            line,
            data: vec![],
            load_error: None,
            steps: vec![],
        };
        let mut sections = sections.into_iter().peekable();
        while let Some(section) = sections.next() {
            let (kind, rest) = section.kind.split_once(' ').unwrap_or((section.kind, ""));
            match kind {
                "data" => {
                    let format = Format::from_extension(rest).or(match rest {
                        "turtle" => Some(Format::Turtle),
                        "ntriples" => Some(Format::NTriples),
                        "nquads" => Some(Format::NQuads),
                        "rdfxml" => Some(Format::RdfXml),
                        _ => None,
                    });
                    let format = format.filter(|_| rest != "n3");
                    let format =
                        format.ok_or(format!("line {}: unknown format {rest:?}", section.at))?;
                    case.data.push(Document {
                        format,
                        text: section.text(),
                    });
                }
                "load" if rest == "error" => case.load_error = Some(section.words()),
                "quads" => case.steps.push(CaseStep::Quads(section.text())),
                "values" => case.steps.push(section.values()?),
                "update" => {
                    let error = sections.next_if(|s| s.kind == "error");
                    case.steps
                        .push(CaseStep::Update(section.text(), error.map(|e| e.words())));
                }
                "query" => {
                    if let Some(reasons) = sections.next_if(|s| s.kind == "reasons") {
                        let step = CaseStep::Reasons(section.text(), reasons.words());
                        case.steps.push(step);
                        continue;
                    }
                    let Some(expected) = sections.next() else {
                        return Err(format!(
                            "line {}: a query without what it must give",
                            section.at
                        ));
                    };
                    let answer = match expected.kind {
                        "rows" => expected.table(false)?,
                        "rows in order" => expected.table(true)?,
                        "true" => Expected::Boolean(true),
                        "false" => Expected::Boolean(false),
                        "graph" => Expected::Graph(expected.text()),
                        "error" => Expected::Error(expected.words()),
                        other => {
                            return Err(format!(
                                "line {}: {other:?} is not what a query gives",
                                expected.at
                            ));
                        }
                    };
                    case.steps.push(CaseStep::Query(section.text(), answer));
                }
                _ => {
                    return Err(format!(
                        "line {}: unknown section {:?}",
                        section.at, section.kind
                    ));
                }
            }
        }
        if case.steps.is_empty() && case.load_error.is_none() {
            return Err(format!("line {}: {} checks nothing", case.line, case.name));
        }
        Ok(case)
    }
}

/// `oxrdfio`'s name of the formats in which expectations are written.
pub const EXPECTED_QUADS: RdfFormat = RdfFormat::TriG;
