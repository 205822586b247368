//! What people keep for agents, found and read once: project files, skills,
//! prompt templates.
//!
//! The user's own lie in the agent directory and are always believed. Those of
//! the repository may be anybody's: only the kinds that the task names are
//! looked for, no link leads out of the repository, and what they say goes
//! into fixed places of the system prompt, as data with its path. Nothing of
//! it configures anything that runs.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Warning;

use super::project_file::{self, Found, ProjectFile};
use super::skill::{self, Skill};
use super::template::{self, Template};
use super::text_file::{self, Owner, Repository, TextFile};

/// Where a repository keeps skills: ours, the one that tools share, and the
/// one that most repositories have.
const SKILL_FOLDERS: [&str; 3] = [".agent/skills", ".agents/skills", ".claude/skills"];
/// Where a repository keeps templates.
const TEMPLATE_FOLDER: &str = ".agent/templates";

/// A kind of files through which a repository may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepoConfig {
    /// `AGENTS.md`, else `CLAUDE.md`, from the repository's root down to the
    /// workspace.
    AgentsMd,
    /// Skills below `.agent/skills`, `.agents/skills` and `.claude/skills`.
    Skills,
    /// Prompt templates in `.agent/templates`.
    Templates,
}

/// Where resources are looked for.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The user's directory for agents; none leaves the user's own out.
    pub agent_dir: Option<&'a Path>,
    /// The directory of the job: existing, absolute, real. The repository is
    /// the nearest directory above it with `.git`, else the directory itself.
    pub directory: &'a Path,
    /// Where the model finds that directory: itself, or its copy.
    pub workspace: &'a Path,
    /// What of the repository is read.
    pub repository: &'a [RepoConfig],
    /// Whether a file of the repository may be read; asked with its real path,
    /// as seen in `workspace`.
    pub permit: &'a dyn Fn(&Path) -> bool,
}

/// Project files, skills and templates of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    /// The most general first.
    pub project: Vec<ProjectFile>,
    /// Sorted by name.
    pub skills: Vec<Skill>,
    /// Sorted by name.
    pub templates: Vec<Template>,
    /// What was cut, skipped or left out, and why.
    pub warnings: Vec<Warning>,
}

impl Resources {
    /// Finds and reads them. What cannot be used is left out with a warning.
    /// Blocks.
    pub fn load(sources: &Sources<'_>) -> Self {
        let root = repository_root(sources.directory);
        let mut loading = Loading {
            sources,
            root: &root,
            loaded: Self::default(),
        };
        if let Some(agent_dir) = sources.agent_dir.filter(|path| !path.is_dir()) {
            loading.warn("no_agent_dir", agent_dir, "is no directory");
        }
        loading.project();
        loading.skills();
        loading.templates();
        let mut loaded = loading.loaded;
        loaded.skills.sort_by(|a, b| a.name.cmp(&b.name));
        loaded.templates.sort_by(|a, b| a.name.cmp(&b.name));
        loaded
    }
}

/// The nearest directory at or above `directory` with `.git`, which is a file
/// in a linked worktree; else `directory`.
fn repository_root(directory: &Path) -> PathBuf {
    directory
        .ancestors()
        .find(|ancestor| ancestor.join(".git").symlink_metadata().is_ok())
        .unwrap_or(directory)
        .to_owned()
}

struct Loading<'a> {
    sources: &'a Sources<'a>,
    root: &'a Path,
    loaded: Resources,
}

impl<'a> Loading<'a> {
    fn may_speak(&self, kind: RepoConfig) -> bool {
        self.sources.repository.contains(&kind)
    }

    /// The directories of the repository, from the job's up to the root.
    fn upward(&self) -> Vec<PathBuf> {
        let all = self.sources.directory.ancestors();
        let inside = all.take_while(|directory| directory.starts_with(self.root));
        inside.map(Path::to_owned).collect()
    }

    /// Does `work` with the repository as owner.
    fn with_repository<T>(&mut self, work: impl FnOnce(&mut Self, Owner<'_>) -> T) -> T {
        let (sources, root) = (self.sources, self.root);
        let permit = |path: &Path| (sources.permit)(&seen(sources, path));
        let repository = Repository {
            root,
            permit: &permit,
        };
        work(self, Owner::Repository(repository))
    }

    fn warn(&mut self, code: &str, path: &Path, why: &str) {
        let message = format!("{} {why}; it is left out", shown(self.sources, path));
        self.loaded.warnings.push(Warning {
            code: code.to_owned(),
            message,
        });
    }

    fn project(&mut self) {
        let mut found = Vec::new();
        if let Some(agent_dir) = self.sources.agent_dir {
            found.extend(self.project_file(agent_dir, Owner::User));
        }
        if self.may_speak(RepoConfig::AgentsMd) {
            for directory in self.upward().iter().rev() {
                let file =
                    self.with_repository(|loading, owner| loading.project_file(directory, owner));
                found.extend(file);
            }
        }
        let mut warnings = Vec::new();
        self.loaded.project = project_file::fit(found, &mut warnings);
        self.loaded.warnings.extend(warnings);
    }

    /// The project file of a directory: the first of the names that is there,
    /// whether it can be used or not.
    fn project_file(&mut self, directory: &Path, owner: Owner<'_>) -> Option<Found> {
        for name in project_file::NAMES {
            let path = directory.join(name);
            match TextFile::read(&path, owner, project_file::BYTES_MAX) {
                Ok(None) => {}
                Ok(Some(file)) if file.text.trim().is_empty() => return None,
                Ok(Some(file)) => {
                    if file.unseen > 0 {
                        let message = format!(
                            "{}: {} characters that nobody sees were taken out",
                            shown(self.sources, &path),
                            file.unseen
                        );
                        self.loaded.warnings.push(Warning {
                            code: "project_file_cleaned".to_owned(),
                            message,
                        });
                    }
                    return Some(Found {
                        path: shown(self.sources, &path),
                        text: file.text,
                        cut: file.cut,
                        bytes: file.bytes,
                    });
                }
                Err(why) => {
                    self.warn("project_file_skipped", &path, &why);
                    return None;
                }
            }
        }
        None
    }

    /// The user's come first: a repository cannot put its own in their place.
    fn skills(&mut self) {
        if let Some(agent_dir) = self.sources.agent_dir {
            self.skills_in(&agent_dir.join("skills"), Owner::User);
        }
        if self.may_speak(RepoConfig::Skills) {
            for directory in self.upward() {
                for folder in SKILL_FOLDERS {
                    let folder = directory.join(folder);
                    self.with_repository(|loading, owner| loading.skills_in(&folder, owner));
                }
            }
        }
    }

    fn skills_in(&mut self, folder: &Path, owner: Owner<'_>) {
        const SKIPPED: &str = "skill_skipped";
        for name in self.names_in(folder, owner, SKIPPED) {
            let file = folder.join(&name).join(skill::FILE);
            let read = match TextFile::read(&file, owner, skill::FILE_BYTES_MAX) {
                Ok(Some(read)) => read,
                // A file beside the skills, or a directory that is none.
                Ok(None) => continue,
                Err(why) => {
                    self.warn(SKIPPED, &file, &why);
                    continue;
                }
            };
            // The same directory may be there under several names.
            let directory = folder.join(&name).canonicalize();
            let directory = directory.unwrap_or_else(|_| folder.join(&name));
            if self.has_skill_of(&directory) {
                continue;
            }
            if read.cut {
                self.warn(SKIPPED, &file, &too_large(skill::FILE_BYTES_MAX));
                continue;
            }
            let location = shown(self.sources, &file);
            let parsed = Skill::parse(&read.text, &name, location, seen(self.sources, &directory));
            match parsed.and_then(|skill| self.admit_skill(skill)) {
                Ok(skill) => self.loaded.skills.push(skill),
                Err(why) => self.warn(SKIPPED, &file, &why),
            }
        }
    }

    fn has_skill_of(&self, directory: &Path) -> bool {
        let directory = seen(self.sources, directory);
        let mut skills = self.loaded.skills.iter();
        skills.any(|skill| skill.directory == directory)
    }

    fn admit_skill(&self, skill: Skill) -> Result<Skill, String> {
        let skills = &self.loaded.skills;
        if let Some(other) = skills.iter().find(|other| other.name == skill.name) {
            return Err(format!("has the name of {}", other.location));
        }
        if skills.len() == skill::SKILLS_MAX {
            return Err(format!("is beyond the limit of {} skills", skills.len()));
        }
        let listed: usize = skills.iter().map(Skill::listed_bytes).sum();
        if listed + skill.listed_bytes() > skill::LIST_BYTES_MAX {
            let most = skill::LIST_BYTES_MAX / 1024;
            return Err(format!("is beyond the limit of {most} KiB of descriptions"));
        }
        Ok(skill)
    }

    fn templates(&mut self) {
        if let Some(agent_dir) = self.sources.agent_dir {
            self.templates_in(&agent_dir.join("templates"), Owner::User);
        }
        if self.may_speak(RepoConfig::Templates) {
            for directory in self.upward() {
                let folder = directory.join(TEMPLATE_FOLDER);
                self.with_repository(|loading, owner| loading.templates_in(&folder, owner));
            }
        }
    }

    fn templates_in(&mut self, folder: &Path, owner: Owner<'_>) {
        const SKIPPED: &str = "template_skipped";
        for file_name in self.names_in(folder, owner, SKIPPED) {
            let Some(name) = file_name.strip_suffix(".md") else {
                continue;
            };
            let file = folder.join(&file_name);
            match self.template(&file, name, owner) {
                Ok(template) => self.loaded.templates.extend(template),
                Err(why) => self.warn(SKIPPED, &file, &why),
            }
        }
    }

    fn template(
        &self,
        file: &Path,
        name: &str,
        owner: Owner<'_>,
    ) -> Result<Option<Template>, String> {
        let Some(read) = TextFile::read(file, owner, template::FILE_BYTES_MAX)? else {
            return Ok(None);
        };
        if read.cut {
            return Err(too_large(template::FILE_BYTES_MAX));
        }
        if !template::is_name(name) {
            return Err("has a bad name: only letters, digits, `-` and `_`, at most 64".to_owned());
        }
        let templates = &self.loaded.templates;
        if let Some(other) = templates.iter().find(|other| other.name == name) {
            return Err(format!("has the name of {}", other.location));
        }
        if templates.len() == template::TEMPLATES_MAX {
            let most = templates.len();
            return Err(format!("is beyond the limit of {most} templates"));
        }
        Template::parse(&read.text, name, shown(self.sources, file)).map(Some)
    }

    fn names_in(&mut self, folder: &Path, owner: Owner<'_>, code: &str) -> Vec<String> {
        match text_file::names(folder, owner) {
            Ok((names, all)) => {
                if !all {
                    let folder = shown(self.sources, folder);
                    let count = names.len();
                    let message = format!("{folder}: only {count} of its names are looked at");
                    let code = code.to_owned();
                    self.loaded.warnings.push(Warning { code, message });
                }
                names
            }
            Err(why) => {
                self.warn(code, folder, &why);
                Vec::new()
            }
        }
    }
}

fn too_large(bytes_max: usize) -> String {
    format!("is larger than {} KiB", bytes_max / 1024)
}

/// The path in the workspace, where the job's directory is a copy.
fn seen(sources: &Sources<'_>, path: &Path) -> PathBuf {
    match path.strip_prefix(sources.directory) {
        Ok(inside) => sources.workspace.join(inside),
        Err(_) => path.to_owned(),
    }
}

/// The path as the model and people are told: relative inside the workspace,
/// otherwise absolute, always on one line.
fn shown(sources: &Sources<'_>, path: &Path) -> String {
    let shown = path.strip_prefix(sources.directory).unwrap_or(path);
    let text = shown.to_string_lossy();
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
