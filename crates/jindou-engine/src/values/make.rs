//! Functions that create terms: from texts, from other terms, or new ones for each row.

use super::machine::{Interpreter, Maybe};
use super::val::{ArenaSpan, ArenaText, Val};
use crate::eval::EvalContext;
use jindou_model::Result;
use jindou_model::scope::worked;
use jindou_model::term::{self, Parts};
use oxrdf::vocab::rdf;
use sha1::Digest;
use std::io::Write;

/// Functions that build a term from their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeTerms {
    Lang,
    LangDir,
    Typed,
    Triple,
    /// BNODE with a label: one blank node for each label in each solution.
    Blank,
}

/// Functions that return a new term in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    Blank,
    Iri,
    String,
}

/// Hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Interpreter {
    pub(super) fn fresh(&mut self, fresh: Fresh) -> Val {
        self.term.clear();
        let random = rand::random::<u128>();
        // Writing to a vector cannot fail.
        let _ = match fresh {
            Fresh::Blank => {
                term::push_blank("", &mut self.term);
                write!(self.term, "{random:032x}")
            }
            Fresh::Iri => {
                term::push_iri("urn:uuid:", &mut self.term);
                uuid(random, &mut self.term)
            }
            Fresh::String => {
                self.term.push(term::STRING);
                uuid(random, &mut self.term)
            }
        };
        self.held_term()
    }

    pub(super) fn hash(&mut self, ctx: &EvalContext<'_>, hash: Hash, v: Val) -> Result<Maybe> {
        let Some(text) = self.simple(ctx, v) else {
            return Ok(None);
        };
        let bytes = self.bytes(text);
        let mut digest = [0u8; 64];
        let length = match hash {
            Hash::Md5 => digest_of::<md5::Md5>(bytes, &mut digest),
            Hash::Sha1 => digest_of::<sha1::Sha1>(bytes, &mut digest),
            Hash::Sha256 => digest_of::<sha2::Sha256>(bytes, &mut digest),
            Hash::Sha384 => digest_of::<sha2::Sha384>(bytes, &mut digest),
            Hash::Sha512 => digest_of::<sha2::Sha512>(bytes, &mut digest),
        }?;
        let start = self.arena.len() as u32;
        for b in &digest[..length] {
            self.arena
                .push(HEX[usize::from(b >> 4)].to_ascii_lowercase());
            self.arena
                .push(HEX[usize::from(b & 15)].to_ascii_lowercase());
        }
        Ok(Some(self.text_from(start)))
    }

    fn text_from(&self, start: u32) -> Val {
        let end = self.arena.len() as u32;
        Val::Text(ArenaText {
            text: ArenaSpan { start, end },
            lang: None,
        })
    }

    /// ENCODE_FOR_URI: replaces each byte that is not unreserved (RFC 3986 §2.3) by a percent sign and two digits.
    pub(super) fn encode(&mut self, ctx: &EvalContext<'_>, v: Val) -> Result<Maybe> {
        let Some(text) = self.as_text(ctx, v).map(|t| t.text) else {
            return Ok(None);
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
        let mut long = 0;
        for block in self.bytes(text).chunks(BLOCK) {
            worked(WORK * block.len())?;
            long += block.len() + 2 * block.iter().filter(|&&b| !plain(b)).count();
        }
        self.room(long)?;
        self.arena.reserve(long);
        let start = self.arena.len() as u32;
        for at in text.start as usize..text.end as usize {
            if at % BLOCK == 0 {
                worked(WORK * BLOCK)?;
            }
            let b = self.arena[at];
            if plain(b) {
                self.arena.push(b);
            } else {
                let hex = [b'%', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]];
                self.arena.extend_from_slice(&hex);
            }
        }
        Ok(Some(self.text_from(start)))
    }

    pub(super) fn make(
        &mut self,
        ctx: &EvalContext<'_>,
        made: MadeTerms,
        first: Val,
        rest: &[Val],
    ) -> Result<Maybe> {
        if let (MadeTerms::Triple, [second, third]) = (made, rest) {
            return Ok(self.triple(ctx, [first, *second, *third]));
        }
        let (second, third) = (rest.first().copied(), rest.get(1).copied());
        let Some(text) = self.simple(ctx, first) else {
            return Ok(None);
        };
        if made == MadeTerms::Blank {
            return Ok(self.blank(ctx, text, second));
        }
        let Some(second) = second else {
            return Ok(None);
        };
        self.room(2 * (text.end - text.start) as usize)?;
        let mut bytes = std::mem::take(&mut self.other);
        bytes.clear();
        let complete = self.literal(ctx, made, text, second, third, &mut bytes);
        self.other = bytes;
        Ok(complete.map(|()| {
            std::mem::swap(&mut self.term, &mut self.other);
            self.held_term()
        }))
    }

    /// Appends the canonical bytes of a literal; `None` for a datatype that needs a language tag.
    fn literal(
        &mut self,
        ctx: &EvalContext<'_>,
        made: MadeTerms,
        text: ArenaSpan,
        second: Val,
        third: Option<Val>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if made == MadeTerms::Typed {
            self.canonical(ctx, second);
            let Parts::Iri(datatype) = term::parts(&self.term)? else {
                return None;
            };
            // Literals of these datatypes have a language tag, which STRDT does not give.
            if datatype == rdf::LANG_STRING.as_str() || datatype == rdf::DIR_LANG_STRING.as_str() {
                return None;
            }
            term::push_typed(self.str(text), datatype, out);
            return Some(());
        }
        let tag = self.simple(ctx, second)?;
        let tag = self.str(tag);
        if oxilangtag::LanguageTag::parse(tag).is_err() {
            return None;
        }
        let tag = tag.to_owned();
        let whole = match third {
            Some(direction) => {
                let direction = self.simple(ctx, direction)?;
                let direction = self.str(direction);
                if direction != "ltr" && direction != "rtl" {
                    return None;
                }
                format!("{tag}--{direction}")
            }
            None => tag,
        };
        term::push_lang(self.str(text), &whole, out);
        Some(())
    }

    fn triple(&mut self, ctx: &EvalContext<'_>, parts: [Val; 3]) -> Maybe {
        let mut bytes = std::mem::take(&mut self.other);
        bytes.clear();
        bytes.push(term::TRIPLE);
        for (i, part) in parts.into_iter().enumerate() {
            self.canonical(ctx, part);
            let fits = match self.term.first() {
                Some(&term::IRI) => true,
                Some(&term::BLANK) => i != 1,
                Some(&term::TRIPLE) => {
                    i == 2 && term::triple_nesting(&self.term) < term::MAX_TRIPLE_NESTING
                }
                Some(_) => i == 2,
                None => false,
            };
            if !fits {
                self.other = bytes;
                return None;
            }
            bytes.extend_from_slice(&(self.term.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&self.term);
        }
        self.other = bytes;
        std::mem::swap(&mut self.term, &mut self.other);
        Some(self.held_term())
    }

    /// BNODE with a label: one blank node for each label and solution. The solution is identified by `solution`, if the
    /// plan provides a value that is unique to it, otherwise by the row.
    fn blank(&mut self, ctx: &EvalContext<'_>, label: ArenaSpan, solution: Option<Val>) -> Maybe {
        let seed = match solution {
            Some(v) => {
                self.canonical(ctx, v);
                xxhash_rust::xxh3::xxh3_64(&self.term)
            }
            None => *self.row_seed.get_or_insert_with(rand::random),
        };
        let name = xxhash_rust::xxh3::xxh3_128_with_seed(self.bytes(label), seed);
        self.term.clear();
        term::push_blank("", &mut self.term);
        // Writing to a vector cannot fail.
        let _ = write!(self.term, "{name:032x}");
        Some(self.held_term())
    }
}

const HEX: [u8; 16] = *b"0123456789ABCDEF";

/// Bytes of a text that are hashed between two checks of the deadline.
const BLOCK: usize = 1 << 14;
/// How many times slower hashing or encoding a byte is than copying it.
const WORK: usize = 8;

/// Writes the digest of a text to `out`; returns its length.
fn digest_of<D: Digest>(text: &[u8], out: &mut [u8; 64]) -> Result<usize> {
    let mut digest = D::new();
    for block in text.chunks(BLOCK) {
        worked(WORK * block.len())?;
        digest.update(block);
    }
    let digest = digest.finalize();
    let n = digest.len().min(out.len());
    out[..n].copy_from_slice(&digest[..n]);
    Ok(n)
}

/// A random UUID (RFC 9562, version 4).
fn uuid(random: u128, out: &mut Vec<u8>) -> std::io::Result<()> {
    let version = random & !(0xF << 76) | 4 << 76;
    let n = version & !(3 << 62) | 2 << 62;
    let hex = format!("{n:032x}");
    let part = |from, to| &hex[from..to];
    write!(
        out,
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}
