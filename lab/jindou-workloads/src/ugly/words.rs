//! Words in thirty languages, made of random syllables: they have the right scripts but no meaning.

use crate::random::SplitMix;

/// The 30 language tags, the most common ones first.
pub const LANGUAGES: [&str; 30] = [
    "en", "de", "fr", "ru", "es", "ja", "zh", "it", "pt", "ar", "en-us", "nl", "pl", "sv", "uk",
    "vi", "cs", "fi", "tr", "ko", "hu", "he", "el", "en-gb", "pt-br", "zh-hant", "hi", "th",
    "de-at", "es-419",
];

const PLAIN: &[&str] = &[
    "an", "ber", "cor", "da", "el", "fin", "ga", "ham", "is", "jo", "ka", "lon", "mar", "no", "or",
    "pe", "qua", "rin", "sta", "ton", "ul", "ver", "wes", "xi", "ya", "zan",
];
const ACCENTED: &[&str] = &[
    "bü", "čá", "dě", "éa", "fø", "gå", "hí", "ïe", "ła", "mä", "ño", "ọ́", "ře", "şi", "tö", "ğu",
    "vő", "wiê", "ý", "ža", "ßen", "ção", "œu", "đư", "an", "el", "or", "ta",
];
const GREEK: &[&str] = &[
    "α", "βου", "γο", "δη", "εί", "ζω", "θε", "κα", "λό", "μη", "νι", "πο", "ρα", "σί", "τη", "ως",
];
const CYRILLIC: &[&str] = &[
    "ба", "во", "гра", "де", "жи", "зна", "ки", "ло", "мы", "но", "пе", "ри", "ста", "ту", "фи",
    "хо", "це", "ша", "їв", "ья",
];
const ARABIC: &[&str] = &[
    "ال", "با", "تي", "جم", "حر", "خا", "دو", "رس", "سل", "شع", "عر", "فق", "كت", "مد", "نو", "ية",
];
const HEBREW: &[&str] = &[
    "אב", "בי", "גד", "דר", "הל", "וי", "זמ", "חל", "טו", "יר", "כל", "לב", "מש", "נו", "שי", "ת",
];
const DEVANAGARI: &[&str] = &[
    "अ",
    "का",
    "खि",
    "गो",
    "चे",
    "जा",
    "ता",
    "दि",
    "ना",
    "पु",
    "भा",
    "मे",
    "रा",
    "ली",
    "शि",
    "हिं",
];
const THAI: &[&str] = &[
    "กา",
    "ขอ",
    "คน",
    "งา",
    "จะ",
    "ชื่",
    "ดี",
    "ที่",
    "นา",
    "ปี",
    "พร",
    "มา",
    "ไร",
    "ลา",
    "วั",
    "หน",
];
const HAN: &[&str] = &[
    "山", "水", "人", "大", "中", "國", "国", "學", "学", "城", "市", "河", "王", "李", "天", "雲",
    "北", "南", "東", "东", "金", "石", "文", "史",
];
const KANA: &[&str] = &[
    "あ", "か", "さ", "た", "な", "は", "ま", "や", "ら", "ン", "ス", "ト", "リ", "ー", "東", "京",
    "日", "本",
];
const HANGUL: &[&str] = &[
    "가", "나", "다", "라", "마", "바", "사", "아", "자", "하", "서", "울", "한", "국", "의", "시",
];

/// For a language: its syllables, the largest number of syllables in a word, and whether spaces separate words.
fn script(language: &str) -> (&'static [&'static str], u32, bool) {
    match language.split('-').next().unwrap_or_default() {
        "en" | "nl" | "it" => (PLAIN, 4, true),
        "ru" | "uk" => (CYRILLIC, 4, true),
        "el" => (GREEK, 4, true),
        "ar" => (ARABIC, 3, true),
        "he" => (HEBREW, 3, true),
        "hi" => (DEVANAGARI, 3, true),
        "th" => (THAI, 4, false),
        "zh" => (HAN, 3, false),
        "ja" => (KANA, 4, false),
        "ko" => (HANGUL, 3, true),
        _ => (ACCENTED, 4, true),
    }
}

/// Appends a lower-case ASCII word.
pub(super) fn push_word(random: &mut SplitMix, out: &mut Vec<u8>) {
    for _ in 0..random.range(2, 3) {
        out.extend_from_slice(random.pick(PLAIN).as_bytes());
    }
}

/// Appends an ASCII word with an upper-case initial.
pub(super) fn push_name(random: &mut SplitMix, out: &mut Vec<u8>) {
    let at = out.len();
    push_word(random, out);
    out[at..]
        .first_mut()
        .into_iter()
        .for_each(u8::make_ascii_uppercase);
}

/// Appends a word with letters outside ASCII.
pub(super) fn push_foreign(random: &mut SplitMix, out: &mut Vec<u8>) {
    let syllables = *random.pick(&[ACCENTED, GREEK, CYRILLIC, HAN, KANA, ARABIC]);
    for _ in 0..random.range(2, 4) {
        out.extend_from_slice(random.pick(syllables).as_bytes());
    }
}

/// Appends `words` words of a language.
pub(super) fn push_text(random: &mut SplitMix, language: &str, words: u32, out: &mut Vec<u8>) {
    let (syllables, longest, spaces) = script(language);
    for word in 0..words {
        if word > 0 && spaces {
            out.push(b' ');
        }
        for _ in 0..random.range(1, longest) {
            out.extend_from_slice(random.pick(syllables).as_bytes());
        }
    }
}
