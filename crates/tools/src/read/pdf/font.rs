//! Fonts: which text a string of codes shows, and how wide it is.

use std::collections::HashMap;

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1252};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};

use super::cmap::CMap;
use super::glyph;

/// Widths beyond this are left out: more than a font can have.
const WIDTHS_MAX: usize = 70_000;

/// A font as far as text needs it.
pub(super) struct Font {
    coding: Coding,
    to_unicode: Option<CMap>,
    widths: HashMap<u32, f64>,
    width_default: f64,
}

enum Coding {
    /// One byte per code, each with its text.
    Simple(Vec<String>),
    /// This many bytes per code, with no text of their own.
    Wide(usize),
    /// The codes are UTF-16.
    Utf16,
    /// The codes are an older encoding of one or two bytes.
    Legacy(&'static Encoding),
}

/// One code of a string.
pub(super) struct Glyph {
    pub(super) text: String,
    /// In units of the font size.
    pub(super) width: f64,
    /// Word spacing applies to it.
    pub(super) is_space: bool,
}

impl Font {
    pub(super) fn new(dict: &Dict<'_>) -> Self {
        let to_unicode = dict.get::<Stream<'_>>("ToUnicode").and_then(|stream| {
            let content = stream.decoded_data().ok()?;
            Some(CMap::parse(&content))
        });
        let is_composite = dict.get::<Name<'_>>("Subtype").is_some_and(|name| &*name == b"Type0");
        if is_composite { Self::composite(dict, to_unicode) } else { Self::simple(dict, to_unicode) }
    }

    fn simple(dict: &Dict<'_>, to_unicode: Option<CMap>) -> Self {
        let mut widths = HashMap::new();
        let first = dict.get::<i32>("FirstChar").and_then(|first| u32::try_from(first).ok()).unwrap_or(0);
        if let Some(array) = dict.get::<Array<'_>>("Widths") {
            widths
                .extend((first..).zip(array.iter::<f32>()).take(256).map(|(code, width)| (code, em(width))));
        }
        if widths.is_empty() {
            widths = standard_widths(dict);
        }
        let descriptor = dict.get::<Dict<'_>>("FontDescriptor");
        let missing = descriptor.and_then(|descriptor| descriptor.get::<f32>("MissingWidth"));
        Self {
            coding: Coding::Simple(simple_texts(dict)),
            to_unicode,
            widths,
            width_default: missing.filter(|width| *width > 0.0).map_or(0.5, em),
        }
    }

    fn composite(dict: &Dict<'_>, to_unicode: Option<CMap>) -> Self {
        let descendant =
            dict.get::<Array<'_>>("DescendantFonts").and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        let mut widths = HashMap::new();
        let mut width_default = 1.0;
        if let Some(font) = descendant {
            width_default = font.get::<f32>("DW").map_or(1.0, em);
            if let Some(array) = font.get::<Array<'_>>("W") {
                composite_widths(&array, &mut widths);
            }
        }
        let name = dict.get::<Name<'_>>("Encoding");
        let coding = composite_coding(name.as_ref().map_or("", |name| name.as_str()), to_unicode.as_ref());
        Self { coding, to_unicode, widths, width_default }
    }

    pub(super) fn glyphs<'a>(&'a self, string: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        let mut rest = string;
        std::iter::from_fn(move || {
            let length = self.code_bytes(rest).min(rest.len());
            if length == 0 {
                return None;
            }
            let (bytes, after) = rest.split_at(length);
            rest = after;
            Some(self.glyph(bytes))
        })
    }

    fn glyph(&self, bytes: &[u8]) -> Glyph {
        let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
        let mapped = self.to_unicode.as_ref().and_then(|map| map.text(code));
        let text = mapped.unwrap_or_else(|| match &self.coding {
            Coding::Simple(texts) => texts.get(code as usize).cloned().unwrap_or_default(),
            Coding::Wide(_) => String::new(),
            Coding::Utf16 => encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0.into_owned(),
            Coding::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        });
        let width = self.widths.get(&code).copied().unwrap_or(self.width_default);
        // Codes without a meaning would only be noise.
        let text = text.replace(['\0', '\u{fffd}'], "");
        Glyph { text, width, is_space: bytes == b" " }
    }

    fn code_bytes(&self, rest: &[u8]) -> usize {
        match &self.coding {
            Coding::Simple(_) => 1,
            Coding::Wide(bytes) => *bytes,
            Coding::Utf16 => match rest {
                [0xd8..=0xdb, ..] => 4,
                _ => 2,
            },
            Coding::Legacy(encoding) => match rest {
                [0..=0x7f, ..] => 1,
                [0xa0..=0xdf, ..] if *encoding == encoding_rs::SHIFT_JIS => 1,
                _ => 2,
            },
        }
    }
}

/// Helvetica from space to tilde, in thousandths: close enough for the fonts that may lack widths.
const STANDARD_WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

fn standard_widths(dict: &Dict<'_>) -> HashMap<u32, f64> {
    let name = dict.get::<Name<'_>>("BaseFont");
    let is_fixed = name.is_some_and(|name| name.as_str().contains("Courier"));
    let width = |width: u16| if is_fixed { 0.6 } else { em(f32::from(width)) };
    (u32::from(b' ')..).zip(STANDARD_WIDTHS.map(width)).collect()
}

/// Widths are given in thousandths.
fn em(width: f32) -> f64 {
    f64::from(width) / 1000.0
}

/// The texts of the 256 codes: a base encoding, and the glyphs that differ from it.
fn simple_texts(dict: &Dict<'_>) -> Vec<String> {
    let named = dict.get::<Name<'_>>("Encoding");
    let detailed = dict.get::<Dict<'_>>("Encoding");
    let base = named.or_else(|| detailed.as_ref()?.get::<Name<'_>>("BaseEncoding"));
    let is_mac = base.as_ref().is_some_and(|name| &**name == b"MacRomanEncoding");
    let is_windows = base.as_ref().is_some_and(|name| &**name == b"WinAnsiEncoding");
    let encoding = if is_mac { MACINTOSH } else { WINDOWS_1252 };
    let decode = |code: u8| encoding.decode_without_bom_handling(&[code]).0.into_owned();
    let mut texts: Vec<String> = (0..=255).map(decode).collect();
    if !is_mac && !is_windows {
        // Where the standard encoding of PDF differs in what text is likely to use.
        for (code, text) in [(0x27, "\u{2019}"), (0x60, "\u{2018}"), (0xae, "fi"), (0xaf, "fl"), (0xb1, "–")]
        {
            text.clone_into(&mut texts[code]);
        }
    }
    let differences = detailed.and_then(|detailed| detailed.get::<Array<'_>>("Differences"));
    let mut code = 0;
    for item in differences.iter().flat_map(Array::iter::<Object<'_>>) {
        match item {
            Object::Number(number) => code = usize::try_from(number.as_i64()).unwrap_or(usize::MAX),
            Object::Name(name) => {
                if let Some(text) = texts.get_mut(code) {
                    *text = glyph::text(name.as_str()).unwrap_or_default();
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    texts
}

fn composite_coding(name: &str, to_unicode: Option<&CMap>) -> Coding {
    let legacy = [
        ("GBK", encoding_rs::GBK),
        ("GB", encoding_rs::GBK),
        ("ETen", encoding_rs::BIG5),
        ("B5", encoding_rs::BIG5),
        ("KSC", encoding_rs::EUC_KR),
        ("90ms", encoding_rs::SHIFT_JIS),
        ("90pv", encoding_rs::SHIFT_JIS),
        ("83pv", encoding_rs::SHIFT_JIS),
        ("EUC", encoding_rs::EUC_JP),
    ];
    if name.starts_with("Uni") && (name.contains("UCS2") || name.contains("UTF16")) {
        return Coding::Utf16;
    }
    if let Some((_, encoding)) = legacy.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return Coding::Legacy(encoding);
    }
    let bytes =
        if name.starts_with("Identity") { Some(2) } else { to_unicode.and_then(|map| map.code_bytes) };
    Coding::Wide(bytes.unwrap_or(2))
}

/// `first [w w w]` gives widths one by one, `first last w` one width for all.
fn composite_widths(array: &Array<'_>, widths: &mut HashMap<u32, f64>) {
    let code = |object: &Object<'_>| match object {
        Object::Number(number) => u32::try_from(number.as_i64()).ok(),
        _ => None,
    };
    let mut items = array.iter::<Object<'_>>();
    while let (Some(first), Some(second)) = (items.next(), items.next()) {
        let Some(first) = code(&first) else { return };
        if let Object::Array(list) = &second {
            let given = (first..).zip(list.iter::<f32>()).take(WIDTHS_MAX);
            widths.extend(given.map(|(code, width)| (code, em(width))));
        } else if let (Some(last), Some(Object::Number(width))) = (code(&second), items.next()) {
            let last = last.min(first.saturating_add(0xffff));
            widths.extend((first..=last).map(|code| (code, em(width.as_f32()))));
        }
        if widths.len() > WIDTHS_MAX {
            return;
        }
    }
}
