//! The code blocks of a Markdown page.

use std::path::Path;

/// A code block, with the comment that the page has before it.
#[derive(Debug, Default)]
pub struct Block {
    /// Number of the line with the opening fence, from 1.
    pub line: usize,
    /// First word after the fence.
    pub language: String,
    pub text: String,
    /// The comment directly before the block.
    pub mark: Option<String>,
}

/// The code blocks of a page, in order.
pub struct Page {
    pub blocks: Vec<Block>,
}

impl Page {
    /// Reads a page. Panics if the file cannot be read.
    pub fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut blocks = Vec::new();
        let mut open: Option<(Block, String)> = None;
        let mut mark = None;
        for (n, line) in text.lines().enumerate() {
            let bare = line.trim_start();
            if let Some((block, fence)) = &mut open {
                if bare.starts_with(fence.as_str()) && bare.trim_matches('`').is_empty() {
                    blocks.extend(open.take().map(|(block, _)| block));
                } else {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            } else if bare.starts_with("```") {
                let ticks = bare.bytes().take_while(|b| *b == b'`').count();
                let language = bare[ticks..].split_whitespace().next().unwrap_or("");
                let block = Block {
                    line: n + 1,
                    language: language.to_owned(),
                    mark: mark.take(),
                    ..Block::default()
                };
                open = Some((block, "`".repeat(ticks)));
            } else if let Some(comment) = bare.strip_prefix("<!--") {
                mark = Some(comment.trim_end().trim_end_matches("-->").trim().to_owned());
            } else if !bare.is_empty() {
                mark = None;
            }
        }
        assert!(open.is_none(), "a block of code has no end");
        Self { blocks }
    }
}

#[test]
fn blocks_know_their_marks() {
    let page = Page::parse(
        "a\n<!-- fails -->\n```sh\nfalse\n```\n\n```text\n```\n<!-- x -->\ntext\n````rust ignore\n```\n````\n",
    );
    let seen: Vec<_> = page
        .blocks
        .iter()
        .map(|b| {
            (
                b.line,
                b.language.as_str(),
                b.text.as_str(),
                b.mark.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (3, "sh", "false\n", Some("fails")),
            (7, "text", "", None),
            (11, "rust", "```\n", None)
        ]
    );
}
