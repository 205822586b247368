//! The home directory and the temporary files of hooks: where no command can write.
//! What a command left there would decide what a hook answers.

use std::path::{Path, PathBuf};

use crate::process::CommandSandbox;
use crate::sandbox::{self, Grounds, NoSandbox, SandboxMode, SandboxOptions, Tier};
use crate::task::Job;

use super::scratch::Scratch;

/// A directory for what hooks keep.
#[derive(Debug)]
pub(super) struct HookHome(Scratch);

/// What hooks run with.
#[derive(Debug)]
pub(super) struct HookSite {
    /// What keeps them in.
    pub(super) sandbox: CommandSandbox,
    /// Their whole environment.
    pub(super) env: Vec<(String, String)>,
    /// What they keep, to be removed at the end of the job.
    pub(super) scratch: Option<Scratch>,
}

impl HookHome {
    /// Makes one where the job has hooks and a sandbox, and notes it in `grounds`.
    ///
    /// # Errors
    /// When commands may write everywhere that one could be.
    pub(super) fn make(
        job: &Job,
        options: &SandboxOptions,
        grounds: &mut Grounds,
    ) -> Result<Option<Self>, NoSandbox> {
        if job.hooks.is_empty() || options.mode == SandboxMode::Off {
            return Ok(None);
        }
        let writable: Vec<PathBuf> = writable(options, grounds).cloned().collect();
        let made = Scratch::make_outside(&writable, grounds.home.as_deref());
        let scratch = made.map_err(|error| {
            let reason = format!("hooks have no place for their files: {error}");
            NoSandbox::of(Tier::Namespaces, reason)
        })?;
        grounds.hooks = Some(scratch.real().to_owned());
        Ok(Some(Self(scratch)))
    }

    /// What hooks run with where `env` is the environment of commands outside a
    /// sandbox. What the task `named` stays, unless commands may write there.
    pub(super) fn site(
        self,
        env: &[(String, String)],
        options: &SandboxOptions,
        grounds: &Grounds,
        named: impl Fn(&str) -> bool,
    ) -> HookSite {
        let own = Grounds {
            private: self.0.real().to_owned(),
            ..grounds.clone()
        };
        // Git knows whom commands commit as.
        let settings = |grounds: &Grounds| grounds.private_home().join(".gitconfig");
        let _ = std::fs::copy(settings(grounds), settings(&own));
        let is_safe = |name: &str| {
            let value = env.iter().find(|(one, _)| one == name);
            value.is_some_and(|(_, value)| {
                let path = Path::new(value);
                let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                let mut writable = writable(options, grounds);
                real.is_absolute() && !writable.any(|place| real.starts_with(place))
            })
        };
        let homes = ["HOME", "TMPDIR"];
        let is_home = |name: &str| homes.contains(&name) || name.starts_with("XDG_");
        let stays = |name: &str| named(name) && (!is_home(name) || is_safe(name));
        HookSite {
            sandbox: CommandSandbox::Missing,
            env: sandbox::environment(env, &own, stays),
            scratch: Some(self.0),
        }
    }
}

/// The places that commands may write.
fn writable<'a>(
    options: &'a SandboxOptions,
    grounds: &'a Grounds,
) -> impl Iterator<Item = &'a PathBuf> {
    options.write.iter().chain([&grounds.workspace])
}
