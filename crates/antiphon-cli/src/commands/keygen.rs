//! `keygen`: prints a new key, or edits a key file, with instructions on standard error.

use crate::{
    args::KeygenArgs,
    console,
    failure::{Exit, Failure},
};
use antiphon::seal::{KeyFile, KeyFileError, KeyRing, SecretKey, utc};
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
