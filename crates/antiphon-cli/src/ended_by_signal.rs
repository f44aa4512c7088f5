//! A server that is a child ends with this program. It has a process group of its own, which Ctrl-C at the terminal does not reach.

pub(crate) use signals::{EndingSignals, code};

#[cfg(unix)]
mod signals {
    use antiphon::client::Client;
    use std::{
        io, process,
        sync::atomic::{AtomicU8, Ordering},
    };
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// The exit code of the signal that ends the program; 0 without one.
    static CODE: AtomicU8 = AtomicU8::new(0);

    /// The signals that end this program, with the exit codes that a shell gives them.
    pub(crate) struct EndingSignals([(Signal, u8); 3]);

    impl EndingSignals {
        /// Installs the handlers. The caller starts the child after that, so that no signal comes between.
        ///
        /// # Errors
        /// If a handler cannot be installed.
        pub(crate) fn new() -> io::Result<Self> {
            let of = |kind, code| Ok::<_, io::Error>((signal(kind)?, code));
            Ok(Self([
                of(SignalKind::hangup(), 129)?,
                of(SignalKind::interrupt(), 130)?,
                of(SignalKind::terminate(), 143)?,
            ]))
        }

        /// Closes this client at the first signal, and ends the program. Further signals change nothing: closing has a time limit.
        pub(crate) fn close(mut self, client: Client) {
            // A task, because the main thread may wait for standard input.
            tokio::spawn(async move {
                let [(first, hangup), (second, interrupt), (third, terminate)] = &mut self.0;
                let code = tokio::select! {
                    _ = first.recv() => *hangup,
                    _ = second.recv() => *interrupt,
                    _ = third.recv() => *terminate,
                };
                CODE.store(code, Ordering::Relaxed);
                client.close().await;
                process::exit(code.into())
            });
        }
    }

    /// Returns the exit code of the signal that ends the program, if one does.
    pub(crate) fn code() -> Option<u8> {
        Some(CODE.load(Ordering::Relaxed)).filter(|code| *code > 0)
    }
}

#[cfg(not(unix))]
mod signals {
    //! The place of the signals on systems without them: Ctrl-C reaches a child as it reaches this program.

    use antiphon::client::Client;
    use std::io;

    /// No signal.
    pub(crate) struct EndingSignals;

    impl EndingSignals {
        /// Does nothing.
        ///
        /// # Errors
        /// None.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Does nothing.
        pub(crate) fn close(self, _: Client) {}
    }

    /// Returns `None`.
    pub(crate) fn code() -> Option<u8> {
        None
    }
}
