//! Where everything of a session lies. Other programs read these files and find them by their names, so the names are part of
//! the contract.
//!
//! ```text
//! <home>/projects/<project>/<session>.jsonl      the log
//! <home>/projects/<project>/<session>/           its side directory: lock, checkpoints, large results
//! <home>/trash/<time>-<session>/                 what was removed
//! <home>/index/<project>.json                    a cache for lists; may be deleted at any time
//! ```

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::lease::lock_file;

/// A longer name of a project is cut and gets a hash.
const NAME_CHARS_MAX: usize = 200;

/// The places under one home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLayout {
    home: PathBuf,
}

impl SessionLayout {
    /// The places under this home. Nothing is made.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    /// The home itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder with a folder for each project.
    pub fn projects(&self) -> PathBuf {
        self.home.join("projects")
    }

    /// Where removed sessions go.
    pub fn trash(&self) -> PathBuf {
        self.home.join("trash")
    }

    /// The cache of what is known about the sessions in a project's folder.
    pub(crate) fn index(&self, project: &Path) -> Option<PathBuf> {
        let mut name = project.file_name()?.to_owned();
        name.push(".json");
        Some(self.home.join("index").join(name))
    }

    /// The folder for new sessions that are started in a directory.
    pub fn project(&self, cwd: &Path) -> PathBuf {
        let [name, other] = names(cwd);
        let folder = self.projects().join(name);
        let other = self.projects().join(other);
        if other.is_dir() && !folder.is_dir() { other } else { folder }
    }

    /// The folders in which sessions of a directory may lie, whoever wrote them. All of them exist.
    pub(crate) fn folders(&self, cwd: &Path) -> Vec<PathBuf> {
        let names = names(cwd);
        let mut folders: Vec<PathBuf> = names.iter().map(|name| self.projects().join(name)).collect();
        folders.dedup();
        folders.retain(|folder| folder.is_dir());
        // Which characters a hash is made of depends on who wrote; what comes before it does not.
        if folders.is_empty() && names[0].len() > NAME_CHARS_MAX {
            let prefix = &names[0][..=NAME_CHARS_MAX];
            folders = self.all_folders();
            let has_prefix = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            folders.retain(|folder| folder.file_name().is_some_and(has_prefix));
        }
        folders
    }

    /// The folders of all projects, in the order of their names.
    pub(crate) fn all_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.projects()).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort_unstable();
        folders
    }

    /// The places of a new session that is started in a directory.
    pub fn session(&self, cwd: &Path, id: Uuid) -> SessionPaths {
        SessionPaths { file: self.project(cwd).join(format!("{id}.jsonl")), id }
    }
}

/// The places of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPaths {
    file: PathBuf,
    id: Uuid,
}

impl SessionPaths {
    pub(crate) fn new(file: PathBuf, id: Uuid) -> Self {
        Self { file, id }
    }

    /// The places of the session with this log; `None` if its name is not that of one.
    pub fn of_file(file: impl Into<PathBuf>) -> Option<Self> {
        let file = file.into();
        let id = session_id(file.file_name()?.to_str()?)?;
        Some(Self { file, id })
    }

    /// The session.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Its log.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder of its project.
    pub fn project(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Its side directory.
    pub fn side(&self) -> PathBuf {
        self.file.with_extension("")
    }

    /// The file that says who is writing it where the file system has no locks.
    pub fn lock(&self) -> PathBuf {
        lock_file(&self.file)
    }

    /// Former contents of files.
    pub fn checkpoints(&self) -> PathBuf {
        self.side().join("checkpoints")
    }

    /// Results that are too large for the conversation.
    pub fn results(&self) -> PathBuf {
        self.side().join("results")
    }

    /// A torn piece of the log that began at this byte.
    pub fn torn_end(&self, offset: u64) -> PathBuf {
        self.side().join(format!("torn-{offset}.part"))
    }

    /// Makes the folder of the project, if it is not there.
    pub fn create(&self) -> io::Result<()> {
        create_private(self.project())
    }
}

/// Makes a directory that other users cannot look into, and the ones above it that are missing.
///
/// A link in its place is refused: the user who put it there would choose where the sessions go.
pub fn create_private(directory: &Path) -> io::Result<()> {
    let made = windlass_text::folders::create_private(directory);
    let found = std::fs::symlink_metadata(directory);
    if found.as_ref().is_ok_and(std::fs::Metadata::is_symlink) {
        return Err(refusal(directory, "is a symbolic link. Replace it with a real directory"));
    }
    made?;
    if found?.uid() != rustix::process::geteuid().as_raw() {
        return Err(refusal(
            directory,
            "belongs to another user. Set WINDLASS_HOME to a directory that belongs to you",
        ));
    }
    Ok(())
}

fn refusal(directory: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", directory.display()))
}

/// The session whose log has this file name.
pub(crate) fn session_id(name: &str) -> Option<Uuid> {
    const HYPHENATED: usize = 36;
    let stem = name.strip_suffix(".jsonl").filter(|stem| stem.len() == HYPHENATED)?;
    Uuid::try_parse(stem).ok()
}

/// The names of a directory's folder: by code points, and by the units of UTF-16. They differ only where a path has
/// characters outside the basic plane, and there the readers disagree.
fn names(cwd: &Path) -> [String; 2] {
    let resolved = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let points = code_points(&resolved);
    let units = points.iter().flat_map(|&point| match char::from_u32(point) {
        Some(c) => c.encode_utf16(&mut [0; 2]).iter().map(|&unit| u32::from(unit)).collect(),
        None => vec![point],
    });
    let units: Vec<u32> = units.collect();
    [name(&points), name(&units)]
}

/// The characters of a path in their composed form. A byte that is no text counts as a character of its own.
fn code_points(path: &Path) -> Vec<u32> {
    const ESCAPED_BYTE: u32 = 0xdc00;
    let nfc = icu_normalizer::ComposingNormalizerBorrowed::new_nfc();
    let mut points = Vec::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        points.extend(nfc.normalize(chunk.valid()).chars().map(u32::from));
        points.extend(chunk.invalid().iter().map(|&byte| ESCAPED_BYTE + u32::from(byte)));
    }
    points
}

fn name(characters: &[u32]) -> String {
    let plain = |&c: &u32| char::from_u32(c).filter(char::is_ascii_alphanumeric).unwrap_or('-');
    let mut name: String = characters.iter().map(plain).collect();
    if name.len() > NAME_CHARS_MAX {
        name.truncate(NAME_CHARS_MAX);
        name.push('-');
        name.push_str(&hash(characters));
    }
    name
}

/// A hash of 32 bits, its sign dropped, in base 36.
fn hash(characters: &[u32]) -> String {
    let hash = characters.iter().fold(0_u32, |hash, &c| hash.wrapping_mul(31).wrapping_add(c));
    let mut rest = hash.cast_signed().unsigned_abs();
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(rest % 36, 36));
        rest /= 36;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_project_is_named_after_its_path() {
        let check = |path: &[u8], expected: &str| {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            assert_eq!(names(path)[0], expected, "{}", path.display());
        };
        check(b"/home/u/my app.x", "-home-u-my-app-x");
        check("/nowhere/caf\u{e9}".as_bytes(), "-nowhere-caf-");
        check("/nowhere/cafe\u{301}".as_bytes(), "-nowhere-caf-");
        check("/nowhere/\u{1f600}x".as_bytes(), "-nowhere--x");
        check(b"/nowhere/a\xff\xfeb", "-nowhere-a--b");
        assert_eq!(names(Path::new("/nowhere/\u{1f600}x"))[1], "-nowhere---x");
    }

    #[test]
    fn links_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        assert_eq!(names(&folder.path().join("link")), names(&folder.path().join("real")));
    }

    /// The expected values were computed by an interpreter of the language the rule comes from.
    #[test]
    fn a_long_name_is_cut_and_gets_a_hash() {
        let check = |text: &str, expected: &str| {
            assert_eq!(hash(&text.chars().map(u32::from).collect::<Vec<_>>()), expected, "{text}");
        };
        check("", "0");
        check("a", "2p");
        check("hello", "1n1e4y");
        check("/home/user/project", "q9y62y");
        check("polygenelubricants", "zik0zk");
        let long = format!("/{}", "x".repeat(200));
        let name = &names(Path::new(&long))[0];
        assert_eq!(name.len(), 200 + 1 + hash(&code_points(Path::new(&long))).len());
        assert_eq!(&name[..201], format!("-{}-", "x".repeat(199)));
        assert_eq!(names(Path::new(&long[..200]))[0].len(), 200);
    }

    #[test]
    fn a_folder_that_another_hash_named_is_found() {
        let home = tempfile::tempdir().unwrap();
        let layout = SessionLayout::new(home.path());
        let long = PathBuf::from(format!("/{}", "y".repeat(230)));
        let other = layout.projects().join(format!("-{}-abc", "y".repeat(199)));
        std::fs::create_dir_all(&other).unwrap();
        std::fs::create_dir_all(layout.projects().join(format!("-{}", "y".repeat(199)))).unwrap();
        assert_eq!(layout.folders(&long), [other]);
        let own = layout.project(&long);
        std::fs::create_dir_all(&own).unwrap();
        assert_eq!(layout.folders(&long), [own]);
    }

    #[test]
    fn a_folder_named_by_units_is_used_where_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let layout = SessionLayout::new(home.path());
        let cwd = Path::new("/nowhere/\u{1f600}");
        assert_eq!(layout.project(cwd), layout.projects().join("-nowhere--"));
        let by_units = layout.projects().join("-nowhere---");
        std::fs::create_dir_all(&by_units).unwrap();
        assert_eq!(layout.project(cwd), by_units);
        assert_eq!(layout.folders(cwd), [by_units]);
    }

    #[test]
    fn only_files_named_by_a_uuid_are_sessions() {
        let check = |name: &str, expected: bool| assert_eq!(session_id(name).is_some(), expected, "{name}");
        check("0f3c8a10-2b4d-4e6f-8a9b-0c1d2e3f4a5b.jsonl", true);
        check("0F3C8A10-2B4D-4E6F-8A9B-0C1D2E3F4A5B.jsonl", true);
        check("0f3c8a102b4d4e6f8a9b0c1d2e3f4a5b.jsonl", false);
        check("0f3c8a10-2b4d-4e6f-8a9b-0c1d2e3f4a5b.json", false);
        check("notes.jsonl", false);
        check("{0f3c8a10-2b4d-4e6f-8a9b-0c1d2e3f4a5b}.jsonl", false);
    }

    #[test]
    fn directories_are_private_and_never_links() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let layout = SessionLayout::new(home.path().join("h"));
        let paths = layout.session(Path::new("/nowhere"), Uuid::nil());
        create_private(&paths.side()).unwrap();
        create_private(&paths.side()).unwrap();
        for directory in [layout.home(), &layout.projects(), paths.project(), &paths.side()] {
            let mode = std::fs::metadata(directory).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        }
        let elsewhere = layout.session(Path::new("/elsewhere"), Uuid::nil());
        std::os::unix::fs::symlink(home.path(), elsewhere.project()).unwrap();
        let error = create_private(elsewhere.project()).unwrap_err().to_string();
        assert!(error.contains("is a symbolic link"), "{error}");
    }
}
