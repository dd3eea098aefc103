//! Searching many files: which ones, in which order, and several at a time.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{Walk, WalkBuilder};

use crate::search::{SearchStop, honour_ignore_files, threads_for};
use crate::search_lines::{FileFound, LineQuery, LineSearch, SearchGoal, UnsearchedReason};

/// Files that are searched before their results are looked at.
const BATCH: usize = 256;
/// The first look comes sooner: often it is all that is needed.
const FIRST_BATCH: usize = 32;

/// Walks the files below a resolved path by name, also hidden ones, but none that are ignored.
pub(crate) fn walker(root: &Path, globs: Option<&str>, kind: Option<&str>) -> Result<WalkBuilder, String> {
    let mut overrides = OverrideBuilder::new(root);
    for glob in globs.iter().flat_map(|globs| split_globs(globs)) {
        overrides.add(glob).map_err(|error| format!("`glob`: {error}"))?;
    }
    let mut types = TypesBuilder::new();
    if let Some(name) = kind {
        types.add_defaults();
        types.select(name);
    }
    let mut walker = WalkBuilder::new(root);
    walker
        .hidden(false)
        .overrides(overrides.build().map_err(|error| format!("`glob`: {error}"))?)
        .types(types.build().map_err(|error| format!("`type`: {error}"))?)
        .add_custom_ignore_filename(".rgignore")
        .sort_by_file_name(std::cmp::Ord::cmp);
    honour_ignore_files(&mut walker, root);
    Ok(walker)
}

/// Several globs may stand in one text, with blanks or commas between them; a comma inside braces belongs to its glob.
fn split_globs(text: &str) -> Vec<&str> {
    let words = text.split_whitespace();
    let parts =
        words.flat_map(|word| if word.contains('{') { vec![word] } else { word.split(',').collect() });
    parts.filter(|part| !part.is_empty()).collect()
}

/// The walk through the files that are searched.
pub(crate) struct FileWalk<'a> {
    pub(crate) walk: Walk,
    pub(crate) stop: &'a SearchStop,
    pub(crate) unreadable: u64,
}

impl FileWalk<'_> {
    fn batch(&mut self, size: usize) -> Vec<PathBuf> {
        let mut batch = Vec::new();
        while batch.len() < size && !self.stop.is_reached() {
            match self.walk.next() {
                None => break,
                Some(Ok(entry)) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                    batch.push(entry.into_path());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => self.unreadable += u64::from(is_about_reading(&error)),
            }
        }
        batch
    }

    /// Searches several files at a time, and hands each result on in order, until `take` has had enough.
    pub(crate) fn search(
        &mut self,
        query: &LineQuery,
        goal: &SearchGoal,
        mut take: impl FnMut(PathBuf, Result<FileFound, UnsearchedReason>) -> ControlFlow<()>,
    ) {
        let stop = self.stop;
        let mut batch = self.batch(FIRST_BATCH);
        while !batch.is_empty() {
            let next = AtomicUsize::new(0);
            let search_some = || {
                let mut search = LineSearch::new(query, stop);
                let indices = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                let files = indices.map_while(|index| Some((index, batch.get(index)?)));
                let files = files.take_while(|_| !stop.is_reached());
                files.map(|(index, path)| (index, search.search(path, goal))).collect::<Vec<_>>()
            };
            let (mut found, following) = thread::scope(|scope| {
                let workers: Vec<_> =
                    (0..threads_for(batch.len())).map(|_| scope.spawn(search_some)).collect();
                let following = self.batch(BATCH);
                let found = workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default());
                (found.collect::<BTreeMap<usize, _>>(), following)
            });
            for (index, path) in batch.into_iter().enumerate() {
                let Some(found) = found.remove(&index) else { return };
                if take(path, found).is_break() {
                    return;
                }
            }
            batch = following;
        }
    }
}

/// Ignore files may hold nonsense; that is nobody's business here.
fn is_about_reading(error: &ignore::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() != io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_told_apart() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split_globs(text), expected, "{text}");
        check("*.rs", &["*.rs"]);
        check("*.ts *.tsx", &["*.ts", "*.tsx"]);
        check("*.ts,*.tsx", &["*.ts", "*.tsx"]);
        check("*.{ts,tsx}", &["*.{ts,tsx}"]);
        check(" , ", &[]);
    }
}
