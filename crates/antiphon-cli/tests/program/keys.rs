//! `antiphon keygen --add`, `--promote`, `--retire`, and servers that read their key file again.

use crate::support::{Run, Scratch, Server, command, finish, run};
use std::{fs, path::Path};

fn keygen(edit: &str, file: &Path, more: &[&str]) -> Run {
    finish(command(["keygen", edit]).arg(file).args(more))
}

#[test]
fn a_file_goes_through_three_steps() {
    let scratch = Scratch::new();
    let file = scratch.path().join("keys");
    let read = || fs::read_to_string(&file).unwrap();
    for (edit, says) in [
        ("--promote", "No such file"),
        ("--add", "a new key, which seals"),
        ("--promote", "no key was added that could seal"),
        ("--retire", "no key has stopped sealing"),
        ("--add", "--promote"),
        ("--add", "promote it first"),
        ("--promote", "--retire"),
        ("--promote", "no key was added"),
    ] {
        let edited = keygen(edit, &file, &[]);
        assert!(edited.stderr.contains(says) && edited.stdout.is_empty(), "{edit}: {edited:?}");
    }
    let text = read();
    assert_eq!(text.lines().count(), 2, "{text}");
    let early = keygen("--retire", &file, &[]);
    early.fails(2, "line 2: tokens of this key may still open; remove it from 20");
    assert!(early.stderr.contains("--force") && early.stderr.contains("taken as 1d"), "{early:?}");
    assert_eq!(read(), text);

    // Three days later, as far as the file says.
    let (before, until) = text.split_once("sealed until ").unwrap();
    fs::write(&file, format!("{before}sealed until 2026-01-01T00:00:00Z{}", &until[20..])).unwrap();
    keygen("--retire", &file, &["--longest-life", "36500d"]).fails(2, "may still open");
    let retired = keygen("--retire", &file, &["--longest-life", "3d"]);
    assert_eq!((retired.code, read().lines().count()), (0, 1), "{retired:?}");
    assert!(retired.stderr.contains("1 key removed"), "{retired:?}");
    assert!(text.starts_with(read().trim_end()));

    for edit in ["--add", "--promote"] {
        assert_eq!(keygen(edit, &file, &[]).code, 0);
    }
    assert_eq!(keygen("--retire", &file, &["--force"]).code, 0);
    assert_eq!(read().lines().count(), 1);
    for wrong in
        [&["--add", "a", "--promote", "b"][..], &["--force"], &["--retire", "a", "--longest-life", "1"]]
    {
        assert_eq!(finish(command(["keygen"]).args(wrong)).code, 2, "{wrong:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_replaced_as_a_whole() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let scratch = Scratch::new();
    let file = scratch.keys("keys");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let link = scratch.path().join("link");
    symlink(&file, &link).unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    assert_eq!(keygen("--add", &link, &[]).code, 0);
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_ne!(metadata.ino(), inode);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);

    // A file that was left behind, and a file with a bad line: nothing changes.
    let text = fs::read_to_string(&file).unwrap();
    let left = scratch.file(".keys.new", "");
    keygen("--promote", &file, &[]).fails(2, ".keys.new exists: another edit runs, or was interrupted");
    fs::remove_file(left).unwrap();
    fs::write(&file, format!("{text}not a key\n")).unwrap();
    keygen("--promote", &file, &[]).fails(2, "line 3: not a key");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{text}not a key\n"));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
}

/// The new file takes the name of the old one, so anything else than a file would be lost.
#[cfg(unix)]
#[test]
fn only_a_regular_file_is_edited() {
    use std::os::unix::{fs::FileTypeExt as _, fs::symlink, net::UnixListener};
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name);
    let shell = |line: &str| std::process::Command::new("sh").args(["-c", line]).status().unwrap().success();
    fs::create_dir(path("directory")).unwrap();
    assert!(shell(&format!("mkfifo {}", path("fifo").display())));
    let _socket = UnixListener::bind(path("socket")).unwrap();
    symlink(path("fifo"), path("link-to-fifo")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    let mut names = vec!["directory", "fifo", "socket", "link-to-fifo", "dangling"];
    // Only root can make a device.
    if shell(&format!("mknod {} c 1 3 2>/dev/null", path("device").display())) {
        symlink(path("device"), path("link-to-device")).unwrap();
        names.extend(["device", "link-to-device"]);
    }
    let kinds =
        || names.iter().map(|name| fs::symlink_metadata(path(name)).unwrap().file_type()).collect::<Vec<_>>();
    let (before, count) = (kinds(), fs::read_dir(scratch.path()).unwrap().count());
    for name in &names {
        let says = if *name == "dangling" { "No such file" } else { "not a regular file" };
        for (edit, more) in
            [("--add", &[][..]), ("--promote", &[]), ("--retire", &[]), ("--retire", &["--force"])]
        {
            let says = if (*name, edit) == ("dangling", "--add") {
                "a link to a file that does not exist"
            } else {
                says
            };
            keygen(edit, &path(name), more).fails(2, says);
        }
    }
    assert_eq!(kinds(), before);
    assert!(before[1].is_fifo() && fs::read_dir(scratch.path()).unwrap().count() == count);
}

/// Two servers, always one step apart: calls that began before a step end after it, on the other server.
#[cfg(unix)]
#[test]
fn running_servers_read_their_keys_again() {
    let scratch = Scratch::new();
    let file = scratch.keys("keys");
    let mut servers = [Server::with_keys(&file), Server::with_keys(&file)];
    let begin = |server: &Server| {
        let pending = run(["call", "provision", "--args", r#"{"name": "orders"}"#, "--once", &server.url]);
        assert_eq!(pending.code, 3, "{pending:?}");
        scratch.file("pending.json", &pending.stdout)
    };
    let resumed = |file: &Path, server: &Server| {
        finish(command(["resume"]).arg(file).args(["--answer", "region.region=eu-west-1"]).arg(&server.url))
    };
    let mut old = None;
    for (edit, more) in [("--add", &[][..]), ("--promote", &[]), ("--retire", &["--force"])] {
        let kept = old.get_or_insert_with(|| fs::read_to_string(begin(&servers[0])).unwrap()).clone();
        assert_eq!(keygen(edit, &file, more).code, 0);
        for reloaded in 0..2 {
            servers[reloaded].hang_up();
            for (from, to) in [(0, 1), (1, 0)] {
                let done = resumed(&begin(&servers[from]), &servers[to]);
                assert_eq!(done.code, 0, "{edit}, {reloaded}: {done:?}");
            }
        }
        let done = resumed(&scratch.file("old.json", &kept), &servers[0]);
        assert_eq!(done.code, if edit == "--retire" { 4 } else { 0 }, "{edit}: {done:?}");
    }
    // A file that cannot be used changes nothing.
    fs::write(&file, "not a key\n").unwrap();
    let error = servers[0].hang_up_until("error: key file");
    assert!(error.contains("line 1: not a key") && error.contains("The keys stay as they were"), "{error}");
    assert_eq!(resumed(&begin(&servers[0]), &servers[1]).code, 0);
}
