//! Recorded answers, and which request gets which.

use std::error::Error;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use memchr::memmem::Finder;

/// Header fields and body of one recorded answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The answers to the three requests of the benchmark.
#[derive(Debug)]
pub(crate) struct Answers {
    echo: Answer,
    asks: Answer,
    done: Answer,
    state: Finder<'static>,
}

impl Answers {
    /// Reads all three from the folder that `load record` wrote.
    pub(crate) fn load(dir: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            echo: Answer::load(dir, "echo")?,
            asks: Answer::load(dir, "provision-1")?,
            done: Answer::load(dir, "provision-2")?,
            state: Finder::new("\"requestState\""),
        })
    }

    /// A retry carries `requestState`, a first leg does not.
    pub(crate) fn choose(&self, name: Option<&[u8]>, body: &[u8]) -> Option<&Answer> {
        match name? {
            b"echo" => Some(&self.echo),
            b"provision" if self.state.find(body).is_some() => Some(&self.done),
            b"provision" => Some(&self.asks),
            _ => None,
        }
    }
}

impl Answer {
    fn load(dir: &Path, name: &str) -> Result<Self, Box<dyn Error>> {
        let head = fs::read(dir.join(format!("{name}.head")))?;
        let mut fields = [httparse::EMPTY_HEADER; 32];
        if !httparse::parse_headers(&head, &mut fields)?.is_complete() {
            return Err(format!("{name}.head has no end").into());
        }
        let mut headers = HeaderMap::new();
        for field in fields.iter().take_while(|field| !field.name.is_empty()) {
            let key = HeaderName::from_bytes(field.name.as_bytes())?;
            // Hyper writes these itself.
            if !matches!(key.as_str(), "date" | "content-length" | "connection") {
                headers.append(key, HeaderValue::from_bytes(field.value)?);
            }
        }
        let body = fs::read(dir.join(format!("{name}.body")))?.into();
        Ok(Self { headers, body })
    }
}
