//! Recorded answers, and which request gets which.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsStr;
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

/// The recorded answers, by the name of their tool or method. `+state` is behind it where the request carries state.
#[derive(Debug)]
pub(crate) struct Answers {
    by_name: HashMap<Vec<u8>, Answer>,
    state: Finder<'static>,
}

impl Answers {
    /// Reads all answers from the folder that `load record` wrote.
    pub(crate) fn load(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let mut by_name = HashMap::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(OsStr::to_str);
            if let (Some(name), Some("body")) = (name, path.extension().and_then(OsStr::to_str)) {
                by_name.insert(name.as_bytes().to_vec(), Answer::load(dir, name)?);
            }
        }
        Ok(Self { by_name, state: Finder::new("\"requestState\"") })
    }

    /// The answer for a tool of this name. Only the tools that ask are called with state.
    pub(crate) fn choose(&self, name: Option<&[u8]>, body: &[u8]) -> Option<&Answer> {
        let name = name?;
        if name.starts_with(b"provision") && self.state.find(body).is_some() {
            return self.by_name.get([name, b"+state"].concat().as_slice());
        }
        self.by_name.get(name)
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
            if !matches!(key.as_str(), "date" | "content-length" | "transfer-encoding" | "connection") {
                headers.append(key, HeaderValue::from_bytes(field.value)?);
            }
        }
        let body = fs::read(dir.join(format!("{name}.body")))?.into();
        Ok(Self { headers, body })
    }
}
