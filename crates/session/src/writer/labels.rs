//! Titles, tags and the last prompt. Lists read only the ends of a file, so what it is called has to stay near its end.

use memchr::memmem;

/// How lines begin that say what a session is called. Each counts until the next of its kind.
const KINDS: [&[u8]; 4] = [
    b"{\"type\":\"last-prompt\"",
    b"{\"type\":\"custom-title\"",
    b"{\"type\":\"ai-title\"",
    b"{\"type\":\"tag\"",
];

/// How the only one begins that the log itself writes, behind the line before it.
const LAST_PROMPT: &[u8] = b"\n{\"type\":\"last-prompt\"";

/// How far from the end they may be. Lists read twice as much.
const DISTANCE_MAX: usize = 32 * 1024;

/// The last line of each kind.
#[derive(Debug, Default)]
pub(super) struct Labels {
    lines: [Vec<u8>; KINDS.len()],
    distance: usize,
}

impl Labels {
    /// Looks for labels in what others wrote. Pieces of lines do not count.
    pub(super) fn look_at(&mut self, written: &[u8]) {
        for line in written.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            if let Some(kind) = KINDS.iter().position(|kind| line.starts_with(kind)) {
                self.lines[kind] = line.to_vec();
            }
        }
    }

    /// Repeats the labels behind an append that takes them too far from the end. The append begins with a line feed.
    pub(super) fn follow(&mut self, append: &mut Vec<u8>) {
        if let Some(at) = memmem::rfind(append, LAST_PROMPT) {
            let line = append[at + 1..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
            self.lines[0] = line.to_vec();
        }
        self.distance = self.distance.saturating_add(append.len());
        if self.distance > DISTANCE_MAX {
            self.lines.iter().for_each(|line| append.extend_from_slice(line));
            self.distance = 0;
        }
    }

    /// The append that they followed may not be there.
    pub(super) fn note_loss(&mut self) {
        self.distance = DISTANCE_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(written: &str, append: usize) -> String {
        let mut labels = Labels::default();
        labels.look_at(written.as_bytes());
        let mut bytes = vec![b' '; append];
        labels.follow(&mut bytes);
        String::from_utf8(bytes.split_off(append)).unwrap()
    }

    #[test]
    fn the_last_label_of_each_kind_is_repeated_when_it_is_far_away() {
        let title = |text: &str| format!("{{\"type\":\"custom-title\",\"customTitle\":\"{text}\"}}\n");
        let tag = "{\"type\":\"tag\",\"tag\":\"t\"}\n";
        let user = "{\"type\":\"user\",\"text\":\"{\\\"type\\\":\\\"tag\\\"\"}\n";
        let written = format!("{}{user}{tag}{}", title("a"), title("b"));
        assert_eq!(after(&written, DISTANCE_MAX), "");
        assert_eq!(after(&written, DISTANCE_MAX + 1), format!("{}{tag}", title("b")));
        assert_eq!(after(&format!("{tag}{}", title("cut").trim_end()), DISTANCE_MAX + 1), tag);
    }

    #[test]
    fn the_last_prompt_is_repeated_as_it_is_now() {
        let mut labels = Labels::default();
        let prompt = |text: &str| format!("{{\"type\":\"last-prompt\",\"lastPrompt\":\"{text}\"}}\n");
        let mut append = |text: &str, length: usize| {
            let mut bytes = format!("\n{text}{}\n", " ".repeat(length)).into_bytes();
            let before = bytes.len();
            labels.follow(&mut bytes);
            String::from_utf8(bytes.split_off(before)).unwrap()
        };
        assert_eq!(append(&format!("{}{}", prompt("a"), prompt("b")), 0), "");
        assert_eq!(append("{}", DISTANCE_MAX), prompt("b"));
        assert_eq!(append(&prompt("c"), 0), "");
        assert_eq!(append("{}", DISTANCE_MAX), prompt("c"));
    }

    #[test]
    fn the_distance_adds_up() {
        let mut labels = Labels::default();
        labels.look_at(b"{\"type\":\"tag\",\"tag\":\"t\"}\n");
        let mut repeated = 0;
        for _ in 0..100 {
            let mut bytes = vec![b' '; 1024];
            labels.follow(&mut bytes);
            repeated += usize::from(bytes.len() > 1024);
        }
        assert_eq!(repeated, 3);
    }
}
