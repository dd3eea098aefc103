//! The output of one command: its head and tail in memory, all of it in a file once it is long.

use std::io;
use std::path::PathBuf;
use std::sync::Weak;

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::tasks::{OutputFile, Tasks};

/// Characters shown of each end when the whole is too long.
const EXCERPT_CHARS: usize = 5_000;
/// A character takes at most this many bytes.
const CHAR_BYTES_MAX: usize = 4;
/// As much of the last line is looked at.
const LINE_BYTES_MAX: usize = 400;

/// How much output is shown and kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Characters that are given back in full.
    pub(crate) inline_chars: usize,
    /// Bytes a command may print before it is stopped.
    pub(crate) bytes: u64,
}

/// What a command has printed so far.
pub(crate) struct Capture {
    limits: Limits,
    tasks: Weak<Tasks>,
    total: u64,
    head: Vec<u8>,
    /// The last bytes; may hold up to twice as many as are shown.
    tail: Vec<u8>,
    saved: Saved,
}

enum Saved {
    /// All of it is in `head`.
    NotYet,
    File {
        number: u64,
        path: PathBuf,
        file: File,
    },
    /// The file could not be written, and why.
    Failed(String),
}

/// Whether a command may go on printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    Full,
}

/// Output as it is given back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The text, or its two ends.
    pub(crate) text: String,
    /// Whether something was left out.
    pub(crate) cut: bool,
    /// Where all of it is.
    pub(crate) file: Option<PathBuf>,
    /// Size of all of it.
    pub(crate) bytes: u64,
}

impl Capture {
    /// A file, should one be needed, is made by `tasks`.
    pub(crate) fn new(limits: Limits, tasks: Weak<Tasks>) -> Self {
        Self { limits, tasks, total: 0, head: Vec::new(), tail: Vec::new(), saved: Saved::NotYet }
    }

    /// Takes the next piece.
    pub(crate) async fn push(&mut self, piece: &[u8]) -> Room {
        let room =
            usize::try_from(self.limits.bytes - self.total.min(self.limits.bytes)).unwrap_or(usize::MAX);
        let kept = &piece[..piece.len().min(room)];
        self.total += kept.len() as u64;
        if matches!(self.saved, Saved::NotYet) && self.head.len() + kept.len() > self.head_bytes_max() {
            // A failure is told when the output is shown.
            let _ = self.save().await;
        }
        if let Saved::File { file, .. } = &mut self.saved
            && let Err(error) = file.write_all(kept).await
        {
            self.saved = Saved::Failed(error.to_string());
        }
        let free = self.head_bytes_max() - self.head.len();
        self.head.extend_from_slice(&kept[..kept.len().min(free)]);
        self.keep_tail(kept);
        if kept.len() == piece.len() { Room::Enough } else { Room::Full }
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
        if let Saved::NotYet = self.saved {
            self.saved = match self.start_file().await {
                Ok(saved) => saved,
                Err(error) => Saved::Failed(error.to_string()),
            };
        }
        match &self.saved {
            Saved::File { number, path, .. } => Ok((*number, path.clone())),
            Saved::Failed(error) => Err(error.clone()),
            Saved::NotYet => Err("the file was not made".to_owned()),
        }
    }

    async fn start_file(&self) -> io::Result<Saved> {
        let tasks = self.tasks.upgrade().ok_or_else(|| io::Error::other("the session has ended"))?;
        let OutputFile { number, path, file } = tasks.create_output()?;
        let mut file = File::from_std(file);
        file.write_all(&self.head).await?;
        Ok(Saved::File { number, path, file })
    }

    /// Puts what was written where a reader finds it.
    pub(crate) async fn flush(&mut self) {
        if let Saved::File { file, .. } = &mut self.saved
            && let Err(error) = file.flush().await
        {
            self.saved = Saved::Failed(error.to_string());
        }
    }

    /// Adds a line of ours to the file, for whoever reads it later.
    pub(crate) async fn close_file(mut self, line: &str) {
        let start = if self.tail.is_empty() || self.tail.ends_with(b"\n") { "" } else { "\n" };
        if let Saved::File { file, .. } = &mut self.saved {
            // The file is all there is; if it cannot be written, nobody can be told.
            let _ = file.write_all(format!("{start}[{line}]\n").as_bytes()).await;
        }
        self.flush().await;
    }

    /// The output as far as it goes: all of it when it is short, otherwise both ends and where the whole is.
    pub(crate) async fn show(&mut self) -> Shown {
        if self.is_complete_in_memory() {
            let text = String::from_utf8_lossy(&self.head);
            if text.len() <= self.limits.inline_chars || text.chars().count() <= self.limits.inline_chars {
                let text = text.into_owned();
                return Shown { text, cut: false, file: None, bytes: self.total };
            }
        }
        let saved = self.save().await;
        self.flush().await;
        self.show_ends(saved.map(|(_, path)| path))
    }

    fn show_ends(&self, saved: Result<PathBuf, String>) -> Shown {
        let each = EXCERPT_CHARS.min(self.limits.inline_chars / 2);
        let (head, tail) = (first_chars(&self.head, each), last_chars(&self.tail, each));
        let left_out = self.total.saturating_sub((head.len() + tail.len()) as u64);
        let place = match &saved {
            Ok(path) => format!("all of it is in {}; Read or Grep that file for the rest", path.display()),
            Err(error) => format!("the rest is lost, because it could not be saved: {error}"),
        };
        let note = format!("[… about {left_out} of {} bytes left out here; {place} …]", self.total);
        let text = format!("{}\n{note}\n{}", head.trim_end_matches('\n'), tail.trim_start_matches('\n'));
        Shown { text, cut: true, file: saved.ok(), bytes: self.total }
    }

    /// All bytes, if they are few enough to be at hand.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.is_complete_in_memory().then_some(&self.head)
    }

    fn is_complete_in_memory(&self) -> bool {
        self.total == self.head.len() as u64
    }

    /// The last line that says something. A carriage return begins a new one, as on a terminal.
    pub(crate) fn last_line(&self) -> Option<String> {
        let tail = &self.tail[self.tail.len().saturating_sub(LINE_BYTES_MAX)..];
        let text = String::from_utf8_lossy(tail);
        text.split(['\n', '\r']).rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// The last line if it has no end yet.
    pub(crate) fn unfinished_line(&self) -> Option<String> {
        let tail = &self.tail[self.tail.len().saturating_sub(LINE_BYTES_MAX)..];
        let text = String::from_utf8_lossy(tail);
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

    async fn capture(tasks: &Arc<Tasks>, pieces: &[&[u8]]) -> Capture {
        let mut capture = Capture::new(SMALL, Arc::downgrade(tasks));
        for piece in pieces {
            capture.push(piece).await;
        }
        capture
    }

    const SMALL: Limits = Limits { inline_chars: 100, bytes: 10_000 };

    #[tokio::test]
    async fn short_output_is_given_back_as_it_is() {
        let check = async |pieces: &[&[u8]], expected: &str| {
            let shown = capture(&Tasks::new(None), pieces).await.show().await;
            assert_eq!((shown.text.as_str(), shown.cut, shown.file), (expected, false, None));
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
                let shown = capture.show().await;
                assert!(
                    shown.cut && shown.text.starts_with("begin\n") && shown.text.ends_with("\u{fffd} end\n"),
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
    async fn output_beyond_the_disk_limit_is_refused() {
        let tasks = Tasks::new(None);
        let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
        assert_eq!(capture.push(&[b'a'; 9_999]).await, Room::Enough);
        assert_eq!(capture.push(b"bc").await, Room::Full);
        assert_eq!(capture.push(b"d").await, Room::Full);
        let shown = capture.show().await;
        assert_eq!((shown.bytes, std::fs::metadata(shown.file.unwrap()).unwrap().len()), (10_000, 10_000));
    }

    #[tokio::test]
    async fn what_cannot_be_saved_is_said() {
        let tasks = Tasks::new(Some("/proc/nowhere".into()));
        let mut capture = Capture::new(SMALL, Arc::downgrade(&tasks));
        capture.push("line\n".repeat(500).as_bytes()).await;
        let shown = capture.show().await;
        assert!(shown.cut && shown.file.is_none() && shown.text.contains("could not be saved"), "{shown:?}");
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
