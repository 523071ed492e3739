//! Writes things as statements.

use super::scale::{BsbmLayout, RandomStream, Unit};
use super::{COUNTRIES, COUNTRY, INSTANCES, TODAY, country};
use crate::date::Day;
use crate::decimal;
use crate::emit::TermPiece::{Number, Text};
use crate::emit::{StatementEmitter, TermPiece, constants};
use crate::random::SplitMix;
use crate::real::{deviate, within_two};
use crate::words::Words;
use jindou_model::term::STRING;
use jindou_model::{Progress, QuadSink, Result, Span};

const USD: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/USD";

macro_rules! bsbm {
    ($name:literal) => {
        concat!(
            "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/",
            $name
        )
    };
}

constants! {
    TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    LABEL = "http://www.w3.org/2000/01/rdf-schema#label",
    COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment",
    SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf",
    HOMEPAGE = "http://xmlns.com/foaf/0.1/homepage",
    NAME = "http://xmlns.com/foaf/0.1/name",
    MBOX = "http://xmlns.com/foaf/0.1/mbox_sha1sum",
    PUBLISHER = "http://purl.org/dc/elements/1.1/publisher",
    DATE = "http://purl.org/dc/elements/1.1/date",
    TITLE = "http://purl.org/dc/elements/1.1/title",
    REVIEWER = "http://purl.org/stuff/rev#reviewer",
    TEXT = "http://purl.org/stuff/rev#text",
    COUNTRY_OF = bsbm!("country"),
    FEATURE = bsbm!("productFeature"),
    PRODUCER = bsbm!("producer"),
    PRODUCT = bsbm!("product"),
    VENDOR = bsbm!("vendor"),
    PRICE = bsbm!("price"),
    VALID_FROM = bsbm!("validFrom"),
    VALID_TO = bsbm!("validTo"),
    DELIVERY_DAYS = bsbm!("deliveryDays"),
    WEBPAGE = bsbm!("offerWebpage"),
    REVIEW_FOR = bsbm!("reviewFor"),
    REVIEW_DATE = bsbm!("reviewDate"),
    RATING_1 = bsbm!("rating1"),
    RATING_2 = bsbm!("rating2"),
    RATING_3 = bsbm!("rating3"),
    RATING_4 = bsbm!("rating4"),
    NUMERIC_1 = bsbm!("productPropertyNumeric1"),
    NUMERIC_2 = bsbm!("productPropertyNumeric2"),
    NUMERIC_3 = bsbm!("productPropertyNumeric3"),
    NUMERIC_4 = bsbm!("productPropertyNumeric4"),
    NUMERIC_5 = bsbm!("productPropertyNumeric5"),
    NUMERIC_6 = bsbm!("productPropertyNumeric6"),
    TEXTUAL_1 = bsbm!("productPropertyTextual1"),
    TEXTUAL_2 = bsbm!("productPropertyTextual2"),
    TEXTUAL_3 = bsbm!("productPropertyTextual3"),
    TEXTUAL_4 = bsbm!("productPropertyTextual4"),
    TEXTUAL_5 = bsbm!("productPropertyTextual5"),
    TEXTUAL_6 = bsbm!("productPropertyTextual6"),
    A_PRODUCT_TYPE = bsbm!("ProductType"),
    A_FEATURE = bsbm!("ProductFeature"),
    A_PRODUCER = bsbm!("Producer"),
    A_PRODUCT = bsbm!("Product"),
    A_VENDOR = bsbm!("Vendor"),
    AN_OFFER = bsbm!("Offer"),
    A_REVIEW = bsbm!("Review"),
    A_PERSON = "http://xmlns.com/foaf/0.1/Person",
    INSTITUTION = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/StandardizationInstitution1",
}

const NUMERIC: [usize; 6] = [
    NUMERIC_1, NUMERIC_2, NUMERIC_3, NUMERIC_4, NUMERIC_5, NUMERIC_6,
];
const TEXTUAL: [usize; 6] = [
    TEXTUAL_1, TEXTUAL_2, TEXTUAL_3, TEXTUAL_4, TEXTUAL_5, TEXTUAL_6,
];
const RATINGS: [usize; 4] = [RATING_1, RATING_2, RATING_3, RATING_4];

/// Combinations of the optional properties 4, 5 and 6, and the number of products out of 100 that have exactly this
/// combination.
const OPTIONAL: [([bool; 3], u32); 6] = [
    ([false, false, false], 27),
    ([true, true, false], 37),
    ([true, false, false], 8),
    ([false, true, false], 11),
    ([false, true, true], 6),
    ([false, false, true], 11),
];

impl BsbmLayout {
    /// IRI of a product type.
    pub(crate) fn type_iri(&self, number: u32) -> String {
        format!("{INSTANCES}ProductType{}", number + 1)
    }

    /// IRI of a product feature.
    pub(crate) fn feature_iri(&self, number: u32) -> String {
        format!("{INSTANCES}ProductFeature{}", number + 1)
    }

    /// IRI of a producer.
    pub(crate) fn producer_iri(&self, number: u32) -> String {
        let n = number + 1;
        format!("{INSTANCES}dataFromProducer{n}/Producer{n}")
    }

    /// IRI of a product.
    pub(crate) fn product_iri(&self, number: u32) -> String {
        let producer = self.producers.owner(number) + 1;
        format!(
            "{INSTANCES}dataFromProducer{producer}/Product{}",
            number + 1
        )
    }

    /// IRI of an offer.
    pub(crate) fn offer_iri(&self, number: u32) -> String {
        let vendor = self.vendors.owner(number) + 1;
        format!("{INSTANCES}dataFromVendor{vendor}/Offer{}", number + 1)
    }

    /// IRI of a review.
    pub(crate) fn review_iri(&self, number: u32) -> String {
        let site = self.sites.owner(self.reviewers.owner(number)) + 1;
        format!("{INSTANCES}dataFromRatingSite{site}/Review{}", number + 1)
    }
}

/// Appends the label of a product: one to three words.
pub(super) fn push_label(layout: &BsbmLayout, words: &Words, product: u32, out: &mut Vec<u8>) {
    let mut random = layout.stream(RandomStream::Label, product);
    for i in 0..random.range(1, 3) {
        if i > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(words.get(random.below(words.len())).as_bytes());
    }
}

fn one(number: u32) -> TermPiece<'static> {
    Number(u64::from(number) + 1)
}

pub(super) struct BsbmWriter<'a> {
    layout: &'a BsbmLayout,
    words: &'a Words,
    out: StatementEmitter<'a>,
}

impl<'a> BsbmWriter<'a> {
    pub(super) fn new(
        layout: &'a BsbmLayout,
        words: &'a Words,
        sink: &'a mut dyn QuadSink,
        progress: &'a Progress,
    ) -> Self {
        Self {
            layout,
            words,
            out: StatementEmitter::new(CONSTANTS, sink, progress),
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    pub(super) fn unit(&mut self, unit: &Unit) -> Result<()> {
        let (range, one): (_, fn(&mut Self, u32) -> Result<()>) = match unit {
            Unit::Types(r) => (r, Self::product_type),
            Unit::Features(r) => (r, Self::feature),
            Unit::Producers(r) => (r, Self::producer),
            Unit::Vendors(r) => (r, Self::vendor),
            Unit::Offers(r) => (r, Self::offer),
            Unit::Reviewers(r) => (r, Self::reviewer),
        };
        range.clone().try_for_each(|thing| one(self, thing))
    }

    fn constant(&mut self, subject: Span, property: usize, object: usize) {
        let object = self.out.constant(object);
        self.out.say(subject, property, object);
    }

    fn words(&mut self, subject: Span, property: usize, min: u32, max: u32, random: &mut SplitMix) {
        let text = self.out.words(random.range(min, max), self.words, random);
        self.out.say(subject, property, text);
    }

    fn date(&mut self, subject: Span, day: Day) {
        let date = self.out.date(day);
        self.out.say(subject, DATE, date);
    }

    fn country(&mut self, subject: Span, random: &mut SplitMix) -> &'static str {
        let (name, _, language) = COUNTRY[country(random)];
        let iri = self.out.iri(&[Text(COUNTRIES), Text(name)]);
        self.out.say(subject, COUNTRY_OF, iri);
        language
    }

    fn type_span(&mut self, number: u32) -> Span {
        self.out
            .iri(&[Text(INSTANCES), Text("ProductType"), one(number)])
    }

    fn feature_span(&mut self, number: u32) -> Span {
        self.out
            .iri(&[Text(INSTANCES), Text("ProductFeature"), one(number)])
    }

    fn product_span(&mut self, number: u32) -> Span {
        let producer = self.layout.producers.owner(number);
        self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromProducer"),
            one(producer),
            Text("/Product"),
            one(number),
        ])
    }

    fn vendor_span(&mut self, number: u32) -> Span {
        self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromVendor"),
            one(number),
            Text("/Vendor"),
            one(number),
        ])
    }

    fn product_type(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Type, number);
        let s = self.type_span(number);
        self.constant(s, TYPE, A_PRODUCT_TYPE);
        if let Some(parent) = self.layout.types.parent(number) {
            let parent = self.type_span(parent);
            self.out.say(s, SUBCLASS, parent);
            self.words(s, LABEL, 1, 3, &mut random);
            self.words(s, COMMENT, 20, 50, &mut random);
        } else {
            let label = self.out.string(&[Text("Thing")]);
            self.out.say(s, LABEL, label);
            let comment = self
                .out
                .string(&[Text("What every product is an instance of")]);
            self.out.say(s, COMMENT, comment);
        }
        self.standard(s, &mut random)
    }

    fn feature(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Feature, number);
        let s = self.feature_span(number);
        self.constant(s, TYPE, A_FEATURE);
        self.words(s, LABEL, 1, 3, &mut random);
        self.words(s, COMMENT, 20, 50, &mut random);
        self.standard(s, &mut random)
    }

    /// Adds the publisher and date of a type or feature: a standardization institution, and one of the 33 days from
    /// 2000-06-20 on.
    fn standard(&mut self, s: Span, random: &mut SplitMix) -> Result<()> {
        self.constant(s, PUBLISHER, INSTITUTION);
        self.date(s, Day(11_128 + random.below(33) as i32));
        self.out.end_entity()
    }

    fn producer(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Producer, number);
        let s = self.producer_span(number);
        self.constant(s, TYPE, A_PRODUCER);
        self.words(s, LABEL, 1, 3, &mut random);
        self.words(s, COMMENT, 20, 50, &mut random);
        let page = self
            .out
            .iri(&[Text("http://www.Producer"), one(number), Text(".com/")]);
        self.out.say(s, HOMEPAGE, page);
        self.country(s, &mut random);
        self.out.say(s, PUBLISHER, s);
        // One of the days of five years from 2000-07-23 on.
        self.date(s, Day(11_161 + random.below(1826) as i32));
        self.out.end_entity()?;
        self.layout
            .producers
            .range(number)
            .try_for_each(|product| self.product(number, product))
    }

    fn producer_span(&mut self, number: u32) -> Span {
        self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromProducer"),
            one(number),
            Text("/Producer"),
            one(number),
        ])
    }

    fn product(&mut self, producer: u32, number: u32) -> Result<()> {
        let layout = self.layout;
        let mut random = layout.stream(RandomStream::Product, number);
        let s = self.product_span(number);
        self.constant(s, TYPE, A_PRODUCT);
        let words = self.words;
        let label = self
            .out
            .term(STRING, |out| push_label(layout, words, number, out));
        self.out.say(s, LABEL, label);
        self.words(s, COMMENT, 50, 150, &mut random);
        let leaf = layout.leaf(number);
        for t in layout.types.path(leaf) {
            let t = self.type_span(t);
            self.out.say(s, TYPE, t);
        }
        let has = optional(&mut random);
        for (i, property) in NUMERIC.into_iter().enumerate() {
            if i < 3 || has[i - 3] {
                // Half of a normal distribution, from 1 to 2000.
                let value = 1 + (within_two(&mut random).abs() * 1000.0) as u64;
                let value = self.out.integer(value.min(2000));
                self.out.say(s, property, value);
            }
        }
        let has = optional(&mut random);
        for (i, property) in TEXTUAL.into_iter().enumerate() {
            if i < 3 || has[i - 3] {
                self.words(s, property, 3, 15, &mut random);
            }
        }
        for t in layout.types.path(leaf) {
            for feature in layout.types.features_of(t) {
                if random.chance(1, 4) {
                    let feature = self.feature_span(feature);
                    self.out.say(s, FEATURE, feature);
                }
            }
        }
        let producer = self.producer_span(producer);
        self.out.say(s, PRODUCER, producer);
        self.out.say(s, PUBLISHER, producer);
        // A day from 2000-09-20 to 2007-01-18.
        self.date(s, Day(11_220 + random.below(2311) as i32));
        self.out.end_entity()
    }

    fn vendor(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Vendor, number);
        let s = self.vendor_span(number);
        self.constant(s, TYPE, A_VENDOR);
        self.words(s, LABEL, 1, 3, &mut random);
        self.words(s, COMMENT, 20, 50, &mut random);
        let page = self
            .out
            .iri(&[Text("http://www.vendor"), one(number), Text(".com/")]);
        self.out.say(s, HOMEPAGE, page);
        self.country(s, &mut random);
        self.out.say(s, PUBLISHER, s);
        self.date(s, Day(TODAY.0 - 1 - random.below(97) as i32));
        self.out.end_entity()
    }

    fn offer(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Offer, number);
        let vendor_number = self.layout.vendors.owner(number);
        let base = [
            Text(INSTANCES),
            Text("dataFromVendor"),
            one(vendor_number),
            Text("/Offer"),
            one(number),
        ];
        let s = self.out.iri(&base);
        self.constant(s, TYPE, AN_OFFER);
        let product = self.layout.wanted(&mut random);
        let product = self.product_span(product);
        self.out.say(s, PRODUCT, product);
        let vendor = self.vendor_span(vendor_number);
        self.out.say(s, VENDOR, vendor);
        let cents = 500 + random.below(999_501);
        let price = self.out.typed(USD, |out| {
            decimal::push(out, (cents / 100).into());
            out.push(b'.');
            decimal::push_padded(out, (cents % 100).into(), 2);
        });
        self.out.say(s, PRICE, price);
        let day = TODAY.0 - 1 - random.below(97) as i32;
        let from = self.out.date_time(Day(day - random.below(91) as i32));
        self.out.say(s, VALID_FROM, from);
        let to = self.out.date_time(Day(day + random.range(7, 90) as i32));
        self.out.say(s, VALID_TO, to);
        let days = (3.45 + 1.35 * deviate(&mut random))
            .round()
            .clamp(1.0, 21.0);
        let days = self.out.integer(days as u64);
        self.out.say(s, DELIVERY_DAYS, days);
        let [a, b, c, d, e] = base;
        let page = self.out.iri(&[a, b, c, d, e, Text("/")]);
        self.out.say(s, WEBPAGE, page);
        self.out.say(s, PUBLISHER, vendor);
        self.date(s, Day(day));
        self.out.end_entity()
    }

    fn reviewer(&mut self, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Reviewer, number);
        let site = self.layout.sites.owner(number);
        let s = self.reviewer_span(site, number);
        self.constant(s, TYPE, A_PERSON);
        let words = self.words;
        let name = self
            .out
            .term(STRING, |out| push_name(words, &mut random, out));
        self.out.say(s, NAME, name);
        let sum = self.out.term(STRING, |out| {
            for _ in 0..20 {
                // Like the original, writes a byte below 16 with one digit.
                let byte = random.below(256) as u8;
                if byte > 15 {
                    out.push(b"0123456789abcdef"[usize::from(byte >> 4)]);
                }
                out.push(b"0123456789abcdef"[usize::from(byte & 15)]);
            }
        });
        self.out.say(s, MBOX, sum);
        let language = self.country(s, &mut random);
        let publisher = self.site_span(site);
        self.out.say(s, PUBLISHER, publisher);
        self.date(s, Day(TODAY.0 + random.range(2, 94) as i32));
        self.out.end_entity()?;
        self.layout
            .reviewers
            .range(number)
            .try_for_each(|review| self.review(site, number, language, review))
    }

    fn reviewer_span(&mut self, site: u32, number: u32) -> Span {
        self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromRatingSite"),
            one(site),
            Text("/Reviewer"),
            one(number),
        ])
    }

    fn site_span(&mut self, site: u32) -> Span {
        self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromRatingSite"),
            one(site),
            Text("/RatingSite"),
            one(site),
        ])
    }

    fn review(&mut self, site: u32, reviewer: u32, language: &str, number: u32) -> Result<()> {
        let mut random = self.layout.stream(RandomStream::Review, number);
        let s = self.out.iri(&[
            Text(INSTANCES),
            Text("dataFromRatingSite"),
            one(site),
            Text("/Review"),
            one(number),
        ]);
        self.constant(s, TYPE, A_REVIEW);
        let product = self.layout.wanted(&mut random);
        let product = self.product_span(product);
        self.out.say(s, REVIEW_FOR, product);
        let reviewer = self.reviewer_span(site, reviewer);
        self.out.say(s, REVIEWER, reviewer);
        self.words(s, TITLE, 4, 15, &mut random);
        let count = random.range(50, 200);
        let text = self.out.words_in(language, count, self.words, &mut random);
        self.out.say(s, TEXT, text);
        for rating in RATINGS {
            if random.chance(7, 10) {
                let value = self.out.integer(random.range(1, 10).into());
                self.out.say(s, rating, value);
            }
        }
        let ago = 1 + random.below(365);
        let written = self.out.date_time(Day(TODAY.0 - ago as i32));
        self.out.say(s, REVIEW_DATE, written);
        let publisher = self.site_span(site);
        self.out.say(s, PUBLISHER, publisher);
        self.date(s, Day(TODAY.0 - 1 - random.below(ago) as i32));
        self.out.end_entity()
    }
}

/// Appends one name, or two names joined by a hyphen.
fn push_name(words: &Words, random: &mut SplitMix, out: &mut Vec<u8>) {
    for i in 0..random.range(1, 2) {
        if i > 0 {
            out.push(b'-');
        }
        let word = words.get(random.below(words.len())).as_bytes();
        out.extend(word.iter().take(1).map(u8::to_ascii_uppercase));
        out.extend(word.iter().skip(1).filter(|b| b.is_ascii_alphabetic()));
    }
}

fn optional(random: &mut SplitMix) -> [bool; 3] {
    let mut rest = random.below(100);
    for (has, of_100) in OPTIONAL {
        if rest < of_100 {
            return has;
        }
        rest -= of_100;
    }
    [false; 3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_of_a_hundred() {
        assert_eq!(OPTIONAL.iter().map(|(_, n)| n).sum::<u32>(), 100);
        assert_eq!(COUNTRY.iter().map(|(_, n, _)| n).sum::<u32>(), 20);
        assert_eq!(TODAY, Day::from_date(2008, 6, 20).unwrap());
        assert_eq!(Day(11_128), Day::from_date(2000, 6, 20).unwrap());
        assert!(CONSTANTS[FEATURE].starts_with(crate::bsbm::VOCABULARY));
    }
}
