//! `antiphon login`, `whoami`, `token` and `logout`.

use crate::support::{Run, Scratch, Server, command, finish, run};
use antiphon::testing::authority::{DeviceAnswer, TestAuthority};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
};

fn with_tokens(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.env("ANTIPHON_TOKENS", folder);
    command
}

/// Gets a page, and returns the address to which it redirects.
fn redirected(url: &str) -> String {
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = TcpStream::connect(authority).unwrap();
    write!(connection, "GET /{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().to_owned()
}

/// Signs in as a person does who pastes the address.
fn login(folder: &Path, url: &str) -> Run {
    let mut command = with_tokens(folder, &["login", url, "--scope", "files"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn().unwrap();
    let mut stderr = BufReader::new(process.stderr.take().unwrap());
    let (mut shown, mut page) = (String::new(), None);
    while page.is_none() {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "{shown}");
        page = line.trim_end().strip_prefix("The page: ").map(str::to_owned);
        shown += &line;
    }
    writeln!(process.stdin.take().unwrap(), "{}", redirected(&page.unwrap())).unwrap();
    let output = process.wait_with_output().unwrap();
    stderr.read_to_string(&mut shown).unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: shown,
    }
}

#[test]
fn a_person_signs_in_and_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let authority = runtime.block_on(TestAuthority::start()).unwrap();
    authority.expire(3600);
    let (url, scratch) = (authority.resource(), Scratch::new());
    let folder = scratch.path().join("tokens");
    let run = |arguments: &[&str]| finish(&mut with_tokens(&folder, arguments));

    run(&["whoami", &url]).ends(3, "No sign-in.");
    run(&["token", &url]).fails(3, "antiphon login");
    run(&["logout", &url]).ends(0, "There was no sign-in.");

    let done = login(&folder, &url);
    let issuer = authority.issuer();
    let known = format!("Signed in at {issuer} as client-1, for files, and renews itself.");
    done.ends(0, &known);
    assert!(done.stderr.contains(&format!("Sign in at 127.0.0.1 for {url}, to allow: files.")), "{done:?}");
    run(&["whoami", &url]).ends(0, &known);
    let token = run(&["token", &url]);
    assert!(token.code == 0 && token.stdout.starts_with("token-"), "{token:?}");
    let shown = run(&["whoami", &url, "--json"]);
    assert_eq!(
        (&shown.json()["signedIn"]["issuer"], shown.stdout.contains("token-")),
        (&issuer.into(), false)
    );

    run(&["logout", &url]).ends(0, "Signed out; the tokens are revoked.");
    run(&["whoami", &url]).ends(3, "No sign-in.");
}

/// Returns an authority, and a folder with a sign-in there whose token is late already.
fn signed_in(runtime: &tokio::runtime::Runtime) -> (TestAuthority, Scratch) {
    let authority = runtime.block_on(TestAuthority::start()).unwrap();
    authority.expire(0);
    let scratch = Scratch::new();
    assert_eq!(login(&scratch.path().join("tokens"), &authority.resource()).code, 0);
    authority.expire(3600);
    (authority, scratch)
}

fn renewals(authority: &TestAuthority) -> usize {
    authority.grants().iter().filter(|grant| **grant == "refresh_token").count()
}

/// One of the processes renews the token that is late, and all have the new one.
#[test]
fn processes_with_one_folder_renew_a_token_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (authority, scratch) = signed_in(&runtime);
    let (url, folder) = (authority.resource(), scratch.path().join("tokens"));
    let begin = |_| with_tokens(&folder, &["token", &url]).stdout(Stdio::piped()).spawn().unwrap();
    let processes: Vec<_> = (0..6).map(begin).collect();
    let mut shown: Vec<_> =
        processes.into_iter().map(|process| process.wait_with_output().unwrap().stdout).collect();
    shown.dedup();
    assert!(shown.len() == 1 && shown[0].starts_with(b"token-"), "{shown:?}");
    assert_eq!(renewals(&authority), 1);
}

/// A process that dies between the rotation of the refresh token and its write leaves one that was spent.
#[test]
fn a_spent_refresh_token_leads_to_a_new_sign_in() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (authority, scratch) = signed_in(&runtime);
    let (url, folder) = (authority.resource(), scratch.path().join("tokens"));
    let run = |arguments: &[&str]| finish(&mut with_tokens(&folder, arguments));
    let files = |of: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect()
    };
    let before = files(&folder);
    assert_eq!(run(&["token", &url]).code, 0);
    for (path, bytes) in before {
        std::fs::write(path, bytes).unwrap();
    }
    run(&["token", &url]).fails(3, "antiphon login");
    assert_eq!((renewals(&authority), login(&folder, &url).code, run(&["token", &url]).code), (2, 0, 0));
}

#[test]
fn a_person_signs_in_at_another_device() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let authority = runtime.block_on(TestAuthority::start()).unwrap();
    let (url, scratch) = (authority.resource(), Scratch::new());
    let folder = scratch.path().join("tokens");
    let run = |arguments: &[&str]| finish(&mut with_tokens(&folder, arguments));
    let login = ["login", &url, "--scope", "files", "--device"];
    authority.answer_devices(DeviceAnswer::Refuses);
    run(&login).fails(4, "was refused");
    authority.answer_devices(DeviceAnswer::Agrees);
    let done = run(&login);
    let issuer = authority.issuer();
    // The client of the refused sign-in was the first one.
    done.ends(0, &format!("Signed in at {issuer} as client-3, for files."));
    // The words of the consent come first.
    let (words, code) = (done.stderr.find("to allow: files."), done.stderr.find("enter the code: USER-"));
    assert!(words.is_some() && words < code, "{done:?}");
    assert!(!done.stderr.contains("device-"), "{done:?}");
    let token = run(&["token", &url]);
    assert!(token.code == 0 && token.stdout.starts_with("token-"), "{token:?}");
}

#[test]
fn without_a_terminal_a_server_that_demands_a_token_is_an_error() {
    let server = Server::with_arguments(&["--token", "secret=ada"]);
    let refused = run(["tools", &server.url]);
    assert_eq!((refused.code, &*refused.stdout), (4, ""), "{refused:?}");
    assert!(refused.stderr.contains("401"), "{refused:?}");
    assert_eq!(run(["tools", &server.url, "--bearer", "secret"]).code, 0);
}
