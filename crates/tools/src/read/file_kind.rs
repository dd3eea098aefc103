//! What a file is, told from its first bytes. Names lie: a picture may be a pointer to one, a log may be text.

use std::path::Path;

use image::ImageFormat;

use crate::text_encoding::TextEncoding;

/// Control characters beyond this share, in thousandths, make a file binary.
const CONTROL_PER_MILLE_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Text,
    Notebook,
    Pdf,
    Image(ImageFormat),
    /// Something else, by name.
    Binary(&'static str),
}

impl FileKind {
    /// `complete` says that `start` is the whole file.
    pub(super) fn of(start: &[u8], is_complete: bool, path: &Path) -> Self {
        if let Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)) =
            image::guess_format(start)
        {
            return Self::Image(format);
        }
        // Some programs put a line in front of the mark.
        if memchr::memmem::find(&start[..start.len().min(1024)], b"%PDF-")
            .is_some_and(|at| at == 0 || !is_text(start, is_complete))
        {
            return Self::Pdf;
        }
        if !is_text(start, is_complete) {
            return Self::Binary(binary_name(start));
        }
        let is_notebook = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"));
        if is_notebook && start.trim_ascii_start().starts_with(b"{") { Self::Notebook } else { Self::Text }
    }
}

/// Whether these bytes are text; `complete` says that nothing follows them.
pub(crate) fn is_text(start: &[u8], is_complete: bool) -> bool {
    if TextEncoding::has_utf16_bom(start) {
        // UTF-32 begins like UTF-16 but with a NUL as its first character.
        return !start.starts_with(b"\xff\xfe\0\0");
    }
    if memchr::memchr(0, start).is_some() {
        return false;
    }
    match std::str::from_utf8(start) {
        Ok(_) => true,
        Err(error) if error.error_len().is_none() && !is_complete => true,
        // Not UTF-8: an older encoding, unless there are control characters in it.
        Err(_) => {
            let control = |byte: &&u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
            let count = start.iter().filter(control).count();
            count * 1000 <= start.len() * CONTROL_PER_MILLE_MAX
        }
    }
}

/// What the first bytes of common formats tell.
fn binary_name(start: &[u8]) -> &'static str {
    const NAMES: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF executable or library"),
        (b"PK\x03\x04", "a ZIP archive (or a document, jar or package in that form)"),
        (b"PK\x05\x06", "an empty ZIP archive"),
        (b"\x1f\x8b", "gzip-compressed data"),
        (b"\xfd7zXZ\0", "xz-compressed data"),
        (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
        (b"BZh", "bzip2-compressed data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (b"Rar!", "a RAR archive"),
        (b"!<arch>\n", "a static library"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0asm", "a WebAssembly module"),
        (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O library"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
        (b"MZ", "a Windows executable"),
        (b"\xff\xfe\0\0", "UTF-32 text"),
        (b"\0\0\xfe\xff", "UTF-32 text"),
        (b"II*\0", "a TIFF image"),
        (b"MM\0*", "a TIFF image"),
        (b"BM", "a BMP image"),
        (b"\0\0\x01\0", "an icon"),
        (b"8BPS", "a Photoshop image"),
        (b"OggS", "Ogg audio or video"),
        (b"ID3", "MP3 audio"),
        (b"fLaC", "FLAC audio"),
        (b"RIFF", "audio or video in RIFF form"),
        (b"\x1aE\xdf\xa3", "Matroska or WebM video"),
        (b"wOFF", "a web font"),
        (b"wOF2", "a web font"),
        (b"\0\x01\0\0", "a TrueType font"),
        (b"OTTO", "an OpenType font"),
        (b"\xd0\xcf\x11\xe0", "an old Office document"),
        (b"\x80\x04", "a Python pickle"),
    ];
    if start.get(4..8) == Some(b"ftyp") {
        return "MP4 or HEIF media";
    }
    if start.get(257..262) == Some(b"ustar") {
        return "a tar archive";
    }
    if let Some((_, name)) = NAMES.iter().find(|(magic, _)| start.starts_with(magic)) {
        return name;
    }
    if looks_like_utf16(start) {
        return "UTF-16 text (probably) without byte order mark";
    }
    "binary data"
}

/// ASCII letters and NUL in turn.
fn looks_like_utf16(start: &[u8]) -> bool {
    let units = start.len() / 2;
    let nul = |offset: usize| start.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    units >= 2 && (nul(0) * 10 > units * 7) != (nul(1) * 10 > units * 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let check = |start: &[u8], name: &str, expected: FileKind| {
            assert_eq!(FileKind::of(start, true, Path::new(name)), expected, "{name}");
        };
        check(b"", "a.txt", FileKind::Text);
        check(b"hello\n", "a.png", FileKind::Text);
        check(b"caf\xe9\n", "a.txt", FileKind::Text);
        check(b"\xff\xfea\0", "a.txt", FileKind::Text);
        check(b"\x1b[1mbold\x1b[0m", "log", FileKind::Text);
        check(b"{\"cells\":[]}", "a.ipynb", FileKind::Notebook);
        check(b"version https://git-lfs", "a.ipynb", FileKind::Text);
        check(b"\x89PNG\r\n\x1a\n\0\0", "a.txt", FileKind::Image(ImageFormat::Png));
        check(b"%PDF-1.7\n\xe2\xe3", "a", FileKind::Pdf);
        check(b"see %PDF-1.7 for more", "a", FileKind::Text);
        check(b"\x7fELF\x02\0", "a", FileKind::Binary("an ELF executable or library"));
        check(b"h\0e\0l\0l\0o\0", "a", FileKind::Binary("UTF-16 text (probably) without byte order mark"));
        check(b"\x01\x02\xff\xfe\x93\x04", "a", FileKind::Binary("binary data"));
    }

    #[test]
    fn a_character_cut_by_the_end_of_the_piece_is_fine() {
        assert_eq!(FileKind::of(b"\x01\x02\x03\xc3", false, Path::new("a")), FileKind::Text);
        assert_eq!(FileKind::of(b"\x01\x02\x03\xc3", true, Path::new("a")), FileKind::Binary("binary data"));
    }
}
