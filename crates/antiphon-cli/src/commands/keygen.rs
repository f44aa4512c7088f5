//! `keygen`: prints a new key, and instructions on standard error.

use crate::{
    console,
    failure::{Exit, Failure},
};
use antiphon::seal::SecretKey;

pub(super) fn keygen() -> Result<Exit, Failure> {
    let key = SecretKey::random().map_err(|error| Failure::protocol("key", error.to_string()))?;
    console::out(&key.to_base64url());
    console::hint(
        "Put the key into a file that only the servers can read (umask 077), one key per line. Give every instance the \
         same file with `--key-file FILE`, or set ANTIPHON_KEYS to the keys, separated by commas. Anyone with the key \
         can read and forge the state of calls.\n\
         To rotate keys: append the new key on every instance, then move it to the front on every instance, then \
         remove the old key when its last call has ended.",
    );
    Ok(Exit::Done)
}
