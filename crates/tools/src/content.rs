//! The content of a file that is about to be changed. The bytes are the truth; text is a view with `\n` line ends,
//! whose positions lead back to the exact bytes, so that a change touches nothing but its own span.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memmem};
use windlass_protocol::FileStamp;

use crate::open::{OpenError, OpenFile, open_regular};
use crate::text_encoding::TextEncoding;

/// Larger files are not changed: their content is held in memory while that happens.
pub(crate) const CHANGE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Texts above this size are left out of structured output, which travels as one line of JSON.
pub(crate) const STRUCTURED_BYTES_MAX: usize = 128 * 1024;

/// A file's content, and what the file looked like.
#[derive(Debug)]
pub(crate) struct FileContent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: FileStamp,
    pub(crate) encoding: TextEncoding,
}

/// Loads the file at a resolved path; `None` if there is none. The error is for the model and names `shown`.
pub(crate) fn load(resolved: &Path, shown: &str) -> Result<Option<FileContent>, String> {
    let OpenFile { file, stamp } = match open_regular(resolved) {
        Ok(open) => open,
        Err(OpenError::Missing) => return Ok(None),
        Err(error) => return Err(format!("{shown} {error}.")),
    };
    let too_large = || {
        let max = CHANGE_BYTES_MAX / (1024 * 1024);
        format!(
            "{shown} is larger than {max} MiB, too large for this tool. Change it with a command through \
             Bash."
        )
    };
    if stamp.size > CHANGE_BYTES_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
    (&file)
        .take(CHANGE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("Cannot read {shown}: {error}."))?;
    if bytes.len() as u64 > CHANGE_BYTES_MAX {
        return Err(too_large());
    }
    let encoding = TextEncoding::detect(&bytes);
    Ok(Some(FileContent { bytes, stamp, encoding }))
}

impl FileContent {
    /// The bytes after the byte order mark.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.encoding.bom().len()..]
    }

    /// The text for the eye, with the file's own line ends.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        self.encoding.decode_lossy(self.body())
    }
}

/// The one line end of a text that uses only `\n`, only `\r\n`, or only `\r`.
pub(crate) fn uniform_line_end(text: &[u8]) -> Option<&'static str> {
    if !text.contains(&b'\r') {
        return memchr(b'\n', text).map(|_| "\n");
    }
    if !text.contains(&b'\n') {
        return Some("\r");
    }
    let crlf = memmem::find_iter(text, b"\r\n").count();
    let lf = memchr::memchr_iter(b'\n', text).count();
    (crlf == lf).then_some("\r\n")
}

pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A text from the model with `\n` at the end of each line.
pub(crate) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A file's text with `\n` line ends, and the way back to its bytes, which need not all be valid UTF-8.
pub(crate) struct EditableText<'a> {
    pub(crate) content: &'a FileContent,
    /// The file's name for people and models.
    pub(crate) shown: &'a str,
    /// The text in UTF-8 with the file's own line ends.
    source: Cow<'a, [u8]>,
    /// The same with `\n` only.
    text: Option<Vec<u8>>,
    /// Where in `text` a `\n` stands for `\r\n`.
    folded: Vec<usize>,
    /// All lines end in a lone `\r`.
    is_cr_only: bool,
}

impl<'a> EditableText<'a> {
    /// The error is for the model and names `shown`.
    pub(crate) fn new(content: &'a FileContent, shown: &'a str) -> Result<Self, String> {
        let body = content.body();
        let source = match content.encoding {
            TextEncoding::Utf8 { .. } => Cow::Borrowed(body),
            encoding => match encoding.decode_exact(body) {
                Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
                Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
                None => {
                    return Err(format!(
                        "Not changed: {shown} looks like {}, but parts of it are invalid. Change it with a \
                         command through Bash that keeps its bytes.",
                        encoding.name()
                    ));
                }
            },
        };
        let is_cr_only = uniform_line_end(&source) == Some("\r");
        let (text, folded) = fold(&source, is_cr_only);
        Ok(Self { content, shown, source, text, folded, is_cr_only })
    }

    /// The text with `\n` only. Not always valid UTF-8.
    pub(crate) fn text(&self) -> &[u8] {
        self.text.as_deref().unwrap_or(&self.source)
    }

    /// A text from the model in the form of [`EditableText::text`].
    pub(crate) fn as_shown(&self, text: &str) -> String {
        let text = with_lf(text);
        if self.is_cr_only { text.replace('\r', "\n") } else { text }
    }

    /// `text` in place of `range`: line ends that were there stay, others follow the last one or the nearest.
    pub(crate) fn with_neighbouring_line_ends(&self, text: &str, range: &Range<usize>) -> String {
        if !text.contains('\n') {
            return text.to_owned();
        }
        let ends = memchr::memchr_iter(b'\n', &self.text()[range.clone()]);
        let mut replaced = ends.map(|at| self.line_end_at(range.start + at));
        let last = replaced.clone().next_back().unwrap_or_else(|| self.neighbouring_line_end(range));
        let mut result = String::with_capacity(text.len() + 16);
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                result.push_str(replaced.next().unwrap_or(last));
            }
            result.push_str(line);
        }
        result
    }

    fn line_end_at(&self, at: usize) -> &'static str {
        if self.is_cr_only {
            "\r"
        } else if self.folded.binary_search(&at).is_ok() {
            "\r\n"
        } else {
            "\n"
        }
    }

    fn neighbouring_line_end(&self, range: &Range<usize>) -> &'static str {
        let before = memchr::memrchr(b'\n', &self.text()[..range.start]);
        let after = || memchr(b'\n', &self.text()[range.end..]).map(|at| range.end + at);
        before.or_else(after).map_or("\n", |at| self.line_end_at(at))
    }

    /// Ordered, separate ranges of [`EditableText::text`] in the file's body; `None` if they are uncertain.
    pub(crate) fn body_ranges(&self, ranges: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
        let shift = |at: usize| at + self.folded.partition_point(|&fold| fold < at);
        let ranges = ranges.iter().map(|range| shift(range.start)..shift(range.end));
        let (encoding, body) = (self.content.encoding, self.content.body());
        if matches!(encoding, TextEncoding::Utf8 { .. }) {
            return Some(ranges.collect());
        }
        let source = std::str::from_utf8(&self.source).ok()?;
        let mut walked = (0, 0);
        let mut advance = |to: usize| {
            let bytes = encoding.encode(source.get(walked.0..to)?).ok()?;
            let end = walked.1 + bytes.len();
            // Two byte sequences for one character would show here.
            if body.get(walked.1..end)? != &*bytes {
                return None;
            }
            walked = (to, end);
            Some(end)
        };
        ranges.map(|range| Some(advance(range.start)?..advance(range.end)?)).collect()
    }
}

/// Replaces other line ends by `\n`; `None` if there are none, which is the usual case.
fn fold(source: &[u8], is_cr_only: bool) -> (Option<Vec<u8>>, Vec<usize>) {
    if is_cr_only {
        let lf = |byte: &u8| if *byte == b'\r' { b'\n' } else { *byte };
        return (Some(source.iter().map(lf).collect()), Vec::new());
    }
    let mut ends = memmem::find_iter(source, b"\r\n").peekable();
    if ends.peek().is_none() {
        return (None, Vec::new());
    }
    let mut text = Vec::with_capacity(source.len());
    let mut folded = Vec::new();
    let mut from = 0;
    for end in ends {
        text.extend_from_slice(&source[from..end]);
        folded.push(text.len());
        from = end + 1;
    }
    text.extend_from_slice(&source[from..]);
    (Some(text), folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: &[u8]) -> FileContent {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("f");
        std::fs::write(&path, bytes).unwrap();
        load(&path, "f").unwrap().unwrap()
    }

    /// Finds `needle` in the view and checks which bytes it leads back to.
    fn check(bytes: &[u8], needle: &str, expected: Option<&[u8]>) {
        let content = view(bytes);
        let view = EditableText::new(&content, "f").unwrap();
        let found = memmem::find(view.text(), needle.as_bytes()).map(|at| {
            let range = at..at + needle.len();
            let ranges = view.body_ranges(std::slice::from_ref(&range)).unwrap();
            &content.body()[ranges[0].clone()]
        });
        assert_eq!(found, expected, "{needle:?} in {bytes:?}");
    }

    #[test]
    fn positions_lead_back_to_bytes() {
        check(b"a\nb\nc", "b\n", Some(b"b\n"));
        check(b"a\r\nb\r\nc", "a\nb\n", Some(b"a\r\nb\r\n"));
        check(b"a\r\nb\nc\r\n", "\nb\nc\n", Some(b"\r\nb\nc\r\n"));
        check(b"a\rb\rc", "a\nb", Some(b"a\rb"));
        check(b"a\rb\nc", "a\nb", None);
        check(b"a\rb\nc", "a\rb\nc", Some(b"a\rb\nc"));
        check(b"\xef\xbb\xbfa\r\nb", "a\nb", Some(b"a\r\nb"));
        check(b"\xff\xfea\0\r\0\n\0b\0", "a\nb", Some(b"a\0\r\0\n\0b\0"));
        check(b"caf\xe9\r\n\xe8", "é\nè", Some(b"\xe9\r\n\xe8"));
        check(b"ok \xc3\xa9\xc3\xa8 \xff\xfe x", " x", Some(b" x"));
    }

    #[test]
    fn inserted_lines_take_the_neighbouring_style() {
        let check = |bytes: &[u8], range: Range<usize>, text: &str, expected: &str| {
            let content = view(bytes);
            let view = EditableText::new(&content, "f").unwrap();
            assert_eq!(view.with_neighbouring_line_ends(text, &range), expected, "{bytes:?}");
        };
        check(b"a\r\nb\r\n", 2..3, "x\ny", "x\r\ny");
        check(b"a\nb\r\n", 2..3, "x\ny", "x\ny");
        check(b"a\r\nb\n", 2..3, "x\ny", "x\r\ny");
        check(b"ab\r\n", 0..1, "x\ny", "x\r\ny");
        check(b"ab", 0..1, "x\ny", "x\ny");
        check(b"a\rb\r", 2..3, "x\ny", "x\ry");
        check(b"a\r\nb\nc", 0..5, "x\ny\nz\nw", "x\r\ny\nz\nw");
    }

    #[test]
    fn uniform_line_ends() {
        let check =
            |text: &str, expected| assert_eq!(uniform_line_end(text.as_bytes()), expected, "{text:?}");
        check("", None);
        check("a", None);
        check("a\n", Some("\n"));
        check("a\r\nb\r\n", Some("\r\n"));
        check("a\r\nb\n", None);
        check("a\rb", Some("\r"));
    }

    #[test]
    fn what_cannot_be_changed_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let big = root.join("big");
        std::fs::File::create(&big).unwrap().set_len(CHANGE_BYTES_MAX + 1).unwrap();
        assert!(load(&big, "big").unwrap_err().contains("larger than 32 MiB"));
        assert!(load(&root, "dir").unwrap_err().contains("is a directory"));
        assert!(load(&root.join("none"), "none").unwrap().is_none());
        let odd = view(b"\xff\xfea\0\0\xd8");
        assert!(EditableText::new(&odd, "odd").err().unwrap().contains("UTF-16LE"));
    }
}
