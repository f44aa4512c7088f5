//! `keygen`: prints a new key, or edits a key file, with instructions on standard error.

use crate::{
    args::KeygenArgs,
    console,
    failure::{Exit, Failure},
    key_file::edit,
};
use antiphon::seal::{KeyFileError, SecretKey, utc};
use std::{
    path::Path,
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
