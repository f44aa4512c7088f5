//! Sign-in at servers that demand it: the commands `login`, `logout`, `whoami` and `token`, and the tokens of all other commands.

use crate::{
    args::{LoginArgs, SignedInArgs},
    ask, console,
    failure::{Exit, Failure},
};
use antiphon::client::{
    Client,
    oauth::{
        Consent, Credentials, DeviceSignIn, Error, ErrorKind, Loopback, OAuth, OAuthBuilder, Session,
        SignInFuture, SignInHandler, SignInPlace, SignedIn, SignedOut, store::FileStore,
    },
    transport::{HttpTransport, HttpTransportBuilder},
};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    env,
    error::Error as StdError,
    io,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// Lets the requests of a transport have the token of the server's sign-in. At a terminal, a server that demands a sign-in gets one.
pub(crate) fn authorize(builder: HttpTransportBuilder) -> Result<HttpTransportBuilder, Failure> {
    let oauth = client("");
    let oauth = if console::has_terminal() {
        oauth.handler(Loopback::new(confirm))
    } else {
        oauth.handler(NoTerminal)
    };
    Ok(builder.oauth(&oauth.build().map_err(failure)?))
}

/// Signs in, unless there is a sign-in already.
pub(crate) async fn login(args: &LoginArgs) -> Result<Exit, Failure> {
    let mut oauth = client(&args.server.account).scopes(args.scopes.iter().cloned());
    if let Some(id) = &args.client_id {
        oauth = oauth.credentials(match &args.client_secret {
            Some(secret) => Credentials::secret(id, secret.as_str()),
            None => Credentials::public(id),
        });
    }
    let oauth = if args.device {
        oauth.device(show_code).handler(NoDevices)
    } else {
        let handler = terminal_handler();
        oauth.handler(args.port.into_iter().fold(handler, Loopback::port))
    };
    let oauth = oauth.build().map_err(failure)?;
    let session = oauth.session(&args.server.url).map_err(failure)?;
    let was_known = session.signed_in().await.map_err(failure)?.is_some();
    let answered = if was_known { Ok(()) } else { answer_challenge(&oauth, &args.server.url).await };
    if was_known || session.signed_in().await.map_err(failure)?.is_none() {
        answered?;
        session.login().await.map_err(failure)?;
    }
    let known = session.signed_in().await.map_err(failure)?;
    print(&args.server, known.as_ref());
    Ok(Exit::Done)
}

/// Sends a request, whose challenge may say more than the metadata of the server: it signs in.
async fn answer_challenge(oauth: &OAuth, url: &str) -> Result<(), Failure> {
    let transport = HttpTransport::builder(url).oauth(oauth).build();
    let transport = transport.map_err(|error| Failure::usage(error.to_string()))?;
    let client = Client::builder("antiphon", env!("CARGO_PKG_VERSION")).connect(transport);
    let discovered = client.discover().await;
    client.close().await;
    Ok(discovered.map(drop)?)
}

/// Ends a sign-in.
pub(crate) async fn logout(args: &SignedInArgs) -> Result<Exit, Failure> {
    let session = session(client(&args.account), &args.url)?;
    let ended = session.logout().await.map_err(failure)?;
    session.forget().await.map_err(failure)?;
    let (status, text) = match ended {
        SignedOut::Nothing => ("none", "There was no sign-in."),
        SignedOut::Revoked => ("revoked", "Signed out; the tokens are revoked."),
        _ => ("removed", "Signed out here. The server did not revoke the tokens: they end by themselves."),
    };
    if args.json {
        // own: made here
        console::out_json(&json!({"status": status}).to_string());
    } else {
        console::out(text);
    }
    Ok(Exit::Done)
}

/// Prints the sign-in at a server. Nothing is sent.
pub(crate) async fn whoami(args: &SignedInArgs) -> Result<Exit, Failure> {
    let session = session(client(&args.account), &args.url)?;
    let known = session.signed_in().await.map_err(failure)?;
    print(args, known.as_ref());
    Ok(if known.is_some() { Exit::Done } else { Exit::Pending })
}

/// Prints the access token, for another program.
pub(crate) async fn token(args: &SignedInArgs) -> Result<Exit, Failure> {
    let session = session(client(&args.account), &args.url)?;
    let Some(token) = session.token().await.map_err(failure)? else {
        return Err(Failure::new(
            Exit::Pending,
            "sign_in",
            format!("no sign-in: `antiphon login {}`", args.url),
        ));
    };
    if args.json {
        // own: a text
        console::out_json(&json!({"token": token.expose()}).to_string());
    } else {
        console::out(token.expose());
    }
    Ok(Exit::Done)
}

/// Shows what a person does at another device.
async fn show_code(begun: DeviceSignIn) -> Result<(), Infallible> {
    console::note(&format!("{begun}."));
    console::note(&format!(
        "Open {}, and enter the code: {}",
        console::line(begun.verification_uri()),
        begun.user_code()
    ));
    if let Some(complete) = begun.verification_uri_complete() {
        console::note(&format!("Or open {}, and compare the code.", console::line(complete)));
    }
    Ok(())
}

/// The handler where the authorization server supports no sign-in at another device.
struct NoDevices;

impl SignInHandler for NoDevices {
    fn open<'a>(&'a self, _: Option<&'a str>) -> SignInFuture<'a, Box<dyn SignInPlace>> {
        let text = "the authorization server supports no sign-in at another device: leave out --device";
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::SignIn, text))))
    }
}

/// The handler without a person.
struct NoTerminal;

impl SignInHandler for NoTerminal {
    fn open<'a>(&'a self, _: Option<&'a str>) -> SignInFuture<'a, Box<dyn SignInPlace>> {
        let text = "there is no terminal: give --bearer, or sign in before with `antiphon login URL`";
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::SignIn, text))))
    }
}

fn print(args: &SignedInArgs, known: Option<&SignedIn>) {
    if args.json {
        let value = known.map_or(Value::Null, |known| {
            let left = known
                .expires_at
                .map(|end| end.duration_since(SystemTime::now()).unwrap_or_default().as_secs());
            // own: texts, a number and flags
            json!({
                "issuer": known.issuer, "clientId": known.client_id, "scopes": known.scopes,
                "expiresInSeconds": left, "renews": known.renews, "bound": known.bound,
            })
        });
        // own: texts
        return console::out_json(&json!({"server": args.url, "signedIn": value}).to_string());
    }
    let Some(known) = known else { return console::out("No sign-in.") };
    let scopes = match &known.scopes[..] {
        [] => String::new(),
        scopes => format!(", for {}", scopes.join(" ")),
    };
    let renews = if known.renews { ", and renews itself" } else { "" };
    let client = known.client_id.as_ref().map(|id| format!(" as {id}")).unwrap_or_default();
    console::out_theirs(&format!("Signed in at {}{client}{scopes}{renews}.", known.issuer));
}

/// The OAuth client of this program. Its tokens are in the folder of this user.
fn client(account: &str) -> OAuthBuilder {
    let oauth = OAuth::builder("antiphon").account(account);
    match folder() {
        Some(folder) => oauth.store(FileStore::new(folder)),
        None => oauth,
    }
}

fn session(oauth: OAuthBuilder, url: &str) -> Result<Arc<Session>, Failure> {
    oauth.build().and_then(|oauth| oauth.session(url)).map_err(failure)
}

/// The folder of the tokens: `ANTIPHON_TOKENS`, or that of the system for data of programs.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("ANTIPHON_TOKENS") {
        return Some(folder);
    }
    let data = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))
    };
    data.map(|data| data.join("antiphon/tokens"))
}

/// Shows a sign-in during another command, and opens the browser if the person agrees.
async fn confirm(consent: Consent) -> Result<(), io::Error> {
    console::note(&format!("{consent}."));
    console::note(&format!("The page: {}", console::line(&consent.url)));
    let host = consent.host();
    let question = format!("Open the page of {host} in a browser?");
    let asked = tokio::task::spawn_blocking(move || ask::agrees(&question));
    match asked.await.map_err(io::Error::other)? {
        Ok(true) => open(&consent.url),
        Ok(false) => Err(io::Error::other("the sign-in was declined")),
        Err(failure) => Err(io::Error::other(failure.message)),
    }
}

/// Shows a sign-in, opens the browser at an empty line, and takes another line as the address to which it returned.
fn terminal_handler() -> Loopback {
    let url = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&url);
    let show = move |consent: Consent| {
        consent.url.clone_into(&mut shown.lock().unwrap_or_else(PoisonError::into_inner));
        console::note(&format!("{consent}."));
        console::note(&format!("The page: {}", console::line(&consent.url)));
        console::note(
            "Press Enter to open it in a browser. Or open it on another machine, and paste the address of the page \
             that cannot be shown at the end:",
        );
        std::future::ready(Ok::<_, io::Error>(()))
    };
    Loopback::new(show).or_paste(move || {
        let url = Arc::clone(&url);
        async move {
            loop {
                let line = tokio::task::spawn_blocking(|| {
                    let mut line = String::new();
                    io::stdin().read_line(&mut line).map(|length| (length, line))
                });
                match line.await.map_err(io::Error::other)?? {
                    // Nobody can paste: the browser may still return.
                    (0, _) => return std::future::pending().await,
                    (_, line) if line.trim().is_empty() => {
                        let url = url.lock().unwrap_or_else(PoisonError::into_inner).clone();
                        if let Err(fault) = open(&url) {
                            console::note(&format!("no browser could be opened: {fault}"));
                        }
                    }
                    (_, line) => return Ok::<_, io::Error>(line.trim().to_owned()),
                }
            }
        }
    })
}

/// Opens a page in the person's browser, without a shell. Discovery has checked that it is `https`, or `http` on this machine.
///
/// > MCP clients **MUST NOT** open authorization URLs via a shell
fn open(url: &str) -> Result<(), io::Error> {
    let (program, arguments): (_, &[&str]) = if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else if cfg!(target_os = "macos") {
        ("open", &[])
    } else {
        ("xdg-open", &[])
    };
    let quiet = || Stdio::null();
    Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .map(drop)
}

/// The failure of an error, with its causes.
fn failure(error: Error) -> Failure {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        message += &format!(": {one}");
        cause = one.source();
    }
    let (exit, kind) = match error.kind() {
        ErrorKind::Setting => (Exit::Usage, "usage"),
        ErrorKind::SignIn => (Exit::Pending, "sign_in"),
        ErrorKind::Store => (Exit::Usage, "store"),
        _ => (Exit::Protocol, "sign_in"),
    };
    Failure::new(exit, kind, message)
}
