//! Bash where a line may do whatever it likes: in a sandbox of its own, without
//! a network, in which there is nothing to run but bash and one program that
//! notes that it was run.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::bash::{noted, noting};

/// Where the sandbox notes what was run: nothing that an input would name.
const NOTES: &str = "/notes-1f6d0c";
/// The only file of the working directory.
const PROGRAM: &str = "y";
/// What runs longer is killed, with all that it started.
const TIME_MAX: Duration = Duration::from_millis(1500);
const START_MAX: Duration = Duration::from_secs(20);
/// Two commands that run at once note shorter texts in one piece.
const PIECE_BYTES_MAX: usize = 4000;

/// Runs line by line. Whoever holds the seventh descriptor is waited for, so
/// that nothing of one line is left when the next one comes.
const LINES: &str = "while IFS= read -r -d '' line; do \
    held=$(ulimit -t 1 -v 1000000 -f 128; exec /bin/bash -c \"$line\" 7>&1 >/dev/null 2>&1 </dev/null); \
    builtin printf .; done";

/// How many sandboxes this process has had.
static ROOMS: AtomicUsize = AtomicUsize::new(0);

/// A running sandbox.
pub struct Confined {
    room: PathBuf,
    inside: Option<Inside>,
}

struct Inside {
    child: Child,
    lines: ChildStdin,
    ended: Receiver<()>,
}

impl Confined {
    /// A sandbox that starts with its first line.
    pub fn new() -> Self {
        let number = ROOMS.fetch_add(1, Ordering::Relaxed);
        let room = format!("agent-confined-{}-{number}", std::process::id());
        let room = std::env::temp_dir().join(room);
        fs::create_dir_all(room.join("work")).expect("a directory");
        let confined = Self { room, inside: None };
        confined.furnish();
        confined
    }

    /// Where lines start, inside the sandbox too.
    pub fn workspace(&self) -> PathBuf {
        self.room.join("work")
    }

    /// What `bash -c LINE` runs.
    pub fn run(&mut self, line: &str) -> Vec<Vec<String>> {
        self.run_within(TIME_MAX, line)
    }

    /// What `bash -c LINE` runs before this time is over.
    pub fn run_within(&mut self, most: Duration, line: &str) -> Vec<Vec<String>> {
        let notes = self.room.join("notes");
        fs::write(&notes, "").expect("notes");
        let room = &self.room;
        let inside = self.inside.get_or_insert_with(|| Inside::start(room));
        if !inside.ends(line, most) {
            // The line may have killed it, too.
            let _ = inside.child.kill();
            inside.child.wait().expect("it ends");
            self.inside = None;
        }
        let text = fs::read(&notes).expect("notes");
        let text = String::from_utf8_lossy(&text);
        let ran = noted(text.rsplit_once('\u{1e}').map_or("", |(whole, _)| whole));
        let length = |words: &Vec<String>| words.iter().map(|word| word.len() + 1).sum::<usize>();
        match ran.iter().all(|words| length(words) < PIECE_BYTES_MAX) {
            true => ran,
            false => Vec::new(),
        }
    }

    /// Whether the working directory is as it was; afterwards it is again.
    pub fn is_untouched(&self) -> bool {
        let entries = fs::read_dir(self.workspace()).expect("a directory");
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let program = self.workspace().join(PROGRAM);
        let same = fs::read_to_string(&program).is_ok_and(|text| text == program_text());
        if same && paths == [program] {
            return true;
        }
        for path in paths {
            fs::remove_file(path).expect("bash alone makes no directories");
        }
        self.furnish();
        false
    }

    fn furnish(&self) {
        let program = self.workspace().join(PROGRAM);
        fs::write(&program, program_text()).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if let Some(mut inside) = self.inside.take() {
            let _ = inside.child.kill();
            let _ = inside.child.wait();
        }
        let _ = fs::remove_dir_all(&self.room);
    }
}

impl Inside {
    fn start(room: &Path) -> Self {
        let work = room.join("work");
        let handle = format!("() {}", noting(&format!(">>{NOTES}")));
        #[allow(
            clippy::disallowed_methods,
            reason = "what is run is compared with bash itself"
        )]
        let mut child = Command::new("bwrap")
            .args(["--unshare-all", "--die-with-parent", "--new-session"])
            .args(["--cap-drop", "ALL", "--clearenv", "--setenv", "HOME", "~"])
            .args(["--setenv", "PATH", "/nonexistent"])
            // As commands of a run have it: their values are names to arithmetic.
            .args(["--setenv", "PAGER", "cat", "--setenv", "EDITOR", "false"])
            .args(["--setenv", "BASH_FUNC_command_not_found_handle%%", &handle])
            .args(["--ro-bind", "/bin/bash", "/bin/bash"])
            .args(["--ro-bind", "/lib", "/lib"])
            .args(["--ro-bind-try", "/lib64", "/lib64", "--proc", "/proc"])
            .args(["--dev", "/dev", "--remount-ro", "/dev"])
            .arg("--bind")
            .args([room.join("notes").as_path(), Path::new(NOTES)])
            .arg("--bind")
            .args([&work, &work])
            .arg("--chdir")
            .arg(&work)
            .args(["--remount-ro", "/", "/bin/bash", "-c", LINES])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("bubblewrap is installed");
        let lines = child.stdin.take().expect("piped");
        let mut marks = child.stdout.take().expect("piped");
        let (ends, ended) = channel();
        thread::spawn(move || {
            let mut mark = [0];
            while marks.read_exact(&mut mark).is_ok() && ends.send(()).is_ok() {}
        });
        let mut inside = Self {
            child,
            lines,
            ended,
        };
        assert!(inside.ends(":", START_MAX), "bubblewrap makes no sandbox");
        inside
    }

    /// Whether a line ends in time.
    fn ends(&mut self, line: &str, most: Duration) -> bool {
        write!(self.lines, "{line}\0").is_ok() && self.ended.recv_timeout(most).is_ok()
    }
}

fn program_text() -> String {
    format!(
        "#!/bin/bash\nnote() {}\nnote \"$0\" \"$@\"\n",
        noting(&format!(">>{NOTES}"))
    )
}
