//! `keygen`: prints a new key, or edits a key file, with instructions on standard error. `receipt verify`: opens a receipt with
//! the key file, and prints it.

use crate::{
    args::{KeygenArgs, VerifyArgs},
    console,
    failure::{Exit, Failure},
};
use antiphon::{
    seal::{KeyFile, KeyFileError, KeyRing, SecretKey, utc},
    server::receipts::{Receipt, ReceiptEntry, ReceiptError, ReceiptPerson},
};
use serde_json::Value;
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(super) fn keygen(args: &KeygenArgs) -> Result<Exit, Failure> {
    if let Some(file) = &args.add {
        return add(file);
    }
    if let Some(file) = &args.promote {
        return promote(file, args.longest_life);
    }
    if let Some(file) = &args.retire {
        return retire(file, args.longest_life, args.force);
    }
    console::out(&new_key()?.to_base64url());
    console::hint(
        "Put the key into a file that only the servers can read (umask 077), one key per line. Give every instance the \
         same file with `--key-file FILE`, or set ANTIPHON_KEYS to the keys, separated by commas. Anyone with the key \
         can read and forge the state of calls.\n\
         `antiphon keygen --add FILE` writes a new key into a file. To rotate keys: `--add FILE`, then `--promote FILE`, \
         then `--retire FILE`, each after the step before has reached every instance.",
    );
    Ok(Exit::Done)
}

fn add(file: &Path) -> Result<Exit, Failure> {
    let key = new_key()?;
    let is_first = edit(file, true, |keys| keys.add(key, now()).map_err(refused))?;
    let name = file.display();
    if is_first {
        console::hint(&format!(
            "{name}: a new key, which seals. Give every instance this file with `--key-file`."
        ));
    } else {
        console::hint(&format!(
            "{name}: a new key, which opens and does not seal yet.\n\
             Next: bring the file to every instance, and wait until each has read it (at once after SIGHUP, within \
             seconds otherwise). Then `antiphon keygen --promote {name}`."
        ));
    }
    Ok(Exit::Done)
}

fn promote(file: &Path, longest_life: Duration) -> Result<Exit, Failure> {
    let now = now();
    edit(file, false, |keys| keys.promote(now).map_err(refused))?;
    let name = file.display();
    let from = utc::format(now.saturating_add(longest_life.as_secs()).saturating_add(1));
    console::hint(&format!(
        "{name}: the new key seals, and the old one opens only.\n\
         Next: bring the file to every instance. From {from} on, `antiphon keygen --retire {name}`: until then states of \
         the old key may come back. Count from the moment when the last instance has read the file, and take the longest \
         `answer_timeout` of your tools (or the time of a whole call, where expired states are asked again) with \
         `--longest-life` if it is more than {}.",
        words(longest_life),
    ));
    Ok(Exit::Done)
}

fn retire(file: &Path, longest_life: Duration, force: bool) -> Result<Exit, Failure> {
    let retired = edit(file, false, |keys| {
        if force {
            return keys.retire_at_once().map_err(refused);
        }
        keys.retire(longest_life, now()).map_err(|error| match error.is_early() {
            true => Failure::usage(format!(
                "{error}. The longest life of a state is taken as {}; `--longest-life` changes it. `--force` removes the \
                 key now, and its states are refused",
                words(longest_life)
            )),
            false => refused(error),
        })
    })?;
    let (name, what) =
        (file.display(), if retired == 1 { "1 key".to_owned() } else { format!("{retired} keys") });
    console::hint(&format!(
        "{name}: {what} removed; states of such a key are refused from now on.\n\
         Next: bring the file to every instance. Receipts of such a key verify with an old copy of the file only."
    ));
    Ok(Exit::Done)
}

fn new_key() -> Result<SecretKey, Failure> {
    SecretKey::random().map_err(|error| Failure::protocol("key", error.to_string()))
}

fn refused(error: KeyFileError) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the time in Unix seconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Returns a duration as the command line takes it.
fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

// Edits of key files: read, change, write to a new file, rename.

/// The maximum length of a key file, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Returns the ring of a key file.
pub(crate) fn ring(file: &Path) -> Result<KeyRing, Failure> {
    let text = text_of(file).map_err(|fault| unreadable(file, &fault))?;
    KeyRing::parse_file(&text).map_err(|error| invalid(file, &error))
}

/// Reads a key file as a server does that runs: a regular file of at most 1 MiB.
fn text_of(file: &Path) -> io::Result<String> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    File::open(file)?.take(MAX_LENGTH + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_LENGTH {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is longer than 1 MiB"));
    }
    Ok(text)
}

/// Edits a key file in place: other programs read the old file or the new one, and nothing in between. Only the owner can
/// read the new file. Without a file there is a new one, if `creates` is true.
pub(crate) fn edit<T>(
    file: &Path,
    creates: bool,
    edit: impl FnOnce(&mut KeyFile) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = regular(file, creates)?;
    // The new file is the lock, too: a second edit at the same time would lose the first one.
    let temporary = Temporary::create(&file)?;
    let old = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(fault) if creates && fault.kind() == io::ErrorKind::NotFound => None,
        Err(fault) => return Err(unreadable(&file, &fault)),
    };
    let mut keys =
        KeyFile::parse(old.as_deref().unwrap_or_default()).map_err(|error| invalid(&file, &error))?;
    let done = edit(&mut keys)?;
    keys.ring().map_err(|error| invalid(&file, &error))?;
    temporary.replace(&file, keys.to_text().as_bytes()).map_err(|fault| {
        Failure::usage(format!(
            "key file {}: cannot be written, and stays as it was: {fault}",
            file.display()
        ))
    })?;
    Ok(done)
}

/// Returns the path of a regular file, or of none if `creates` is true. A link stays a link, and the file behind it is replaced.
/// Anything else would be lost: the new file takes its name.
fn regular(file: &Path, creates: bool) -> Result<PathBuf, Failure> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() => fs::canonicalize(file).map_err(|fault| unreadable(file, &fault)),
        Ok(_) => Err(invalid(file, &"it is not a regular file, and stays as it is")),
        Err(fault) if creates && fault.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(file).is_ok() {
                return Err(invalid(file, &"it is a link to a file that does not exist"));
            }
            Ok(file.to_owned())
        }
        Err(fault) => Err(unreadable(file, &fault)),
    }
}

/// A new file beside the key file. Dropping the value removes it.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(of: &Path) -> Result<Self, Failure> {
        let mut name = OsString::from(".");
        name.push(of.file_name().unwrap_or_default());
        name.push(".new");
        let path = of.with_file_name(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Err(Failure::usage(format!(
                "{} exists: another edit runs, or was interrupted; then remove that file",
                path.display()
            ))),
            Err(fault) => Err(Failure::usage(format!("{}: {fault}", path.display()))),
        }
    }

    /// Writes the text and renames the file. The key file is the old one, or the new one with all of its text.
    fn replace(mut self, file: &Path, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        #[cfg(unix)]
        if let Ok(old) = fs::metadata(file) {
            use std::os::unix::fs::MetadataExt as _;
            // The servers may run as another user, who must be able to read the new file too.
            let new = self.file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()))?;
            }
        }
        self.file.sync_all()?;
        fs::rename(&self.path, file)?;
        // The rename itself is durable when its folder is.
        #[cfg(unix)]
        if let Some(folder) = file.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

fn unreadable(file: &Path, fault: &io::Error) -> Failure {
    Failure::usage(format!("key file {}: {fault}", file.display()))
}

fn invalid(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("key file {}: {error}", file.display()))
}

pub(super) fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let (name, text) = read(&args.file)?;
    let receipt = open(&text, args).map_err(|error| refused_receipt(format!("{name}: {error}")))??;
    if let Some(arguments) = &args.arguments {
        let arguments = match arguments.strip_prefix('@') {
            Some(file) => read(Path::new(file))?.1,
            None => arguments.clone(),
        };
        let same = receipt.has_arguments(Some(&arguments));
        if !same.map_err(|fault| Failure::usage(format!("--args: {fault}")))? {
            return Err(refused_receipt(format!("{name}: the call of this receipt had other arguments")));
        }
    }
    if args.json {
        let text = serde_json::to_string(&receipt).map_err(|fault| refused_receipt(fault.to_string()))?;
        console::out_json(&text);
    } else {
        console::out(&in_words(&receipt));
    }
    Ok(Exit::Done)
}

/// Tries each key file. The inner error is that of a key file.
fn open(text: &str, args: &VerifyArgs) -> Result<Result<Receipt, Failure>, ReceiptError> {
    let mut last = None;
    for file in &args.key_files {
        let ring = match ring(file) {
            Ok(ring) => ring,
            Err(failure) => return Ok(Err(failure)),
        };
        match Receipt::verify(text, &ring) {
            Ok(receipt) => return Ok(Ok(receipt)),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(error),
        None => Ok(Err(Failure::usage("no key file"))),
    }
}

fn read(file: &Path) -> Result<(String, String), Failure> {
    let (name, text) = match file.to_str() {
        Some("-") => ("standard input".to_owned(), io::read_to_string(io::stdin())),
        _ => (file.display().to_string(), fs::read_to_string(file)),
    };
    let text = text.map_err(|fault| Failure::usage(format!("{name}: {fault}")))?;
    Ok((name, text))
}

/// Returns the failure of a receipt that does not count.
fn refused_receipt(message: String) -> Failure {
    Failure::new(Exit::ToolFailed, "receipt", message)
}

/// Returns the receipt for a person. All texts in it come from others: each one is on its own line or escaped in its line.
fn in_words(receipt: &Receipt) -> String {
    let call = &receipt.call;
    let mut lines = vec![
        format!("The receipt is authentic. Made {} by {}", utc::format(receipt.issued), quoted(&call.server)),
        format!(
            "call       {} {}, version {}",
            console::line(&call.method),
            quoted(&call.target),
            call.version
        ),
        format!("id         {}, begun {}", console::line(&call.id), utc::format(call.began)),
        format!("caller     {}", person(call.caller.as_ref())),
        format!("arguments  {} (SHA-256; compare with --args)", console::line(&call.arguments)),
    ];
    for (number, entry) in receipt.entries.iter().enumerate() {
        lines.push(String::new());
        lines.push(format!("{}. {} in round {}", number + 1, quoted(&entry.key), entry.round));
        lines.push(format!("shown      {}", shown(entry)));
        lines.push(format!("answered   {}", answer(entry)));
        let at = entry.at.map_or_else(|| "at a time that was not recorded".to_owned(), utc::format);
        lines.push(format!("when       {at}"));
        lines.push(format!("by         {}", person(entry.by.as_ref())));
    }
    lines.join("\n")
}

fn shown(entry: &ReceiptEntry) -> String {
    let shown: Value = serde_json::from_str(entry.shown.get()).unwrap_or_default();
    let params = &shown["params"];
    match (params["message"].as_str(), params["url"].as_str()) {
        (Some(message), Some(url)) => format!("{}, and the URL {}", quoted(message), quoted(url)),
        (Some(message), None) => {
            let fields = params["requestedSchema"]["properties"].as_object();
            let names: Vec<String> = fields.into_iter().flatten().map(|(name, _)| quoted(name)).collect();
            format!("{} with the fields {}", quoted(message), names.join(", "))
        }
        _ => quoted(entry.shown.get()),
    }
}

fn answer(entry: &ReceiptEntry) -> String {
    let Some(text) = &entry.answer else { return "nothing, in the time that there was".to_owned() };
    let answer: Value = serde_json::from_str(text.get()).unwrap_or_default();
    match (answer["action"].as_str(), answer.get("content")) {
        (Some("accept"), Some(Value::Object(content))) if !content.is_empty() => {
            console::json(&format!("accept {}", Value::Object(content.clone())))
        }
        (Some(action), _) => console::line(action),
        _ => console::json(text.get()),
    }
}

fn person(person: Option<&ReceiptPerson>) -> String {
    let Some(person) = person else { return "nobody who was authenticated".to_owned() };
    let parts = [("", &person.subject), ("at ", &person.issuer), ("through ", &person.client_id)];
    let parts = parts.iter().filter_map(|(word, part)| Some(format!("{word}{}", quoted(part.as_ref()?))));
    parts.collect::<Vec<_>>().join(" ")
}

/// Returns the text in quotes, as one line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", console::line(text))
}
