//! A table from the definitions of the specification's schema to the types that read them, with the codec of each.

use antiphon_wire::{
    AcknowledgedParams, Annotations, AudioContent, CallToolParams, CallToolResult, CancelledParams,
    ClientCapabilities, CompleteParams, CompleteResult, CompletionReference, ContentBlock,
    CreateMessageParams, CreateMessageResult, DiscoverResult, ElicitRequest, ElicitResult, EmbeddedResource,
    ErrorObject, FormSchema, GetPromptParams, GetPromptResult, Icon, ImageContent, Implementation, Incoming,
    InputRequest, InputRequests, InputResponses, ListChangedParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListRootsResult, ListToolsResult, ListenParams,
    ListenResult, LogLevel, LogMessageParams, Meta, ModelHint, ModelPreferences, Outcome, PageParams,
    ProgressParams, ProgressToken, Prompt, PromptArgument, PromptMessage, ReadResourceParams,
    ReadResourceResult, RequestId, RequestMeta, Resource, ResourceContents, ResourceLink, ResourceTemplate,
    ResourceUpdatedParams, Role, Root, SamplingBlock, SamplingMessage, ServerCapabilities,
    SubscriptionFilter, TextContent, Tool, ToolAnnotations, ToolChoice, ToolResultContent, ToolUseContent,
    meta_keys, method, write_error, write_notification, write_request, write_result,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json, value::RawValue};
use std::error::Error;

/// A value that was read and written again.
pub(crate) type EncodeResult = Result<String, Box<dyn Error>>;
/// A function that reads a value of one definition, and writes it again.
pub(crate) type Codec = fn(&str) -> EncodeResult;

/// Every definition that is read as a type of its own. A content block is read alone, and among blocks by its `type`.
pub(crate) const MODELLED: &[(&str, &[Codec])] = &[
    ("Annotations", &[plain::<Annotations>]),
    ("AudioContent", &[plain::<AudioContent>, plain::<ContentBlock>, plain::<SamplingBlock>]),
    ("BlobResourceContents", &[plain::<ResourceContents>]),
    ("BooleanSchema", &[field]),
    ("CallToolRequest", &[request::<CallToolParams>]),
    ("CallToolRequestParams", &[plain::<CallToolParams>]),
    ("CallToolResult", &[plain::<CallToolResult>, outcome::<CallToolResult>]),
    ("CallToolResultResponse", &[response::<CallToolResult>]),
    ("CancelledNotification", &[notification::<CancelledParams>]),
    ("CancelledNotificationParams", &[plain::<CancelledParams>]),
    ("ClientCapabilities", &[plain::<ClientCapabilities>]),
    ("ClientNotification", &[any_notification]),
    ("ClientRequest", &[any_request]),
    ("CompleteRequest", &[request::<CompleteParams>]),
    ("CompleteRequestParams", &[plain::<CompleteParams>]),
    ("CompleteResult", &[plain::<CompleteResult>, outcome::<CompleteResult>]),
    ("CompleteResultResponse", &[response::<CompleteResult>]),
    ("ContentBlock", &[plain::<ContentBlock>]),
    ("CreateMessageRequest", &[plain::<InputRequest>]),
    ("CreateMessageRequestParams", &[plain::<CreateMessageParams>]),
    ("CreateMessageResult", &[plain::<CreateMessageResult>]),
    ("Cursor", &[plain::<String>]),
    ("DiscoverRequest", &[request::<PageParams>]),
    ("DiscoverResult", &[plain::<DiscoverResult>, outcome::<DiscoverResult>]),
    ("DiscoverResultResponse", &[response::<DiscoverResult>]),
    ("ElicitRequest", &[plain::<InputRequest>]),
    ("ElicitRequestFormParams", &[plain::<ElicitRequest>]),
    ("ElicitRequestParams", &[plain::<ElicitRequest>]),
    ("ElicitRequestURLParams", &[plain::<ElicitRequest>]),
    ("ElicitResult", &[plain::<ElicitResult>]),
    ("EmbeddedResource", &[plain::<EmbeddedResource>, plain::<ContentBlock>]),
    ("EnumSchema", &[field]),
    ("Error", &[plain::<ErrorObject>]),
    ("GetPromptRequest", &[request::<GetPromptParams>]),
    ("GetPromptRequestParams", &[plain::<GetPromptParams>]),
    ("GetPromptResult", &[plain::<GetPromptResult>, outcome::<GetPromptResult>]),
    ("GetPromptResultResponse", &[response::<GetPromptResult>]),
    ("HeaderMismatchError", &[error]),
    ("Icon", &[plain::<Icon>]),
    ("ImageContent", &[plain::<ImageContent>, plain::<ContentBlock>, plain::<SamplingBlock>]),
    ("Implementation", &[plain::<Implementation>]),
    ("InputRequest", &[plain::<InputRequest>]),
    ("InputRequests", &[plain::<InputRequests>]),
    ("InputRequiredResult", &[outcome::<CallToolResult>]),
    ("InputResponses", &[plain::<InputResponses>]),
    ("InternalError", &[plain::<ErrorObject>]),
    ("InvalidParamsError", &[plain::<ErrorObject>]),
    ("InvalidRequestError", &[plain::<ErrorObject>]),
    ("JSONArray", &[plain::<Vec<Value>>]),
    ("JSONObject", &[plain::<Map<String, Value>>]),
    ("JSONRPCErrorResponse", &[error, any_message]),
    ("JSONRPCMessage", &[any_message]),
    ("JSONRPCNotification", &[any_message]),
    ("JSONRPCRequest", &[any_message]),
    ("JSONRPCResponse", &[any_message]),
    ("JSONRPCResultResponse", &[any_message]),
    ("JSONValue", &[plain::<Value>]),
    ("LegacyTitledEnumSchema", &[field]),
    ("ListPromptsRequest", &[request::<PageParams>]),
    ("ListPromptsResult", &[plain::<ListPromptsResult>]),
    ("ListPromptsResultResponse", &[response::<ListPromptsResult>]),
    ("ListResourceTemplatesRequest", &[request::<PageParams>]),
    ("ListResourceTemplatesResult", &[plain::<ListResourceTemplatesResult>]),
    ("ListResourceTemplatesResultResponse", &[response::<ListResourceTemplatesResult>]),
    ("ListResourcesRequest", &[request::<PageParams>]),
    ("ListResourcesResult", &[plain::<ListResourcesResult>]),
    ("ListResourcesResultResponse", &[response::<ListResourcesResult>]),
    ("ListRootsRequest", &[plain::<InputRequest>]),
    ("ListRootsResult", &[plain::<ListRootsResult>]),
    ("ListToolsRequest", &[request::<PageParams>]),
    ("ListToolsResult", &[plain::<ListToolsResult>]),
    ("ListToolsResultResponse", &[response::<ListToolsResult>]),
    ("LoggingLevel", &[plain::<LogLevel>]),
    ("LoggingMessageNotification", &[notification::<LogMessageParams>]),
    ("LoggingMessageNotificationParams", &[plain::<LogMessageParams>]),
    ("MetaObject", &[meta]),
    ("MethodNotFoundError", &[plain::<ErrorObject>]),
    ("MissingRequiredClientCapabilityError", &[error]),
    ("ModelHint", &[plain::<ModelHint>]),
    ("ModelPreferences", &[plain::<ModelPreferences>]),
    ("MultiSelectEnumSchema", &[field]),
    ("NotificationMetaObject", &[meta]),
    ("NotificationParams", &[plain::<ListChangedParams>]),
    ("NumberSchema", &[field]),
    ("PaginatedRequest", &[request::<PageParams>]),
    ("PaginatedRequestParams", &[plain::<PageParams>]),
    ("ParseError", &[plain::<ErrorObject>]),
    ("PrimitiveSchemaDefinition", &[field]),
    ("ProgressNotification", &[notification::<ProgressParams>]),
    ("ProgressNotificationParams", &[plain::<ProgressParams>]),
    ("ProgressToken", &[plain::<ProgressToken>]),
    ("Prompt", &[plain::<Prompt>]),
    ("PromptArgument", &[plain::<PromptArgument>]),
    ("PromptListChangedNotification", &[notification::<ListChangedParams>]),
    ("PromptMessage", &[plain::<PromptMessage>]),
    ("PromptReference", &[plain::<CompletionReference>]),
    ("ReadResourceRequest", &[request::<ReadResourceParams>]),
    ("ReadResourceRequestParams", &[plain::<ReadResourceParams>]),
    ("ReadResourceResult", &[plain::<ReadResourceResult>, outcome::<ReadResourceResult>]),
    ("ReadResourceResultResponse", &[response::<ReadResourceResult>]),
    ("RequestId", &[plain::<RequestId>]),
    ("RequestMetaObject", &[meta, request_meta]),
    ("RequestParams", &[plain::<PageParams>]),
    ("Resource", &[plain::<Resource>]),
    ("ResourceLink", &[plain::<ResourceLink>, plain::<ContentBlock>]),
    ("ResourceListChangedNotification", &[notification::<ListChangedParams>]),
    ("ResourceRequestParams", &[plain::<ReadResourceParams>]),
    ("ResourceTemplate", &[plain::<ResourceTemplate>]),
    ("ResourceTemplateReference", &[plain::<CompletionReference>]),
    ("ResourceUpdatedNotification", &[notification::<ResourceUpdatedParams>]),
    ("ResourceUpdatedNotificationParams", &[plain::<ResourceUpdatedParams>]),
    ("ResultMetaObject", &[meta]),
    ("ResultType", &[plain::<String>]),
    ("Role", &[plain::<Role>]),
    ("Root", &[plain::<Root>]),
    ("SamplingMessage", &[plain::<SamplingMessage>]),
    ("SamplingMessageContentBlock", &[plain::<SamplingBlock>]),
    ("ServerCapabilities", &[plain::<ServerCapabilities>]),
    ("ServerNotification", &[any_notification]),
    ("SingleSelectEnumSchema", &[field]),
    ("StringSchema", &[field]),
    ("SubscriptionFilter", &[plain::<SubscriptionFilter>]),
    ("SubscriptionsAcknowledgedNotification", &[notification::<AcknowledgedParams>]),
    ("SubscriptionsAcknowledgedNotificationParams", &[plain::<AcknowledgedParams>]),
    ("SubscriptionsListenRequest", &[request::<ListenParams>]),
    ("SubscriptionsListenRequestParams", &[plain::<ListenParams>]),
    ("SubscriptionsListenResult", &[plain::<ListenResult>, outcome::<ListenResult>]),
    ("SubscriptionsListenResultMetaObject", &[meta]),
    ("SubscriptionsListenResultResponse", &[response::<ListenResult>]),
    ("TextContent", &[plain::<TextContent>, plain::<ContentBlock>, plain::<SamplingBlock>]),
    ("TextResourceContents", &[plain::<ResourceContents>]),
    ("TitledMultiSelectEnumSchema", &[field]),
    ("TitledSingleSelectEnumSchema", &[field]),
    ("Tool", &[plain::<Tool>]),
    ("ToolAnnotations", &[plain::<ToolAnnotations>]),
    ("ToolChoice", &[plain::<ToolChoice>]),
    ("ToolListChangedNotification", &[notification::<ListChangedParams>]),
    ("ToolResultContent", &[plain::<ToolResultContent>, plain::<SamplingBlock>]),
    ("ToolUseContent", &[plain::<ToolUseContent>, plain::<SamplingBlock>]),
    ("UnsupportedProtocolVersionError", &[error]),
    ("UntitledMultiSelectEnumSchema", &[field]),
    ("UntitledSingleSelectEnumSchema", &[field]),
];

pub(crate) fn plain<T: DeserializeOwned + Serialize>(text: &str) -> EncodeResult {
    Ok(serde_json::to_string(&serde_json::from_str::<T>(text)?)?)
}

fn outcome<T: DeserializeOwned + Serialize>(text: &str) -> EncodeResult {
    Ok(match Outcome::<T>::read(serde_json::from_str(text)?)? {
        Outcome::Complete(result) => serde_json::to_string(&result)?,
        Outcome::InputRequired(result) => serde_json::to_string(&result)?,
        _ => return Err("another outcome".into()),
    })
}

fn incoming(text: &str) -> Result<Incoming<'_>, Box<dyn Error>> {
    Incoming::parse(text.as_bytes()).map_err(|unreadable| unreadable.error.into())
}

fn request<P: DeserializeOwned + Serialize>(text: &str) -> EncodeResult {
    let Incoming::Request(request) = incoming(text)? else { return Err("not a request".into()) };
    let params: P = serde_json::from_str(request.params.ok_or("no params")?.get())?;
    Ok(String::from_utf8(write_request(&request.id, &request.method, &params)?)?)
}

fn notification<P: DeserializeOwned + Serialize>(text: &str) -> EncodeResult {
    let Incoming::Notification(notification) = incoming(text)? else {
        return Err("not a notification".into());
    };
    Ok(String::from_utf8(match notification.params {
        Some(params) => write_notification(&notification.method, &serde_json::from_str::<P>(params.get())?)?,
        None => serde_json::to_vec(&json!({"jsonrpc": "2.0", "method": notification.method}))?,
    })?)
}

fn response<R: DeserializeOwned + Serialize>(text: &str) -> EncodeResult {
    let Incoming::Response(response) = incoming(text)? else { return Err("not a response".into()) };
    let result = outcome::<R>(response.outcome?.get())?;
    let id = response.id.ok_or("no id")?;
    Ok(String::from_utf8(write_result(&id, serde_json::from_str::<&RawValue>(&result)?)?)?)
}

fn error(text: &str) -> EncodeResult {
    let Incoming::Response(response) = incoming(text)? else { return Err("not a response".into()) };
    let error = response.outcome.err().ok_or("not an error")?;
    Ok(String::from_utf8(write_error(response.id.as_ref(), &error))?)
}

/// A request, read by its method.
fn any_request(text: &str) -> EncodeResult {
    let Incoming::Request(read) = incoming(text)? else { return Err("not a request".into()) };
    match &*read.method {
        method::DISCOVER
        | method::TOOLS_LIST
        | method::PROMPTS_LIST
        | method::RESOURCES_LIST
        | method::RESOURCE_TEMPLATES_LIST => request::<PageParams>(text),
        method::TOOLS_CALL => request::<CallToolParams>(text),
        method::PROMPTS_GET => request::<GetPromptParams>(text),
        method::RESOURCES_READ => request::<ReadResourceParams>(text),
        method::COMPLETION_COMPLETE => request::<CompleteParams>(text),
        method::SUBSCRIPTIONS_LISTEN => request::<ListenParams>(text),
        other => Err(format!("the method {other}").into()),
    }
}

/// A notification, read by its method.
fn any_notification(text: &str) -> EncodeResult {
    let Incoming::Notification(read) = incoming(text)? else { return Err("not a notification".into()) };
    match &*read.method {
        method::CANCELLED => notification::<CancelledParams>(text),
        method::PROGRESS => notification::<ProgressParams>(text),
        method::MESSAGE => notification::<LogMessageParams>(text),
        method::SUBSCRIPTIONS_ACKNOWLEDGED => notification::<AcknowledgedParams>(text),
        method::RESOURCES_UPDATED => notification::<ResourceUpdatedParams>(text),
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
            notification::<ListChangedParams>(text)
        }
        other => Err(format!("the method {other}").into()),
    }
}

/// An envelope; what is in it stays text.
fn any_message(text: &str) -> EncodeResult {
    Ok(String::from_utf8(match incoming(text)? {
        Incoming::Request(request) => match request.params {
            Some(params) => write_request(&request.id, &request.method, params)?,
            None => {
                serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": request.id, "method": request.method}))?
            }
        },
        Incoming::Notification(_) => return notification::<Box<RawValue>>(text),
        Incoming::Response(response) => match (response.id, response.outcome) {
            (Some(id), Ok(result)) => write_result(&id, result)?,
            (id, Err(error)) => write_error(id.as_ref(), &error),
            (None, Ok(_)) => return Err("a result without id".into()),
        },
    })?)
}

/// A `_meta`, with the members that [`Meta`] can tell written anew from what it tells.
fn meta(text: &str) -> EncodeResult {
    let mut meta: Meta = serde_json::from_str(text)?;
    let told = [
        (meta_keys::SERVER_INFO, meta.server_info().map(serde_json::to_value)),
        (meta_keys::SUBSCRIPTION_ID, meta.subscription_id().map(serde_json::to_value)),
    ];
    for (key, told) in told {
        meta.0.remove(key);
        if let Some(value) = told {
            meta.0.insert(key.into(), value?);
        }
    }
    Ok(serde_json::to_string(&meta)?)
}

/// A request's `_meta`, with the members that [`RequestMeta`] can tell written anew from what it tells. Of the
/// capabilities it tells only what can be asked; that they are kept is the business of [`meta`].
fn request_meta(text: &str) -> EncodeResult {
    let read: RequestMeta<'_> = serde_json::from_str(text)?;
    let mut members: Map<String, Value> = serde_json::from_str(text)?;
    if read.asks.is_some() != members.contains_key(meta_keys::CLIENT_CAPABILITIES) {
        return Err("the capabilities are not told".into());
    }
    let told = [
        (meta_keys::PROTOCOL_VERSION, read.protocol_version.map(serde_json::to_value)),
        (meta_keys::CLIENT_INFO, read.client_info.map(serde_json::to_value)),
        (meta_keys::LOG_LEVEL, read.log_level.map(serde_json::to_value)),
        (meta_keys::PROGRESS_TOKEN, read.progress_token.map(serde_json::to_value)),
    ];
    for (key, told) in told {
        members.remove(key);
        if let Some(value) = told {
            members.insert(key.into(), value?);
        }
    }
    Ok(serde_json::to_string(&members)?)
}

/// The schema of one field: read as the only field of a form, and written again by a form built of what was read.
fn field(text: &str) -> EncodeResult {
    let form = format!(r#"{{"type":"object","properties":{{"field":{text}}},"required":["field"]}}"#);
    let read: FormSchema = serde_json::from_str(&form)?;
    if let Some(beyond) = read.beyond_subset() {
        return Err(beyond.into());
    }
    let built = FormSchema::new(read.fields().to_vec());
    let mut written: Value = serde_json::from_str(built.text())?;
    let mut field = written["properties"]["field"].take();
    // A form that is built has a title for each field.
    if read.fields()[0].title.is_none() {
        field.as_object_mut().ok_or("no field")?.remove("title");
    }
    // The legacy way to write titles: it is read, and written in the way of today.
    if let (true, Some(titled)) = (text.contains("enumNames"), field["oneOf"].as_array()) {
        let each = |name: &str| titled.iter().map(|choice| choice[name].clone()).collect::<Value>();
        let (values, titles) = (each("const"), each("title"));
        (field["enum"], field["enumNames"]) = (values, titles);
        field.as_object_mut().ok_or("no field")?.remove("oneOf");
    }
    Ok(field.to_string())
}
