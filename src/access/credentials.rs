//! Where credentials usually are: the same places for policy, which judges calls,
//! and for the sandbox, which keeps commands in.

/// Credentials below the home directory whose name says too little elsewhere.
pub const HOME_CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/agent",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".docker/config.json",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".local/share/uv/credentials",
    ".local/state/agent",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
];

/// What the machine keeps to itself.
pub const MACHINE_CREDENTIALS: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/docker",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/run/secrets",
    "/var/run/secrets",
];

/// Where what is closed to others stays closed, whoever runs this: the settings of
/// the machine, and what was installed for one of its users.
pub const SHARED_PLACES: &[&str] = &["/etc", "/opt"];
