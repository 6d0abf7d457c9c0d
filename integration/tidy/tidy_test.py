"""Plants one violation of each kind in a tree of its own and sees that tidy finds it, where it is and nothing else."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_source  # noqa: E402
import rules  # noqa: E402
import tidy  # noqa: E402

LONG = rules.LINES_PER_FUNCTION_MAX
MARK = 'TO' + 'DO'


def body(lines):
    return ''.join(f'  step({i});\n' for i in range(lines))


class Planted(unittest.TestCase):
    """Each case: the files of a tree, and what tidy should say of it (the beginning of each line)."""

    def check(self, files, *expected):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, 'w', encoding='utf-8') as file:
                    file.write(text)
            found = tidy.Tidy(root).run()
        self.assertEqual(len(found), len(expected), found)
        for text, beginning in zip(found, expected):
            self.assertTrue(text.startswith(beginning), f'{text!r} does not start with {beginning!r}')
            self.assertEqual(text.count(': ') >= 2, True, f'{text!r} does not say what to do')

    def test_a_clean_tree_has_no_findings(self):
        self.check({
            'scheduler/a.h': '// What it is for.\n#pragma once\n#include <vector>\n#include "proto/chain.h"\n',
            'scheduler/a_test.cc': '#include <gtest/gtest.h>\n#include <chrono>\n#include "scheduler/a.h"\n',
            'queue/server/b.cc': '#include <grpcpp/grpcpp.h>\n#include <thread>\n#include "storage/log.h"\n',
            'queue/c.cc': 'void E::random() {\n  state.time(0);\n  seed = random();\n  log("std::thread float getenv(");  // a double\n}\n',
            'tools/d.cc': '#include "queue/server/driver.h"\n#include <librdkafka/rdkafka.h>\n',
        })

    def test_arrows(self):
        self.check({'scheduler/a.cc': '\n#include "queue/state.h"\n'},
                   'scheduler/a.cc:2: scheduler/ includes queue/state.h: scheduler/ may include proto;')
        self.check({'queue/a_test.cc': '#include "storage/memory_log.h"\n'},
                   'queue/a_test.cc:1: queue/ includes storage/memory_log.h')
        self.check({'queue/a.cc': '#include "queue/server/driver.h"\n'}, 'queue/a.cc:1: queue/ includes queue/server/')
        self.check({'storage/a.cc': '#include "queue/state.h"\n'}, 'storage/a.cc:1: storage/ includes queue/state.h')
        self.check({'proto/a.cc': '#include "scheduler/planner.h"\n'}, 'proto/a.cc:1: proto/ includes scheduler/')
        self.check({'agent/a.cc': '#include "storage/log.h"\n'}, 'agent/a.cc:1: agent/ includes storage/log.h')
        self.check({'autoscale/a.cc': '#include "storage/log.h"\n'}, 'autoscale/a.cc:1: autoscale/ includes storage/')
        self.check({'autoscale/providers/a.cc': '#include "storage/log.h"\n#include <thread>\n'})
        self.check({'storage/a.cc': '#include "muster/v1/record.pb.h"\n'})

    def test_libraries(self):
        self.check({'storage/a.cc': '#include <grpcpp/grpcpp.h>\n'}, 'storage/a.cc:1: storage/ includes gRPC')
        self.check({'queue/a.h': '// x\n#include "muster/v1/service.grpc.pb.h"\n'}, 'queue/a.h:2: queue/ includes gRPC')
        self.check({'queue/server/a.cc': '#include <rocksdb/db.h>\n'}, 'queue/server/a.cc:1: queue/server/ includes Rock')
        self.check({'agent/a.cc': '#include <librdkafka/rdkafka.h>\n'}, 'agent/a.cc:1: agent/ includes librdkafka')
        self.check({'agent/a.cc': '#include <gtest/gtest.h>\n'}, 'agent/a.cc:1: gtest/gtest.h outside of a test')

    def test_pure_rooms(self):
        for included in ('thread', 'mutex', 'chrono', 'atomic', 'fstream', 'iostream', 'random', 'sys/stat.h'):
            self.check({'queue/a.cc': f'#include <{included}>\n'}, f'queue/a.cc:1: pure room queue/ includes <{included}>')
        for code in ('time(nullptr)', 'std::time(0)', 'clock_gettime(CLOCK_REALTIME, &t)', 'rand()', 'getenv("X")',
                     'std::chrono::steady_clock::now()', 'std::mutex m', 'fopen("x", "r")', 'std::cout << 1'):
            self.check({'scheduler/a.cc': f'void f() {{\n  {code};\n}}\n'}, 'scheduler/a.cc:2: pure room scheduler/ ')
        self.check({'queue/apply.cc': 'bool f() { return\n 0.5 < double(1); }\n'}, 'queue/apply.cc:2: double in queue/')
        self.check({'queue/server/a.cc': 'double f() { return clock_gettime(0, 0); }\n'})

    def test_functions(self):
        long = 'namespace a {\n\nint f(int a,\n      int b) {\n' + body(LONG) + '}\n}\n'
        self.check({'agent/a.cc': long}, f'agent/a.cc:3: function f has {LONG + 3} lines')
        self.check({'agent/a.cc': 'int f() {\n' + body(LONG - 2) + '}\n' + 'int g() {\n' + body(LONG - 2) + '}\n'})
        member = 'struct S {\n  S() : a_{1},\n        b_(2) {\n' + body(LONG) + '  }\n};\n'
        self.check({'agent/a.cc': member}, f'agent/a.cc:2: function S has {LONG + 3} lines')
        test = 'TEST(Group, name) {\n' + body(LONG) + '}\n'
        self.check({'agent/a_test.cc': test}, f'agent/a_test.cc:1: function TEST(Group, name) has {LONG + 2} lines')
        template = 'template <typename T, typename = std::enable_if_t<(sizeof(T) > 4)>>\nclass C {\n' + 90 * '  int a;\n'
        self.check({'agent/a.cc': template + '};\n'})
        self.check({'agent/a.cc': 'const std::map<int, int> kTable = {\n' + 90 * '  {1, 2},\n' + '};\n'})
        python = 'def f():\n' + LONG * '    pass\n'
        self.check({'integration/a.py': python}, f'integration/a.py:1: function f has {LONG + 1} lines')
        self.check({'integration/a.py': 'def f(:\n'}, 'integration/a.py:1: is not Python')

    def test_files_and_words(self):
        self.check({'agent/a.cc': 501 * 'int a;\n'}, 'agent/a.cc:501: 501 lines, 500 are the most')
        self.check({'agent/a.cc': 500 * 'int a;\n'})
        self.check({'agent/a.cc': f'// {MARK} later\n'}, f'agent/a.cc:1: {MARK} left in the source')
        self.check({'docs/a.md': f'\n{"X" + "XX"}: later\nXXXXXX\n'}, 'docs/a.md:2: ')
        self.check({'dev.sh': 'cd /wo' + 'rk/main\n'}, 'dev.sh:1: a path of one machine (/wo' + 'rk/…)')
        self.check({'dev.sh': 'cd $HERE/wo' + 'rk/main; mkdir ./work/x network/work/\n'})
        self.check({'agent/a.h': '#pragma once\n'}, 'agent/a.h:1: opens without a comment')


class Functions(unittest.TestCase):
    def test_what_is_one_function_and_what_is_not(self):
        text = '''
#define BLOCK(x) {
namespace a::b {
struct S : T<int> {
  bool operator==(const S&) const = default;
  S(int a, int b = 2) noexcept : T{a}, c_{b} { go(); }
  auto get() const -> int { return c_; }
  std::vector<int> list{1, 2};
  int c_ = 0;
};
enum class E { kA, kB };
struct S* make(const char* text = "} {") {
  const auto f = [](int x) { return x; };  // }
  return nullptr;
}
template <typename T>
bool operator<(const T& a, const T& b) {
  return R"(})" == a || '{' == b || 1'000 < b;
}
extern "C" {
int c() { return 1; }
}
std::function<void()> kept = [] { run(); };
}
'''
        self.assertEqual([name for name, _, _ in cpp_source.functions(text)],
                         ['S', 'get', 'make', 'operator<', 'c', 'kept'])
        lines = {name: (first, last) for name, first, last in cpp_source.functions(text)}
        self.assertEqual(lines['make'], (12, 15))
        self.assertEqual(lines['operator<'], (16, 19))


if __name__ == '__main__':
    unittest.main()
