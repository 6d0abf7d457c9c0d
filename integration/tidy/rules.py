"""The rules that tidy holds the repository to, as data. They are docs/ARCHITECTURE's rooms and the style's limits."""

import re

LINES_PER_FILE_MAX = 500
LINES_PER_FUNCTION_MAX = 70

# What each room may include besides itself. A longer folder name goes before a shorter one.
ARROWS = {
    'proto': set(),
    'scheduler': {'proto'},
    'autoscale': {'scheduler', 'proto'},
    'autoscale/*': {'autoscale', 'scheduler', 'proto', 'storage'},
    'queue': {'scheduler', 'proto'},
    'queue/server': {'queue', 'scheduler', 'proto', 'storage'},
    'storage': {'proto'},
    'agent': {'proto'},
    'tools': {'proto', 'scheduler', 'autoscale', 'queue', 'queue/server', 'storage', 'agent'},
    'integration': {'proto', 'scheduler', 'autoscale', 'queue', 'queue/server', 'storage', 'agent', 'tools'},
}
PURE = {'scheduler', 'autoscale', 'queue'}
# Rooms in which a number that is not an integer could decide something.
INTEGERS_ONLY = {'scheduler', 'queue'}

# Libraries that only some rooms may include, by the beginning of the include's path.
LIBRARIES = {
    'gRPC': (('grpc/', 'grpcpp/', 'grpc++/'), {'queue/server', 'agent', 'autoscale/*', 'tools', 'integration'}),
    'RocksDB': (('rocksdb/',), {'storage', 'tools', 'integration'}),
    'librdkafka': (('librdkafka/',), {'storage', 'tools', 'integration'}),
}
TEST_LIBRARIES = ('gtest/', 'gmock/', 'rapidcheck', 'benchmark/')

IMPURE_INCLUDES = {
    'thread', 'mutex', 'shared_mutex', 'condition_variable', 'future', 'semaphore', 'latch', 'barrier', 'stop_token',
    'atomic', 'chrono', 'ctime', 'time.h', 'random', 'fstream', 'iostream', 'filesystem', 'pthread.h', 'unistd.h',
    'fcntl.h', 'signal.h', 'csignal',
}
IMPURE_PREFIXES = ('sys/', 'absl/time/', 'absl/synchronization/', 'absl/random/', 'spdlog/', 'curl/', 'netinet/')
IMPURE_CALLS = [
    (re.compile(r'(?<![\w.>])(?:std::|::)?time\s*\(\s*(?:NULL|nullptr|0|&\w+)\s*\)'), 'reads a clock'),
    (re.compile(r'\b(?:clock_gettime|gettimeofday|clock_nanosleep|nanosleep|usleep)\s*\('), 'reads a clock'),
    (re.compile(r'\b\w*_clock\s*::\s*now\s*\('), 'reads a clock'),
    (re.compile(r'(?<![\w.>:])(?:std::|::)?s?rand\s*\(|(?<![\w.>:])::s?random\s*\('), 'uses randomness'),
    (re.compile(r'\b(?:random_device|mt19937(?:_64)?)\b'), 'uses randomness'),
    (re.compile(r'\b(?:secure_)?getenv\s*\('), 'reads the environment'),
    (re.compile(r'\bstd\s*::\s*(?:thread|mutex|atomic|async|this_thread)\b'), 'uses threads'),
    (re.compile(r'\bthread_local\b'), 'uses threads'),
    (re.compile(r'\b(?:fopen|std\s*::\s*[io]?fstream|std\s*::\s*c(?:out|in))\b'), 'does I/O'),
]
FLOATS = re.compile(r'\b(?:float|double)\b')

# Spelt in two parts, so that this file keeps its own rules.
UNFINISHED = re.compile(r'\b(?:' + '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK']) + r')\b')
MACHINE_PATH = re.compile(r'(?<![\w.~$}-])/(?:' + '|'.join(['wo' + 'rk', 'ro' + 'ot', 'ho' + r'me/\w+']) + r')/')
