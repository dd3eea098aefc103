//! Searching many files: which ones, in which order, and several at a time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use ignore::{Walk, WalkBuilder};
use windlass_ports::HiddenPaths;

use crate::search::{
    SearchStop, honour_ignore_files, is_version_control, names_version_control, threads_for,
};

/// Files that are searched before their results are looked at.
const BATCH: usize = 256;
/// The first look comes sooner: often it is all that is needed.
const FIRST_BATCH: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct FileFilter {
    globs: Override,
    types: Types,
}

impl FileFilter {
    /// An error is ripgrep's.
    pub(crate) fn new(root: &Path, globs: Option<&str>, file_type: Option<&str>) -> Result<Self, String> {
        let mut overrides = OverrideBuilder::new(root);
        for glob in globs.iter().flat_map(|globs| split_globs(globs)) {
            overrides.add(glob).map_err(|error| format!("`glob`: {error}"))?;
        }
        let mut types = TypesBuilder::new();
        if let Some(name) = file_type {
            types.add_defaults();
            types.select(name);
        }
        Ok(Self {
            globs: overrides.build().map_err(|error| format!("`glob`: {error}"))?,
            types: types.build().map_err(|error| format!("`type`: {error}"))?,
        })
    }
}

/// Several globs may stand in one text, with blanks or commas between them; a comma inside braces belongs to its glob.
fn split_globs(text: &str) -> Vec<&str> {
    let words = text.split_whitespace();
    let parts =
        words.flat_map(|word| if word.contains('{') { vec![word] } else { word.split(',').collect() });
    parts.filter(|part| !part.is_empty()).collect()
}

/// The files below a resolved directory, or the one file, in the order of their names. What `.gitignore` and its like
/// name is left out, also where there is no repository; hidden files are not.
pub(crate) struct FileWalk {
    walk: Walk,
    pub(crate) unreadable: u64,
}

impl FileWalk {
    pub(crate) fn new(root: &Path, filter: &FileFilter, hidden: &HiddenPaths) -> Self {
        let mut walker = WalkBuilder::new(root);
        walker
            .hidden(false)
            .overrides(filter.globs.clone())
            .types(filter.types.clone())
            .add_custom_ignore_filename(".rgignore")
            .sort_by_file_name(std::cmp::Ord::cmp);
        honour_ignore_files(&mut walker, root);
        let all = names_version_control(&root.to_string_lossy());
        let hidden = hidden.clone();
        walker.filter_entry(move |entry| (all || !is_version_control(entry)) && !hidden.hides(entry.path()));
        Self { walk: walker.build(), unreadable: 0 }
    }

    fn batch(&mut self, size: usize, stop: &SearchStop) -> Vec<PathBuf> {
        let mut batch = Vec::new();
        while batch.len() < size && !stop.is_reached() {
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

    /// Searches the files, several at a time, and hands each result on in the order of the files, until `take` has had
    /// enough. `new_search` makes what one thread searches with.
    pub(crate) fn search<R: Send, S: FnMut(&Path) -> R>(
        &mut self,
        stop: &SearchStop,
        new_search: impl Fn() -> S + Sync,
        mut take: impl FnMut(PathBuf, R) -> Enough,
    ) {
        let mut batch = self.batch(FIRST_BATCH, stop);
        while !batch.is_empty() {
            let next = AtomicUsize::new(0);
            let (mut found, following) = thread::scope(|scope| {
                let worker = || search_some(&batch, &next, stop, new_search());
                let workers: Vec<_> = (0..threads_for(batch.len())).map(|_| scope.spawn(worker)).collect();
                let following = self.batch(BATCH, stop);
                let found = workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default());
                (found.collect::<BTreeMap<usize, R>>(), following)
            });
            for (index, path) in batch.into_iter().enumerate() {
                let Some(found) = found.remove(&index) else { return };
                if take(path, found) == Enough::Yes {
                    return;
                }
            }
            batch = following;
        }
    }
}

/// Whether a search can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

fn search_some<R>(
    batch: &[PathBuf],
    next: &AtomicUsize,
    stop: &SearchStop,
    mut search: impl FnMut(&Path) -> R,
) -> Vec<(usize, R)> {
    let mut found = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        match batch.get(index) {
            Some(path) if !stop.is_reached() => found.push((index, search(path))),
            _ => return found,
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
