//! A walk over directories, as the words of a command describe it.

/// How a command walks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Words that may name where it begins; none means the workspace.
    pub(crate) roots: Vec<String>,
    /// Whether hidden files are read.
    pub(crate) hidden: bool,
    /// Whether files that git ignores are read.
    pub(crate) ignored: bool,
    /// Whether links are followed.
    pub(crate) follows: bool,
    /// Whether the files of git itself are left out.
    pub(crate) without_git: bool,
    /// How far below its begin it goes.
    pub(crate) depth: Option<usize>,
    /// Whether what links lead to counts, where they are not followed.
    pub(crate) links: bool,
    /// Whether it names directories alone, and no file.
    pub(crate) directories_only: bool,
    /// Names of files: only these are read, when there are any.
    pub(crate) only: Vec<String>,
    /// Names of files that are left out.
    pub(crate) except: Vec<String>,
    /// Names of directories that are left out.
    pub(crate) except_below: Vec<String>,
}
