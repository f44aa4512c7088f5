//! The store in a folder: one sealed file for each entry, for this user only.

use crate::{
    error::{Error, ErrorKind},
    store::{StoreGuard, StoreKey, TokenStore},
};
use futures_util::future::BoxFuture;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom as _, SystemRandom},
};
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The version of the form of a file, its first byte.
const VERSION: u8 = 1;

/// The maximum length of a file in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// The time between two attempts to get a lock that another process has.
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// A store in a folder. Its files are sealed with AES-256-GCM, each for its own entry. The folder has the mode 0700, its files have
/// 0600; a file is replaced as a whole; processes exclude each other by locks of the operating system.
///
/// The key is in the file `key` of the folder, so that the seal protects a copy of single files only; with
/// [`with_key`](Self::with_key), the key is elsewhere, and with `with_key_chain` (feature `key-chain`) in the key chain of the system.
#[derive(Clone)]
pub struct FileStore(Arc<Folder>);

struct Folder {
    path: PathBuf,
    /// The key that is kept elsewhere.
    given: Option<[u8; 32]>,
    key: OnceLock<LessSafeKey>,
}

impl FileStore {
    /// Returns the store in a folder. The folder and its key are made when the first entry is saved. An operation fails if others
    /// may read the key.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Folder { path: folder.into(), given: None, key: OnceLock::new() }))
    }

    /// Returns the store in a folder, whose key, 32 random bytes, is kept elsewhere.
    pub fn with_key(folder: impl Into<PathBuf>, key: [u8; 32]) -> Self {
        Self(Arc::new(Folder { path: folder.into(), given: Some(key), key: OnceLock::new() }))
    }

    /// Runs work on files outside of the threads of the runtime.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&folder));
        done.await
            .unwrap_or_else(|fault| Err(Error::caused(ErrorKind::Store, "the store of tokens failed", fault)))
    }
}

impl TokenStore for FileStore {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
        let key = key.clone();
        Box::pin(self.run(move |folder| folder.load(&key)))
    }

    fn save<'a>(&'a self, key: &'a StoreKey, value: &'a [u8]) -> BoxFuture<'a, Result<(), Error>> {
        let (key, value) = (key.clone(), value.to_vec());
        Box::pin(self.run(move |folder| folder.save(&key, value)))
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.run(move |folder| match fs::remove_file(folder.file(&key)) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => {
                Err(failed(&folder.file(&key), "cannot be removed", fault))
            }
            _ => Ok(()),
        }))
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreGuard, Error>> {
        Box::pin(async {
            let place = self.0.path.join(format!("{}.lock", key.as_str()));
            make_folder(&self.0.path).map_err(|fault| failed(&self.0.path, "cannot be made", fault))?;
            loop {
                match try_lock(&place) {
                    Ok(Some(held)) => return Ok(StoreGuard::new(held)),
                    Ok(None) => tokio::time::sleep(LOCK_PAUSE).await,
                    Err(fault) => return Err(failed(&place, "cannot be locked", fault)),
                }
            }
        })
    }
}

impl Folder {
    fn file(&self, key: &StoreKey) -> PathBuf {
        self.path.join(format!("{}.tokens", key.as_str()))
    }

    fn load(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, Error> {
        let place = self.file(key);
        let mut sealed = Vec::new();
        match File::open(&place).and_then(|file| file.take(MAX_FILE).read_to_end(&mut sealed)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(failed(&place, "cannot be read", fault)),
            Ok(_) => {}
        }
        self.unseal(key, &sealed)?.map(Some).ok_or_else(|| {
            let why = io::Error::new(
                io::ErrorKind::InvalidData,
                "it was not sealed with this key: remove it and sign in again",
            );
            failed(&place, "cannot be opened", why)
        })
    }

    fn save(&self, key: &StoreKey, value: Vec<u8>) -> Result<(), Error> {
        let place = self.file(key);
        make_folder(&self.path).map_err(|fault| failed(&self.path, "cannot be made", fault))?;
        let sealed = self.seal(key, value)?;
        let temporary = self.path.join(format!("{}.new", key.as_str()));
        let write = || {
            // A file that a crash left here may have another mode.
            let _ = fs::remove_file(&temporary);
            let mut file = create_private(&temporary)?;
            file.write_all(&sealed)?;
            file.sync_all()?;
            fs::rename(&temporary, &place)
        };
        write().map_err(|fault| failed(&place, "cannot be written", fault))
    }

    /// Version, nonce, and the sealed value with its tag. The name of the entry is authenticated with it.
    fn seal(&self, key: &StoreKey, mut value: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_LEN];
        let no_seal =
            || Error::new(ErrorKind::Store, "the tokens cannot be sealed: the system gave no random bytes");
        SystemRandom::new().fill(&mut nonce).map_err(|_| no_seal())?;
        let aad = Aad::from(key.as_str().as_bytes());
        self.key()?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut value)
            .map_err(|_| no_seal())?;
        Ok([&[VERSION][..], &nonce, &value].concat())
    }

    fn unseal(&self, key: &StoreKey, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let parts = sealed
            .split_first()
            .and_then(|(version, rest)| Some((version, rest.split_at_checked(NONCE_LEN)?)));
        let Some((&VERSION, (nonce, rest))) = parts else { return Ok(None) };
        let Ok(nonce) = Nonce::try_assume_unique_for_key(nonce) else { return Ok(None) };
        let (mut bytes, aad) = (rest.to_vec(), Aad::from(key.as_str().as_bytes()));
        let Ok(length) = self.key()?.open_in_place(nonce, aad, &mut bytes).map(|opened| opened.len()) else {
            return Ok(None);
        };
        bytes.truncate(length);
        Ok(Some(bytes))
    }

    fn key(&self) -> Result<&LessSafeKey, Error> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let bytes = match self.given {
            Some(given) => given,
            None => read_key(&self.path)?,
        };
        #[allow(clippy::expect_used, reason = "the length is that of the algorithm")]
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("32 bytes are a key");
        Ok(self.key.get_or_init(|| LessSafeKey::new(key)))
    }
}

/// Reads the key of a folder, and makes one first if there is none.
fn read_key(folder: &Path) -> Result<[u8; 32], Error> {
    let place = folder.join("key");
    let read = || -> io::Result<[u8; 32]> {
        let mut file = match File::open(&place) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                make_key(folder, &place)?;
                File::open(&place)?
            }
            other => other?,
        };
        check_private(&file)?;
        let mut key = [0; 32];
        file.read_exact(&mut key)?;
        Ok(key)
    };
    read().map_err(|fault| failed(&place, "cannot be used as the key of the tokens", fault))
}

/// Makes a key as a whole: of two processes that begin together, one wins, and both then read the same key.
fn make_key(folder: &Path, place: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("the system gave no random bytes"))?;
    let mut suffix = [0; 8];
    SystemRandom::new().fill(&mut suffix).map_err(|_| io::Error::other("the system gave no random bytes"))?;
    let temporary = folder.join(format!("key.{:016x}", u64::from_ne_bytes(suffix)));
    let mut file = create_private(&temporary)?;
    file.write_all(&key)?;
    file.sync_all()?;
    let linked = fs::hard_link(&temporary, place);
    fs::remove_file(&temporary)?;
    match linked {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => Err(fault),
        _ => Ok(()),
    }
}

fn failed(place: &Path, what: &str, fault: io::Error) -> Error {
    Error::caused(ErrorKind::Store, format!("{} {what}: {fault}", place.display()), fault)
}

#[cfg(unix)]
fn make_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// On Windows, files of the user's profile belong to the user alone.
#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn check_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if file.metadata()?.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may read it: give it the mode 0600"))
}

#[cfg(not(unix))]
fn check_private(_: &File) -> io::Result<()> {
    Ok(())
}

/// Locks a file, unless another holder has it.
#[cfg(unix)]
fn try_lock(place: &Path) -> io::Result<Option<impl Send + Sync + 'static + use<>>> {
    use nix::{
        errno::Errno,
        fcntl::{Flock, FlockArg},
    };
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(place)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, fault)) => Err(fault.into()),
    }
}

/// Opens a file that nobody else may open meanwhile.
#[cfg(windows)]
fn try_lock(place: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// `ERROR_SHARING_VIOLATION`.
    const SHARED: i32 = 32;
    match OpenOptions::new().write(true).create(true).truncate(false).share_mode(0).open(place) {
        Ok(file) => Ok(Some(file)),
        Err(fault) if fault.raw_os_error() == Some(SHARED) => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.0.path).finish()
    }
}

#[cfg(feature = "key-chain")]
mod key_chain {
    //! The key of a folder of tokens in the key chain of the system.

    use crate::{
        error::{Error, ErrorKind},
        store::{FileStore, StoreKey, TokenStore as _},
    };
    use antiphon_wire::escaped;
    use keyring_core::{CredentialStore, Entry, Error as ChainError};
    use ring::rand::{SecureRandom as _, SystemRandom};
    use std::{path::PathBuf, sync::Arc};
    use tokio::task::spawn_blocking;

    /// The name of the entry in the key chain.
    const ENTRY: &str = "key of the stored tokens";

    impl FileStore {
        /// Returns the store in a folder, whose key is in the key chain: 32 random bytes in one entry of `service`, made at the first use.
        /// The tokens themselves stay in the files, because key chains limit the length of an entry, and lock nothing.
        ///
        /// The program chooses the key chain: a store of the crates for `keyring-core`, such as those for the Secret Service, the macOS
        /// keychain or the Windows credential store.
        ///
        /// ```
        /// use antiphon_oauth::{Error, store::FileStore};
        /// use keyring_core::{CredentialStore, mock};
        /// use std::sync::Arc;
        ///
        /// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
        /// let chain: Arc<CredentialStore> = mock::Store::new()?; // that of the system, in a program
        /// let store = FileStore::with_key_chain("/home/ada/.local/share/my-host/tokens", chain, "my-host").await?;
        /// # drop(store);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Store`](ErrorKind::Store) if the key chain is locked or not there, or its entry is no key.
        pub async fn with_key_chain(
            folder: impl Into<PathBuf>,
            chain: Arc<CredentialStore>,
            service: &str,
        ) -> Result<Self, Error> {
            let (folder, service) = (folder.into(), service.to_owned());
            // Processes that begin at once make one key.
            let _lock = Self::new(&folder).lock(&StoreKey::new("key chain", &service)).await?;
            // A key chain may ask a person to open it.
            let key = spawn_blocking(move || key_in(&chain, &service)).await;
            let key = key.unwrap_or_else(|fault| Err(failed(&fault)))?;
            Ok(Self::with_key(folder, key))
        }
    }

    fn key_in(chain: &Arc<CredentialStore>, service: &str) -> Result<[u8; 32], Error> {
        let entry = Entry::new_in_store(chain, service, ENTRY).map_err(|fault| failed(&fault))?;
        match entry.get_secret() {
            Ok(known) => <[u8; 32]>::try_from(known).map_err(|_| failed(&"the entry is no key of 32 bytes")),
            Err(ChainError::NoEntry) => {
                let mut key = [0; 32];
                SystemRandom::new().fill(&mut key).map_err(|_| failed(&"the system gave no random bytes"))?;
                entry.set_secret(&key).map_err(|fault| failed(&fault))?;
                Ok(key)
            }
            Err(fault) => Err(failed(&fault)),
        }
    }

    /// The error holds only the text of its cause, whose fields may hold a secret.
    fn failed(fault: &dyn std::fmt::Display) -> Error {
        let text = format!("the key chain of the system cannot be used: {}", escaped(&fault.to_string()));
        Error::new(ErrorKind::Store, text)
    }
}
