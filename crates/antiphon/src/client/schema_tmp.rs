use serde_json::Value;
#[derive(Debug)]
pub(super) struct CompiledSchema(jsonschema::Validator);
impl CompiledSchema {
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|e| e.to_string())
    }
    pub(super) fn faults(&self, v: &Value) -> Option<String> {
        let all: Vec<String> = self.0.iter_errors(v).take(5).map(|e| e.to_string()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
