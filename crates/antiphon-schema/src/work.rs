//! The work of validating one value against a schema.

use super::{
    cost::{Costs, Rules},
    fault::{MAX_CHAIN, MAX_INSTANCE_DEPTH, MAX_WORK, MAX_WORK_WITH_FAULTS},
};
use serde_json::Value;
use std::collections::HashMap;

/// The kind of validation that the cost of a value allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    TooDeep,
    TooCostly,
    /// A plain verdict.
    WithoutFaults,
    /// A verdict with a list of faults.
    WithFaults,
}

/// The maximum number of counting steps, because counting is work too. A value that needs more is too costly.
const MAX_COUNTED: u64 = 4_000_000;
/// The maximum number of remembered pairs of a schema and an object or array, which bounds memory.
const MAX_KNOWN: usize = 400_000;

/// The size of a value.
#[derive(Default)]
struct Extent {
    values: u64,
    /// The total length of strings and names, in bytes.
    text: u64,
    deep: bool,
}

impl Extent {
    fn of(value: &Value) -> Self {
        let mut extent = Self::default();
        let mut open = vec![(value, 1)];
        while let Some((value, depth)) = open.pop() {
            extent.values += 1;
            extent.deep |= depth > MAX_INSTANCE_DEPTH;
            match value {
                Value::String(text) => extent.text += text.len() as u64,
                Value::Array(items) => open.extend(items.iter().map(|inner| (inner, depth + 1))),
                Value::Object(members) => {
                    extent.text += members.keys().map(|name| name.len() as u64).sum::<u64>();
                    open.extend(members.values().map(|inner| (inner, depth + 1)));
                }
                _ => {}
            }
        }
        extent
    }
}

impl Costs {
    pub(super) fn weigh(&self, value: &Value) -> Verdict {
        let extent = Extent::of(value);
        if extent.deep {
            return Verdict::TooDeep;
        }
        // A bound from the size alone: each value visits each applied schema at most once per path. It suffices for most.
        let whole = self.rules[0].unfolded;
        let text = whole.matches.saturating_mul(self.steps_per_byte).saturating_mul(extent.text);
        let steps =
            whole.steps.saturating_mul(extent.values.saturating_add(extent.text / 256)).saturating_add(text);
        if steps <= MAX_WORK_WITH_FAULTS && whole.chain <= MAX_CHAIN {
            return Verdict::WithFaults;
        }
        match Count::new(self, false).whole(value) {
            Some(steps) if steps <= MAX_WORK_WITH_FAULTS => return Verdict::WithFaults,
            Some(_) => return Verdict::WithoutFaults,
            None => {}
        }
        if self.remembers && Count::new(self, true).whole(value).is_some() {
            return Verdict::WithoutFaults;
        }
        Verdict::TooCostly
    }
}

/// Counts the visits to one value and all values in it.
struct Count<'c> {
    costs: &'c Costs,
    known: HashMap<Key, Visited>,
    counted: u64,
    /// True if a verdict that the validator caches is counted once.
    once: bool,
    /// The steps of cached verdicts.
    remembered: u64,
}

/// A pair of a schema and an object or array.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    schema: usize,
    value: *const Value,
    at: Entry,
}

/// The way in which a schema is entered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    /// True if a keyword that looks for evaluated members enters it.
    again: bool,
    /// True if a reference inside of its own recursion enters it.
    inside: bool,
}

#[derive(Clone, Copy, Default)]
struct Visited {
    steps: u64,
    chain: u32,
}

impl Visited {
    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.chain = self.chain.max(other.chain);
    }
}

/// The counting limits are exceeded.
struct TooMuch;

impl<'c> Count<'c> {
    fn new(costs: &'c Costs, once: bool) -> Self {
        Self { costs, known: HashMap::new(), counted: 0, once, remembered: 0 }
    }

    fn whole(mut self, value: &Value) -> Option<u64> {
        let visited = self.visit(0, value, Entry { again: false, inside: false }, 1).ok()?;
        let steps = visited.steps.saturating_add(self.remembered);
        (steps <= MAX_WORK).then_some(steps)
    }

    /// Counts one visit. `depth` is the number of nested schemas, including this one.
    fn visit(&mut self, schema: usize, value: &Value, at: Entry, depth: u32) -> Result<Visited, TooMuch> {
        self.counted += 1;
        let rules = &self.costs.rules[schema];
        let key = Key { schema, value, at };
        let visited = match value {
            Value::Object(_) | Value::Array(_) => match self.known.get(&key) {
                Some(&known) => known,
                None => {
                    let visited = self.visit_container(rules, value, at, depth)?;
                    self.known.insert(key, visited);
                    visited
                }
            },
            Value::String(text) => self.flat(rules, text, at.again),
            _ => self.flat(rules, "", at.again),
        };
        let too_much = visited.steps > MAX_WORK
            || depth.saturating_add(visited.chain) > MAX_CHAIN
            || self.counted > MAX_COUNTED
            || self.known.len() > MAX_KNOWN;
        if too_much { Err(TooMuch) } else { Ok(visited) }
    }

    /// Returns the cost at a value without members.
    fn flat(&self, rules: &Rules, text: &str, again: bool) -> Visited {
        let bound = if again { rules.flat_again } else { rules.flat };
        let length = text.len() as u64;
        let matches = bound.matches.saturating_mul(self.costs.steps_per_byte).saturating_mul(length);
        let steps = bound.steps.saturating_mul(1 + length / 256).saturating_add(matches);
        Visited { steps, chain: bound.chain }
    }

    fn visit_container(
        &mut self,
        rules: &'c Rules,
        value: &Value,
        at: Entry,
        depth: u32,
    ) -> Result<Visited, TooMuch> {
        // Checked before deeper schemas, so that this function cannot overflow the stack.
        if depth > MAX_CHAIN {
            return Err(TooMuch);
        }
        let mut sum = Visited { steps: rules.own.steps, chain: 0 };
        for edge in &rules.in_place {
            let inside = self.inside(rules, edge.to, at);
            let reference = edge.remembered.filter(|_| self.once);
            match reference {
                Some(bound) => sum.add(self.refer(edge.to, value, at, bound, depth)?),
                None => sum.add(self.visit(edge.to, value, Entry { again: false, inside }, depth + 1)?),
            }
            // One repetition per `unevaluated...` keyword, and one if this visit is itself a repetition.
            let repeats = rules.unevaluated + u64::from(at.again);
            if repeats > 0 {
                let again = self.visit(edge.to, value, Entry { again: true, inside }, depth + 1)?;
                sum.add(Visited { steps: again.steps.saturating_mul(repeats), chain: again.chain });
            }
        }
        match value {
            Value::Object(members) => {
                for (name, inner) in members {
                    let length = name.len() as u64;
                    let matching = 1 + length.saturating_mul(self.costs.steps_per_byte);
                    sum.steps = sum.steps.saturating_add(rules.patterns.saturating_mul(matching));
                    for &to in &rules.names {
                        sum.add(self.flat(&self.costs.rules[to], name, false));
                    }
                    let named = rules.named.get(name);
                    let others = rules.other.iter().filter(|_| named.is_none());
                    for &to in named.into_iter().chain(others).chain(&rules.matched) {
                        sum.add(self.below(rules, to, inner, at, depth)?);
                    }
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    let placed = rules.prefix.get(&index).into_iter().flatten();
                    for &to in placed.chain(&rules.items) {
                        sum.add(self.below(rules, to, inner, at, depth)?);
                    }
                }
            }
            _ => {}
        }
        sum.chain = sum.chain.saturating_add(1);
        Ok(sum)
    }

    fn below(
        &mut self,
        rules: &Rules,
        to: usize,
        inner: &Value,
        at: Entry,
        depth: u32,
    ) -> Result<Visited, TooMuch> {
        let inside = self.inside(rules, to, at);
        self.visit(to, inner, Entry { again: false, inside }, depth + 1)
    }

    fn inside(&self, from: &Rules, to: usize, at: Entry) -> bool {
        self.once && at.inside && from.component == self.costs.rules[to].component
    }

    /// Counts a reference whose target's verdict is cached. References from outside of the recursion count in full.
    fn refer(
        &mut self,
        to: usize,
        value: &Value,
        at: Entry,
        bound: u64,
        depth: u32,
    ) -> Result<Visited, TooMuch> {
        let entry = Entry { again: false, inside: true };
        let key = Key { schema: to, value, at: entry };
        let first = (value.is_object() || value.is_array()) && !self.known.contains_key(&key);
        let visited = self.visit(to, value, entry, depth + 1)?;
        if !at.inside {
            return Ok(visited);
        }
        if first {
            self.remembered = self.remembered.saturating_add(visited.steps);
        }
        // A value without members is cheap, and its verdict is not cached.
        Ok(Visited { steps: visited.steps.min(bound), chain: visited.chain })
    }
}
