//! The command line. Without options the server is the one that the suite requires.

use antiphon::server::{CacheHint, ServerBuilder};
use std::{env, time::Duration};

/// The options: `[--stdio] [--page-size N] [--cache SECONDS] [--more] [HOST:PORT]`.
pub(crate) struct Options {
    /// True for standard input and output instead of HTTP.
    pub(crate) stdio: bool,
    /// True for the features of the module `extra`.
    pub(crate) extra: bool,
    /// The address to listen on. Port 0, the default, is any free port.
    pub(crate) address: String,
    page_size: Option<usize>,
    cache: Option<Duration>,
}

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    /// A message for the person who started the program.
    pub(crate) fn from_command_line() -> Result<Self, String> {
        let address = "127.0.0.1:0".to_owned();
        let mut options = Self { stdio: false, extra: false, address, page_size: None, cache: None };
        let mut words = env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
            match word.as_str() {
                "--stdio" => options.stdio = true,
                "--more" => options.extra = true,
                "--page-size" => {
                    let size = number().ok_or("--page-size takes a number")?;
                    options.page_size = Some(usize::try_from(size).map_err(|error| error.to_string())?);
                }
                "--cache" => {
                    let seconds = number().ok_or("--cache takes seconds")?;
                    options.cache = Some(Duration::from_secs(seconds.into()));
                }
                option if option.starts_with('-') => return Err(format!("unknown option {option}")),
                _ => options.address = word,
            }
        }
        Ok(options)
    }

    /// Applies the options for lists.
    pub(crate) fn apply(&self, mut server: ServerBuilder) -> ServerBuilder {
        if let Some(size) = self.page_size {
            server = server.page_size(size);
        }
        if let Some(time) = self.cache {
            server = server.cache(CacheHint::public(time));
        }
        server
    }
}
