//! Keywords, and which construct each of them begins.

use super::{GroupPart, OpeningBracket, PlaceWalk};
use crate::keyword::Keyword;

impl PlaceWalk<'_> {
    /// Processes a keyword. False if the word is a term here.
    pub(super) fn word(&mut self, word: Keyword) -> bool {
        use Keyword as K;
        if matches!(word, K::True | K::False) {
            return false;
        }
        let from = self.from.is_some();
        let group = self.top();
        if matches!(group.part, GroupPart::Data) {
            return true;
        }
        // Keywords without an arm of their own, such as functions in expressions, `AS`, `IN` and `DESC`, change
        // nothing.
        let next = match word {
            K::Prefix => GroupPart::PrefixName,
            K::Base => GroupPart::BaseIri,
            K::Select => {
                if group.sign != OpeningBracket::Top {
                    group.own = true;
                }
                GroupPart::Projection
            }
            K::Describe => GroupPart::Projection,
            K::Filter | K::Bind | K::Having | K::By => GroupPart::Expression,
            K::Exists | K::Not if group.part == GroupPart::Expression => return true,
            K::Values => {
                self.values = true;
                GroupPart::Columns
            }
            K::Graph => GroupPart::GraphName,
            K::From | K::Using => {
                self.from = Some(false);
                GroupPart::GraphName
            }
            K::Named if from => {
                self.from = Some(true);
                return true;
            }
            K::With | K::Into | K::To => GroupPart::GraphName,
            K::Service => {
                self.service = true;
                GroupPart::ServiceName
            }
            K::Silent => return true,
            K::Construct | K::Insert | K::Delete => {
                self.template = true;
                GroupPart::Word
            }
            K::Where => {
                self.template = false;
                GroupPart::Word
            }
            K::Optional
            | K::Minus
            | K::Union
            | K::Lateral
            | K::Exists
            | K::Not
            | K::Ask
            | K::Data
            | K::Group
            | K::Order
            | K::Limit
            | K::Offset
            | K::Version => GroupPart::Word,
            K::Load | K::Clear | K::Drop | K::Create | K::Add | K::Move | K::Copy => {
                GroupPart::Word
            }
            _ => {
                // An unknown word where a triple is expected: a keyword that is being written, or a prefixed name that
                // lacks its colon so far.
                let triple = matches!(
                    group.part,
                    GroupPart::Subject | GroupPart::Predicate | GroupPart::Object
                );
                if triple && group.sign == OpeningBracket::Brace && word != K::Unknown {
                    group.part = GroupPart::Expression;
                }
                return true;
            }
        };
        let group = self.top();
        // Inside `[` and `{|` no keyword begins a clause.
        if matches!(
            group.sign,
            OpeningBracket::Bracket | OpeningBracket::Annotation
        ) {
            return true;
        }
        if group.sign == OpeningBracket::Paren && group.part == GroupPart::Object {
            return true;
        }
        if group.sign == OpeningBracket::Paren && next == GroupPart::Word {
            return true;
        }
        group.part = next;
        true
    }
}
