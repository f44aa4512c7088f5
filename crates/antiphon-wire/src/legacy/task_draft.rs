//! The messages of tasks that only the draft after 2025-11-25 has: `tasks/result` returns the open questions, and
//! `tasks/input_response` answers them. The draft was never released; the extension replaced it.

use crate::{
    InputRequests, InputRequiredResult, InputResponses, Meta,
    lenient::optional_object_or_empty,
    members::{Members, Object},
};
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The params of `tasks/input_response`.
///
/// The draft names the task in `_meta`, and in places in `params.taskId`. [`task_id`](Self::task_id) reads both.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskInputParams {
    /// The id of the task, beside the one in `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "taskId")]
    pub id: Option<String>,
    /// The answers to questions of the task, by key. The draft's examples wrap each one in `{"result": ..}`:
    /// [`InputResponses::unwrapped`] removes the wrapper.
    pub input_responses: InputResponses,
    /// The state of the last `tasks/result`, unchanged, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The version, identity and capabilities of the client, and the id of the task.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TaskInputParams {
    /// Creates the params with these answers. The id is in `_meta`, as the draft's schema and examples have it.
    pub fn new(task_id: &str, input_responses: InputResponses, meta: Meta) -> Self {
        Self { id: None, input_responses, request_state: None, meta: meta.with_related_task(task_id) }
    }

    /// Returns the id of the task.
    pub fn task_id(&self) -> Option<&str> {
        self.id.as_deref().or_else(|| self.meta.related_task())
    }
}

impl InputResponses {
    /// Returns the answers without the wrapper `{"result": ..}`, which some drafts have around each answer.
    ///
    /// Every answer has a required member, and none is called `result`: an object with that member alone is a wrapper.
    ///
    /// # Errors
    /// Returns an error only if an answer cannot be written as JSON.
    pub fn unwrapped(&self) -> Result<Self, serde_json::Error> {
        let mut bare = Self::new();
        for (key, answer) in self.iter() {
            match serde_json::from_str::<Members>(answer.get()) {
                Ok(Members(members)) => match &*members {
                    [(name, result)] if name == "result" => bare.insert(key, result)?,
                    _ => bare.insert(key, &answer)?,
                },
                Err(_) => bare.insert(key, &answer)?,
            }
        }
        Ok(bare)
    }
}

/// The result of `tasks/result` in the draft.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DraftTaskResult {
    /// The open questions of the task.
    InputRequired(InputRequiredResult),
    /// The result of the request that has become the task.
    Final(Box<RawValue>),
}

impl DraftTaskResult {
    /// Reads the `result` of a response to `tasks/result`.
    ///
    /// The draft's examples have no `resultType`: then a member `inputRequests` decides, which no final result has.
    ///
    /// # Errors
    /// Returns an error if the members of a result with questions cannot be read, or if there is neither a question nor a state.
    pub fn read(result: &RawValue) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head<'a> {
            #[serde(borrow, default)]
            result_type: Option<Cow<'a, str>>,
            #[serde(default, deserialize_with = "optional_object_or_empty")]
            input_requests: Option<InputRequests>,
            #[serde(default)]
            request_state: Option<String>,
            #[serde(rename = "_meta", default)]
            meta: Option<Meta>,
        }
        let Object(head) = serde_json::from_str::<Object<Head<'_>>>(result.get())?;
        let asks = match head.result_type.as_deref() {
            Some(result_type) => result_type == "input_required",
            None => head.input_requests.is_some(),
        };
        if !asks {
            return Ok(Self::Final(result.to_owned()));
        }
        InputRequiredResult::new(head.input_requests.unwrap_or_default(), head.request_state)
            .map(|result| Self::InputRequired(result.with_meta(head.meta)))
            .map_err(serde_json::Error::custom)
    }
}

/// Returns the `result` of a request, with the task that it belongs to in its `_meta`. Its other members are unchanged.
///
/// > The `tasks/result` operation **MUST** include this metadata in its response, as the result structure itself does not
/// > contain the task ID.
///
/// # Errors
/// Returns an error if the result is not an object, or its `_meta` is not one.
pub fn with_related_task(result: &RawValue, task_id: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut members: Members = serde_json::from_str(result.get())?;
    let meta = match members.0.iter().position(|(name, _)| name == "_meta") {
        Some(at) => serde_json::from_str(members.0.remove(at).1.get())?,
        None => Meta::default(),
    };
    let meta = serde_json::value::to_raw_value(&meta.with_related_task(task_id))?;
    members.0.push(("_meta".to_owned(), meta));
    serde_json::value::to_raw_value(&members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::to_raw_value};

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    #[test]
    fn answers_are_bare_or_wrapped() {
        let bare = json!({ "action": "accept", "content": { "input": "Hello World!" } });
        for (answer, expected) in [
            (bare.clone(), bare.clone()),
            (json!({ "result": bare.clone() }), bare),
            // An answer of the model may have any member beside its own.
            (json!({ "result": 1, "role": "assistant" }), json!({ "result": 1, "role": "assistant" })),
            (json!(3), json!(3)),
        ] {
            let params = json!({ "inputResponses": { "echo_input": answer },
                "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t" } } });
            let params: TaskInputParams = serde_json::from_value(params).unwrap();
            assert_eq!(params.task_id(), Some("t"));
            let answers = serde_json::to_value(params.input_responses.unwrapped().unwrap()).unwrap();
            assert_eq!(answers, json!({ "echo_input": expected }));
        }
    }

    #[test]
    fn the_task_is_named_in_two_places() {
        let mut answers = InputResponses::new();
        answers.insert("a", &json!({ "action": "decline" })).unwrap();
        let written = serde_json::to_value(TaskInputParams::new("t", answers, Meta::default())).unwrap();
        assert_eq!(
            written,
            json!({ "inputResponses": { "a": { "action": "decline" } },
                "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t" } } })
        );
        let prose = json!({ "taskId": "p", "inputResponses": {}, "requestState": "s" });
        let prose: TaskInputParams = serde_json::from_value(prose).unwrap();
        assert_eq!((prose.task_id(), prose.request_state.as_deref()), (Some("p"), Some("s")));
    }

    #[test]
    fn a_result_with_questions_and_a_final_one() {
        let asks = json!({ "echo_input": { "method": "roots/list" } });
        for (result, is_final) in [
            (json!({ "inputRequests": asks }), false),
            (json!({ "inputRequests": asks, "resultType": "input_required", "requestState": "s" }), false),
            (json!({ "resultType": "input_required", "requestState": "s" }), false),
            (json!({ "content": [], "isError": false }), true),
            (json!({ "content": [], "resultType": "complete" }), true),
        ] {
            let read = DraftTaskResult::read(&raw(&result)).unwrap();
            assert_eq!(matches!(read, DraftTaskResult::Final(_)), is_final, "{result}");
        }
        for broken in [json!({ "resultType": "input_required" }), json!({ "inputRequests": {} }), json!([])] {
            assert!(DraftTaskResult::read(&raw(&broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_result_gets_its_task() {
        let result = raw(&json!({ "content": [], "_meta": { "a": 1 } }));
        let related: Value = serde_json::from_str(with_related_task(&result, "t").unwrap().get()).unwrap();
        let meta = json!({ "a": 1, "io.modelcontextprotocol/related-task": { "taskId": "t" } });
        assert_eq!(related, json!({ "content": [], "_meta": meta }));
        assert!(with_related_task(&raw(&json!(3)), "t").is_err());
    }
}
