//! What is read of a git repository, from its files alone. Nothing is run: a repository may configure git to run programs.

mod directory;
mod index;
mod programs;
mod settings;
mod work_tree;

pub use directory::{
    branch, common_directory, dot_git_above, git_directory, is_git_directory, is_repository,
    linked_work_trees, named_path, would_be_git_directory,
};
pub use index::tracked_files;
pub use programs::{can_hold_others, names_program, names_watcher};
pub use settings::{core_work_tree, origin};
pub use work_tree::{MainWorkTree, WorkTree};
