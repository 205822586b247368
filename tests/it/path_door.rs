//! The door to files: links on the way, what is no file, and directories that
//! become links while somebody is on the way through them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use agent::access::{
    Access, Entry, Folder, Hidden, Ignoring, Kind, Met, Walk, WalkOptions, look, open_judged,
    open_stepwise,
};
use agent::tool::Permit;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, renameat_with};
use serde_json::json;
use tempfile::TempDir;

use crate::tool_scene::Scene;

const CANARY: &str = "outside-5e1f";
const INSIDE: &str = "inside";
/// Swaps while a tool is at work, and calls of a tool during swaps.
const ROUNDS: usize = 300;

type Open = fn(&Path, OFlags) -> std::io::Result<File>;
/// Both ways through the door: with `openat2`, and of kernels without it.
const OPENS: [(&str, Open); 2] = [("openat2", open_judged), ("stepwise", open_stepwise)];

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}

fn text(mut file: File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn no_link_is_followed_anywhere_on_the_way() {
    let (_dir, root) = place();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/b/file"), INSIDE).unwrap();
    symlink("a", root.join("link")).unwrap();
    symlink("file", root.join("a/b/last")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    for (name, open) in OPENS {
        let opened = open(&root.join("a/b/file"), OFlags::RDONLY).unwrap();
        assert_eq!(text(opened), INSIDE, "{name}");
        for path in ["link/b/file", "a/b/last", "loop", "loop/x"] {
            let why = open(&root.join(path), OFlags::RDONLY).unwrap_err();
            assert!(
                why.to_string().contains("became a symbolic link"),
                "{name} {path}: {why}"
            );
        }
        for (path, kind) in [
            ("a/b/none", std::io::ErrorKind::NotFound),
            ("none/file", std::io::ErrorKind::NotFound),
            ("a/b/file/x", std::io::ErrorKind::NotADirectory),
        ] {
            let why = open(&root.join(path), OFlags::RDONLY).unwrap_err();
            assert_eq!(why.kind(), kind, "{name} {path}");
        }
        let fd = rustix::fs::open(root.join("a"), OFlags::PATH, Mode::empty()).unwrap();
        let magic = format!(
            "/proc/self/fd/{}/b/file",
            std::os::fd::AsRawFd::as_raw_fd(&fd)
        );
        assert!(open(Path::new(&magic), OFlags::RDONLY).is_err(), "{name}");
        assert!(open(Path::new("/"), OFlags::PATH).is_ok(), "{name}");
    }
    for path in ["a/b/file", "/tmp/../etc/passwd", "."] {
        assert!(open_stepwise(Path::new(path), OFlags::RDONLY).is_err());
    }
}

#[test]
fn what_is_no_file_is_recognised_unopened() {
    let (_dir, root) = place();
    rustix::fs::mkfifoat(CWD, root.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    symlink("fifo", root.join("link")).unwrap();
    let root_folder = Folder::open(&root).unwrap();
    for name in ["fifo", "socket", "link"] {
        let seen = root_folder.look(OsStr::new(name)).unwrap();
        assert!(matches!(seen, Entry::Other(_)), "{name}: {seen:?}");
    }
    for device in ["/dev/zero", "/dev/null", "/dev/tty", "/dev/full"] {
        if Path::new(device).exists() {
            let seen = look(Path::new(device)).unwrap();
            assert!(matches!(seen, Entry::Other(_)), "{device}: {seen:?}");
        }
    }
    assert!(matches!(look(&root).unwrap(), Entry::Directory));
    assert!(matches!(look(Path::new("/")).unwrap(), Entry::Directory));
}

#[test]
fn a_draft_replaces_a_link_and_leaves_nothing_behind() {
    let (_dir, root) = place();
    std::fs::write(root.join("target"), CANARY).unwrap();
    symlink("target", root.join("link")).unwrap();
    let folder = Folder::make(&root, Path::new("new/deep"), 0o755).unwrap();
    drop(folder.draft(0o600).unwrap());
    let top = Folder::open(&root).unwrap();
    let mut draft = top.draft(0o640).unwrap();
    draft.file.write_all(b"new").unwrap();
    let refused = top.draft(0o600).unwrap().place(OsStr::new("link"));
    assert_eq!(
        refused.unwrap_err().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    draft.replace(OsStr::new("link")).unwrap();
    assert_eq!(std::fs::read(root.join("link")).unwrap(), b"new");
    assert_eq!(
        std::fs::read_to_string(root.join("target")).unwrap(),
        CANARY
    );
    let mut left: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["link", "new", "target"]);
    symlink("/etc", root.join("new/out")).unwrap();
    assert!(Folder::make(&root, Path::new("new/out/x"), 0o755).is_err());
    assert!(Folder::make(&root, Path::new("../x"), 0o755).is_err());
}

fn walked(root: &Path, hidden: Hidden) -> Vec<String> {
    let options = WalkOptions {
        hidden,
        ignoring: Ignoring::Around,
        enter: |entry: &Met| entry.path.file_name() != Some(OsStr::new(".git")),
    };
    Walk::new(root, options)
        .map(|entry| match entry {
            Ok(met) => {
                let name = met.path.strip_prefix(root).unwrap();
                let sign = match met.kind {
                    Kind::Directory => "/",
                    Kind::Link => "@",
                    Kind::Special => "|",
                    Kind::File => "",
                };
                format!("{}{sign}", name.display())
            }
            Err(error) => format!("error: {error}"),
        })
        .collect()
}

/// Files, each with its content.
fn lay(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

#[test]
fn walks_ignore_what_git_ignores() {
    let (_dir, root) = place();
    lay(
        &root,
        &[
            ("above/.gitignore", "*.above\n"),
            ("above/top/.git/HEAD", ""),
            ("above/top/.git/info/exclude", "excluded\n"),
            ("above/top/.gitignore", "*.log\n/only-top\nout/\n!.shown\n"),
            ("above/top/.ignore", "*.tmp\n"),
            ("above/top/a.above", ""),
            ("above/top/a.log", ""),
            ("above/top/a.tmp", ""),
            ("above/top/a.txt", ""),
            ("above/top/excluded", ""),
            ("above/top/only-top", ""),
            ("above/top/.hidden", ""),
            ("above/top/.shown", ""),
            ("above/top/out/x", ""),
            ("above/top/sub/only-top", ""),
            ("above/top/sub/.gitignore", "!keep.log\n!keep.tmp\n"),
            ("above/top/sub/keep.log", ""),
            ("above/top/sub/keep.tmp", ""),
            ("above/top/sub/lost.log", ""),
            ("above/top/inner/.git/HEAD", ""),
            ("above/top/inner/b.log", ""),
            ("above/top/inner/b.tmp", ""),
        ],
    );
    let top = root.join("above/top");
    assert_eq!(
        walked(&top, Hidden::Skipped),
        [
            ".shown",
            "a.above",
            "a.txt",
            "inner/",
            // Another repository has its own rules.
            "inner/b.log",
            "sub/",
            "sub/keep.log",
            "sub/only-top",
        ]
    );
    assert_eq!(
        walked(&top.join("sub"), Hidden::Visited),
        [".gitignore", "keep.log", "only-top"],
    );
    assert!(!walked(&root.join("above"), Hidden::Skipped).contains(&"top/a.log".to_owned()));
}

#[test]
fn hostile_ignore_files_neither_block_nor_flood_nor_lead_out() {
    let (_dir, root) = place();
    lay(&root, &[("outside", "*.txt\n"), ("work/a.txt", "")]);
    let work = root.join("work");
    for name in ["zero", "out", "fifo", "loop", "sparse", "bytes", "huge"] {
        lay(&work, &[(&format!("{name}/a.txt"), "")]);
    }
    symlink("/dev/zero", work.join("zero/.gitignore")).unwrap();
    symlink(root.join("outside"), work.join("out/.gitignore")).unwrap();
    symlink(".ignore", work.join("loop/.ignore")).unwrap();
    let fifo = work.join("fifo/.ignore");
    rustix::fs::mkfifoat(CWD, fifo, Mode::from_raw_mode(0o600)).unwrap();
    let sparse = File::create(work.join("sparse/.gitignore")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    std::fs::write(work.join("bytes/.gitignore"), b"\xff\xfe[\n**[[\na.txt\n").unwrap();
    let many = "x".repeat(70).into_bytes().repeat(40_000);
    std::fs::write(work.join("huge/.gitignore"), many).unwrap();
    let mut found = walked(&work, Hidden::Skipped);
    found.retain(|name| name.ends_with("a.txt"));
    assert_eq!(
        found,
        [
            "a.txt",
            "fifo/a.txt",
            "huge/a.txt",
            "loop/a.txt",
            "out/a.txt",
            "sparse/a.txt",
            "zero/a.txt",
        ]
    );
}

#[tokio::test]
async fn reads_of_what_has_no_end_end() {
    let scene = Scene::new();
    scene.put("plain.txt", "needle\n");
    let fifo = scene.path("fifo");
    rustix::fs::mkfifoat(CWD, fifo, Mode::from_raw_mode(0o600)).unwrap();
    let _socket = UnixListener::bind(scene.path("socket")).unwrap();
    symlink("/dev/zero", scene.path("zero")).unwrap();
    symlink("b", scene.path("a")).unwrap();
    symlink("a", scene.path("b")).unwrap();
    let sparse = File::create(scene.path("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    for (path, expect) in [
        ("fifo", "is a FIFO, not a regular file"),
        ("socket", "is a socket, not a regular file"),
        ("zero", "is a device, not a regular file"),
        ("a", "its symbolic links form a loop"),
        ("a/x", "its symbolic links form a loop"),
        ("sparse", "is a binary file of 1099511627776 bytes"),
        ("/dev/zero", "is a device, not a regular file"),
        ("/dev/stdin", "not a regular file"),
    ] {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": "x"})),
            ("ls", json!({"path": path})),
            ("find", json!({"path": path, "pattern": "x"})),
            ("write", json!({"path": path, "content": "x"})),
        ] {
            if path == "sparse" && tool != "read" || path == "/dev/stdin" {
                continue;
            }
            let why = scene.refused(tool, args).await;
            assert!(why.contains(expect), "{tool} {path}: {why}");
        }
    }
    let why = scene
        .refused("write", json!({"path": "sparse", "content": "x"}))
        .await;
    assert!(why.contains("larger than 16 MiB"), "{why}");
    let found = scene.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.starts_with("plain.txt:1:needle"), "{found}");
    let listed = scene.ok("ls", json!({})).await;
    assert_eq!(listed, "a\nb\nfifo\nplain.txt\nsocket\nsparse\nzero");
}

#[tokio::test]
async fn a_tree_deeper_than_any_path_is_walked_as_far_as_paths_go() {
    let scene = Scene::new();
    scene.put("a.txt", "needle\n");
    // Too deep for a path as a whole, so it is made step by step.
    let mut folder = Folder::open(scene.root()).unwrap();
    for _ in 0..5_000 {
        rustix::fs::mkdirat(&folder, "d", Mode::from_raw_mode(0o755)).unwrap();
        folder = folder.enter(OsStr::new("d")).unwrap();
    }
    let found = scene.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.starts_with("a.txt:1:needle"), "{found}");
    assert!(found.contains("1 entry could not be read"), "{found}");
    let found = scene.ok("find", json!({"pattern": "*.txt"})).await;
    assert!(found.starts_with("a.txt\n"), "{found}");
    drop(folder);
    // The standard library would hold 5,000 directories open to remove it.
    crate::workspace_fixture::run("rm", &["-rf", "d"], scene.root());
}

/// A thread that swaps a directory for a link to another one and back, until
/// it is stopped or after very many rounds.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(place: PathBuf, aside: PathBuf, target: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&stop);
        symlink(target, &aside).unwrap();
        let thread = std::thread::spawn(move || {
            let swap = || renameat_with(CWD, &place, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
            for _ in 0..50_000_000 {
                swap();
                swap();
                if heard.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let thread = Some(thread);
        Self { stop, thread }
    }

    /// The directory is in its place again.
    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A workspace whose permissions end with it.
fn guarded() -> Scene {
    let mut scene = Scene::new();
    let root = scene.root().to_owned();
    scene.permit = Permit::new(move |access| match access {
        Access::Read(path) | Access::Write(path) => path.starts_with(&root),
        _ => false,
    });
    scene
}

#[tokio::test]
async fn no_swap_during_a_read_or_walk_shows_anything_of_outside() {
    let (scene, outside) = (guarded(), Scene::new());
    outside
        .put("x.txt", CANARY)
        .put("deep/secret-name.txt", CANARY);
    scene.put("dir/x.txt", INSIDE).put("dir/deep/y.txt", INSIDE);
    let swapper = Swapper::start(scene.path("dir"), scene.path(".aside"), outside.root());
    let mut reached = 0;
    for _ in 0..ROUNDS {
        for (tool, args) in [
            ("read", json!({"path": "dir/x.txt"})),
            ("grep", json!({"pattern": "side", "context": 1})),
            ("grep", json!({"pattern": "side", "path": "dir"})),
            ("find", json!({"pattern": "**"})),
            ("find", json!({"pattern": "*", "path": "dir/deep"})),
            ("ls", json!({"path": "dir/deep"})),
        ] {
            let output = scene.call(tool, args.clone()).await;
            let shown = crate::tool_scene::text(&output);
            reached += usize::from(shown.contains(INSIDE));
            assert!(!shown.contains("secret-name"), "{tool} {args}: {shown}");
            assert!(!shown.contains(CANARY), "{tool} {args}: {shown}");
        }
    }
    swapper.end();
    assert!(reached > 0, "the tools never got through");
}

#[tokio::test]
async fn no_swap_during_a_write_changes_anything_outside() {
    let (scene, outside) = (guarded(), Scene::new());
    outside.put("x.txt", CANARY);
    scene.put("dir/x.txt", INSIDE);
    let swapper = Swapper::start(scene.path("dir"), scene.path(".aside"), outside.root());
    let mut written = 0;
    for round in 0..ROUNDS {
        scene.call("read", json!({"path": "dir/x.txt"})).await;
        for (tool, args) in [
            ("write", json!({"path": "dir/x.txt", "content": INSIDE})),
            (
                "write",
                json!({"path": format!("dir/new/{round}/n.txt"), "content": "n"}),
            ),
            (
                "write",
                json!({"path": format!("dir/n{round}.txt"), "content": "n"}),
            ),
            (
                "edit",
                json!({"path": "dir/x.txt", "edits": [{"oldText": "in", "newText": "in"}]}),
            ),
        ] {
            let output = scene.call(tool, args).await;
            written += usize::from(output.failure.is_none());
        }
    }
    swapper.end();
    assert!(written > 0, "the tools never got through");
    assert_eq!(outside.bytes("x.txt"), CANARY.as_bytes());
    let names: Vec<_> = std::fs::read_dir(outside.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["x.txt"]);
}

#[test]
fn a_copy_during_swaps_has_nothing_of_outside() {
    let (_dir, root) = place();
    lay(
        &root,
        &[("outside/x.txt", CANARY), ("work/dir/x.txt", INSIDE)],
    );
    let swapper = Swapper::start(
        root.join("work/dir"),
        root.join("aside"),
        &root.join("outside"),
    );
    for round in 0..ROUNDS {
        let scratch = root.join(format!("scratch-{round}"));
        std::fs::create_dir(&scratch).unwrap();
        // It may fail, for what it saw is gone; it may not succeed wrongly.
        let _ = agent::workspace::copy(&root.join("work"), &scratch);
        let copied = scratch.join("workspace/dir/x.txt");
        let linked = scratch.join("workspace/dir").is_symlink();
        if !linked && copied.exists() {
            assert_ne!(std::fs::read_to_string(copied).unwrap(), CANARY);
        }
        std::fs::remove_dir_all(scratch).unwrap();
    }
    swapper.end();
}

#[tokio::test]
async fn a_directory_without_permission_is_an_error_and_not_a_gap() {
    let scene = Scene::new();
    scene.put("closed/a.txt", "x");
    let closed = scene.path("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let output = scene.call("find", json!({"pattern": "**"})).await;
    let shown = crate::tool_scene::text(&output);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let root = rustix::process::geteuid().is_root();
    assert_eq!(shown.contains("could not be read"), !root, "{shown}");
}
