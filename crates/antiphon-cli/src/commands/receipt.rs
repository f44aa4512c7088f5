//! `receipt verify`: opens a receipt with the key file, and prints it.

use crate::{
    args::VerifyArgs,
    commands::keygen,
    console,
    failure::{Exit, Failure},
};
use antiphon::{
    seal::utc,
    server::receipts::{Receipt, ReceiptEntry, ReceiptError, ReceiptPerson},
};
use serde_json::Value;
use std::{fs, io, path::Path};

pub(super) fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let (name, text) = read(&args.file)?;
    let receipt = open(&text, args).map_err(|error| refused(format!("{name}: {error}")))??;
    if let Some(arguments) = &args.arguments {
        let arguments = match arguments.strip_prefix('@') {
            Some(file) => read(Path::new(file))?.1,
            None => arguments.clone(),
        };
        let same = receipt.has_arguments(Some(&arguments));
        if !same.map_err(|fault| Failure::usage(format!("--args: {fault}")))? {
            return Err(refused(format!("{name}: the call of this receipt had other arguments")));
        }
    }
    if args.json {
        let text = serde_json::to_string(&receipt).map_err(|fault| refused(fault.to_string()))?;
        console::out_json(&text);
    } else {
        console::out(&in_words(&receipt));
    }
    Ok(Exit::Done)
}

/// Tries each key file. The inner error is that of a key file.
fn open(text: &str, args: &VerifyArgs) -> Result<Result<Receipt, Failure>, ReceiptError> {
    let mut last = None;
    for file in &args.key_files {
        let ring = match keygen::ring(file) {
            Ok(ring) => ring,
            Err(failure) => return Ok(Err(failure)),
        };
        match Receipt::verify(text, &ring) {
            Ok(receipt) => return Ok(Ok(receipt)),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(error),
        None => Ok(Err(Failure::usage("no key file"))),
    }
}

fn read(file: &Path) -> Result<(String, String), Failure> {
    let (name, text) = match file.to_str() {
        Some("-") => ("standard input".to_owned(), io::read_to_string(io::stdin())),
        _ => (file.display().to_string(), fs::read_to_string(file)),
    };
    let text = text.map_err(|fault| Failure::usage(format!("{name}: {fault}")))?;
    Ok((name, text))
}

/// Returns the failure of a receipt that does not count.
fn refused(message: String) -> Failure {
    Failure::new(Exit::ToolFailed, "receipt", message)
}

/// Returns the receipt for a person. All texts in it come from others: each one is on its own line or escaped in its line.
fn in_words(receipt: &Receipt) -> String {
    let call = &receipt.call;
    let mut lines = vec![
        format!("The receipt is authentic. Made {} by {}", utc::format(receipt.issued), quoted(&call.server)),
        format!(
            "call       {} {}, version {}",
            console::line(&call.method),
            quoted(&call.target),
            call.version
        ),
        format!("id         {}, begun {}", console::line(&call.id), utc::format(call.began)),
        format!("caller     {}", person(call.caller.as_ref())),
        format!("arguments  {} (SHA-256; compare with --args)", console::line(&call.arguments)),
    ];
    for (number, entry) in receipt.entries.iter().enumerate() {
        lines.push(String::new());
        lines.push(format!("{}. {} in round {}", number + 1, quoted(&entry.key), entry.round));
        lines.push(format!("shown      {}", shown(entry)));
        lines.push(format!("answered   {}", answer(entry)));
        let at = entry.at.map_or_else(|| "at a time that was not recorded".to_owned(), utc::format);
        lines.push(format!("when       {at}"));
        lines.push(format!("by         {}", person(entry.by.as_ref())));
    }
    lines.join("\n")
}

fn shown(entry: &ReceiptEntry) -> String {
    let shown: Value = serde_json::from_str(entry.shown.get()).unwrap_or_default();
    let params = &shown["params"];
    match (params["message"].as_str(), params["url"].as_str()) {
        (Some(message), Some(url)) => format!("{}, and the URL {}", quoted(message), quoted(url)),
        (Some(message), None) => {
            let fields = params["requestedSchema"]["properties"].as_object();
            let names: Vec<String> = fields.into_iter().flatten().map(|(name, _)| quoted(name)).collect();
            format!("{} with the fields {}", quoted(message), names.join(", "))
        }
        _ => quoted(entry.shown.get()),
    }
}

fn answer(entry: &ReceiptEntry) -> String {
    let Some(text) = &entry.answer else { return "nothing, in the time that there was".to_owned() };
    let answer: Value = serde_json::from_str(text.get()).unwrap_or_default();
    match (answer["action"].as_str(), answer.get("content")) {
        (Some("accept"), Some(Value::Object(content))) if !content.is_empty() => {
            console::json(&format!("accept {}", Value::Object(content.clone())))
        }
        (Some(action), _) => console::line(action),
        _ => console::json(text.get()),
    }
}

fn person(person: Option<&ReceiptPerson>) -> String {
    let Some(person) = person else { return "nobody who was authenticated".to_owned() };
    let parts = [("", &person.subject), ("at ", &person.issuer), ("through ", &person.client_id)];
    let parts = parts.iter().filter_map(|(word, part)| Some(format!("{word}{}", quoted(part.as_ref()?))));
    parts.collect::<Vec<_>>().join(" ")
}

/// Returns the text in quotes, as one line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", console::line(text))
}
