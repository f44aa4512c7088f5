//! The values of layers that tasks keep.

use crate::{
    errors::{BuildError, refusal::Refusal},
    identity::Caller,
};
use antiphon_wire::escaped;
use http::Extensions;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Error, Map, Value, from_value, to_value};
use std::sync::Arc;

/// The types of values that tasks keep, by name.
#[derive(Default)]
pub(crate) struct KeptValues(Vec<KeptValue>);

struct KeptValue {
    name: String,
    write: fn(&Extensions) -> Option<Result<Value, Error>>,
    read: fn(Value, &mut Extensions) -> Result<(), Error>,
}

impl KeptValues {
    pub(crate) fn add<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static>(
        &mut self,
        name: String,
    ) {
        let write = |from: &Extensions| from.get::<T>().map(to_value);
        let read = |value, to: &mut Extensions| {
            to.insert(from_value::<T>(value)?);
            Ok(())
        };
        self.0.push(KeptValue { name, write, read });
    }

    /// Checks that no name is used twice.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let names: Vec<&str> = self.0.iter().map(|kept| &*kept.name).collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            None => Ok(()),
            Some((_, name)) => Err(BuildError(format!(
                "`keep_in_tasks(\"{name}\")` is there twice: give each type a name of its own"
            ))),
        }
    }

    /// Returns the values of the request that becomes a task.
    pub(crate) fn write(&self, caller: &Caller<'_>) -> Result<Map<String, Value>, Refusal> {
        let Some(extensions) = caller.extensions else { return Ok(Map::new()) };
        let written = self.0.iter().filter_map(|kept| {
            let value = (kept.write)(extensions)?;
            Some(value.map(|value| (kept.name.clone(), value)))
        });
        written.collect::<Result<_, _>>().map_err(|fault| {
            tracing::error!(fault = %escaped(&fault), "a value that a task keeps cannot be written as JSON: no task is created");
            Refusal::Internal
        })
    }

    /// Returns the values for a leg of the task; `None` without any. A value that does not fit its type any more is absent.
    pub(crate) fn read(&self, values: &Map<String, Value>) -> Option<Arc<Extensions>> {
        let mut extensions = Extensions::new();
        for kept in &self.0 {
            let Some(value) = values.get(&kept.name) else { continue };
            if let Err(fault) = (kept.read)(value.clone(), &mut extensions) {
                tracing::error!(name = kept.name, fault = %escaped(&fault), "a value that a task keeps cannot be read: it is absent");
            }
        }
        (!extensions.is_empty()).then(|| Arc::new(extensions))
    }
}
