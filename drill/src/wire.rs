//! The wire between the servers and the store: it carries bytes, and cuts or delays what the faults select.

use crate::{
    error::Result,
    fault::{FaultKind, Faults},
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
};

/// The wire.
#[derive(Debug)]
pub(crate) struct Wire {
    store: PathBuf,
    faults: Arc<Faults>,
    /// The fault of the next bytes that it fits.
    next: Mutex<Option<(FaultKind, Duration)>>,
    /// All connections end.
    all_end: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Reply,
}

impl Wire {
    /// Listens on a socket, and connects each of its connections to the store's socket.
    pub(crate) fn start(path: &Path, store: PathBuf, faults: Arc<Faults>) -> Result<Arc<Self>> {
        let listener = UnixListener::bind(path)?;
        let wire = Arc::new(Self { store, faults, next: Mutex::default(), all_end: Notify::new() });
        let carrier = Arc::clone(&wire);
        tokio::spawn(async move {
            while let Ok((server, _)) = listener.accept().await {
                let wire = Arc::clone(&carrier);
                tokio::spawn(async move { wire.connection(server).await });
            }
        });
        Ok(wire)
    }

    /// Makes a fault, of the next bytes or of all connections. `time` is that of a late reply.
    pub(crate) fn fault(&self, kind: FaultKind, time: Duration) {
        if kind == FaultKind::CutAll {
            self.faults.note(kind, None);
            self.all_end.notify_waiters();
        } else {
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some((kind, time));
        }
    }

    async fn connection(&self, server: UnixStream) {
        let process = server.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
        // While the store does not run, the connection ends at once.
        let Ok(store) = UnixStream::connect(&self.store).await else { return };
        let (from_server, to_server) = server.into_split();
        let (from_store, to_store) = store.into_split();
        tokio::select! {
            _ = self.carry(from_server, to_store, Direction::Request, process) => (),
            _ = self.carry(from_store, to_server, Direction::Reply, process) => (),
            () = self.all_end.notified() => (),
        }
    }

    /// Carries bytes until the connection ends. Its end is that of both directions.
    async fn carry(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        direction: Direction,
        process: Option<u32>,
    ) -> std::io::Result<()> {
        let mut bytes = vec![0; 16 * 1024];
        loop {
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            match self.take(direction) {
                Some((FaultKind::Stall, time)) => {
                    let fault = self.faults.begin(FaultKind::Stall, process);
                    tokio::time::sleep(time).await;
                    self.faults.end(fault);
                }
                Some((kind, _)) => {
                    self.faults.note(kind, process);
                    return Ok(());
                }
                None => (),
            }
            to.write_all(&bytes[..count]).await?;
        }
    }

    /// Takes the fault of the next bytes, if it is one of this direction.
    fn take(&self, direction: Direction) -> Option<(FaultKind, Duration)> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = match direction {
            Direction::Request => matches!(*next, Some((FaultKind::CutRequest, _))),
            Direction::Reply => matches!(*next, Some((FaultKind::CutReply | FaultKind::Stall, _))),
        };
        if fits { next.take() } else { None }
    }
}
