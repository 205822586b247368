//! How programs are asked for their version, and where it is in the answer.

/// What nearly every program understands.
const QUESTION: &[&str] = &["--version"];

/// Programs that take another question, each with the reason. One that is not here
/// is asked nothing else: what is no option may be a host, a file or an order.
const QUESTIONS: &[(&str, &[&str])] = &[
    // Anything but an option of its own is refused.
    ("ant", &["-version"]),
    // Without `--client` it asks its server too.
    ("argocd", &["version", "--client"]),
    // The option is refused, and a word is a name to look up.
    ("dig", &["-v"]),
    // `--version` came late.
    ("dot", &["-V"]),
    // Options have one dash, and a word is a file to write.
    ("ffmpeg", &["-version"]),
    ("ffprobe", &["-version"]),
    // The option is refused.
    ("go", &["version"]),
    ("helm", &["version"]),
    ("hugo", &["version"]),
    // Java 8 knows no other.
    ("java", &["-version"]),
    ("javac", &["-version"]),
    // Without `--client` it asks the cluster too.
    ("kubectl", &["version", "--client"]),
    // The option is refused.
    ("kustomize", &["version"]),
    // The option is refused, and a word is a script to run.
    ("lua", &["-v"]),
    // The option is refused.
    ("minikube", &["version"]),
    ("nginx", &["-v"]),
    // As with `kubectl`.
    ("oc", &["version", "--client"]),
    // `--version` came with 3.0.
    ("openssl", &["version"]),
    // The option is refused, and a word is a host to connect to.
    ("ssh", &["-V"]),
    // The option is refused, and a word is an order to the server.
    ("tmux", &["-V"]),
    // The option is refused, and a word is an archive to open.
    ("unzip", &["-v"]),
    // The option is refused.
    ("zig", &["version"]),
];

/// The arguments that ask the program of this name.
pub(super) fn question(name: &str) -> &'static [&'static str] {
    let own = QUESTIONS.iter().find(|(program, _)| *program == name);
    own.map_or(QUESTION, |(_, arguments)| arguments)
}

/// The first number with a dot of a text, else its first number: `go1.22.1` is
/// 1.22.1, and `less 590 (GNU)` is 590.
pub(super) fn version_in(text: &str) -> Option<Vec<u64>> {
    let numbers = || {
        let pieces = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        pieces.map(|piece| piece.trim_matches('.'))
    };
    let parse = |piece: &str| -> Option<Vec<u64>> {
        let parts: Result<Vec<u64>, _> = piece.split('.').map(str::parse).collect();
        parts.ok()
    };
    let dotted = numbers().filter(|piece| piece.contains('.'));
    dotted.chain(numbers()).find_map(parse)
}
