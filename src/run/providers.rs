//! The user's file of providers: where it is, and what is worth a warning in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::event::Warning;
use crate::model::{Catalog, Model};
use crate::task::{self, Diagnostics};

use super::Environment;

/// The name of the file in the user's directory for agents.
const FILE: &str = "providers.yaml";

/// The catalog of this machine: the built-in one under the file of providers
/// that is `named`, else under the user's own, if there is one. A relative path
/// starts at `cwd`. A repository's file is never the user's: one that
/// `AGENT_DIR` leads to is passed over with a warning.
///
/// # Errors
/// Everything that is wrong with the file; also when the named one is not there.
pub fn catalog(
    environment: &Environment,
    named: Option<&Path>,
    cwd: &Path,
) -> Result<(Catalog, Option<Warning>), Diagnostics> {
    let load = |path: &Path| {
        task::load_providers(path, environment.variables(), environment.home().as_deref())
    };
    if let Some(named) = named {
        return Ok((load(&cwd.join(named))?, None));
    }
    let dir = environment.value("AGENT_DIR").map(Path::new);
    let usual = dir.map(|dir| cwd.join(dir));
    let path = usual.or_else(|| environment.usual_dir());
    let path = path.map(|dir| dir.join(FILE)).filter(|file| file.exists());
    let Some(path) = path else {
        return Ok((Catalog::default(), None));
    };
    if dir.is_some_and(|dir| is_of_repository(&path, dir, cwd)) {
        let warning = Warning {
            code: "providers_of_repository".to_owned(),
            message: format!(
                "{} belongs to the repository and is not read; --providers can name it",
                path.display()
            ),
        };
        return Ok((Catalog::default(), Some(warning)));
    }
    Ok((load(&path)?, None))
}

/// Whether a file in `dir`, as it was named, lies in the repository that `cwd`
/// is in. Where no git repository says how far that reaches, one that was named
/// relative to `cwd` does: an absolute name is somebody's choice.
fn is_of_repository(file: &Path, dir: &Path, cwd: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (file, cwd) = (real(file), real(cwd));
    match cwd.ancestors().find(|dir| dir.join(".git").exists()) {
        Some(root) => file.starts_with(root),
        None => dir.is_relative() && file.starts_with(cwd),
    }
}

/// What must be known of the file with a model's key.
pub(super) fn key_file_warning(model: &Model, environment: &Environment) -> Option<Warning> {
    let path = model.extras.key_file.as_ref()?;
    let of_variable = |name: &String| environment.value(name).is_some();
    if model.api_key_env.iter().any(of_variable) {
        return None;
    }
    let mode = path.metadata().ok()?.permissions().mode();
    (mode & 0o004 != 0).then(|| Warning {
        code: "key_file_readable".to_owned(),
        message: format!(
            "everybody on this machine can read the key in {}; chmod 600 it",
            path.display()
        ),
    })
}
