//! The tool Glob: finds files by name.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_ports::{ExamineContext, HiddenPaths, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, PathFact, ToolOutput, ToolProfile};
use windlass_text::plurals::quantity_as;

use crate::file::{OnCancel, blocking};
use crate::paths::{absolute, check_decided, fact};
use crate::search::{
    NewestFiles, SearchStop, honour_ignore_files, leave_out, names_version_control, place, printable,
    threads_for,
};

const NAMES_MAX: usize = 100;
/// A tree of unknown size gets as many threads as there are.
const UNKNOWN_SIZE: usize = usize::MAX;

/// Finds files by name and returns their paths, most recently changed first, at most 100.
///
/// - `*` and `?` stay inside one name, `**` crosses directories, `{a,b}` and `[abc]` choose.
/// - A pattern without a slash matches in all directories below: `*.rs` is `**/*.rs`. With a slash it starts at
///   `path`: `src/*.rs` finds no `src/a/b.rs`.
/// - Hidden and ignored files are found too. To search what is inside files use Grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// What to look for, for example `src/**/*.{ts,tsx}`.
    pub(crate) pattern: String,
    /// The directory to search. Default: the working directory.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// How Glob searches.
#[derive(Clone, Debug)]
pub struct GlobSettings {
    /// Leave out what `.gitignore` and its like name.
    pub should_honour_ignore_files: bool,
    /// Find files and look into directories whose names begin with a dot.
    pub should_show_hidden: bool,
    /// After this long, what was found is returned.
    pub timeout: Duration,
}

impl Default for GlobSettings {
    fn default() -> Self {
        Self { should_honour_ignore_files: false, should_show_hidden: true, timeout: Duration::from_secs(20) }
    }
}

/// The tool Glob.
#[derive(Clone, Debug, Default)]
pub struct Glob {
    settings: GlobSettings,
}

impl Glob {
    /// Searches with these settings.
    pub fn new(settings: GlobSettings) -> Self {
        Self { settings }
    }
}

impl Tool for Glob {
    type Input = GlobInput;
    const NAME: &'static str = "Glob";
    const PROFILE: ToolProfile = ToolProfile::GLOB;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Glob.json"));

    fn facts(&self, input: &GlobInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        let query = Query::new(input, &cx.cwd)?;
        let target = input.pattern.clone();
        Ok(CallFacts { is_shared: true, paths: vec![query.base], target, ..CallFacts::new(CallKind::Read) })
    }

    async fn run(&self, input: GlobInput, cx: ToolContext) -> ToolOutput {
        let (settings, started) = (self.settings.clone(), Instant::now());
        blocking(cx, OnCancel::Leave, move |cx| {
            let query = Query::new(&input, &cx.cwd)?;
            let query = Query { base: check_decided(query.base, cx)?, ..query };
            let stop = SearchStop::new(cx, settings.timeout);
            let found = search(&query, &settings, &cx.hidden, &stop);
            Ok(found.answer(&cx.cwd, settings.timeout, started.elapsed()))
        })
        .await
    }
}

struct Query {
    /// The deepest directory that the pattern names literally.
    base: PathFact,
    matcher: GlobMatcher,
    depth_max: Option<usize>,
    /// Whether to look into version control directories.
    is_everything: bool,
}

impl Query {
    fn new(input: &GlobInput, cwd: &Path) -> Result<Self, String> {
        let pattern = input.pattern.trim();
        if pattern.is_empty() {
            return Err("`pattern` is empty. Give a pattern such as `**/*.rs`.".to_owned());
        }
        if pattern.contains('\0') {
            return Err("`pattern` contains a NUL character, which no file name can hold.".to_owned());
        }
        if goes_up(pattern) {
            return Err("`pattern` has `..` after a wildcard. Give the directory in `path`.".to_owned());
        }
        let start = match &input.path {
            Some(path) => directory(path, cwd)?,
            None => cwd.to_owned(),
        };
        let (literal, rest) = split_literal(pattern);
        let base = if literal.is_empty() { start } else { absolute("pattern", literal, &start)? };
        let rest = if pattern.contains('/') { rest.to_owned() } else { format!("**/{rest}") };
        let matcher = GlobBuilder::new(&rest)
            .literal_separator(true)
            .build()
            .map_err(|error| format!("`pattern` is invalid: {error}"))?
            .compile_matcher();
        // A brace may hold several names.
        let bounded = !rest.contains("**") && !rest.contains('{');
        let depth_max = bounded.then(|| rest.split('/').count());
        let is_everything =
            names_version_control(pattern) || input.path.as_deref().is_some_and(names_version_control);
        Ok(Self { base: fact(base), matcher, depth_max, is_everything })
    }
}

fn directory(path: &str, cwd: &Path) -> Result<PathBuf, String> {
    let found = place(path, cwd)?.lexical;
    match found.metadata() {
        Ok(meta) if meta.is_dir() => Ok(found),
        Ok(_) => Err(format!("`path`: {} is a file. Give a directory.", found.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("`path`: the directory {} does not exist.", found.display()))
        }
        Err(error) => Err(format!("`path`: cannot search {}: {error}.", found.display())),
    }
}

/// Whether a pattern leads out of the directory it begins with.
pub(crate) fn goes_up(pattern: &str) -> bool {
    split_literal(pattern.trim()).1.split(['/', '{', '}', ',']).any(|part| part == "..")
}

/// Splits off the directories that a pattern names without any choice.
pub(crate) fn split_literal(pattern: &str) -> (&str, &str) {
    let special = pattern.find(['*', '?', '[', ']', '{', '}', '\\']).unwrap_or(pattern.len());
    match pattern[..special].rfind('/') {
        // The root is a directory, too.
        Some(0) => ("/", &pattern[1..]),
        Some(slash) => (&pattern[..slash], &pattern[slash + 1..]),
        None => ("", pattern),
    }
}

struct GlobMatches {
    paths: Vec<PathBuf>,
    count: u64,
    unreadable: u64,
    is_late: bool,
}

fn search(query: &Query, settings: &GlobSettings, hidden: &HiddenPaths, stop: &SearchStop) -> GlobMatches {
    let newest = Mutex::new(NewestFiles::new(NAMES_MAX));
    let unreadable = AtomicU64::new(0);
    // What was decided on is what is searched; names stay as they were asked for.
    if let Some(root) = query.base.resolved.as_ref().filter(|_| query.base.is_directory) {
        let visit = |entry: Result<DirEntry, ignore::Error>| {
            if stop.is_reached() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) => {
                    if let Some((name, modified)) = match_entry(query, root, &entry) {
                        let path = query.base.lexical.join(name);
                        newest.lock().unwrap_or_else(PoisonError::into_inner).add(path, modified);
                    }
                }
                Err(_) => drop(unreadable.fetch_add(1, Ordering::Relaxed)),
            }
            WalkState::Continue
        };
        walker(query, settings, hidden, root).build_parallel().run(|| Box::new(visit));
    }
    let newest = newest.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unreadable = unreadable.into_inner();
    GlobMatches { count: newest.count, paths: newest.into_paths(), unreadable, is_late: stop.is_late() }
}

fn walker(query: &Query, settings: &GlobSettings, hidden: &HiddenPaths, root: &Path) -> WalkBuilder {
    let mut walker = WalkBuilder::new(root);
    walker
        .standard_filters(settings.should_honour_ignore_files)
        .hidden(!settings.should_show_hidden)
        .max_depth(query.depth_max)
        .threads(threads_for(UNKNOWN_SIZE));
    if settings.should_honour_ignore_files {
        honour_ignore_files(&mut walker, root);
    }
    leave_out(&mut walker, query.is_everything, hidden);
    walker
}

/// The name below `root` and the age of an entry that is looked for.
fn match_entry<'a>(query: &Query, root: &Path, entry: &'a DirEntry) -> Option<(&'a Path, SystemTime)> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        return None;
    }
    let name = entry.path().strip_prefix(root).ok()?;
    if !query.matcher.is_match(name) {
        return None;
    }
    // A link is as good as the file it leads to, and no better.
    let meta: Option<Metadata> = if kind.is_symlink() {
        Some(entry.path().metadata().ok().filter(Metadata::is_file)?)
    } else {
        entry.metadata().ok()
    };
    let modified = meta.and_then(|meta| meta.modified().ok());
    Some((name, modified.unwrap_or(SystemTime::UNIX_EPOCH)))
}

impl GlobMatches {
    fn answer(&self, cwd: &Path, timeout: Duration, took: Duration) -> ToolOutput {
        let names: Vec<String> = self.paths.iter().map(|path| printable(path, cwd)).collect();
        let truncated = self.count > names.len() as u64;
        let mut lines: Vec<String> = names.clone();
        if names.is_empty() {
            lines.push("No files found".to_owned());
        }
        if truncated {
            lines.push(format!(
                "(Showing the {} most recently changed of {}{} matches. Use a narrower pattern or path to \
                 see others.)",
                names.len(),
                if self.is_late { "at least " } else { "" },
                self.count
            ));
        }
        if self.is_late {
            lines.push(format!(
                "(Stopped after {} s, so files may be missing. Use a narrower pattern or path.)",
                timeout.as_secs()
            ));
        }
        if self.unreadable > 0 {
            let directories = quantity_as(self.unreadable, "directory", "directories");
            lines.push(format!("(Cannot read {directories}.)"));
        }
        let output = json!({
            "durationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "numFiles": names.len(),
            "filenames": names,
            "truncated": truncated || self.is_late,
            "totalMatches": self.count,
            "countIsComplete": !self.is_late,
        });
        ToolOutput::text(&lines.join("\n")).with_structured(&output)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use super::*;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        /// Files are as old as they come late in the list.
        fn new(files: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let tree = Self { dir };
            for (age, file) in (0..).zip(files) {
                let path = tree.root().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let modified = SystemTime::now() - Duration::from_secs(100 * (age + 1));
                File::create(path).unwrap().set_modified(modified).unwrap();
            }
            tree
        }

        fn root(&self) -> PathBuf {
            self.dir.path().canonicalize().unwrap()
        }

        async fn glob_with(&self, settings: GlobSettings, input: Value) -> ToolOutput {
            let cx = ToolContext::detached(self.root());
            Glob::new(settings).run(serde_json::from_value(input).unwrap(), cx).await
        }

        async fn check(&self, input: Value, expected: &[&str]) {
            let outcome = self.glob_with(GlobSettings::default(), input.clone()).await;
            assert_eq!(
                text(&outcome).replace(self.root().to_str().unwrap(), "ROOT"),
                expected.join("\n"),
                "{input}"
            );
        }
    }

    fn text(outcome: &ToolOutput) -> &str {
        outcome.content[0].as_text().unwrap()
    }

    #[tokio::test]
    async fn patterns() {
        let tree =
            Tree::new(&["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", ".hidden/e.rs", "weird [x]/f.rs"]);
        let check = async |pattern: &str, expected: &[&str]| {
            tree.check(json!({ "pattern": pattern }), expected).await;
        };
        check("*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs", ".hidden/e.rs", "weird [x]/f.rs"]).await;
        check("**/*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs", ".hidden/e.rs", "weird [x]/f.rs"]).await;
        check("./*.rs", &["a.rs"]).await;
        check("src/*.rs", &["src/b.rs"]).await;
        check("src/**", &["src/b.rs", "src/deep/c.rs", "src/d.txt"]).await;
        check("src/**/*.{rs,txt}", &["src/b.rs", "src/deep/c.rs", "src/d.txt"]).await;
        check("{src,src/deep}/[bc].rs", &["src/b.rs", "src/deep/c.rs"]).await;
        check("src/d.txt", &["src/d.txt"]).await;
        check("d.t?t", &["src/d.txt"]).await;
        check("weird \\[x\\]/*", &["weird [x]/f.rs"]).await;
        check("src/deep/../*.txt", &["src/d.txt"]).await;
        check("nowhere/*.rs", &["No files found"]).await;
        check("src", &["No files found"]).await;
        let pattern = format!("{}/src/*.txt", tree.root().display());
        check(&pattern, &["src/d.txt"]).await;
        tree.check(json!({ "pattern": "*.rs", "path": "src" }), &["src/b.rs", "src/deep/c.rs"]).await;
        tree.check(json!({ "pattern": "../a.rs", "path": "src" }), &["a.rs"]).await;
    }

    #[tokio::test]
    async fn ignored_and_hidden_files_by_setting() {
        let tree = Tree::new(&["a.rs", "target/b.rs", ".c/d.rs", ".git/e.rs", ".gitignore"]);
        fs::write(tree.root().join(".gitignore"), "target\n").unwrap();
        tree.check(json!({ "pattern": "*.rs" }), &["a.rs", "target/b.rs", ".c/d.rs"]).await;
        tree.check(json!({ "pattern": ".git/*.rs" }), &[".git/e.rs"]).await;
        let check = async |settings: GlobSettings, expected: &str| {
            let outcome = tree.glob_with(settings, json!({ "pattern": "*.rs" })).await;
            assert_eq!(text(&outcome), expected);
        };
        let default = GlobSettings::default();
        check(GlobSettings { should_honour_ignore_files: true, ..default.clone() }, "a.rs\n.c/d.rs").await;
        check(GlobSettings { should_show_hidden: false, ..default.clone() }, "a.rs\ntarget/b.rs").await;
        fs::remove_dir_all(tree.root().join(".git")).unwrap();
        check(GlobSettings { should_honour_ignore_files: true, ..default }, "a.rs\n.c/d.rs").await;
    }

    #[tokio::test]
    async fn a_hundred_of_many() {
        let names: Vec<String> = (0..150).map(|n| format!("{n}.txt")).collect();
        let tree = Tree::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let outcome = tree.glob_with(GlobSettings::default(), json!({ "pattern": "*.txt" })).await;
        let lines: Vec<&str> = text(&outcome).lines().collect();
        assert_eq!(lines.len(), 101);
        assert_eq!(lines[..100], names[..100]);
        assert!(
            lines[100].starts_with("(Showing the 100 most recently changed of 150 matches."),
            "{}",
            lines[100]
        );
        let output: Value = serde_json::from_str(outcome.structured.unwrap().0.get()).unwrap();
        assert_eq!(
            (&output["numFiles"], &output["truncated"], &output["totalMatches"]),
            (&json!(100), &json!(true), &json!(150))
        );
        assert_eq!(output["countIsComplete"], true);
    }

    #[tokio::test]
    async fn a_search_that_takes_too_long_says_so() {
        let tree = Tree::new(&["a.rs"]);
        let settings = GlobSettings { timeout: Duration::ZERO, ..GlobSettings::default() };
        let outcome = tree.glob_with(settings, json!({ "pattern": "*.rs" })).await;
        assert!(text(&outcome).contains("Stopped after 0 s, so files may be missing"), "{}", text(&outcome));
    }

    #[test]
    fn what_could_not_be_read_is_counted() {
        for (unreadable, expected) in [(1, "(Cannot read 1 directory.)"), (2, "(Cannot read 2 directories.)")]
        {
            let found = GlobMatches { paths: Vec::new(), count: 0, unreadable, is_late: false };
            let outcome = found.answer(Path::new("/"), Duration::ZERO, Duration::ZERO);
            assert!(text(&outcome).contains(expected), "{}", text(&outcome));
        }
    }

    #[tokio::test]
    async fn cancelling_ends_the_search() {
        let cx = ToolContext::detached("/".into());
        cx.cancel.cancel();
        let started = Instant::now();
        let input = serde_json::from_value(json!({ "pattern": "**/*", "path": "/" })).unwrap();
        let outcome = Glob::default().run(input, cx).await;
        assert!(outcome.is_error && started.elapsed() < Duration::from_millis(500));
    }

    #[tokio::test]
    async fn links_and_names_that_are_not_text() {
        let tree = Tree::new(&["real.rs", "dir/x.rs"]);
        symlink("real.rs", tree.root().join("link.rs")).unwrap();
        symlink("nowhere", tree.root().join("broken.rs")).unwrap();
        symlink("dir", tree.root().join("linked")).unwrap();
        File::create(tree.root().join(OsStr::from_bytes(b"\xff.rs"))).unwrap();
        let outcome = tree.glob_with(GlobSettings::default(), json!({ "pattern": "*.rs" })).await;
        let mut lines: Vec<&str> = text(&outcome).lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["\\xff.rs", "dir/x.rs", "link.rs", "real.rs"]);
        tree.check(json!({ "pattern": "*.rs", "path": "linked" }), &["linked/x.rs"]).await;
    }

    #[tokio::test]
    async fn a_link_that_was_swapped_after_the_decision_is_not_followed() {
        let tree = Tree::new(&["real/mine.rs", "outside/theirs.rs"]);
        let link = tree.root().join("link");
        for input in [json!({ "pattern": "*.rs", "path": "link" }), json!({ "pattern": "link/*.rs" })] {
            symlink("real", &link).unwrap();
            let examine = ExamineContext::new(tree.root(), [tree.root()].into());
            let parsed = || serde_json::from_value(input.clone()).unwrap();
            let mut cx = ToolContext::detached(tree.root());
            cx.facts = Glob::default().facts(&parsed(), &examine).unwrap().into();
            let outcome = Glob::default().run(parsed(), cx.clone()).await;
            assert_eq!(text(&outcome), "link/mine.rs");
            fs::remove_file(&link).unwrap();
            symlink("outside", &link).unwrap();
            let outcome = Glob::default().run(parsed(), cx).await;
            fs::remove_file(&link).unwrap();
            let text = text(&outcome);
            assert!(outcome.is_error && text.contains("link now leads to another file"), "{text}");
        }
    }

    #[test]
    fn bad_input_is_explained() {
        let tree = Tree::new(&["file"]);
        let cx = ExamineContext::new(tree.root(), [tree.root()].into());
        let check = |input: Value, expected: &str| {
            let error = Glob::default().facts(&serde_json::from_value(input).unwrap(), &cx).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(json!({ "pattern": "" }), "`pattern` is empty");
        check(json!({ "pattern": "a/b\0c/*" }), "NUL");
        check(json!({ "pattern": "*\0" }), "NUL");
        check(json!({ "pattern": "{a" }), "`pattern` is invalid: error parsing glob");
        check(json!({ "pattern": "*", "path": "none" }), "none does not exist");
        check(json!({ "pattern": "*", "path": "file" }), "is a file");
        check(json!({ "pattern": "*", "path": "a\0" }), "NUL");
    }

    #[test]
    fn the_facts_name_what_is_searched() {
        let tree = Tree::new(&["src/a"]);
        let cx = ExamineContext::new(tree.root(), [tree.root()].into());
        let check = |input: Value, expected: PathBuf| {
            let facts = Glob::default().facts(&serde_json::from_value(input).unwrap(), &cx).unwrap();
            assert_eq!((facts.kind, facts.is_shared), (CallKind::Read, true));
            assert_eq!(facts.paths, [fact(expected)]);
        };
        check(json!({ "pattern": "*" }), tree.root());
        check(json!({ "pattern": "*", "path": "src" }), tree.root().join("src"));
        check(json!({ "pattern": "../*" }), tree.root().parent().unwrap().to_owned());
        check(json!({ "pattern": "/etc/*" }), "/etc".into());
        check(json!({ "pattern": "/*" }), "/".into());
    }
}
