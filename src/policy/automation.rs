//! Places of a repository that make other programs run something: CI definitions,
//! and the configuration of agents, editors and tools. They are the same wherever
//! they lie in the tree, and may be written only where a rule names them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use super::lenient::{same_name, spelled};

/// Places of one kind; `a/b` is `b` in a directory `a`.
struct Group {
    /// What they are, in words that follow "it is".
    what: &'static str,
    places: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        what: "a CI definition",
        places: &[
            ".appveyor.yml",
            ".azure-pipelines",
            ".build.yml",
            ".buildkite",
            ".builds",
            ".circleci",
            ".cirrus.star",
            ".cirrus.yml",
            ".drone.jsonnet",
            ".drone.star",
            ".drone.yaml",
            ".drone.yml",
            ".forgejo/actions",
            ".forgejo/workflows",
            ".gitea/actions",
            ".gitea/workflows",
            ".github/actions",
            ".github/workflows",
            ".gitlab-ci.yml",
            ".gitlab/ci",
            ".harness",
            ".semaphore",
            ".teamcity",
            ".tekton",
            ".travis.yml",
            ".woodpecker",
            ".woodpecker.yaml",
            ".woodpecker.yml",
            "Jenkinsfile",
            "appveyor.yml",
            "azure-pipelines.yaml",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "bitrise.yml",
            "buildspec.yaml",
            "buildspec.yml",
            "cloudbuild.json",
            "cloudbuild.yaml",
            "cloudbuild.yml",
            "codemagic.yaml",
            "wercker.yml",
        ],
    },
    Group {
        what: "the configuration of an agent",
        places: &[
            ".agent",
            ".agent/skills",
            ".agent/templates",
            ".agents",
            ".aider.conf.yml",
            ".amazonq",
            ".claude",
            ".codex",
            ".continue",
            ".cursor",
            ".gemini",
            ".junie",
            ".kiro",
            ".mcp.json",
            ".opencode",
            ".qwen",
            ".roo",
            ".windsurf",
            "opencode.json",
            "opencode.jsonc",
        ],
    },
    Group {
        what: "the configuration of an editor",
        places: &[
            ".devcontainer",
            ".devcontainer.json",
            ".dir-locals.el",
            ".exrc",
            ".fleet",
            ".gitpod.yml",
            ".idea",
            ".nvim.lua",
            ".nvimrc",
            ".vimrc",
            ".vscode",
            ".zed",
        ],
    },
    Group {
        what: "the configuration of a tool that runs programs",
        places: &[
            ".cargo/config",
            ".cargo/config.toml",
            ".envrc",
            ".gdbinit",
            ".githooks",
            ".husky",
            ".lefthook",
            ".lefthook-local.yml",
            ".lefthook.yaml",
            ".lefthook.yml",
            ".lldbinit",
            ".mise",
            ".mise.toml",
            ".mvn",
            ".npmrc",
            ".overcommit.yml",
            ".pnpmfile.cjs",
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            ".pre-commit-hooks.yaml",
            ".yarn/plugins",
            ".yarn/releases",
            ".yarnrc",
            ".yarnrc.yml",
            "lefthook-local.yml",
            "lefthook.yaml",
            "lefthook.yml",
            "mise.toml",
        ],
    },
];

/// A place of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Automation {
    /// What it is, in words that follow "it is".
    pub(super) what: &'static str,
    /// The place, as `.github/workflows`.
    pub(super) place: &'static str,
}

impl Automation {
    /// The name that a rule has to spell.
    pub(super) fn component(self) -> &'static str {
        self.parts().next_back().unwrap_or(self.place)
    }

    fn parts(self) -> impl DoubleEndedIterator<Item = &'static str> {
        self.place.split('/')
    }

    /// Whether these names are the place.
    fn is(self, names: &[String]) -> bool {
        names.len() == self.parts().count()
            && self
                .parts()
                .zip(names)
                .all(|(part, name)| same_name(name, part))
    }

    /// How many of the last names are the first ones of the place.
    fn begins_at_end(self, names: &[String]) -> bool {
        let above = self.parts().count() - 1;
        let first = names.len().checked_sub(above).filter(|_| above > 0);
        let last = first.and_then(|first| names.get(first..));
        last.is_some_and(|last| {
            let mut pairs = self.parts().zip(last);
            pairs.all(|(part, name)| same_name(name, part))
        })
    }
}

/// Every place of the table.
pub(super) fn all() -> impl Iterator<Item = Automation> {
    GROUPS.iter().flat_map(|group| {
        let what = group.what;
        let places = group.places.iter();
        places.map(move |place| Automation { what, place })
    })
}

/// The place in which a path of these names is.
pub(super) fn around(names: &[String]) -> Option<Automation> {
    all().find(|one| {
        let mut windows = names.windows(one.parts().count());
        windows.any(|window| one.is(window))
    })
}

/// The places that whatever is written at a path of these names brings along.
pub(super) fn below(names: &[String]) -> impl Iterator<Item = Automation> {
    all().filter(|one| one.begins_at_end(names))
}

/// Every place that makes other programs run something, as it is named from the
/// top of a repository.
pub fn automation_places() -> impl Iterator<Item = &'static str> {
    all().map(|one| one.place)
}

/// Whether a path ends with the name of a place that makes other programs run
/// something.
pub fn is_automation(path: &Path) -> bool {
    // Asked of every file of a workspace, of which nearly all are called otherwise.
    if path.file_name().is_none_or(is_plainly_other) {
        return false;
    }
    let names: Vec<String> = path.iter().rev().take(2).map(spelled).collect();
    all().any(|one| {
        let mut pairs = one.parts().rev().zip(&names);
        names.len() >= one.parts().count() && pairs.all(|(part, name)| same_name(name, part))
    })
}

/// Whether a name is written as most are, and is not the last one of any place.
fn is_plainly_other(name: &OsStr) -> bool {
    static LAST: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let last = all().map(|one| one.component().to_ascii_lowercase());
        last.collect()
    });
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    let name = name.as_encoded_bytes();
    let plain = name.iter().copied().all(plain) && !name.ends_with(b".");
    let text = std::str::from_utf8(name).unwrap_or_default();
    plain && !LAST.contains(&text.to_ascii_lowercase())
}
