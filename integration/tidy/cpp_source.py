"""What tidy needs to know of a C++ file: its text without comments and literals, its includes, and where its functions
begin and end.

No parser: braces are matched and what stands before each is looked at. It is right for this repository's code (formatted
by clang-format, no macros that open braces) and errs towards finding a function rather than missing one.
"""

import re

LITERAL = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE)
TEMPLATE = re.compile(r'^\s*template\s*<')
TYPE_SCOPE = re.compile(r'^\s*(?:typedef\s+)?(?:class|struct|union|enum)\b')
ACCESS = re.compile(r'^\s*(?:public|private|protected|signals)\s*:(?!:)')
MEMBER_INIT = re.compile(r'\)\s*(?:noexcept(?:\([^()]*\))?\s*)?:(?!:)')


def blanked(text):
    """The text with every literal replaced by spaces: lines and columns stay."""
    return re.sub(r'[^\n]', ' ', text)


def without_literals(text):
    return LITERAL.sub(lambda match: blanked(match.group()), text)


def without_comments(text):
    """Comments are blanked, literals stay: for what may be hidden in a string."""
    keep = lambda match: blanked(match.group()) if match.group().startswith(('//', '/*')) else match.group()
    return LITERAL.sub(keep, text)


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


def includes(text):
    """(line, path) of each include."""
    clean = without_comments(text)
    return [(line_of(clean, match.start()), match.group(2)) for match in INCLUDE.finditer(clean)]


def without_template(header):
    """Cuts `template <…>` from the front of a declaration, with the angle brackets matched."""
    while TEMPLATE.match(header):
        depth = 0
        for at in range(header.index('<'), len(header)):
            depth += {'<': 1, '>': -1}.get(header[at], 0)
            if depth == 0:
                break
        header = header[at + 1:]
    return header


def kind_of(header):
    """What a brace opens, by the text before it: 'scope', 'function', 'member' or 'other'."""
    header = without_template(ACCESS.sub('', header)).strip()
    if re.match(r'(?:inline\s+)?namespace\b', header) or re.match(r'extern\s*$', header):
        return 'scope'
    if TYPE_SCOPE.match(header) and not re.search(r'\)\s*(?:const|noexcept|override|final|\s)*$', header):
        return 'scope'
    if '(' not in header or re.search(r'(?<![=!<>])=\s*$', header):
        return 'other'
    if MEMBER_INIT.search(header) and re.search(r'[\w>]$', header) and not header.endswith('noexcept'):
        return 'member'
    return 'function'


def closing(text, start):
    """The offset of the brace that closes the one at `start`."""
    depth = 0
    for match in re.compile(r'[{}]').finditer(text, start):
        depth += 1 if match.group() == '{' else -1
        if depth == 0:
            return match.start()
    return len(text) - 1


def functions(text):
    """(name, first line, last line) of each function that is not inside another, in order."""
    clean = DIRECTIVE.sub(lambda match: blanked(match.group()), without_literals(text))
    found = []
    header_start = at = 0
    parens = 0
    while at < len(clean):
        char = clean[at]
        parens += {'(': 1, ')': -1}.get(char, 0)
        if char == '{':
            header = clean[header_start:at]
            kind = kind_of(header) if parens == 0 else 'member'
            if kind == 'scope':
                header_start = at + 1
            else:
                end = closing(clean, at)
                if kind == 'function':
                    first = header_start + len(header) - len(header.lstrip())
                    found.append((name_of(header), line_of(clean, first), line_of(clean, end)))
                at = end
                if kind != 'member':
                    header_start = end + 1
        elif (char == ';' and parens == 0) or char == '}':
            header_start = at + 1
        at += 1
    return found


def name_of(header):
    header = without_template(header)
    macro = re.match(r'\s*((?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|BENCHMARK)\w*\s*\([^)]*\))', header)
    if macro:
        return re.sub(r'\s+', ' ', macro.group(1))
    kept = re.search(r'(\w+)\s*=\s*\[', header)
    if kept:
        return kept.group(1)
    match = re.search(r'([~\w:]+|operator\s*\S+?)\s*\(', header)
    return match.group(1) if match else header.strip()[:40]
