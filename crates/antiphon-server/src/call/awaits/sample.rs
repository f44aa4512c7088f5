//! Questions to the client: a message of its model, and its root directories.

use crate::{
    call::{
        awaits::raw_ask::{PreparedAsk, RawAsk, setters},
        ctx::Ctx,
    },
    errors::awaited::AskError,
};
use antiphon_wire::{
    AskSupport, CreateMessageParams, CreateMessageResult, InputRequest, ListRootsResult, ModelPreferences,
    Root, SamplingMessage, Tool, ToolChoice,
};
use serde::de::DeserializeOwned;
use serde_json::Number;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

impl Ctx {
    /// Asks the client's model, and waits for its message. The key is `sample`.
    ///
    /// Deprecated in 2026-07-28: call a model provider instead.
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx, wire::sampling::{ModelPreferences, SamplingMessage}};
    ///
    /// async fn summary(ctx: &Ctx, text: String) -> Result<String> {
    ///     let fast = ModelPreferences::default().hint("haiku").hint("mini").speed_priority(0.9).cost_priority(0.5);
    ///     let message = SamplingMessage::user(format!("Summarize in one sentence:\n{text}"));
    ///     let answer = ctx.sample([message], 200).system_prompt("You are brief.").model_preferences(fast).await?;
    ///     Ok(answer.content.first_text().unwrap_or_default().to_owned())
    /// }
    /// ```
    #[track_caller]
    pub fn sample(&self, messages: impl IntoIterator<Item = SamplingMessage>, max_tokens: u32) -> Sample<'_> {
        let params = CreateMessageParams::new(messages.into_iter().collect(), max_tokens);
        Sample { raw: RawAsk::new(self, "sample"), params }
    }

    /// Asks for the client's root directories, and waits for the list. The key is `roots`.
    ///
    /// Deprecated in 2026-07-28: take directories as arguments instead.
    #[track_caller]
    pub fn roots(&self) -> Roots<'_> {
        Roots { raw: RawAsk::new(self, "roots") }
    }
}

/// The future of a message of the client's model, requested when the future is awaited. See [`Ctx::sample`].
#[must_use = "a model is asked when this is awaited"]
pub struct Sample<'a> {
    raw: RawAsk<'a>,
    params: CreateMessageParams,
}

/// The future of the client's roots, requested when the future is awaited. See [`Ctx::roots`].
#[must_use = "a client is asked when this is awaited"]
pub struct Roots<'a> {
    raw: RawAsk<'a>,
}

setters!(Sample<'a>, cannot: "call a model");
setters!(Roots<'a>, cannot: "list its directories");

impl Sample<'_> {
    /// Sets the system prompt. The client may change it.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.params.system_prompt = Some(prompt.into());
        self
    }

    /// Sets the temperature. A number that is not finite removes it.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.params.temperature = Number::from_f64(temperature);
        self
    }

    /// Sets the sequences at which the model stops.
    pub fn stop_sequences<S: Into<String>>(mut self, sequences: impl IntoIterator<Item = S>) -> Self {
        self.params.stop_sequences = Some(sequences.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the preferences for a model.
    pub fn model_preferences(mut self, preferences: ModelPreferences) -> Self {
        self.params.model_preferences = Some(preferences);
        self
    }

    /// Sets the tools that the model may use. Requires the capability `sampling.tools`.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.params.tools = Some(tools.into_iter().collect());
        self
    }

    /// Sets whether the model must use a tool. Requires the capability `sampling.tools`.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.params.tool_choice = Some(choice);
        self
    }
}

impl Future for Sample<'_> {
    type Output = Result<CreateMessageResult, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { raw, params } = &mut *self;
        let request = || InputRequest::CreateMessage(Box::new(params.clone()));
        raw.poll(cx, request().needs(), |_| PreparedAsk::of(request()), read)
    }
}

impl Future for Roots<'_> {
    type Output = Result<Vec<Root>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let render = |_: &str| PreparedAsk::of(InputRequest::ListRoots { meta: None });
        self.raw.poll(cx, AskSupport::ROOTS, render, read).map_ok(|result: ListRootsResult| result.roots)
    }
}

/// Decodes an answer.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|fault| fault.to_string())
}
