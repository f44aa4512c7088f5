//! The compiled schemas of tools.

use crate::{
    errors::BuildError,
    offer::{
        check::{InputCheck, OutputCheck, SchemaOrigin},
        tool::Tool,
    },
};
use antiphon_store::BlobDigest;
use antiphon_wire::{header::params::ParamHeaders, lock::Lock};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// The compiled schemas of a tool, and its headers.
pub(crate) struct ToolChecks {
    pub(crate) input: InputCheck,
    pub(crate) output: Option<OutputCheck>,
    pub(crate) param_headers: ParamHeaders,
}

impl ToolChecks {
    /// # Errors
    /// If a schema is not valid, or needs the validator in a build without feature `schema`.
    pub(crate) fn new(tool: &Tool) -> Result<Self, BuildError> {
        let name = &tool.definition.name;
        let input = InputCheck::new(name, &tool.schema, tool.schema_origin)?;
        // Taken from the advertised schema, which omits some `null`s of the checked schema.
        let param_headers = ParamHeaders::of(&tool.definition.input_schema.to_value())
            .map_err(|fault| BuildError(format!("the input schema of the tool `{name}`: {fault}")))?;
        let check = |(schema, origin): &(Value, SchemaOrigin)| OutputCheck::new(name, schema, *origin);
        let output = tool.output.as_ref().map(check).transpose()?;
        Ok(Self { input, output, param_headers })
    }
}

/// The checks of tools that are found at run time, by their schemas: a tool is found for each list and each call, and its schemas are
/// compiled once.
#[derive(Default)]
pub(crate) struct KnownChecks(Lock<KnownByDigest>);

#[derive(Default)]
struct KnownByDigest {
    checks: HashMap<BlobDigest, Arc<ToolChecks>>,
    /// The bytes of their schemas.
    bytes: usize,
}

/// The maximum number of tools whose checks are kept, and the maximum bytes of their schemas. Beyond it, all are compiled again.
const KNOWN: usize = 1024;
const KNOWN_BYTES: usize = 8 << 20;

impl KnownChecks {
    /// # Errors
    /// As [`ToolChecks::new`].
    pub(crate) fn of(&self, tool: &Tool) -> Result<Arc<ToolChecks>, BuildError> {
        let output = tool.output.as_ref().map(|(schema, origin)| (schema.to_string(), origin));
        let advertised = tool.definition.input_schema.text();
        let schemas = format!("{:?}", (tool.schema.to_string(), tool.schema_origin, output, advertised));
        let key = BlobDigest::of(schemas.as_bytes());
        if let Some(known) = self.0.lock().checks.get(&key) {
            return Ok(Arc::clone(known));
        }
        // Outside of the lock: to compile takes long.
        let checks = Arc::new(ToolChecks::new(tool)?);
        let mut known = self.0.lock();
        if known.checks.len() >= KNOWN || known.bytes + schemas.len() > KNOWN_BYTES {
            *known = KnownByDigest::default();
        }
        known.bytes += schemas.len();
        known.checks.insert(key, Arc::clone(&checks));
        Ok(checks)
    }
}
