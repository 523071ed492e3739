//! The curves and tables that SP²Bench published.

use crate::random::SplitMix;
use crate::real::exp;

/// Classes of documents, in the order in which the documents of a year are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentClass {
    Journal,
    Article,
    Proceedings,
    Inproceedings,
    Book,
    Incollection,
    PhdThesis,
    MastersThesis,
    Www,
}

impl DocumentClass {
    pub(super) const ALL: [Self; 9] = [
        Self::Journal,
        Self::Article,
        Self::Proceedings,
        Self::Inproceedings,
        Self::Book,
        Self::Incollection,
        Self::PhdThesis,
        Self::MastersThesis,
        Self::Www,
    ];
}

/// Probability of each attribute for documents of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttributeShares {
    pub(super) summary: f64,
    pub(super) address: f64,
    pub(super) author: f64,
    pub(super) booktitle: f64,
    pub(super) cdrom: f64,
    pub(super) chapter: f64,
    pub(super) cite: f64,
    pub(super) crossref: f64,
    pub(super) editor: f64,
    pub(super) ee: f64,
    pub(super) isbn: f64,
    pub(super) journal: f64,
    pub(super) month: f64,
    pub(super) note: f64,
    pub(super) number: f64,
    pub(super) pages: f64,
    pub(super) publisher: f64,
    pub(super) school: f64,
    pub(super) series: f64,
    pub(super) url: f64,
    pub(super) volume: f64,
    pub(super) year: f64,
}

const NONE: AttributeShares = AttributeShares {
    summary: 0.0,
    address: 0.0,
    author: 0.0,
    booktitle: 0.0,
    cdrom: 0.0,
    chapter: 0.0,
    cite: 0.0,
    crossref: 0.0,
    editor: 0.0,
    ee: 0.0,
    isbn: 0.0,
    journal: 0.0,
    month: 0.0,
    note: 0.0,
    number: 0.0,
    pages: 0.0,
    publisher: 0.0,
    school: 0.0,
    series: 0.0,
    url: 0.0,
    volume: 0.0,
    year: 0.0,
};

const JOURNAL: AttributeShares = AttributeShares {
    editor: 0.7,
    number: 0.9224,
    volume: 0.9982,
    year: 1.0,
    ..NONE
};

const ARTICLE: AttributeShares = AttributeShares {
    summary: 0.01,
    author: 0.9895,
    booktitle: 0.0006,
    cdrom: 0.0112,
    cite: 0.0048,
    crossref: 0.0006,
    ee: 0.6781,
    journal: 0.9994,
    month: 0.0065,
    note: 0.0297,
    pages: 0.9261,
    publisher: 0.0006,
    url: 0.9986,
    ..NONE
};

const INPROCEEDINGS: AttributeShares = AttributeShares {
    summary: 0.01,
    author: 0.997,
    booktitle: 1.0,
    cdrom: 0.0162,
    cite: 0.0104,
    crossref: 0.8003,
    ee: 0.6519,
    number: 0.0001,
    pages: 0.9489,
    url: 1.0,
    year: 1.0,
    ..NONE
};

const PROCEEDINGS: AttributeShares = AttributeShares {
    address: 0.0004,
    author: 0.0001,
    booktitle: 0.9579,
    cite: 0.0001,
    crossref: 0.0016,
    editor: 0.7992,
    ee: 0.0019,
    isbn: 0.8592,
    journal: 0.0004,
    month: 0.0001,
    note: 0.0002,
    number: 0.0009,
    publisher: 0.9737,
    series: 0.5791,
    url: 0.986,
    volume: 0.567,
    year: 1.0,
    ..NONE
};

const BOOK: AttributeShares = AttributeShares {
    author: 0.8937,
    booktitle: 0.0183,
    cdrom: 0.0032,
    cite: 0.0079,
    editor: 0.104,
    ee: 0.0079,
    isbn: 0.9294,
    month: 0.0008,
    publisher: 0.9992,
    series: 0.5365,
    url: 0.2373,
    volume: 0.5024,
    year: 1.0,
    ..NONE
};

const INCOLLECTION: AttributeShares = AttributeShares {
    author: 0.8459,
    booktitle: 1.0,
    cdrom: 0.0138,
    chapter: 0.0005,
    cite: 0.0047,
    crossref: 0.6951,
    ee: 0.361,
    isbn: 0.0073,
    pages: 0.6849,
    publisher: 0.0237,
    url: 0.9992,
    year: 1.0,
    ..NONE
};

const PHD_THESIS: AttributeShares = AttributeShares {
    author: 1.0,
    ee: 0.1444,
    isbn: 0.0222,
    month: 0.0333,
    number: 0.0333,
    publisher: 0.0444,
    school: 1.0,
    series: 0.0222,
    url: 0.0222,
    volume: 0.0111,
    year: 1.0,
    ..NONE
};

const MASTERS_THESIS: AttributeShares = AttributeShares {
    author: 1.0,
    school: 1.0,
    url: 0.375,
    year: 1.0,
    ..NONE
};

const WWW: AttributeShares = AttributeShares {
    author: 0.9973,
    booktitle: 0.0001,
    editor: 0.0004,
    note: 0.0273,
    url: 0.9624,
    year: 0.0011,
    ..NONE
};

impl DocumentClass {
    /// The probabilities of this class's attributes. Titles are not included, since every document has one.
    pub(super) const fn attributes(self) -> AttributeShares {
        match self {
            Self::Journal => JOURNAL,
            Self::Article => ARTICLE,
            Self::Inproceedings => INPROCEEDINGS,
            Self::Proceedings => PROCEEDINGS,
            Self::Book => BOOK,
            Self::Incollection => INCOLLECTION,
            Self::PhdThesis => PHD_THESIS,
            Self::MastersThesis => MASTERS_THESIS,
            Self::Www => WWW,
        }
    }
}

/// a / (1 + b · e^(−c · (year − from))) + d
fn logistic(year: u32, [a, b, c, d]: [f64; 4], from: u32) -> f64 {
    a / (1.0 + b * exp(-c * (f64::from(year) - f64::from(from)))) + d
}

/// A year, with the numbers that depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Year(pub(super) u32);

impl Year {
    /// Number of documents of a class in the year; 0 for theses and web pages, whose number is drawn at random.
    pub(super) fn documents(self, class: DocumentClass) -> u32 {
        let curve = |a, b, c, from| logistic(self.0, [a, b, c, 0.0], from).round() as u32;
        match class {
            DocumentClass::Journal => curve(740.43, 426.28, 0.12, 1950),
            DocumentClass::Article if self.documents(DocumentClass::Journal) > 0 => {
                curve(58_519.12, 876.80, 0.12, 1950)
            }
            DocumentClass::Proceedings => curve(5_502.31, 1_250.26, 0.14, 1965),
            DocumentClass::Inproceedings if self.documents(DocumentClass::Proceedings) > 0 => {
                curve(337_132.34, 1_901.05, 0.15, 1965)
            }
            DocumentClass::Book => curve(52.97, 40_739.38, 0.32, 1950),
            DocumentClass::Incollection => curve(3_577.31, 196.49, 0.091, 1980),
            _ => 0,
        }
    }

    /// Number of different authors in `slots` author positions.
    pub(super) fn different(self, slots: u32) -> u32 {
        let part = logistic(self.0, [-0.667, 169.41, 0.0714, 0.84], 1936);
        (part * f64::from(slots)).round() as u32
    }

    /// Number of those among `different` authors who write for the first time.
    pub(super) fn first_time(self, different: u32) -> u32 {
        let part = logistic(self.0, [-0.293, 1740.0, 0.136, 0.628], 1936);
        (part * f64::from(different)).round() as u32
    }
}

/// Mean and standard deviation of the number of authors of a document.
pub(super) fn authors_mean_deviation(year: u32) -> (f64, f64) {
    (
        logistic(year, [2.05, 17.59, 0.11, 1.05], 1975),
        logistic(year, [1.0, 6.46, 0.10, 0.50], 1975),
    )
}

/// A random number up to `most` from 1980 on; 0 before.
pub(super) fn random_count(year: u32, most: u32, random: &mut SplitMix) -> u32 {
    if year < 1980 {
        0
    } else {
        random.range(0, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curves were fitted to DBLP. In figure 2 of the paper, 2000 has about 30,000 articles and 60,000 papers in
    /// proceedings.
    #[test]
    fn documents_grow_as_they_did() {
        assert_eq!(Year(1936).documents(DocumentClass::Article), 0);
        assert_eq!(Year(1940).documents(DocumentClass::Journal), 1);
        let articles = Year(2000).documents(DocumentClass::Article);
        let papers = Year(2000).documents(DocumentClass::Inproceedings);
        assert!((15_000..35_000).contains(&articles), "{articles}");
        assert!((25_000..70_000).contains(&papers), "{papers}");
    }
}
