//! Files that git stores in another form: the patch gives them exactly, or a
//! warning names them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace_fixture::{Fixture, apply, codes, contents, diff, listed, run};

/// Copies the workspace with its repository, to apply a patch there later.
fn checkout(at: &Fixture) -> PathBuf {
    let target = at.beside("checkout");
    let paths = ["-a".as_ref(), at.root.as_os_str(), target.as_os_str()];
    run("cp", &paths, Path::new("/"));
    target
}

#[test]
fn line_endings_are_what_git_makes_of_them() {
    let setups: [(&str, &[&str]); 4] = [
        ("*.bat eol=crlf\n", &[]),
        ("* text=auto\n", &["core.eol", "crlf"]),
        ("", &["core.autocrlf", "true"]),
        ("*.bat text\n", &["core.autocrlf", "input"]),
    ];
    for (attributes, setting) in setups {
        let at = Fixture::repository();
        at.write(".gitattributes", attributes);
        if let [name, value] = setting {
            at.git(&["config", name, value]);
        }
        at.write("a.bat", "one\r\ntwo\r\nthree\r\n");
        at.commit();
        // As a checkout has it.
        fs::remove_file(at.path("a.bat")).unwrap();
        at.git(&["checkout", "--", "a.bat"]);
        let was = fs::read(at.path("a.bat")).unwrap();
        let start = checkout(&at);
        let baseline = at.take();
        assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
        let text = String::from_utf8(was).unwrap();
        at.write("a.bat", text.replace("two", "2"));
        let changes = diff(&baseline);
        assert_eq!(listed(&changes), ["modified a.bat +1 -1"], "{attributes}");
        apply(&start, &changes.patch);
        assert_eq!(
            contents(&start),
            contents(&at.root),
            "{attributes} {setting:?}"
        );
        if text.contains('\r') {
            assert_eq!(codes(&changes), ["patch_line_endings"], "{attributes}");
            let message = &changes.warnings[0].message;
            assert!(message.ends_with(": a.bat"), "{message}");
        }
    }
}

#[test]
fn files_with_a_filter_are_named() {
    let at = Fixture::repository();
    at.write(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt working-tree-encoding=UTF-16LE\n",
    );
    at.git(&["config", "filter.lfs.clean", "sed s/^/pointer-/"]);
    at.write("big.bin", "content\n");
    at.write("plain", "1\n");
    at.commit();
    let baseline = at.take();
    at.write("plain", "2\n");
    assert_eq!(codes(&diff(&baseline)), Vec::<&str>::new());
    at.write("big.bin", "other\n");
    at.write("new.bin", "new\n");
    let changes = diff(&baseline);
    assert_eq!(codes(&changes), ["patch_unfiltered"]);
    let message = &changes.warnings[0].message;
    assert!(message.ends_with(": big.bin, new.bin"), "{message}");
}

#[test]
fn binary_files_in_a_folder_without_git_are_all_named() {
    let at = Fixture::plain();
    at.write("a.bin", [0, 1]);
    at.write("b.bin", [0, 1]);
    let baseline = at.take();
    at.write("a.bin", [0, 2]);
    at.write("b.bin", [0, 2]);
    let changes = diff(&baseline);
    assert_eq!(codes(&changes), ["patch_incomplete"]);
    let message = &changes.warnings[0].message;
    assert!(message.ends_with(": a.bin, b.bin"), "{message}");
}
