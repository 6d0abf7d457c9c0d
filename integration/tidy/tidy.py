#!/usr/bin/env python3
"""Holds the repository to its own picture: which room may include which, what a pure room may not touch, how long a file
and a function may be.

    tidy.py [ROOT]      all tracked files of the repository at ROOT (every file, where there is no git)

Prints `file:line: what: what to do` for each finding and exits 1 if there are any. Standard library only.
"""

import ast
import os
import subprocess
import sys

import cpp_source
import rules

CPP = ('.cc', '.h')
LIMITED = ('.cc', '.h', '.py', '.proto')
TEXT = LIMITED + ('.txt', '.cmake', '.md', '.sh', '.yaml', '.yml', '.json', '.toml', '')
SKIPPED_FOLDERS = ('build', '.', '__pycache__', 'node_modules')


class Tidy:
    def __init__(self, root):
        self.root = root
        self.findings = []

    def say(self, path, line, what, remedy):
        self.findings.append((path, line, f'{path}:{line}: {what}: {remedy}'))

    def run(self):
        for path in sources(self.root):
            self.check_file(path)
        return [text for _, _, text in sorted(self.findings)]

    def check_file(self, path):
        extension = os.path.splitext(path)[1]
        if extension not in TEXT:
            return
        try:
            with open(os.path.join(self.root, path), encoding='utf-8') as file:
                text = file.read()
        except UnicodeDecodeError:
            return
        self.check_words(path, text)
        if extension in LIMITED:
            self.check_length(path, text)
        if extension in ('.h', '.proto') and not text.lstrip().startswith(('//', '/*')):
            self.say(path, 1, 'opens without a comment', 'say first what this is for and what it promises')
        if extension in CPP:
            self.check_arrows(path, text)
            self.check_purity(path, text)
            self.check_functions(path, cpp_source.functions(text))
        if extension == '.py':
            self.check_functions(path, self.python_functions(path, text))

    def check_words(self, path, text):
        for number, line in enumerate(text.splitlines(), 1):
            unfinished = rules.UNFINISHED.search(line)
            if unfinished:
                self.say(path, number, f'{unfinished.group()} left in the source', 'do it, or file an issue')
            machine = rules.MACHINE_PATH.search(line)
            if machine:
                self.say(path, number, f'a path of one machine ({machine.group()}…)',
                         'take it from an option, the environment or the working directory')

    def check_length(self, path, text):
        lines = text.count('\n')
        if lines > rules.LINES_PER_FILE_MAX:
            self.say(path, rules.LINES_PER_FILE_MAX + 1,
                     f'{lines} lines, {rules.LINES_PER_FILE_MAX} are the most', 'split it by subject')

    def check_functions(self, path, functions):
        for name, first, last in functions:
            lines = last - first + 1
            if lines > rules.LINES_PER_FUNCTION_MAX:
                self.say(path, first, f'function {name} has {lines} lines, {rules.LINES_PER_FUNCTION_MAX} are the most',
                         'split it so that each part fits on a screen')

    def python_functions(self, path, text):
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            self.say(path, error.lineno or 1, f'is not Python ({error.msg})', 'correct it')
            return []
        return [(node.name, node.lineno, node.end_lineno) for node in ast.walk(tree)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    def check_arrows(self, path, text):
        room = room_of(path)
        if room is None:
            return
        for line, included in cpp_source.includes(text):
            target = 'proto' if included.startswith('muster/v1/') else room_of(included)
            if target and target != room and target not in rules.ARROWS[room]:
                allowed = ', '.join(sorted(rules.ARROWS[room])) or 'no other room'
                self.say(path, line, f'{room}/ includes {included}',
                         f'{room}/ may include {allowed}; move what is shared, or pass it in as a value')
            self.check_library(path, line, room, included)

    def check_library(self, path, line, room, included):
        for library, (prefixes, rooms) in rules.LIBRARIES.items():
            generated = library == 'gRPC' and included.endswith('.grpc.pb.h')
            if (included.startswith(prefixes) or generated) and room not in rooms:
                self.say(path, line, f'{room}/ includes {library} ({included})',
                         f'only {", ".join(sorted(rooms))} may')
        if included.startswith(rules.TEST_LIBRARIES) and not for_tests(path):
            self.say(path, line, f'{included} outside of a test', 'only *_test.cc and what serves tests may include it')

    def check_purity(self, path, text):
        room = room_of(path)
        if room not in rules.PURE or for_tests(path):
            return
        for line, included in cpp_source.includes(text):
            if included in rules.IMPURE_INCLUDES or included.startswith(rules.IMPURE_PREFIXES):
                self.say(path, line, f'pure room {room}/ includes <{included}>',
                         'no clock, thread, randomness or I/O here: take it as a value from the caller')
        code = cpp_source.without_literals(text)
        for number, line in enumerate(code.splitlines(), 1):
            for pattern, does in rules.IMPURE_CALLS:
                match = pattern.search(line)
                if match:
                    self.say(path, number, f'pure room {room}/ {does} ({match.group().strip()})',
                             'take it as a value from the caller')
            match = rules.FLOATS.search(line)
            if match and room in rules.INTEGERS_ONLY:
                self.say(path, number, f'{match.group()} in {room}/', 'decide with integers: milli, bytes, thousandths')


def room_of(path):
    """The room that a file lies in: 'queue/server/x.cc' → 'queue/server'; None outside of all."""
    parts = path.split('/')[:-1]
    if not parts or parts[0] not in rules.ARROWS:
        return None
    if len(parts) > 1:
        for deeper in ('/'.join(parts[:2]), parts[0] + '/*'):
            if deeper in rules.ARROWS:
                return deeper
    return parts[0]


def for_tests(path):
    name = os.path.basename(path)
    stem = os.path.splitext(name)[0]
    words = set(stem.split('_'))
    return bool(words & {'test', 'fuzz', 'bench', 'contract'}) or path.startswith('integration/')


def sources(root):
    try:
        listed = subprocess.run(['git', '-c', f'safe.directory={os.path.abspath(root)}', '-C', root, 'ls-files', '-z'],
                                capture_output=True, check=True, text=True).stdout
        paths = [path for path in listed.split('\0') if path]
    except (OSError, subprocess.CalledProcessError):
        paths = walked(root)
    return sorted(path for path in paths if os.path.isfile(os.path.join(root, path)))


def walked(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(SKIPPED_FOLDERS)]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else '.'
    findings = Tidy(root).run()
    for text in findings:
        print(text)
    if findings:
        print(f'tidy: {len(findings)} finding(s)', file=sys.stderr)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
