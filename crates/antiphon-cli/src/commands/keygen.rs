//! `keygen`: one key, and what to do with it.

use crate::{
    console,
    failure::{Exit, Failure},
};
use antiphon::seal::SecretKey;

pub(super) fn keygen() -> Result<Exit, Failure> {
    let key = SecretKey::random().map_err(|error| Failure::protocol("key", error.to_string()))?;
    console::out(&key.to_base64url());
    console::note(
        "Put it into a file that only the servers can read (umask 077), one key a line, and give every instance the \
         same file: `--key-file FILE`, or ANTIPHON_KEYS with commas in between. Whoever has the key can read and forge \
         the state of calls.\n\
         To change keys: add the new one at the end everywhere, then move it to the front everywhere, then remove the \
         old one once the last call under it is over.",
    );
    Ok(Exit::Done)
}
