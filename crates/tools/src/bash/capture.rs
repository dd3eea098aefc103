//! The output of one command: its head and tail in memory, and once it is long a file with as much as is kept.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Weak;

use tokio::io::AsyncWriteExt;

use crate::tasks::{OutputFile, Tasks};

/// Of a failure, at most this many characters are given back in full: what matters is mostly at its ends.
const FAILED_CHARS_MAX: usize = 10_000;
/// Characters shown of each end when the whole is too long.
const EXCERPT_CHARS: usize = 5_000;
const CHAR_BYTES_MAX: usize = 4;
/// As much of the last line is looked at.
const LINE_BYTES_MAX: usize = 400;

/// As much of the end is looked at for what bash said about a failure.
const SAID_BYTES_MAX: usize = 4_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputLimits {
    /// Characters that are given back in full.
    pub(crate) inline_chars: usize,
    /// Bytes that are kept in a file; what comes after them is only counted.
    pub(crate) file_bytes: u64,
    /// Bytes a command may print before it is stopped.
    pub(crate) bytes: u64,
}

pub(crate) struct Capture {
    limits: OutputLimits,
    tasks: Weak<Tasks>,
    total: u64,
    head: Vec<u8>,
    /// The last bytes; may hold up to twice as many as are shown.
    tail: Vec<u8>,
    saved: OutputCopy,
}

enum OutputCopy {
    /// All of it is in `head`.
    NotYet,
    File(OutputFile),
    /// The file could not be written, and why.
    Failed(String),
}

impl OutputFile {
    /// Adds a piece; of one that does not fit, the beginning, and a line that says so.
    async fn add(&mut self, piece: &[u8], room: u64) -> io::Result<()> {
        if self.is_cut {
            return Ok(());
        }
        let part = &piece[..piece.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        self.file.write_all(part).await?;
        self.bytes += part.len() as u64;
        if part.len() < piece.len() {
            self.is_cut = true;
            let line =
                format!("\n[The output continues, but only the first {} bytes are kept.]\n", self.bytes);
            self.file.write_all(line.as_bytes()).await?;
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShownOutput {
    /// The text, or its two ends.
    pub(crate) text: String,
    pub(crate) is_cut: bool,
    pub(crate) file: Option<PathBuf>,
    /// How much of it is in that file, or was printed if there is none.
    pub(crate) bytes: u64,
}

impl Capture {
    /// A file, should one be needed, is made by `tasks`.
    pub(crate) fn new(limits: OutputLimits, tasks: Weak<Tasks>) -> Self {
        Self { limits, tasks, total: 0, head: Vec::new(), tail: Vec::new(), saved: OutputCopy::NotYet }
    }

    /// Takes what was printed; says whether the command may go on printing.
    pub(crate) async fn push(&mut self, piece: &[u8]) -> bool {
        let room =
            usize::try_from(self.limits.bytes - self.total.min(self.limits.bytes)).unwrap_or(usize::MAX);
        let kept = &piece[..piece.len().min(room)];
        self.total += kept.len() as u64;
        if matches!(self.saved, OutputCopy::NotYet) && self.head.len() + kept.len() > self.head_bytes_max() {
            // A failure is told when the output is shown.
            let _ = self.save().await;
        }
        self.keep(kept).await;
        let free = self.head_bytes_max() - self.head.len();
        self.head.extend_from_slice(&kept[..kept.len().min(free)]);
        self.keep_tail(kept);
        kept.len() == piece.len()
    }

    /// Puts a piece into the file, if there is one and it has room.
    async fn keep(&mut self, piece: &[u8]) {
        let OutputCopy::File(saved) = &mut self.saved else { return };
        let wanted = self.limits.file_bytes.saturating_sub(saved.bytes).min(piece.len() as u64);
        let room = if saved.is_cut {
            0
        } else {
            self.tasks.upgrade().map_or(0, |tasks| tasks.files().reserve(wanted))
        };
        if let Err(error) = saved.add(piece, room).await {
            self.saved = OutputCopy::Failed(error.to_string());
        }
    }

    fn head_bytes_max(&self) -> usize {
        self.limits.inline_chars * CHAR_BYTES_MAX
    }

    fn keep_tail(&mut self, piece: &[u8]) {
        const KEPT: usize = EXCERPT_CHARS * CHAR_BYTES_MAX;
        let piece = &piece[piece.len().saturating_sub(KEPT)..];
        self.tail.extend_from_slice(piece);
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// From now on everything is in a file, too. Gives the number and the path of that file.
    pub(crate) async fn save(&mut self) -> Result<(u64, PathBuf), String> {
        if let OutputCopy::NotYet = self.saved {
            let failed = |error: io::Error| OutputCopy::Failed(error.to_string());
            self.saved = self.start_file().map_or_else(failed, OutputCopy::File);
            let head = std::mem::take(&mut self.head);
            self.keep(&head).await;
            self.head = head;
        }
        match &self.saved {
            OutputCopy::File(saved) => Ok((saved.number, saved.path.clone())),
            OutputCopy::Failed(error) => Err(error.clone()),
            OutputCopy::NotYet => Err("the file was not created".to_owned()),
        }
    }

    fn start_file(&self) -> io::Result<OutputFile> {
        let tasks = self.tasks.upgrade().ok_or_else(|| io::Error::other("the session has ended"))?;
        tasks.files().create()
    }

    /// Puts what was written where a reader finds it.
    pub(crate) async fn flush(&mut self) {
        if let OutputCopy::File(saved) = &mut self.saved
            && let Err(error) = saved.file.flush().await
        {
            self.saved = OutputCopy::Failed(error.to_string());
        }
    }

    /// Adds a line of ours to the file, for whoever reads it later.
    pub(crate) async fn close_file(mut self, line: &str) {
        if let OutputCopy::File(saved) = &mut self.saved {
            let at_start = self.tail.is_empty() || self.tail.ends_with(b"\n") || saved.is_cut;
            let start = if at_start { "" } else { "\n" };
            // The file is all there is; if it cannot be written, nobody can be told.
            let _ = saved.file.write_all(format!("{start}[{line}]\n").as_bytes()).await;
        }
        self.flush().await;
    }

    /// All of the output if it is short (of a failure, shorter), otherwise both ends and where the whole is.
    pub(crate) async fn show(&mut self, has_failed: bool) -> ShownOutput {
        let chars_max = self.limits.inline_chars.min(if has_failed { FAILED_CHARS_MAX } else { usize::MAX });
        if let Some(whole) = self.whole() {
            let text = String::from_utf8_lossy(whole);
            if text.len() <= chars_max || text.chars().count() <= chars_max {
                let text = text.into_owned();
                return ShownOutput { text, is_cut: false, file: None, bytes: self.total };
            }
        }
        // Whether that went well is seen below.
        let _ = self.save().await;
        self.flush().await;
        self.show_ends(chars_max / 2)
    }

    fn show_ends(&self, each_max: usize) -> ShownOutput {
        let each = EXCERPT_CHARS.min(each_max);
        let (head, tail) = (first_chars(&self.head, each), last_chars(&self.tail, each));
        let left_out = self.total.saturating_sub((head.len() + tail.len()) as u64);
        let (place, file, bytes) = match &self.saved {
            OutputCopy::File(saved) => {
                let path = saved.path.display();
                let place = if saved.is_cut {
                    format!(
                        "only the first {} bytes are kept, in {path}; Read or Grep that file, or send the output \
                         through a filter",
                        saved.bytes
                    )
                } else {
                    format!("all of it is in {path}; Read or Grep that file for the rest")
                };
                (place, Some(saved.path.clone()), saved.bytes)
            }
            OutputCopy::Failed(error) => {
                (format!("the rest is lost, because it cannot be saved: {error}"), None, self.total)
            }
            OutputCopy::NotYet => ("the rest is lost".to_owned(), None, self.total),
        };
        let note = format!("[… about {left_out} of {} bytes omitted; {place} …]", self.total);
        let text = format!("{}\n{note}\n{}", head.trim_end_matches('\n'), tail.trim_start_matches('\n'));
        ShownOutput { text, is_cut: true, file, bytes }
    }

    /// All bytes, if they are few enough to be at hand.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.total == self.head.len() as u64).then_some(&self.head)
    }

    /// The last line that says something. A carriage return begins a new one, as on a terminal.
    pub(crate) fn last_line(&self) -> Option<String> {
        let text = self.end(LINE_BYTES_MAX);
        text.split(['\n', '\r']).rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    pub(crate) fn said_last(&self) -> String {
        self.end(SAID_BYTES_MAX).into_owned()
    }

    fn end(&self, bytes: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.tail[self.tail.len().saturating_sub(bytes)..])
    }

    /// The last line if it has no end yet.
    pub(crate) fn unfinished_line(&self) -> Option<String> {
        let text = self.end(LINE_BYTES_MAX);
        let line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
        (!line.trim().is_empty()).then(|| line.to_owned())
    }
}

/// The first characters, up to the end of a line if one is near.
fn first_chars(bytes: &[u8], count: usize) -> String {
    let bytes = &bytes[..bytes.len().min(count * CHAR_BYTES_MAX)];
    let text: String = String::from_utf8_lossy(bytes).chars().take(count).collect();
    match text.rfind('\n') {
        Some(end) if end >= text.len() / 2 => text[..=end].to_owned(),
        _ => text,
    }
}

/// The last characters, from the start of a line if one is near.
fn last_chars(bytes: &[u8], count: usize) -> String {
    let start = bytes.len().saturating_sub(count * CHAR_BYTES_MAX);
    // Never in the middle of a character.
    let inside =
        bytes[start..].iter().take(CHAR_BYTES_MAX - 1).take_while(|&&byte| byte & 0xc0 == 0x80).count();
    let text = String::from_utf8_lossy(&bytes[start + inside..]);
    let skipped = text.chars().count().saturating_sub(count);
    let text: String = text.chars().skip(skipped).collect();
    match text.find('\n') {
        Some(end) if end < text.len() / 2 => text[end + 1..].to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tasks::SAVED_BYTES_MAX;

    async fn capture(tasks: &Arc<Tasks>, pieces: &[&[u8]]) -> Capture {
        let mut capture = Capture::new(SMALL, Arc::downgrade(tasks));
        for piece in pieces {
            capture.push(piece).await;
        }
        capture
    }

    const SMALL: OutputLimits = OutputLimits { inline_chars: 100, file_bytes: 5_000, bytes: 10_000 };

    #[tokio::test]
    async fn short_output_is_given_back_as_it_is() {
        let check = async |pieces: &[&[u8]], expected: &str| {
            let shown = capture(&Tasks::new(None), pieces).await.show(/*failed*/ false).await;
            assert_eq!((shown.text.as_str(), shown.is_cut, shown.file), (expected, false, None));
        };
        check(&[], "").await;
        check(&[b"a\n", b"b"], "a\nb").await;
        // A character that comes in pieces is one character.
        check(&[b"\xe6\x97", b"\xa5\n"], "日\n").await;
        check(&[b"a\xffb"], "a\u{fffd}b").await;
        // Characters count, not bytes.
        check(&["日".repeat(100).as_bytes()], &"日".repeat(100)).await;
    }

    #[tokio::test]
    async fn long_output_shows_both_ends_and_is_kept_to_the_byte() {
        for unit in ["line\n", "日\n", "x", "日"] {
            for piece_len in [1, 7, 1000] {
                let all = unit.repeat(400).into_bytes();
                let all = [b"begin\n", &all[..], b"\xff end\n"].concat();
                let pieces: Vec<&[u8]> = all.chunks(piece_len).collect();
                let tasks = Tasks::new(None);
                let mut capture = capture(&tasks, &pieces).await;
                let shown = capture.show(/*failed*/ false).await;
                assert!(
                    shown.is_cut
                        && shown.text.starts_with("begin\n")
                        && shown.text.ends_with("\u{fffd} end\n"),
                    "{shown:?}"
                );
                assert!(!shown.text.trim_end_matches("\u{fffd} end\n").contains('\u{fffd}'), "{shown:?}");
                let file = shown.file.unwrap();
                assert!(shown.text.contains(file.to_str().unwrap()) && shown.text.chars().count() < 400);
                assert_eq!((std::fs::read(file).unwrap(), shown.bytes), (all.clone(), all.len() as u64));
            }
        }
    }

    #[tokio::test]
    async fn of_a_failure_less_is_shown() {
        let limits = OutputLimits { inline_chars: 30_000, file_bytes: 100_000, bytes: 100_000 };
        let check = async |length: usize, is_cut: bool| {
            let tasks = Tasks::new(None);
            let mut capture = Capture::new(limits, Arc::downgrade(&tasks));
            capture.push(&vec![b'a'; length]).await;
            let shown = capture.show(/*failed*/ true).await;
            assert_eq!((shown.is_cut, shown.file.is_some()), (is_cut, is_cut), "{length}");
            assert!(shown.text.len() < 10_300, "{}", shown.text.len());
            assert!(!capture.show(/*failed*/ false).await.is_cut, "a success of {length} is shown whole");
        };
        check(10_000, false).await;
        check(10_001, true).await;
        check(30_000, true).await;
    }

    #[tokio::test]
    async fn output_beyond_the_limit_is_refused() {
        let tasks = Tasks::new(None);
        let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
        assert!(capture.push(&[b'a'; 9_999]).await);
        assert!(!capture.push(b"bc").await);
        assert!(!capture.push(b"d").await);
        assert_eq!(capture.total, 10_000);
    }

    #[tokio::test]
    async fn a_file_holds_the_beginning_and_says_so() {
        for pieces in [vec![6_000], vec![5_001], vec![4_000, 1_000, 1_000, 1], vec![100; 60]] {
            let tasks = Tasks::new(None);
            let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
            for length in &pieces {
                assert!(capture.push(&vec![b'a'; *length]).await);
            }
            let shown = capture.show(/*failed*/ false).await;
            let text = std::fs::read_to_string(shown.file.unwrap()).unwrap();
            let expected = "\n[The output continues, but only the first 5000 bytes are kept.]\n";
            assert_eq!(text, "a".repeat(5_000) + expected, "{pieces:?}");
            assert!(shown.text.contains("only the first 5000 bytes are kept, in /"), "{}", shown.text);
            assert_eq!((shown.bytes, capture.total), (5_000, pieces.iter().sum::<usize>() as u64));
        }
    }

    #[tokio::test]
    async fn all_files_of_a_session_share_one_allowance() {
        let tasks = Tasks::new(None);
        tasks.files().reserve(SAVED_BYTES_MAX - 7_000);
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
            capture.push(&[b'a'; 6_000]).await;
            sizes.push(capture.show(/*failed*/ false).await.bytes);
        }
        assert_eq!(sizes, [5_000, 2_000, 0]);
    }

    #[tokio::test]
    async fn what_cannot_be_saved_is_said() {
        let tasks = Tasks::new(Some("/proc/nowhere".into()));
        let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
        capture.push("line\n".repeat(500).as_bytes()).await;
        let shown = capture.show(/*failed*/ false).await;
        assert!(shown.is_cut && shown.file.is_none() && shown.text.contains("cannot be saved"), "{shown:?}");
    }

    #[tokio::test]
    async fn the_last_line_is_known() {
        let check = async |text: &str, last: Option<&str>, unfinished: Option<&str>| {
            let capture = capture(&Tasks::new(None), &[text.as_bytes()]).await;
            assert_eq!(
                (capture.last_line().as_deref(), capture.unfinished_line().as_deref()),
                (last, unfinished),
                "{text:?}"
            );
        };
        check("", None, None).await;
        check("a\nb\n\n", Some("b"), None).await;
        check("a\nPassword: ", Some("Password:"), Some("Password: ")).await;
        check("10%\r20%\r30%", Some("30%"), Some("30%")).await;
    }
}
