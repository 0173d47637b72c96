#!/usr/bin/env python3
"""The rules for co_await, checked on the text of the sources.

GCC 12 miscompiles what they forbid: an aggregate prvalue as an argument of an awaited call is
destroyed twice, and a co_await behind && may never resume. Neither is reported by the compiler, and
both look like a bug of the code around them. The rules:

  form       a co_await stands alone, or is `auto x = co_await f(named_or_moved);`, or is
             `co_return co_await ...;`. Never inside a condition, another call's arguments, a braced
             list, or an operand of an operator.
  prvalue    no braced list among the arguments of an awaited call: name the object, then move it.
  lambda     a coroutine is a function or a member. A lambda's captures die with the lambda, which is
             usually before the first resumption.
  parameter  no parameter by reference or view. Where the referred object is known to live longer,
             say why in a comment with the word "outlives", on the parameter's line or the line above
             the function; then a reference is accepted.

usage: check_coroutines.py [--self-test | FILE...]      exit 0 clean, 1 rules broken, 2 usage
"""

import os
import re
import sys

CO = {"co_await", "co_return", "co_yield"}
TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d(?:[\w.]|[eEpP][+-]|'\w)*|->|::|&&|\|\||<=>|<=|>=|==|!=|<<=|\+\+|--|[-+*/%^&|]=|\S")
OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = {v: k for k, v in OPEN.items()}


class Token:
    __slots__ = ("text", "line")

    def __init__(self, text, line):
        self.text = text
        self.line = line


def strip(text):
    """The text with comments, literals and preprocessor lines blanked, line numbers kept; and the comments."""
    out = []
    comments = {}
    i, n, line = 0, len(text), 1

    def blank(piece):
        return "".join("\n" if c == "\n" else " " for c in piece)

    at_line_start = True
    while i < n:
        if at_line_start:
            m = re.compile(r"[ \t]*#(?:[^\n\\]|\\\n|\\.)*").match(text, i)
            if m:
                out.append(blank(m.group()))
                line += m.group().count("\n")
                i = m.end()
                at_line_start = False
                continue
        c = text[i]
        if text.startswith("//", i):
            end = text.find("\n", i)
            end = n if end < 0 else end
            comments[line] = comments.get(line, "") + text[i:end]
            out.append(" " * (end - i))
            i = end
            continue
        if text.startswith("/*", i):
            end = text.find("*/", i + 2)
            end = n if end < 0 else end + 2
            for k, part in enumerate(text[i:end].split("\n")):
                comments[line + k] = comments.get(line + k, "") + part
            out.append(blank(text[i:end]))
            line += text.count("\n", i, end)
            i = end
            continue
        raw = re.compile(r'(?:u8|u|U|L)?R"([^()\\ ]{0,16})\(').match(text, i)
        if raw and (i == 0 or not (text[i - 1].isalnum() or text[i - 1] == "_")):
            closing = ")" + raw.group(1) + '"'
            end = text.find(closing, raw.end())
            end = n if end < 0 else end + len(closing)
            out.append("0" + blank(text[i + 1:end]))
            line += text.count("\n", i, end)
            i = end
            continue
        if c == '"' or (c == "'" and not (i and (text[i - 1].isalnum() or text[i - 1] == "_"))):
            j = i + 1
            while j < n and text[j] != c and text[j] != "\n":
                j += 2 if text[j] == "\\" else 1
            j = min(j + 1, n)
            out.append("0" + " " * (j - i - 1))
            i = j
            continue
        out.append(c)
        if c == "\n":
            line += 1
            at_line_start = True
        elif not c.isspace():
            at_line_start = False
        i += 1
    return "".join(out), comments


def tokenize(text):
    tokens = []
    line, last = 1, 0
    for m in TOKEN.finditer(text):
        line += text.count("\n", last, m.start())
        last = m.start()
        tokens.append(Token(m.group(), line))
    return tokens


def match_pairs(tokens):
    """Index of each bracket's partner."""
    partner = {}
    stack = []
    for i, token in enumerate(tokens):
        if token.text in OPEN:
            stack.append(i)
        elif token.text in CLOSE:
            if stack and tokens[stack[-1]].text == CLOSE[token.text]:
                j = stack.pop()
                partner[i], partner[j] = j, i
    return partner


def statement_start(tokens, partner, i):
    """First index of the statement that tokens[i] stands in, and the bracket that opens its surroundings.
    Bracketed groups before it are stepped over."""
    j = i - 1
    while j >= 0:
        t = tokens[j].text
        if t == ";":
            return j + 1, None
        if t == "}":
            # A block ends a statement, a braced initializer or a lambda's body is part of one. What
            # follows a block is never an operator, a comma or a bracket.
            if tokens[j + 1].text in (",", ".", "->", ")", "(", "=", "?", ":", "&&", "||", "["):
                j = partner.get(j, 0) - 1
                continue
            return j + 1, None
        if t in (")", "]"):
            j = partner.get(j, 0) - 1
            continue
        if t in OPEN:
            return j + 1, j
        j -= 1
    return 0, None


def is_block(tokens, partner, brace):
    """Whether the brace at this index opens statements, not a list of values."""
    if brace == 0:
        return True
    prev = tokens[brace - 1].text
    if prev in (")", "else", "do", "try", ";", "{", "}", ":", "noexcept", "mutable", "const", "override", "final", "&",
                "&&", "constexpr", "]"):
        return True
    start, _ = statement_start(tokens, partner, brace)
    words = [t.text for t in tokens[start:brace]]
    if words and words[0] in ("struct", "class", "union", "enum", "namespace", "extern", "inline", "template", "export"):
        return not (words[0] in ("inline",) and "=" in words)
    return "->" in words and "=" not in words[words.index("->"):]


def find_functions(tokens, partner):
    """For each block, what it is the body of: ('lambda', intro index) or ('function', parameter list index)."""
    bodies = {}
    for i, token in enumerate(tokens):
        if token.text != "{" or i not in partner:
            continue
        # Back over what may stand between a parameter list and a body: specifiers, a trailing return
        # type, a constructor's initializers are of no interest (a constructor is no coroutine).
        j = i - 1
        while j >= 0 and tokens[j].text not in (";", "{", "}", ")", "]", "(", "["):
            j -= 1
        if j < 0:
            continue
        t = tokens[j].text
        if t == ")":
            # A trailing return type, noexcept(...) or requires(...) may hold parentheses of its own.
            k = partner.get(j)
            while k is not None and k > 0 and tokens[k - 1].text in ("noexcept", "requires", "decltype", "HF_REQUIRES"):
                j = k - 1
                while j >= 0 and tokens[j].text != ")":
                    j -= 1
                k = partner.get(j)
            if k is None or k == 0:
                continue
            # Annotations written as macros, as in `void f() REQUIRES(m) {`.
            while re.fullmatch(r"[A-Z][A-Z0-9_]*", tokens[k - 1].text) and k >= 2:
                j = k - 2
                while j >= 0 and tokens[j].text not in (")", ";", "{", "}"):
                    j -= 1
                if j < 0 or tokens[j].text != ")":
                    break
                k = partner.get(j)
                if k is None or k == 0:
                    break
            if k is None or k == 0:
                continue
            before = tokens[k - 1].text
            if before == "]":
                bodies[i] = ("lambda", partner.get(k - 1))
            elif before == ">" and lambda_template(tokens, k - 1) is not None:
                bodies[i] = ("lambda", partner.get(lambda_template(tokens, k - 1)))
            elif before not in ("if", "for", "while", "switch", "catch", "constexpr", "return", "sizeof", "alignas"):
                bodies[i] = ("function", k)
        elif t == "]" and partner.get(j) is not None:
            opening = partner[j]
            if opening == 0 or not (re.match(r"\w", tokens[opening - 1].text) or tokens[opening - 1].text in (")", "]")):
                bodies[i] = ("lambda", opening)
    return bodies


def lambda_template(tokens, closing):
    """Index of the `]` of `[...]<...>`, when the `>` at this index closes such a list."""
    depth = 0
    j = closing
    while j >= 0:
        if tokens[j].text == ">":
            depth += 1
        elif tokens[j].text == "<":
            depth -= 1
            if depth == 0:
                return j - 1 if j and tokens[j - 1].text == "]" else None
        elif tokens[j].text in (";", "{", "}"):
            return None
        j -= 1
    return None


def strip_control(words, tokens, partner, start):
    """Drops `if (...)`, `else`, `case x:` and the like from the front of a statement."""
    i = start
    end = start + len(words)
    while i < end:
        t = tokens[i].text
        if t in ("if", "for", "while", "switch"):
            i += 1
            if i < end and tokens[i].text == "constexpr":
                i += 1
            if i < end and tokens[i].text == "(" and partner.get(i, end) < end:
                i = partner[i] + 1
                continue
            return None
        if t in ("else", "do"):
            i += 1
            continue
        if t in ("case", "default") or (i + 1 < end and tokens[i + 1].text == ":" and re.match(r"[A-Za-z_]", t)):
            while i < end and tokens[i].text != ":":
                i += 1
            i += 1
            continue
        break
    return [t.text for t in tokens[i:end]]


def good_prefix(prefix):
    if prefix in ([], ["co_return"], ["(", "void", ")"]):
        return True
    # A declaration: type, name, `=`. No brackets but those of template arguments.
    if len(prefix) >= 3 and prefix[-1] == "=" and re.match(r"[A-Za-z_]\w*$", prefix[-2]):
        kind = prefix[:-2]
        if kind and kind[-1] in (".", "->", "::", "*this", "return"):
            return False
        return not any(t in ("(", "[", "{", "?", "=", "||", "return", "co_return", ".", "->") for t in kind)
    return False


BINARY = {"&&", "||", "?", "+", "-", "/", "%", "|", "^", "==", "!=", "<=", ">=", "<=>", ",", "=", "+=", "-="}


def check_await(tokens, partner, i, report):
    line = tokens[i].line
    start, opener = statement_start(tokens, partner, i)
    if opener is not None:
        opening = tokens[opener].text
        if opening in ("(", "["):
            report(line, "form", "co_await inside parentheses",
                   "give its result a name first: `auto x = co_await f(...);`")
            return
        if not is_block(tokens, partner, opener):
            report(line, "form", "co_await inside a braced list",
                   "give its result a name first: `auto x = co_await f(...);`")
            return
    prefix = strip_control([t.text for t in tokens[start:i]], tokens, partner, start)
    if prefix is None or not good_prefix(prefix):
        shown = " ".join(t.text for t in tokens[start:i])[-60:]
        report(line, "form", f"co_await after `{shown}`",
               "write `co_await f(...);`, `auto x = co_await f(...);` or `co_return co_await f(...);`")
        return
    j = i + 1
    while j < len(tokens) and tokens[j].text != ";":
        t = tokens[j].text
        if t == "co_await":
            report(line, "form", "two co_await in one statement", "one statement each, with a name for the first result")
            return
        if t in BINARY:
            report(line, "form", f"operator `{t}` beside co_await",
                   "give the result a name first: `auto x = co_await f(...);`")
            return
        if t in ("(", "[") and j in partner:
            inner = [k for k in range(j + 1, partner[j]) if tokens[k].text == "{"]
            if inner:
                report(tokens[inner[0]].line, "prvalue", "a braced list or lambda among the arguments of an awaited call",
                       "give the object a name, then `co_await f(std::move(name));`")
                return
            if any(tokens[k].text in ("?", "co_await") for k in range(j + 1, partner[j])):
                report(line, "form", "a choice or a second co_await among the arguments of an awaited call",
                       "give it a name before")
                return
            j = partner[j] + 1
            continue
        if t == "{":
            report(tokens[j].line, "prvalue", "a braced object is awaited", "give the object a name, then await the name")
            return
        j += 1


def split_parameters(tokens, first, last):
    """Token lists of the parameters between two indices, split at commas outside brackets and templates."""
    groups, group, depth = [], [], 0
    for k in range(first, last):
        t = tokens[k].text
        if t in ("(", "[", "{", "<"):
            depth += 1
        elif t in (")", "]", "}", ">"):
            depth -= 1
        if t == "," and depth == 0:
            groups.append(group)
            group = []
        else:
            group.append(tokens[k])
    if group:
        groups.append(group)
    return groups


def check_parameters(tokens, partner, opening, comments, report):
    closing = partner.get(opening)
    if closing is None:
        return
    for group in split_parameters(tokens, opening + 1, closing):
        words = [t.text for t in group]
        if not words:
            continue
        line = group[0].line
        around = " ".join(comments.get(k, "") for k in range(tokens[opening].line - 1, group[-1].line + 1))
        top, depth = [], 0
        for w in words:
            if w == "<":
                depth += 1
            elif w == ">":
                depth -= 1
            elif depth == 0:
                top.append(w)
        view = next((w for w in words if w in ("string_view", "span", "function_ref", "initializer_list")), None)
        if "outlives" in around:
            continue
        if view:
            report(line, "parameter", f"a coroutine takes `{' '.join(words)}`, a view that may dangle after a suspension",
                   "take the owner by value, or say in a comment what it refers to and why that outlives the coroutine")
        elif "&" in top or "&&" in top:
            report(line, "parameter", f"a coroutine takes `{' '.join(words)}`, a reference that may dangle after a suspension",
                   "take it by value, or say in a comment why the object outlives the coroutine")


def check_text(path, text):
    found = []
    if not any(word in text for word in CO):
        return found
    stripped, comments = strip(text)
    tokens = tokenize(stripped)
    partner = match_pairs(tokens)
    bodies = find_functions(tokens, partner)

    def report(line, rule, what, remedy):
        found.append(f"{path}:{line}: [{rule}] {what}; {remedy}")

    seen = set()
    stack = []
    for i, token in enumerate(tokens):
        if token.text == "{":
            stack.append(i)
        elif token.text == "}" and stack:
            stack.pop()
        elif token.text in CO:
            body = next((bodies[b] for b in reversed(stack) if b in bodies), None)
            if body is not None and body not in seen:
                seen.add(body)
                kind, at = body
                if kind == "lambda":
                    captures = at is not None and partner.get(at, at + 1) - at > 1
                    if captures:
                        report(tokens[at].line, "lambda", "a capturing lambda is a coroutine",
                               "make it a function or a member, and pass what it captures by value")
                    elif at is not None and tokens[partner[at] + 1].text == "(":
                        check_parameters(tokens, partner, partner[at] + 1, comments, report)
                else:
                    check_parameters(tokens, partner, at, comments, report)
            if token.text == "co_await":
                check_await(tokens, partner, i, report)
    return found


GOOD = [
    "task<int> f(widget w) { co_await g(w); auto x = co_await h(std::move(w)); co_return co_await k(x); }",
    "task<void> f() { if (a && b) co_await g(); else { auto const r = co_await h(a, 1); use(r); } }",
    "task<void> f() { for (auto& x : xs) { std::expected<int, error> r = co_await x->get(n); } while (go) co_await g(); }",
    "task<void> f() { switch (a) { case 1: co_await g(); break; default: co_return; } }",
    "// the pool outlives every task\ntask<void> f(pool& p) { co_await p.get(); }",
    "task<void> f(std::vector<std::function<int(int&)>> v) { co_await g(v); }",
    "task<void> owner::f(int a) HOLDFAST_EXCLUDES(lock_) { co_await g(a); }",
    "void f() { std::string s = \"co_await {}\"; /* x && co_await y */ run([](int a) -> task<void> { co_await g(a); }, 3); }",
    "auto f(request r) -> task<std::expected<int, error>> { auto v = widget{1, 2}; co_await g(std::move(v)); co_return 1; }",
    "task<void> f() { widget w{.a = 1}; { co_await g(w); } again: co_await g(w); }",
    "struct s { task<void> f() { co_await g(a, b.c(), d->e); (void)co_await h(); } int x = 0; };",
    "template <class F> void f(F&& g) { auto h = [&g](int a) { return a; }; } task<int> k() { co_return 1; }",
]
BAD = [
    ("form", "task<void> f() { if (co_await g()) {} }"),
    ("form", "task<void> f() { auto x = a && co_await g(); }"),
    ("form", "task<void> f() { auto x = co_await g() + 1; }"),
    ("form", "task<void> f() { h(co_await g()); }"),
    ("form", "task<void> f() { auto x = c ? co_await g() : 1; }"),
    ("form", "task<void> f() { auto x = pair{co_await g(), 1}; }"),
    ("form", "task<void> f() { auto x = (co_await g()).value(); }"),
    ("form", "task<void> f() { co_return 1 + co_await g(); }"),
    ("form", "task<void> f() { co_await g(co_await h()); }"),
    ("form", "task<void> f() { for (auto x : co_await g()) {} }"),
    ("form", "task<void> f() { x.y = co_await g(); }"),
    ("form", "task<void> f() { co_await g(c ? a : b); }"),
    ("prvalue", "task<void> f() { co_await g(widget{1, 2}); }"),
    ("prvalue", "task<void> f() { auto x = co_await g({1, 2}); }"),
    ("prvalue", "task<void> f() { co_await widget{1}; }"),
    ("lambda", "void f() { run([a]() -> task<void> { co_await g(); }); }"),
    ("lambda", "void f() { run([this](int a) -> task<void> { if (a) { co_return; } }); }"),
    ("lambda", "void f() { auto t = [&] -> task<void> { co_return; }; }"),
    ("parameter", "task<void> f(widget const& w) { co_await g(); }"),
    ("parameter", "task<void> owner::f(widget&& w, int b) const { co_await g(); }"),
    ("parameter", "task<void> f(int a, std::string_view name) { co_await g(a); }"),
    ("parameter", "task<int> f(std::span<std::byte> s) { co_return 1; }"),
    ("parameter", "task<void> f(pool& p) HOLDFAST_REQUIRES(m) { co_await p.get(); }"),
    ("parameter", "void f() { run([](widget& w) -> task<void> { co_await g(w); }); }"),
]


def self_test():
    failed = 0
    for text in GOOD:
        found = check_text("good", text)
        if found:
            failed += 1
            print(f"wrongly reported: {text}\n  " + "\n  ".join(found), file=sys.stderr)
    for rule, text in BAD:
        found = check_text("bad", text)
        if not any(f"[{rule}]" in f for f in found):
            failed += 1
            print(f"not found ({rule}): {text}\n  " + "\n  ".join(found), file=sys.stderr)
    print(f"self-test: {len(GOOD)} accepted texts, {len(BAD)} planted violations, {failed} wrong")
    return 1 if failed else 0


def sources(root):
    for room in ("core", "sim", "models", "properties", "tests"):
        for directory, names, files in os.walk(os.path.join(root, room)):
            names.sort()
            for name in sorted(files):
                if name.endswith((".cpp", ".hpp")):
                    yield os.path.relpath(os.path.join(directory, name), root)


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if any(a.startswith("-") for a in arguments):
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    if arguments:
        paths = arguments
    else:
        os.chdir(root)
        paths = list(sources("."))
        if not paths:
            print("check_coroutines: no sources found; is this a whole checkout?", file=sys.stderr)
            return 1
    found = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                found += check_text(path, file.read())
        except OSError as error:
            print(f"check_coroutines: {path}: {error.strerror}", file=sys.stderr)
            return 2
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print(f"coroutines: {len(found)} broken rules; docs/decisions/0004-own-task.md says why they exist", file=sys.stderr)
        return 1
    print(f"coroutines: {len(paths)} files, clean")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
