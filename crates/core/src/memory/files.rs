//! What the conversation knows of files. A long session sees more of them than it is worth to remember: what is forgotten
//! has to be read again before it can be changed, and nothing else follows from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_protocol::FileSeen;

/// As many files are known.
const FILES_MAX: usize = 1_000;
/// As many hashes of lines are kept for all of them together.
const LINES_MAX: usize = 500_000;
/// As many parts of a file are remembered as shown.
const SHOWN_MAX: usize = 32;

/// Files by resolved path.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownFiles {
    files: BTreeMap<PathBuf, KnownFile>,
    /// How often something was learned.
    learned: u64,
    /// Hashes of lines that are kept.
    lines: usize,
}

#[derive(Clone, Debug)]
struct KnownFile {
    seen: FileSeen,
    /// When it was last learned of.
    learned: u64,
}

impl KnownFiles {
    pub(crate) fn get(&self, path: &Path) -> Option<&FileSeen> {
        self.files.get(path).map(|known| &known.seen)
    }
    pub(crate) fn contains_key(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// What is known, the latest last.
    pub(crate) fn latest_last(&self) -> Vec<FileSeen> {
        let mut known: Vec<&KnownFile> = self.files.values().collect();
        known.sort_unstable_by_key(|known| known.learned);
        known.into_iter().map(|known| known.seen.clone()).collect()
    }

    /// Adds what was seen of a file to what was known of the same content: a look at a part does not unlearn the whole.
    pub(crate) fn learn(&mut self, mut seen: FileSeen) {
        let before = self.files.remove(&seen.path).map(|known| known.seen);
        self.lines -= before.as_ref().map_or(0, |known| known.lines.len());
        if let Some(known) = before.filter(|known| known.hash == seen.hash) {
            seen.is_whole |= known.is_whole;
            let mut shown = known.shown;
            shown.retain(|part| !seen.shown.contains(part));
            shown.append(&mut seen.shown);
            shown.drain(..shown.len().saturating_sub(SHOWN_MAX));
            seen.shown = shown;
        }
        self.lines += seen.lines.len();
        self.learned += 1;
        self.files.insert(seen.path.clone(), KnownFile { seen, learned: self.learned });
        if self.files.len() > FILES_MAX || self.lines > LINES_MAX {
            self.forget();
        }
    }

    /// What was shown is not on screen any more.
    pub(crate) fn forget_shown(&mut self) {
        for known in self.files.values_mut() {
            known.seen.shown.clear();
        }
    }

    /// Makes room among the oldest, for many files at once so that it is seldom due. The newest keeps everything.
    fn forget(&mut self) {
        let mut oldest: Vec<(u64, PathBuf)> =
            self.files.iter().map(|(path, known)| (known.learned, path.clone())).collect();
        oldest.sort_unstable();
        oldest.pop();
        let excess = if self.files.len() > FILES_MAX { self.files.len() - FILES_MAX / 4 * 3 } else { 0 };
        for (place, (_, path)) in oldest.iter().enumerate() {
            if place < excess {
                let gone = self.files.remove(path);
                self.lines -= gone.map_or(0, |known| known.seen.lines.len());
            } else if self.lines <= LINES_MAX / 2 {
                break;
            } else if let Some(known) = self.files.get_mut(path) {
                self.lines -= std::mem::take(&mut known.seen.lines).len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::ShownPart;

    fn seen(path: &str, hash: u64, is_whole: bool, shown: &[usize]) -> FileSeen {
        let shown = shown.iter().map(|&first| ShownPart { first, count: None }).collect();
        FileSeen { path: path.into(), hash, lines: [].into(), is_whole, shown, stamp: None }
    }

    fn long(path: &str, lines: usize) -> FileSeen {
        FileSeen { lines: vec![7; lines].into(), ..seen(path, 1, true, &[1]) }
    }

    #[track_caller]
    fn check(known: Option<FileSeen>, new: FileSeen, expected: &FileSeen) {
        let mut files = KnownFiles::default();
        for seen in known.into_iter().chain([new]) {
            files.learn(seen);
        }
        assert_eq!(files.get(&expected.path), Some(expected));
    }

    #[test]
    fn knowledge_of_the_same_content_adds_up() {
        let seen = |hash, whole, shown: &[usize]| seen("/f", hash, whole, shown);
        check(None, seen(1, false, &[2]), &seen(1, false, &[2]));
        check(Some(seen(1, true, &[2, 3])), seen(1, false, &[2]), &seen(1, true, &[3, 2]));
        check(Some(seen(1, false, &[4])), seen(1, true, &[]), &seen(1, true, &[4]));
        check(Some(seen(7, true, &[3])), seen(1, false, &[2]), &seen(1, false, &[2]));
        let many: Vec<usize> = (1..=32).collect();
        let rest = [&many[1..], &[99]].concat();
        check(Some(seen(1, false, &many)), seen(1, false, &[99]), &seen(1, false, &rest));
    }

    #[test]
    fn the_files_seen_longest_ago_are_forgotten() {
        let mut files = KnownFiles::default();
        files.learn(seen("/often", 1, true, &[]));
        for number in 0..10 * FILES_MAX {
            files.learn(seen(&format!("/{number}"), 1, true, &[]));
            if number % 100 == 0 {
                files.learn(seen("/often", 1, true, &[]));
            }
            assert!(files.files.len() <= FILES_MAX);
        }
        assert!(files.contains_key(Path::new("/often")));
        let newest = (9 * FILES_MAX + FILES_MAX / 2)..10 * FILES_MAX;
        assert!(newest.map(|number| format!("/{number}")).all(|path| files.contains_key(Path::new(&path))));
        assert!(!files.contains_key(Path::new("/0")));
    }

    #[test]
    fn hashes_of_lines_go_before_the_files_do() {
        let mut files = KnownFiles::default();
        for number in 0..100 {
            files.learn(long(&format!("/{number}"), LINES_MAX / 10));
            files.learn(long("/again", LINES_MAX / 10));
            let kept: usize = files.files.values().map(|known| known.seen.lines.len()).sum();
            assert!(kept == files.lines && kept <= LINES_MAX, "{kept} are kept");
        }
        assert_eq!(files.get(Path::new("/0")), Some(&long("/0", 0)));
        assert_eq!(files.get(Path::new("/99")), Some(&long("/99", LINES_MAX / 10)));
        files.learn(long("/huge", LINES_MAX * 2));
        assert_eq!(
            files.get(Path::new("/huge")),
            Some(&long("/huge", LINES_MAX * 2)),
            "the newest keeps its own"
        );
    }
}
