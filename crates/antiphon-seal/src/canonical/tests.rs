use super::*;

fn form(text: &str) -> Vec<u8> {
    let form = canonical(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(check(text), Ok(()), "{text}");
    form
}

fn fault(text: &str) -> TextFault {
    let fault = canonical(text).expect_err(text);
    assert_eq!(check(text), Err(fault.clone()), "{text}");
    fault
}

/// Checks that all texts of a row are the same value, and that texts of different rows are different values.
fn rows(rows: &[&[&str]]) {
    let forms: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|text| form(text)).collect()).collect();
    for (row, of_row) in forms.iter().enumerate() {
        for (column, one) in of_row.iter().enumerate() {
            assert_eq!(one, &of_row[0], "{} and {}", rows[row][column], rows[row][0]);
        }
        for (other, of_other) in forms.iter().enumerate().skip(row + 1) {
            assert_ne!(of_row[0], of_other[0], "{} and {}", rows[row][0], rows[other][0]);
        }
    }
}

#[test]
fn numbers_count_by_exact_value() {
    rows(&[
        &["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000", "100e-2", "0.001e3", "1e-0"],
        &["-1", "-1.0", "-10e-1"],
        &["0", "-0", "0.0", "0e5", "-0.0e-7", "0e99999999999999999999999999999999999999999999999"],
        &["10", "1e1", "1.0e1", "1e01", "1e+0000000000000000000000000000000000000000000001"],
        &["9007199254740992"],
        &["9007199254740993", "9007199254740993.0", "9.007199254740993e15"],
        &["18446744073709551617"],
        &["18446744073709551618"],
        &["0.1"],
        &["0.10000000000000001"],
        &["1e999999999999", "10e999999999998", "0.1e1000000000000"],
        &["1e-999999999999"],
        &["1e999999999998"],
        &["1e170141183460469231731687303715884105728"],
        &["1e170141183460469231731687303715884105729"],
        &["1e-170141183460469231731687303715884105728"],
        &["11e170141183460469231731687303715884105728"],
        &["1e999999999999999999999999999999999999", "10e999999999999999999999999999999999998"],
    ]);
}

#[test]
fn strings_count_by_code_points() {
    rows(&[
        &[r#""a""#, r#""\u0061""#],
        &[r#""/""#, r#""\/""#, r#""\u002f""#, r#""\u002F""#],
        &["\"\u{e9}\"", r#""\u00e9""#, r#""\u00E9""#],
        &["\"e\u{301}\""],
        &["\"\u{1d11e}\"", r#""\ud834\udd1e""#, r#""\uD834\uDD1E""#],
        &["\"\u{10ffff}\"", r#""\udbff\udfff""#],
        &["\"\u{10000}\"", r#""\ud800\udc00""#],
        &[r#""\ud834""#],
        &[r#""\udd1e""#],
        &[r#""\udd1e\ud834""#],
        &[r#""\ud834\ud834\udd1e""#],
        &[r#""\ud834x\udd1e""#],
        &["\"\u{fffd}\""],
        &[r#""\n""#, r#""\u000a""#],
        &[r#""\b\f\n\r\t\"\\""#, r#""\u0008\u000c\u000a\u000d\u0009\u0022\u005c""#],
        &[r#""""#],
        &[r#""1""#],
        &["1"],
        &["\"\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\"", r#""\u007f\u0080\u07ff\u0800\uffff""#],
    ]);
}

/// Long strings are walked in blocks.
#[test]
fn strings_count_by_code_points_however_long_they_are() {
    for length in (0..170).chain([1000]) {
        for place in [0, length / 3, length / 2, length - length / 9, length] {
            let (before, behind) = ("~".repeat(place), "\u{e9}".repeat(length - place));
            for (escape, point) in [("\\\"", "\""), ("\\\\", "\\"), ("\\u001f", "\u{1f}")] {
                let points = format!("{before}{point}{behind}");
                let length = (points.len() as u64).to_be_bytes();
                let expected = [b"s".as_slice(), &length, points.as_bytes()].concat();
                assert_eq!(form(&format!("\"{before}{escape}{behind}\"")), expected);
            }
            assert_eq!(fault(&format!("\"{before}\u{1f}{behind}\"")), TextFault::Malformed);
            assert_eq!(fault(&format!("\"{before}\"{behind}\"")), TextFault::Malformed);
            assert_eq!(fault(&format!("\"{before}{behind}")), TextFault::Malformed);
        }
    }
}

#[test]
fn objects_count_by_members_and_arrays_by_order() {
    rows(&[
        &[r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "\r\n{ \"b\" : 2.0 ,\t\"\\u0061\":1 } "],
        &[r#"{"a":2,"b":1}"#],
        &[r#"{"a":{"c":1,"d":2},"b":[{"e":1,"f":2}]}"#, r#"{"b":[{"f":2,"e":1}],"a":{"d":2,"c":1}}"#],
        &[r#"{"\ud834":1,"z":2,"\udd1e":3}"#, r#"{"\udd1e":3,"\uD834":1,"z":2}"#],
        &["[1,2]", "[ 1 , 2 ]"],
        &["[2,1]"],
        &["[[1],2]"],
        &["[[1,2]]"],
        &["[12]"],
        &["[]", "[ ]"],
        &["{}", "{ }"],
        &["[{}]"],
        &["[[]]"],
        &["[[],[]]"],
        &[r#"{"a":null}"#],
        &["null"],
        &["true"],
        &["false"],
        &[r#"{"":0}"#],
        &[r#"{"ab":"c"}"#],
        &[r#"{"a":"bc"}"#],
    ]);
}

#[test]
fn a_name_is_given_once() {
    let check =
        |text: &str, name: &str| assert_eq!(fault(text), TextFault::DuplicateName(name.into()), "{text}");
    check(r#"{"a":1,"a":1}"#, "a");
    check(r#"{"a":1,"b":2,"\u0061":3}"#, "a");
    check(r#"{"\u0061":1,"\u0061":1}"#, "a");
    check(r#"[{"x":[{"k":{"a":1,"b":{"":1,"":2}}}]}]"#, "");
    check("{\"\u{1d11e}\":1,\"\\ud834\\udd1e\":2}", "\u{1d11e}");
    check(r#"{"\ud834":1,"\uD834":2}"#, "\u{fffd}");
    check(&format!(r#"{{"{0}":1,"{0}":2}}"#, "n".repeat(100)), &"n".repeat(64));
    // One name at two levels, or in two siblings, is given once in each.
    form(r#"{"a":{"a":[{"a":1},{"a":2}]}}"#);
}

#[test]
fn depth_ends_at_128() {
    let nested = |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
    form(&nested(128, "[", "]"));
    form(&nested(128, r#"{"a":"#, "}"));
    assert_eq!(fault(&nested(129, "[", "]")), TextFault::TooDeep);
    assert_eq!(fault(&nested(129, r#"{"a":"#, "}")), TextFault::TooDeep);
    assert_eq!(fault(&"[".repeat(1_000_000)), TextFault::TooDeep);
    // Siblings are not nested.
    form(&format!("[{}1]", "[[]],".repeat(1000)));
}

#[test]
fn what_is_not_json_is_refused() {
    let texts = [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "+1",
        "01",
        "-",
        "-01",
        "1.",
        ".1",
        "1e",
        "1e+",
        "1 2",
        "--1",
        "0x1",
        "NaN",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u+123\"",
        "\"\n\"",
        "\"\u{0}\"",
        "'a'",
        "[1]]",
        "{}{}",
        "\u{feff}1",
        "\u{a0}1",
        "/**/1",
        "1,",
    ];
    for text in texts {
        assert_eq!(fault(text), TextFault::Malformed, "{text}");
    }
}

#[test]
fn checking_agrees_on_every_prefix() {
    let text = "{\"b\\ud834\\udd1e\":[-1.5e+3,true,null,\"\u{e9}\\n\"],\"a\":{\"c\":{},\"d\":[]}}";
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        assert_eq!(fault(&text[..end]), TextFault::Malformed);
    }
    form(text);
}
