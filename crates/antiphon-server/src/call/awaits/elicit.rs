//! Questions that are asked with `await`: forms, messages of the client's model, and its root directories.

use crate::{
    call::{
        awaits::{Fallback, PreparedAsk, RawAsk, setters},
        ctx::{Answer, Ctx},
    },
    errors::awaited::AskError,
    form::{self, Form, OneField, VALUE},
};
use antiphon_wire::{
    Action, AskSupport, CreateMessageParams, CreateMessageResult, ElicitRequest, FormSchema, InputRequest,
    ListRootsResult, ModelPreferences, Root, SamplingMessage, Tool, ToolChoice,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Number, value::RawValue};
use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

impl Ctx {
    /// Asks the person to fill in a form, and waits for it:
    ///
    /// ```
    /// use antiphon::{Form, Result, server::Ctx};
    ///
    /// #[derive(serde::Deserialize, Form)]
    /// struct Place {
    ///     region: String,
    /// }
    ///
    /// async fn order(ctx: &Ctx, name: &str) -> Result<String> {
    ///     let place: Place = ctx.elicit("Which region should the database live in?").await?;
    ///     Ok(format!("{name} lives in {}.", place.region))
    /// }
    /// ```
    ///
    /// If the answer is not known yet, the future does not resolve: the request ends with the question, and the handler
    /// runs again from its top when the client sends the answer, on any instance. The code before the question
    /// therefore runs once more; code that must not run twice belongs in a [`step`](Self::step).
    ///
    /// If the person declines or dismisses the form, the result is an [`AskError`]; [`outcome`](Elicit::outcome)
    /// returns both as values instead. An answer that does not fit the form does not reach the handler: the question is
    /// asked again, with the reason.
    ///
    /// The key is the type's name in snake case; a second question of that type needs a [`key`](Elicit::key) of its own.
    ///
    /// A `String`, a `bool` or a number needs no struct. It is a form of [one field](crate::OneField), and its key is `text`,
    /// `yes_no` or `number`:
    ///
    /// ```
    /// # use antiphon::{Result, server::Ctx};
    /// async fn name(ctx: &Ctx) -> Result<String> {
    ///     let name: String = ctx.elicit("What is the database called?").title("Name").await?;
    ///     let copies: u8 = ctx.elicit("How many copies?").key("copies").await?;
    ///     Ok(format!("{copies} of {name}"))
    /// }
    /// ```
    #[track_caller]
    pub fn elicit<'a, T: Form + DeserializeOwned>(
        &'a self,
        message: impl Into<Cow<'a, str>>,
    ) -> Elicit<'a, T> {
        Elicit::new(self, T::key(), message.into(), Schema::Of(T::schema))
    }

    /// Asks the person to fill in a form that the program makes at run time, for example with choices from a database:
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx, wire::forms::{FormField, FormSchema}};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Picked {
    ///     file: String,
    /// }
    ///
    /// async fn pick(ctx: &Ctx, names: Vec<String>) -> Result<String> {
    ///     let form = FormSchema::new(vec![FormField::one("file", names).title("File")]);
    ///     let picked: Picked = ctx.elicit_with("Which file?", form).await?;
    ///     Ok(picked.file)
    /// }
    /// ```
    ///
    /// The answer is any type that deserializes from the fields. `serde_json::Map<String, Value>` takes all of them: each fits
    /// the form, defaults are filled in, and fields that the form does not have are dropped. A `String`, a `bool` or a number
    /// is the value of the field named `value`.
    ///
    /// The form is part of the question. If the form differs when the handler runs again, for example because a row was
    /// deleted, the person is asked again with the new form. Build the form in a fixed order.
    ///
    /// A form that cannot be asked ends the call before anything is sent, with an error that names the field: one outside the
    /// protocol's subset, or without choices, or with the same choice twice. See
    /// [`FormSchema::unaskable`](antiphon_wire::FormSchema::unaskable).
    ///
    /// The key is `form`. In everything else this is [`elicit`](Self::elicit). Do not ask for passwords, tokens or card
    /// numbers: those go through [`elicit_url`](Self::elicit_url).
    ///
    /// > Servers **MUST NOT** use form mode elicitation to request sensitive information
    #[track_caller]
    pub fn elicit_with<'a, T: DeserializeOwned>(
        &'a self,
        message: impl Into<Cow<'a, str>>,
        schema: FormSchema,
    ) -> Elicit<'a, T> {
        Elicit::new(self, "form", message.into(), Schema::Given(schema))
    }

    /// Asks the person for a yes or no:
    ///
    /// ```
    /// # use antiphon::{Result, server::Ctx};
    /// async fn delete(ctx: &Ctx, files: usize) -> Result<String> {
    ///     if !ctx.confirm(format!("Delete {files} files?")).await? {
    ///         return Ok("Kept.".to_owned());
    ///     }
    ///     Ok("Deleted.".to_owned())
    /// }
    /// ```
    ///
    /// An accepted "no" gives `false`. If the person declines or dismisses the question, the result is an [`AskError`],
    /// as for every question: with `?`, no later line runs. [`outcome`](Elicit::outcome) gives an `Answer<bool>`.
    ///
    /// This is [`elicit`](Self::elicit) of a `bool`, with the key `confirm` and the title `Confirm`.
    #[track_caller]
    pub fn confirm<'a>(&'a self, message: impl Into<Cow<'a, str>>) -> Elicit<'a, bool> {
        self.elicit(message).key("confirm").title("Confirm")
    }
}

/// The content of a form question.
struct FormAsk<'a> {
    message: Cow<'a, str>,
    schema: Schema,
    /// The title of the field `value`.
    title: Option<Cow<'a, str>>,
}

enum Schema {
    /// The schema of a type.
    Of(fn() -> FormSchema),
    /// The schema that the program made.
    Given(FormSchema),
}

impl FormAsk<'_> {
    fn render(&self) -> Result<ElicitRequest, String> {
        let schema = match &self.schema {
            Schema::Of(schema) => schema(),
            Schema::Given(schema) => schema.clone(),
        };
        let requested_schema = match &self.title {
            // A schema outside the subset is refused unchanged: its fields do not represent all of the schema.
            Some(title) if schema.beyond_subset().is_none() => titled(&schema, title)?,
            _ => schema,
        };
        Ok(ElicitRequest::Form { message: self.message.to_string(), requested_schema })
    }
}

/// Returns the form with this title on its field `value`.
fn titled(schema: &FormSchema, title: &str) -> Result<FormSchema, String> {
    let mut fields = schema.fields().to_vec();
    let field = fields.iter_mut().find(|field| field.name == VALUE);
    let field = field
        .ok_or_else(|| format!("the form has no field `{VALUE}`, which has the title of the question"))?;
    field.title = Some(title.to_owned());
    Ok(FormSchema::new(fields))
}

/// The future of a form question, sent when the future is awaited. See [`Ctx::elicit`], [`Ctx::elicit_with`] and
/// [`Ctx::confirm`].
#[must_use = "a question is asked when it is awaited"]
pub struct Elicit<'a, T> {
    raw: RawAsk<'a>,
    form: FormAsk<'a>,
    default: Option<T>,
}

/// The future of a form question that resolves to decline and cancel as values. See [`Elicit::outcome`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitOutcome<'a, T>(Elicit<'a, T>);

// No field is pinned.
impl<T> Unpin for Elicit<'_, T> {}
impl<T> Unpin for ElicitOutcome<'_, T> {}

setters! {
    Elicit<'a, T>,
    cannot: "show forms",
    within: "Sets the time for the person to answer, in whole seconds, from the first time that the question is asked. Each round \
             also has a limit: `answer_timeout` of the tool, or else of the server, by default ten minutes."
}

impl<'a, T> Elicit<'a, T> {
    #[track_caller]
    fn new(ctx: &'a Ctx, key: impl Into<Cow<'a, str>>, message: Cow<'a, str>, schema: Schema) -> Self {
        let form = FormAsk { message, schema, title: None };
        Self { raw: RawAsk::new(ctx, key), form, default: None }
    }

    /// Sets the title of the field, which people read instead of its name `value`. Only for an answer that is a
    /// `String`, a `bool` or a number: the fields of a form have their own titles.
    pub fn title(mut self, title: impl Into<Cow<'a, str>>) -> Self
    where
        T: OneField,
    {
        self.form.title = Some(title.into());
        self
    }

    /// Sets the value to use if the client cannot show forms. It is never used for a decline, a cancel or a bad answer.
    ///
    /// The caller chooses which capabilities it declares, so the value must be harmless.
    pub fn or_default(mut self, value: T) -> Self {
        self.raw.fallback = Fallback::Value;
        self.default = Some(value);
        self
    }

    /// Resolves to decline and cancel as values instead of errors.
    pub fn outcome(self) -> ElicitOutcome<'a, T> {
        ElicitOutcome(self)
    }
}

impl<T: DeserializeOwned> Elicit<'_, T> {
    fn poll_outcome(&mut self, cx: &Context<'_>) -> Poll<Result<Answer<T>, AskError>> {
        let form = &self.form;
        let render = |_: &str| PreparedAsk::of(InputRequest::Elicit(form.render()?));
        match std::task::ready!(self.raw.poll(cx, AskSupport::FORM, render, read::<T>)) {
            Ok(answer) => {
                if let Some(refusal) = self.refusal(&answer) {
                    self.raw.ctx().leg_runtime().note_refusal(refusal);
                }
                Poll::Ready(Ok(answer))
            }
            Err(error) => {
                let stands_for_it = matches!(error, AskError::Unsupported { words: None, .. });
                let default = self.default.take().filter(|_| stands_for_it);
                Poll::Ready(default.map(Answer::Accept).ok_or(error))
            }
        }
    }

    /// Returns the error for a declined or dismissed question; `None` for an accepted one.
    fn refusal<A>(&self, answer: &Answer<A>) -> Option<AskError> {
        let refused = match answer {
            Answer::Accept(_) => return None,
            Answer::Decline => AskError::declined,
            Answer::Cancel => AskError::cancelled,
        };
        self.raw.path().map(|path| refused(&path, &self.form.message))
    }
}

impl<T: DeserializeOwned> Future for ElicitOutcome<'_, T> {
    type Output = Result<Answer<T>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_outcome(cx)
    }
}

impl<T: DeserializeOwned> Future for Elicit<'_, T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(self.poll_outcome(cx))?;
        match (self.refusal(&answer), answer) {
            (None, Answer::Accept(value)) => Poll::Ready(Ok(value)),
            (Some(refusal), _) => Poll::Ready(Err(refusal)),
            // The key is not valid: the leg ends.
            (None, _) => Poll::Pending,
        }
    }
}

/// Reads a recorded answer into its type. The error does not contain the value.
fn read<T: DeserializeOwned>(answer: &str) -> Result<Answer<T>, String> {
    #[derive(Deserialize)]
    struct Given<'a> {
        action: Action,
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let given: Given<'_> = serde_json::from_str(answer).map_err(|fault| fault.to_string())?;
    Ok(match given.action {
        Action::Accept => {
            let content = given.content.map_or_else(|| serde_json::from_str("{}"), Ok);
            let content = content.and_then(form::read_raw);
            Answer::Accept(content.map_err(|fault| crate::call::ctx::without_value(&fault))?)
        }
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    })
}

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
        raw.poll(cx, request().needs(), |_| PreparedAsk::of(request()), read_result)
    }
}

impl Future for Roots<'_> {
    type Output = Result<Vec<Root>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let render = |_: &str| PreparedAsk::of(InputRequest::ListRoots { meta: None });
        self.raw
            .poll(cx, AskSupport::ROOTS, render, read_result)
            .map_ok(|result: ListRootsResult| result.roots)
    }
}

/// Decodes an answer.
fn read_result<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|fault| fault.to_string())
}
