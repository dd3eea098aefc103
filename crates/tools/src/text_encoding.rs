//! Text in the encoding a file has, in both directions. Only the start of the content decides, so reading and editing
//! agree. Decoding for the eye may be lossy; encoding never is: text that does not exist in the encoding is refused.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// How much of a file decides about its encoding.
pub(crate) const DETECT_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8 {
        has_bom: bool,
        /// Some bytes of it are not valid.
        is_broken: bool,
    },
    /// UTF-16 with a byte order mark.
    Utf16(&'static Encoding),
    /// An older encoding, by guess.
    Legacy(&'static Encoding),
}

impl TextEncoding {
    pub(crate) fn detect(content: &[u8]) -> Self {
        let content = &content[..content.len().min(DETECT_BYTES_MAX)];
        Self::from_bom(content).unwrap_or(Self::Utf8 { has_bom: false, is_broken: false }).checked(content)
    }

    pub(crate) fn from_bom(content: &[u8]) -> Option<Self> {
        let (encoding, _) = Encoding::for_bom(content)?;
        let is_utf8 = encoding == encoding_rs::UTF_8;
        Some(if is_utf8 { Self::Utf8 { has_bom: true, is_broken: false } } else { Self::Utf16(encoding) })
    }

    /// Whether content begins with a mark of UTF-16, in which line ends and NULs are not single bytes.
    pub(crate) fn has_utf16_bom(content: &[u8]) -> bool {
        matches!(Self::from_bom(content), Some(Self::Utf16(_)))
    }

    /// Looks at content that should be UTF-8 and decides what it is if it is not.
    fn checked(self, content: &[u8]) -> Self {
        let (Self::Utf8 { has_bom, .. }, Err(error)) = (self, std::str::from_utf8(content)) else {
            return self;
        };
        let cut_at_end = error.error_len().is_none() && content.len() == DETECT_BYTES_MAX;
        if cut_at_end {
            return self;
        }
        if has_bom || is_mostly_utf8(content) {
            return Self::Utf8 { has_bom, is_broken: true };
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(content, true);
        Self::Legacy(detector.guess(None, Utf8Detection::Deny))
    }

    /// As [`TextEncoding::detect`], from the start of a file.
    pub(crate) fn detect_file(mut file: &File) -> io::Result<Self> {
        let mut start = Vec::new();
        file.rewind()?;
        file.take(DETECT_BYTES_MAX as u64).read_to_end(&mut start)?;
        Ok(Self::detect(&start))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 { is_broken: true, .. } => "UTF-8 with invalid bytes",
            Self::Utf8 { has_bom: true, .. } => "UTF-8 with byte order mark",
            Self::Utf8 { .. } => "UTF-8",
            Self::Utf16(encoding) | Self::Legacy(encoding) => encoding.name(),
        }
    }

    pub(crate) fn bom(self) -> &'static [u8] {
        match self {
            Self::Utf8 { has_bom: true, .. } => b"\xef\xbb\xbf",
            Self::Utf16(encoding) if encoding == encoding_rs::UTF_16LE => b"\xff\xfe",
            Self::Utf16(_) => b"\xfe\xff",
            Self::Utf8 { .. } | Self::Legacy(_) => &[],
        }
    }

    /// Text for the eye from bytes without byte order mark; what is invalid becomes the replacement character.
    pub(crate) fn decode_lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 { .. } => String::from_utf8_lossy(bytes),
            Self::Utf16(encoding) | Self::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0,
        }
    }

    /// The text of bytes without byte order mark, if every byte has a meaning.
    pub(crate) fn decode_exact(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Utf8 { .. } => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Utf16(encoding) | Self::Legacy(encoding) => {
                encoding.decode_without_bom_handling_and_without_replacement(bytes)
            }
        }
    }

    /// The bytes of a text in this encoding, without byte order mark; the error is a character that it does not have.
    pub(crate) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, char> {
        match self {
            Self::Utf8 { .. } => Ok(Cow::Borrowed(text.as_bytes())),
            Self::Utf16(encoding) => {
                let is_little = encoding == encoding_rs::UTF_16LE;
                let bytes = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                Ok(text.encode_utf16().flat_map(bytes).collect())
            }
            Self::Legacy(encoding) => {
                let (bytes, _, is_lossy) = encoding.encode(text);
                let is_lacking = |c: &char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
                let lacking = is_lossy.then(|| text.chars().find(is_lacking)).flatten();
                lacking.map_or(Ok(bytes), Err)
            }
        }
    }
}

/// Whether most of what is not ASCII is valid UTF-8: then a few bytes are damaged, and no other encoding is meant.
fn is_mostly_utf8(content: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in content.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &[u8], name: &str, text: &str) {
        let encoding = TextEncoding::detect(content);
        assert_eq!(encoding.name(), name);
        let body = &content[encoding.bom().len()..];
        assert_eq!(encoding.decode_lossy(body), text, "{name}");
        if let Some(exact) = encoding.decode_exact(body) {
            assert_eq!(encoding.encode(&exact).as_deref(), Ok(body), "{name} must round-trip");
        }
    }

    #[test]
    fn encodings_are_detected_and_round_trip() {
        check(b"", "UTF-8", "");
        check("plain é".as_bytes(), "UTF-8", "plain é");
        check(b"\xef\xbb\xbfx", "UTF-8 with byte order mark", "x");
        check(b"\xff\xfea\0\n\0=\xd8\0\xde", "UTF-16LE", "a\n😀");
        check(b"\xfe\xff\0a\0\n", "UTF-16BE", "a\n");
        check(b"caf\xe9 cr\xe8me\n", "windows-1252", "café crème\n");
        check("тест проверка".as_bytes(), "UTF-8", "тест проверка");
        let (koi, ..) = encoding_rs::WINDOWS_1251.encode("Это обычный русский текст для проверки.");
        check(&koi, "windows-1251", "Это обычный русский текст для проверки.");
        let (sjis, ..) = encoding_rs::SHIFT_JIS.encode("これは日本語のテキストです。");
        check(&sjis, "Shift_JIS", "これは日本語のテキストです。");
        let (gbk, ..) = encoding_rs::GBK.encode("这是一个简单的中文文本。");
        check(&gbk, "GBK", "这是一个简单的中文文本。");
        check(b"\xc3\xa9\xc3\xa8\xc3\xa0 \xff", "UTF-8 with invalid bytes", "éèà \u{fffd}");
    }

    #[test]
    fn what_an_encoding_lacks_is_refused_not_replaced() {
        let latin = TextEncoding::detect(b"caf\xe9");
        assert_eq!(latin.encode("naïve"), Ok(Cow::Borrowed(&b"na\xefve"[..])));
        assert_eq!(latin.encode("日本"), Err('日'));
        assert_eq!(latin.decode_exact(b"\x81"), Some("\u{81}".into()));
        let utf16 = TextEncoding::detect(b"\xff\xfe");
        assert_eq!(utf16.decode_exact(b"\x00\xd8"), None, "a lone surrogate");
    }
}
